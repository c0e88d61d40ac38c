/**
 * One request over HTTP, as chunks. Whatever goes wrong is the last chunk; only the caller's abort ends the stream
 * without one, unless a limit ran out before it. Stopping to read, for any reason, aborts the transport.
 */
import { ABORTED } from '../../../log/aborted.ts'
import type { LlmFailure, StreamChunk } from '../../../log/messages.ts'
import type { Clock } from '../../clock.ts'
import { LlmError } from '../../errors.ts'
import { failureOf, renderCauses } from '../../llm/failure.ts'
import { before } from './before.ts'
import { type Read, readerOf, readText } from './body.ts'
import { note } from './diagnostics.ts'
import type { Reading } from './dialect.ts'
import { discreet, discreetly, hiddenInNotes } from './discretion.ts'
import { patience } from './dispatcher.ts'
import { begun, contradicts, readOf, unwrapped } from './form.ts'
import { shownUrl } from './options.ts'
import { parsePayload, parseWire } from './payload.ts'
import { errorIn, failureOfFrame, failureOfStatus, requestIdIn } from './refusal.ts'
import type { ChatBody } from './serialize.ts'
import { createEventReader, type ServerEvent, tooLarge } from './sse.ts'
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
  if (reach.signal.aborted) return
  const exchange = openExchange(reach)
  let call: Call | undefined
  try {
    call = prepare()
    exchange.hidden = hiddenInNotes(call)
    // In batches: awaiting each chunk on its way through every function here costs more than all else that is done.
    for await (const batch of received(await send(call, exchange), call, exchange)) {
      for (const chunk of batch) {
        if (exchange.cancelled()) return
        yield chunk.type === 'finish' ? discreetly(chunk, call) : chunk
      }
    }
  } catch (thrown) {
    if (exchange.cancelled()) return
    yield* lastChunks(exchange, thrown, discreet(failureIn(exchange, thrown), call))
  } finally {
    exchange.close()
  }
}

/** Once the model has stopped for good the answer is whole, whatever becomes of the connection after that. */
function lastChunks({ translation, watchdog }: Exchange, thrown: unknown, failure: LlmFailure): readonly StreamChunk[] {
  // Not by its code: an error that the server reports may have the same, and is one.
  const isLost = thrown instanceof ConnectionLost || watchdog.expired !== undefined
  if (!isLost || !translation.closed) return translation.fail(failure)
  note('done-missing', failure.message)
  return translation.end()
}

/** One request under way. */
interface Exchange extends Omit<Reach, 'limits' | 'signal' | 'reading'> {
  readonly transport: AbortSignal
  /** No byte has to come within this time. */
  readonly longestWaitMs: number
  readonly watchdog: Watchdog
  readonly translation: Translation
  /** The caller's abort ended it, before any limit did. */
  cancelled(): boolean
  /** Kept for as long as notes may be made of this request. */
  hidden?: object
  /** Of the response, once there is one. */
  headers?: Headers
  /** What a status says. It stands, also where a limit ran out over the body. */
  refusal?: LlmFailure
  /** Aborts the transport, whether or not there is anything left of it. */
  close(): void
}

function openExchange({ signal, clock, limits, maxEventLength, reading }: Reach): Exchange {
  const transport = new AbortController()
  let aborted = false
  const abort = () => transport.abort(ABORTED)
  const cancel = () => {
    aborted = true
    abort()
  }
  signal.addEventListener('abort', cancel, { once: true })
  const watchdog = createWatchdog(limits, { clock, abort })
  return {
    transport: transport.signal,
    longestWaitMs: Math.max(limits.firstByteMs, limits.idleMs),
    clock,
    maxEventLength,
    watchdog,
    translation: createTranslation(reading),
    cancelled: () => aborted && watchdog.expired === undefined,
    close() {
      signal.removeEventListener('abort', cancel)
      abort()
    },
  }
}

const failureIn = ({ watchdog, headers, refusal }: Exchange, thrown: unknown): LlmFailure => ({
  ...(headers && requestIdIn(headers)),
  ...(refusal ?? watchdog.expired ?? failureOf(thrown)),
})

async function send(
  { endpoint, apiKey, body }: Call,
  { watchdog, transport, longestWaitMs }: Exchange,
): Promise<Response> {
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
    ...patience(longestWaitMs),
  }
  return carried(`No connection to ${shownUrl(endpoint)}`, () =>
    watchdog.during(() => before(transport, fetch(endpoint, request))),
  )
}

type Batch = Iterable<StreamChunk>

async function* received(response: Response, { endpoint }: Call, exchange: Exchange): AsyncGenerator<Batch> {
  const { watchdog } = exchange
  exchange.headers = response.headers
  const bytes = readerOf(response.body, exchange)
  const read: Read = () => carried(`The connection to ${shownUrl(endpoint)} broke`, bytes)
  if (!response.ok) {
    exchange.refusal = await refused(response, read, exchange)
    throw new LlmError(exchange.refusal)
  }
  const type = typeOf(response)
  const { form, read: body } = await begun(read, type)
  switch (form) {
    case 'events':
      if (contradicts(type, form)) note('mislabelled', type)
      return yield* events(body, exchange)
    case 'json':
      return yield* whole(response, body, exchange)
    case 'other': {
      const { text } = await readText(body, MAX_ERROR_BODY, watchdog)
      throw new LlmError(text.trim() === '' ? EMPTY : notAStream(response, text))
    }
  }
}

const typeOf = ({ headers }: Response): string => headers.get('content-type') ?? ''

/** A batch for each piece of the body. */
async function* events(read: Read, exchange: Exchange): AsyncGenerator<Batch> {
  const { translation, maxEventLength } = exchange
  const reader = createEventReader(maxEventLength)
  let beginning = ''
  let spoken = false
  for (;;) {
    const bytes = await read()
    if (bytes !== undefined && beginning.length < BEGINNING)
      beginning += latin1(bytes.subarray(0, BEGINNING - beginning.length))
    const chunks: StreamChunk[] = []
    let ended = false
    try {
      ended = takeAll(bytes === undefined ? [] : reader.take(bytes), { exchange, chunks })
    } finally {
      // Also what came before an event that fails.
      yield chunks
    }
    spoken ||= chunks.length > 0
    if (ended) return
    if (bytes === undefined) break
  }
  if (beginning === '') throw new LlmError(EMPTY)
  if (!translation.finished) throw new LlmError(closed(spoken ? '' : beginning))
  note('done-missing')
  yield translation.end()
}

function takeAll(events: Iterable<ServerEvent>, { exchange, chunks }: { exchange: Exchange; chunks: StreamChunk[] }) {
  const { translation, watchdog } = exchange
  for (const { data, event } of events) {
    const { payloads, done } = markedEnd(data)
    if (payloads !== '' || !done) {
      if (event === 'error' && !isObject(parseJson(payloads)?.value)) {
        throw new LlmError(failureOfFrame({ error: payloads }))
      }
      for (const payload of parsePayload(payloads)) {
        const failure = errorIn(payload, event)
        if (failure !== undefined) throw new LlmError(failure)
        for (const chunk of translation.take(payload)) chunks.push(chunk)
        if (translation.progressed) watchdog.sawProgress()
        if (translation.closed) watchdog.sawFinish()
      }
    }
    if (!done) continue
    chunks.push(...translation.end())
    return true
  }
  return false
}

const MARKER = '[DONE]'

/** The marker of the end has an event of its own, or its last line where a server forgets blank lines. */
function markedEnd(data: string): { readonly payloads: string; readonly done: boolean } {
  const trimmed = data.trimEnd()
  if (!trimmed.endsWith(MARKER)) return { payloads: data, done: false }
  const before = trimmed.slice(0, -MARKER.length)
  if (before.trim() === '') return { payloads: '', done: true }
  if (!before.endsWith('\n')) return { payloads: data, done: false }
  note('payloads-glued', data)
  return { payloads: before.trimEnd(), done: true }
}

/** A server that does not stream, or that has an error for everything, answers with one JSON text. */
async function* whole(response: Response, read: Read, exchange: Exchange): AsyncGenerator<Batch> {
  const { translation, watchdog, maxEventLength } = exchange
  const { text, cut } = await readText(read, maxEventLength, watchdog)
  if (cut) throw tooLarge(maxEventLength)
  if (text.trim() === '') throw new LlmError(EMPTY)
  const payload = parseWire(text.trim())?.value
  // By the standard a line of JSON among events is a field that nobody knows.
  if (payload === undefined && /^data:/m.test(text)) return yield* events(readOf(text), exchange)
  if (isObject(payload) && contradicts(typeOf(response), 'json')) note('mislabelled', typeOf(response))
  const failure = isObject(payload) ? errorIn(payload, undefined) : undefined
  if (failure !== undefined) throw new LlmError(failure)
  if (!isObject(payload) || !Array.isArray(payload.choices)) throw new LlmError(notAStream(response, text))
  yield [...translation.take(payload), ...translation.end()]
}

async function refused(response: Response, read: Read, { clock, watchdog }: Exchange): Promise<LlmFailure> {
  const { status, headers } = response
  const body = await readText(read, MAX_ERROR_BODY, watchdog).then(
    ({ text }) => unwrapped(text),
    // Of a body that stalls, breaks or cannot be inflated nothing is known, and the status has said enough.
    () => '',
  )
  return failureOfStatus({ status, headers, body, now: clock.now() })
}

const notAStream = (response: Response, body: string): LlmFailure => ({
  message: `The server answered with no stream, but with this (${typeOf(response) || 'no content type'}): ${body.trim().slice(0, SHOWN)}`,
  code: 'MALFORMED_RESPONSE',
  status: response.status,
})

const MAX_ERROR_BODY = 64 * 1024

/** Characters that are shown of what is no answer, and the bytes that they may take. */
const SHOWN = 120
const BEGINNING = 4 * SHOWN

/** The transport failed: the server said nothing of it. */
class ConnectionLost extends LlmError {}

/** What fetch or a read throws is a failure of transport; Node's own limits on waiting are timeouts too. */
async function carried<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (thrown) {
    if (thrown instanceof LlmError) throw thrown
    const causes = renderCauses(thrown)
    const code = /(?:Headers|Body|Connect) Timeout Error/.test(causes) ? 'TIMEOUT' : 'TRANSPORT'
    throw new ConnectionLost({ message: `${what}: ${causes}`, code }, { cause: thrown })
  }
}

const EMPTY: LlmFailure = Object.freeze({ message: 'The server sent an empty answer', code: 'EMPTY_RESPONSE' })

/** Of a stream that brought nothing, what it began with: a page or a proxy's words, whatever its content type. */
function closed(beginning: string): LlmFailure {
  const words = Buffer.from(beginning, 'latin1').toString().trim().slice(0, SHOWN)
  const shown = words === '' ? '' : `. It began with this: ${words}`
  return { message: `The stream ended before the model said it was done${shown}`, code: 'STREAM_CLOSED' }
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
