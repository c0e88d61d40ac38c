/**
 * One request to a model of the AI SDK, as chunks. Whatever goes wrong is the last chunk; only the caller's abort ends
 * the stream without one. A model that heeds neither an abort nor a limit is left, and what it says then is nothing.
 */
import { ABORTED } from '../../../log/aborted.ts'
import type { StreamChunk } from '../../../log/messages.ts'
import type { Clock } from '../../clock.ts'
import { LlmError } from '../../errors.ts'
import { before } from '../chat-completions/before.ts'
import { createWatchdog, type Limits, type Watchdog } from '../chat-completions/watchdog.ts'
import { isObject, type WireObject } from '../chat-completions/wire-json.ts'
import { failureOfModel } from './failure.ts'
import { CLOSED, NOTHING } from './finish.ts'
import type { PartReader, PartStream } from './model.ts'
import { isAnswer } from './parts.ts'
import { createTranslation, type Translation } from './translate.ts'

export interface Reach {
  readonly signal: AbortSignal
  readonly limits: Limits
  readonly clock: Clock
  /** The most that one part may weigh, in characters. */
  readonly maxEventLength: number
  /** Names of the tools that the model may ask for. */
  readonly tools: ReadonlySet<string>
}

/** Asks with `begin`, whose signal ends the request at its provider, and streams the answer. */
export async function* streamParts(
  begin: (transport: AbortSignal) => Promise<PartStream>,
  { signal, limits, clock, maxEventLength, tools }: Reach,
): AsyncGenerator<StreamChunk> {
  if (signal.aborted) return
  const transport = new AbortController()
  const abort = () => transport.abort(ABORTED)
  signal.addEventListener('abort', abort, { once: true })
  const watchdog = createWatchdog(limits, { clock, abort })
  const translation = createTranslation(tools, maxEventLength)
  const exchange: Exchange = { transport: transport.signal, watchdog, translation, headers: {} }
  try {
    for await (const chunk of answer(begin, exchange)) {
      if (signal.aborted && watchdog.expired === undefined) return
      yield chunk
      if (chunk.type === 'finish') return
    }
  } catch (thrown) {
    if (signal.aborted && watchdog.expired === undefined) return
    const { headers } = exchange
    const failure = watchdog.expired ?? failureOfModel(thrown, { headers, id: translation.id, now: clock.now() })
    yield { type: 'finish', reason: { kind: 'error', failure } }
  } finally {
    signal.removeEventListener('abort', abort)
    abort()
  }
}

/** One request under way. */
interface Exchange {
  readonly transport: AbortSignal
  readonly watchdog: Watchdog
  readonly translation: Translation
  /** Of the response, once there is one. */
  headers: { readonly [name: string]: string }
}

async function* answer(
  begin: (transport: AbortSignal) => Promise<PartStream>,
  exchange: Exchange,
): AsyncGenerator<StreamChunk> {
  const { transport, watchdog, translation } = exchange
  const { stream, response } = await watchdog.during(() => before(transport, begin(transport), discard))
  exchange.headers = response?.headers ?? {}
  watchdog.sawByte()
  const reader = stream.getReader()
  const read = paced(reader)
  let said = false
  try {
    for (;;) {
      const part = await watchdog.during(() => before(transport, nextAnswer(read, translation)))
      if (part === undefined) throw new LlmError(said ? CLOSED : NOTHING)
      if (part.type === 'error') throw part.error
      watchdog.sawProgress()
      said = true
      yield* translation.take(part)
    }
  } finally {
    cancelled(() => reader)
  }
}

/** Parts may pass without the event loop, and only so many do: an abort and the limits on waiting come from there. */
const RUN = 1_000

function paced(reader: PartReader): PartReader['read'] {
  let read = 0
  return async () => {
    if (++read % RUN === 0) await new Promise(setImmediate)
    return reader.read()
  }
}

/** The next part that brings the answer on; the others are taken on the way. Undefined at the end. */
async function nextAnswer(read: PartReader['read'], translation: Translation): Promise<WireObject | undefined> {
  for (;;) {
    const { done, value } = await read()
    if (done) return undefined
    const part = isObject(value) ? value : {}
    if (isAnswer(part)) return part
    translation.take(part)
  }
}

const discard = ({ stream }: PartStream): void => cancelled(() => stream.getReader())

/** Not awaited: it may never end. Why it could not be cancelled is of no interest: it has been left. */
const cancelled = (reader: () => PartReader): void =>
  void Promise.resolve()
    .then(() => reader().cancel())
    .catch(() => {})
