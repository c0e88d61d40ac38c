/**
 * One request over HTTP, as chunks. Whatever goes wrong is the last chunk; only the caller's abort ends the stream
 * without one, unless a limit ran out before it. Stopping to read, for any reason, aborts the transport.
 */
import type { LlmFailure, StreamChunk } from '../../../log/messages.ts'
import type { Clock } from '../../clock.ts'
import { LlmError } from '../../errors.ts'
import { failureOf, renderCauses } from '../../llm/failure.ts'
import { type Pull, readBody } from './body.ts'
import { note } from './diagnostics.ts'
import type { Reading } from './dialect.ts'
import { shownUrl } from './options.ts'
import { parsePayload, parseWire } from './payload.ts'
import { errorIn, failureOfFrame, failureOfStatus, requestIdIn } from './refusal.ts'
import type { ChatBody } from './serialize.ts'
import { readEvents, type ServerEvent, tooLarge } from './sse.ts'
import { createTranslation, type Translation } from './translate.ts'
import { createWatchdog, type Limits, type Watchdog } from './watchdog.ts'
import { isObject, parseJson } from './wire-json.ts'

/** All of one request: made once per call, so a key or an address that changes is seen by the next one. */
export interface Call {
  readonly endpoint: URL
  /** Absent for a server that asks for none. */
  readonly apiKey?: string
  readonly body: ChatBody
}

export interface Reach {
  readonly signal: AbortSignal
  readonly limits: Limits
  readonly maxEventLength: number
  readonly clock: Clock
  /** How this server's answers are read. */
  readonly reading?: Reading
}

/** Makes the request that `prepare` gives and streams its answer; an LlmError of `prepare` is the failure. */
export async function* streamCompletion(prepare: () => Call, reach: Reach): AsyncGenerator<StreamChunk> {
  const { signal, clock, limits, maxEventLength, reading } = reach
  if (signal.aborted) return
  const transport = new AbortController()
  const abort = () => transport.abort()
  signal.addEventListener('abort', abort, { once: true })
  const watchdog = createWatchdog(limits, { clock, abort })
  const exchange = { signal, clock, maxEventLength, watchdog, transport: transport.signal }
  try {
    for await (const chunk of answer(prepare, { ...exchange, translation: createTranslation(reading) })) {
      if (signal.aborted && watchdog.expired === undefined) return
      yield chunk
    }
  } finally {
    signal.removeEventListener('abort', abort)
    abort()
  }
}

/** One request under way. */
interface Exchange extends Omit<Reach, 'limits' | 'reading'> {
  readonly transport: AbortSignal
  readonly watchdog: Watchdog
  readonly translation: Translation
}

async function* answer(prepare: () => Call, exchange: Exchange): AsyncGenerator<StreamChunk> {
  const { translation, watchdog } = exchange
  let call: Call | undefined
  try {
    call = prepare()
    yield* received(await send(call, exchange), call, exchange)
  } catch (thrown) {
    if (exchange.signal.aborted && watchdog.expired === undefined) return
    yield* translation.fail(discreet(watchdog.expired ?? failureOf(thrown), call))
  }
}

async function send({ endpoint, apiKey, body }: Call, { watchdog, transport }: Exchange): Promise<Response> {
  const request = {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'user-agent': 'pawl',
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify(body),
    // A redirect would carry the conversation to a place nobody configured.
    redirect: 'manual' as const,
    signal: transport,
  }
  return carried(`No connection to ${shownUrl(endpoint)}`, () => watchdog.during(() => fetch(endpoint, request)))
}

async function* received(response: Response, { endpoint }: Call, exchange: Exchange): AsyncGenerator<StreamChunk> {
  const { watchdog } = exchange
  const lost = `The connection to ${shownUrl(endpoint)} broke`
  const pull: Pull = (read) => carried(lost, () => watchdog.during(read))
  try {
    if (!response.ok) throw new LlmError(await refused(response, pull, exchange))
    const type = (response.headers.get('content-type') ?? '').toLowerCase()
    if (/html|xml/.test(type)) throw new LlmError(await mistyped(response, type, pull))
    yield* /\bjson\b/.test(type) ? whole(response, pull, exchange) : events(response, pull, exchange)
  } catch (thrown) {
    if (!(thrown instanceof LlmError)) throw thrown
    throw new LlmError({ ...requestIdIn(response.headers), ...thrown.failure }, { cause: thrown })
  }
}

async function* events({ body }: Response, pull: Pull, exchange: Exchange): AsyncGenerator<StreamChunk> {
  const { translation, watchdog, maxEventLength } = exchange
  let bytes = false
  const onBytes = () => {
    bytes = true
    watchdog.sawByte()
  }
  const reading = readEvents(body ?? [], { maxEventLength, onBytes })
  for (;;) {
    const next = await pull(() => reading.next())
    if (next.done) break
    if (next.value.data.trim() === '[DONE]') return yield* translation.end()
    yield* taken(next.value, translation)
  }
  if (!bytes) throw new LlmError(EMPTY)
  if (!translation.finished) throw new LlmError(CLOSED)
  note('done-missing')
  yield* translation.end()
}

function* taken({ data, event }: ServerEvent, translation: Translation): Generator<StreamChunk> {
  if (event === 'error' && !isObject(parseJson(data)?.value)) throw new LlmError(failureOfFrame({ error: data }))
  for (const payload of parsePayload(data)) {
    const failure = errorIn(payload, event)
    if (failure !== undefined) throw new LlmError(failure)
    yield* translation.take(payload)
  }
}

/** A server that does not stream, or that has an error for everything, answers with one JSON text. */
async function* whole(response: Response, pull: Pull, exchange: Exchange): AsyncGenerator<StreamChunk> {
  const { translation, maxEventLength } = exchange
  const { text, cut } = await readBody(response.body, maxEventLength, pull)
  if (cut) throw tooLarge(maxEventLength)
  if (text.trim() === '') throw new LlmError(EMPTY)
  const payload = parseWire(text.trim())?.value
  const failure = isObject(payload) ? errorIn(payload, undefined) : undefined
  if (failure !== undefined) throw new LlmError(failure)
  if (!isObject(payload) || !Array.isArray(payload.choices)) throw new LlmError(notAStream(response, text))
  yield* translation.take(payload)
  yield* translation.end()
}

async function refused({ status, headers, body }: Response, pull: Pull, { clock }: Exchange): Promise<LlmFailure> {
  const { text } = await readBody(body, MAX_ERROR_BODY, pull)
  return failureOfStatus({ status, headers, body: text, now: clock.now() })
}

const mistyped = async (response: Response, type: string, pull: Pull): Promise<LlmFailure> =>
  notAStream(response, (await readBody(response.body, MAX_ERROR_BODY, pull)).text, type)

const notAStream = ({ status }: Response, body: string, type = 'application/json'): LlmFailure => ({
  message: `The server answered with ${type}, not with a stream: ${body.trim().slice(0, 120)}`,
  code: 'MALFORMED_RESPONSE',
  status,
})

const MAX_ERROR_BODY = 64 * 1024

/** What fetch or a read throws is a failure of transport; Node's own limits on waiting are timeouts too. */
async function carried<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (thrown) {
    if (thrown instanceof LlmError) throw thrown
    const causes = renderCauses(thrown)
    const code = /(?:Headers|Body|Connect) Timeout Error/.test(causes) ? 'TIMEOUT' : 'TRANSPORT'
    throw new LlmError({ message: `${what}: ${causes}`, code }, { cause: thrown })
  }
}

const MAX_MESSAGE = 2_000

/** Shorter keys are placeholders for servers that ask for none, and words of ordinary messages. */
const SECRET_LENGTH = 8

/** A failure's message without the key and the query, should a server or a cause repeat them. */
function discreet(failure: LlmFailure, call: Call | undefined): LlmFailure {
  const secrets = [call?.apiKey ?? '', call?.endpoint.search ?? ''].filter(({ length }) => length >= SECRET_LENGTH)
  const message = secrets.reduce((text, secret) => text.replaceAll(secret, '[hidden]'), failure.message)
  return Object.freeze({ ...failure, message: message.slice(0, MAX_MESSAGE) })
}

const EMPTY: LlmFailure = Object.freeze({ message: 'The server sent an empty answer', code: 'EMPTY_RESPONSE' })

const CLOSED: LlmFailure = Object.freeze({
  message: 'The stream ended before the model said it was done',
  code: 'STREAM_CLOSED',
})
