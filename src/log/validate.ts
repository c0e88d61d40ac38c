/**
 * What may enter the log, and what may be read back from it. An event is checked whole before it gets a place, so a
 * refused one leaves nothing behind. Runs for every chunk of every answer: no schemas, no regular expressions.
 */
import { InvalidEvent, InvalidLog, LogTooNew, NotJson, TooLarge } from './errors.ts'
import type { EventType, SessionEvent, SurfaceOp } from './events.ts'
import { KNOWN, MAX_EVENT_BYTES, SURFACE } from './events.ts'
import type { Json } from './json.ts'
import { toJson, utf8Bytes } from './json.ts'
import { SHAPES } from './shapes.ts'

/** The envelope's optional keys. */
export interface EventMarks {
  readonly surfaceOp?: SurfaceOp
  readonly sourceEventSeqs?: readonly number[]
  readonly ignorable?: true
}

/** An event that may be recorded as it is: data copied and frozen. `placed` gives it its place. */
export interface ValidEvent {
  readonly type: string
  readonly data: Json
  readonly marks: EventMarks
}

type Envelope = { readonly [key: string]: unknown }

/**
 * Checks an event before it is recorded: envelope, data (copied, frozen), size.
 * @throws InvalidEvent, NotJson, or TooLarge over 1 MiB; each names the type and the place.
 */
export function validateNew(event: unknown): ValidEvent {
  const envelope = asEnvelope(event)
  const type = typeOf(envelope)
  checkKeys(type, envelope)
  if (!KNOWN.has(type)) checkPluginType(type, envelope.ignorable)
  const valid = { type, data: dataOf(type, envelope), marks: marksOf(type, envelope) }
  checkSize(valid)
  return valid
}

/**
 * A valid event in its place, frozen.
 * @throws InvalidEvent if a source event is not an earlier one.
 */
export function placed(valid: ValidEvent, seq: number, time: number): SessionEvent {
  const { type, data, marks } = valid
  if (marks === NO_MARKS) return Object.freeze({ type, seq, time, data }) as SessionEvent
  const late = marks.sourceEventSeqs?.find((source) => source >= seq)
  if (late !== undefined) throw new InvalidEvent(`${type}: source event ${late} is not earlier than seq ${seq}`)
  return Object.freeze({ type, seq, time, data, ...marks }) as SessionEvent
}

/**
 * Checks an event read back from a store or a file: the next one after `expectedSeq - 1`, not older than `lastTime`.
 * @returns the event in today's shape, copied and deep-frozen.
 * @throws InvalidLog with seq and rule: ENVELOPE, SEQ-CONTIGUOUS, TIME-MONOTONE or DATA. LogTooNew for an unknown type
 * that is not ignorable.
 */
export function validateStored(event: unknown, expectedSeq: number, lastTime: number): SessionEvent {
  const invalid = (rule: string, message: string) => new InvalidLog(expectedSeq, rule, message)
  const { seq, time, ...rest } = refusing(invalid, 'ENVELOPE', () => asEnvelope(upcast(event)))
  if (seq !== expectedSeq) throw invalid('SEQ-CONTIGUOUS', `expected seq ${expectedSeq}, found ${String(seq)}`)
  if (typeof time !== 'number' || !Number.isSafeInteger(time) || time < 0) {
    throw invalid('ENVELOPE', '`time` must be epoch milliseconds')
  }
  if (time < lastTime)
    throw invalid('TIME-MONOTONE', `time ${time} is before ${lastTime}, the time of the event before`)
  const type = refusing(invalid, 'ENVELOPE', () => typeOf(rest))
  if (!KNOWN.has(type) && rest.ignorable !== true) throw new LogTooNew({ type })
  const marks = refusing(invalid, 'ENVELOPE', () => {
    checkKeys(type, rest)
    return marksOf(type, rest)
  })
  const data = refusing(invalid, 'DATA', () => dataOf(type, rest))
  return refusing(invalid, 'ENVELOPE', () => placed({ type, data, marks }, expectedSeq, time))
}

type Upcaster = (event: Envelope) => unknown

/** From shapes of old logs to today's, by event type. Pure. Empty: no shape has changed yet. */
const UPCASTERS: ReadonlyMap<string, Upcaster> = new Map()

/** An event in today's shape; itself, if that is what it has. */
export function upcast(event: unknown): unknown {
  if (UPCASTERS.size === 0 || typeof event !== 'object' || event === null) return event
  const envelope = event as Envelope
  const upcaster = typeof envelope.type === 'string' ? UPCASTERS.get(envelope.type) : undefined
  return upcaster ? upcaster(envelope) : event
}

function refusing<T>(invalid: (rule: string, message: string) => InvalidLog, rule: string, body: () => T): T {
  try {
    return body()
  } catch (error) {
    if (error instanceof InvalidEvent || error instanceof NotJson) throw invalid(rule, error.message)
    throw error
  }
}

const NEW_KEYS: ReadonlySet<string> = new Set(['type', 'data', 'surfaceOp', 'sourceEventSeqs', 'ignorable'])
const NO_MARKS: EventMarks = Object.freeze({})

function asEnvelope(event: unknown): Envelope {
  if (typeof event === 'object' && event !== null && !Array.isArray(event)) return event as Envelope
  throw new InvalidEvent('an event must be an object { type, data }')
}

function typeOf(envelope: Envelope): string {
  if (typeof envelope.type === 'string' && envelope.type !== '') return envelope.type
  throw new InvalidEvent('an event must have a `type`, a string that is not empty')
}

function checkPluginType(type: string, ignorable: unknown): void {
  const slash = type.indexOf('/')
  if (slash > 0 && slash < type.length - 1 && ignorable === true) return
  throw new InvalidEvent(`${type}: unknown type; a plug-in's event is named "owner/name" and has \`ignorable: true\``)
}

function dataOf(type: string, envelope: Envelope): Json {
  const data = toJson(envelope.data, `${type}: data`)
  if (!isKnownType(type)) return data
  const wrong = SHAPES[type](data)
  if (wrong !== undefined) throw new InvalidEvent(`${type}: data${wrong}`)
  return data
}

const isKnownType = (type: string): type is EventType => KNOWN.has(type)

function checkKeys(type: string, envelope: Envelope): void {
  for (const key in envelope) {
    if (!NEW_KEYS.has(key)) throw new InvalidEvent(`${type}: unknown key "${key}" in its envelope`)
  }
}

function marksOf(type: string, envelope: Envelope): EventMarks {
  const { surfaceOp, sourceEventSeqs, ignorable } = envelope
  if (ignorable !== undefined && ignorable !== true) throw new InvalidEvent(`${type}: \`ignorable\` is true or absent`)
  if (!SURFACE.has(type)) {
    if (surfaceOp === undefined && sourceEventSeqs === undefined) return ignorable ? { ignorable } : NO_MARKS
    throw new InvalidEvent(`${type}: \`surfaceOp\` and \`sourceEventSeqs\` are only for messages and results`)
  }
  return {
    surfaceOp: surfaceOpOf(type, surfaceOp),
    ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs: sourcesOf(type, sourceEventSeqs) }),
    ...(ignorable ? { ignorable } : {}),
  }
}

function surfaceOpOf(type: string, value: unknown): SurfaceOp {
  if (value === 'append') return value
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 3) {
    const { op, start, end } = value as Envelope
    if (op === 'replace' && isSeq(start) && isSeq(end)) return Object.freeze({ op, start, end })
  }
  throw new InvalidEvent(`${type}: \`surfaceOp\` must be "append" or { op: "replace", start, end }`)
}

function sourcesOf(type: string, value: unknown): readonly number[] {
  if (!Array.isArray(value)) throw new InvalidEvent(`${type}: \`sourceEventSeqs\` must be an array`)
  const sources: unknown[] = [...value]
  if (sources.length === 0 && type !== 'assistant/message') {
    throw new InvalidEvent(`${type}: \`sourceEventSeqs\` must not be empty`)
  }
  if (!sources.every(isSeq) || new Set(sources).size !== sources.length) {
    throw new InvalidEvent(`${type}: \`sourceEventSeqs\` must be different seqs, integers from 0`)
  }
  return Object.freeze(sources)
}

const isSeq = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** What `seq` and `time` add to an event, at most. */
const PLACE_BYTES = 56

function checkSize(valid: ValidEvent): void {
  const { type, data, marks } = valid
  const rest = PLACE_BYTES + 64 + 6 * type.length + 18 * (marks.sourceEventSeqs?.length ?? 0)
  if (rest + atMost(data) <= MAX_EVENT_BYTES) return
  const bytes = PLACE_BYTES + utf8Bytes(JSON.stringify({ type, data, ...marks }))
  if (bytes > MAX_EVENT_BYTES) throw new TooLarge(`${type} event`, bytes, MAX_EVENT_BYTES)
}

/** An upper bound of the value's bytes as JSON, without making it: a code unit takes six at most (`\u001f`). */
function atMost(value: Json): number {
  if (typeof value === 'string') return 2 + 6 * value.length
  if (typeof value !== 'object' || value === null) return 25
  let bytes = 2
  if (Array.isArray(value)) {
    for (const item of value) bytes += 1 + atMost(item)
    return bytes
  }
  const record = value as { readonly [key: string]: Json }
  // `for in` walks up to the prototype as well, which in an upper bound does no harm, and makes no array.
  for (const key in record) bytes += 4 + 6 * key.length + atMost(record[key] ?? null)
  return bytes
}
