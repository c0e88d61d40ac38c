/**
 * Every small damage to a log: an event lost, told twice, or told before the one before it, and each field of each event
 * changed to another value its type may have. What is damaged is numbered anew, so that seqs give nothing away.
 */
import type { SessionEvent } from '../../src/log/events.ts'

export interface Damage {
  /** What was done, in words that are the same for every log: `drop turn/end`, `assistant/chunk attempt`. */
  readonly kind: string
  /** Where in the good log. */
  readonly seq: number
  readonly log: readonly SessionEvent[]
}

type Loose = { readonly [key: string]: unknown }

export function* damages(log: readonly SessionEvent[]): Generator<Damage> {
  yield* lost(log)
  yield* twice(log)
  yield* swapped(log)
  for (const event of log) yield* changed(log, event)
}

function* lost(log: readonly SessionEvent[]): Generator<Damage> {
  // Without its last event a log is one that ends earlier.
  for (const { seq, type } of log.slice(0, -1)) {
    yield { kind: `drop ${type}`, seq, log: renumbered(log.filter((event) => event.seq !== seq)) }
  }
}

function* twice(log: readonly SessionEvent[]): Generator<Damage> {
  for (const event of log) {
    yield { kind: `repeat ${event.type}`, seq: event.seq, log: renumbered(log.toSpliced(event.seq, 0, event)) }
  }
}

function* swapped(log: readonly SessionEvent[]): Generator<Damage> {
  for (const [seq, event] of log.entries()) {
    const next = log[seq + 1]
    if (next === undefined) return
    yield { kind: `swap ${event.type} ${next.type}`, seq, log: renumbered(log.toSpliced(seq, 2, next, event)) }
  }
}

/** Seqs count from 0 and what refers to them follows; times stay those of the places. */
function renumbered(events: readonly SessionEvent[]): readonly SessionEvent[] {
  const times = events.map(({ time }) => time).sort((a, b) => a - b)
  const places = new Map<number, number>()
  for (const [place, { seq }] of events.entries()) if (!places.has(seq)) places.set(seq, place)
  const moved = (seq: number): number => places.get(seq) ?? seq
  return events.map((event, seq) => {
    const { surfaceOp, sourceEventSeqs } = event
    return {
      ...event,
      seq,
      time: times[seq] ?? 0,
      ...(typeof surfaceOp === 'object'
        ? { surfaceOp: { op: surfaceOp.op, start: moved(surfaceOp.start), end: moved(surfaceOp.end) } }
        : {}),
      ...(sourceEventSeqs === undefined
        ? {}
        : { sourceEventSeqs: sourceEventSeqs.filter((at) => places.has(at)).map(moved) }),
    } as SessionEvent
  })
}

/** Each field, wherever in the event it lies, takes each other value that would do for it. */
function* changed(log: readonly SessionEvent[], event: SessionEvent): Generator<Damage> {
  const vocabulary = vocabularyOf(log)
  for (const { path, values } of changesOf(event, [], vocabulary)) {
    if (path.length === 1 && (path[0] === 'seq' || path[0] === 'time' || path[0] === 'type')) continue
    for (const value of values) {
      const damaged = value === GONE ? without(event, path) : withValue(event, path, value)
      yield {
        kind: `${event.type} ${nameOf(path)}${labelOf(value)}`,
        seq: event.seq,
        log: log.with(event.seq, damaged as SessionEvent),
      }
    }
  }
}

const nameOf = (path: readonly string[]): string =>
  path
    .filter((key) => key !== 'data' || path.length === 1)
    .map((key) => (/^\d+$/.test(key) ? '*' : key))
    .join('.')

const labelOf = (value: unknown): string =>
  value === GONE ? ' gone' : typeof value === 'string' && ENUM_VALUES.has(value) ? `=${value}` : ''

const GONE = Symbol('gone')

interface Change {
  readonly path: readonly string[]
  readonly values: readonly unknown[]
}

/** What a key may say instead. Where a log has none of its own, a key not named here is a free text. */
const ENUMS: Readonly<Record<string, readonly string[]>> = {
  queue: ['next-turn', 'next-step'],
  outcome: ['claimed', 'canceled'],
  onCrash: ['unknown', 'rerun', 'ask', 'probe'],
  mode: ['parallel', 'exclusive'],
  purpose: ['run', 'rerun'],
  decision: ['approved', 'denied', 'expired'],
  recovery: ['continue', 'interrupt'],
}
/** By the type of the event and where the kind stands. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'turn/end reason.kind': [
    'completed',
    'blocked',
    'error',
    'aborted',
    'max-tokens',
    'max-steps',
    'limit',
    'repeated-call',
    'interrupted',
    'stopped-by-policy',
  ],
  'step/end outcome.kind': ['completed', 'tool-calls', 'concluded', 'max-tokens', 'aborted', 'interrupted', 'error'],
  'turn/cancel cause.kind': ['user', 'parent', 'hook', 'limit', 'repeated-call', 'disposed'],
  'assistant/message finish.kind': ['stop', 'tool-calls', 'max-tokens'],
  'assistant/chunk chunk.reason.kind': ['stop', 'tool-calls', 'max-tokens', 'error', 'aborted'],
  'assistant/chunk chunk.blockType': ['text', 'reasoning', 'tool-call'],
}
const ENUM_VALUES: ReadonlySet<string> = new Set([...Object.values(ENUMS), ...Object.values(KINDS)].flat())

/** Whatever a kind may need, so that a changed kind still has the shape of its new one. */
const FACTS = {
  error: { message: 'm', code: 'SERVER' },
  failure: { message: 'm', code: 'SERVER' },
  cause: { kind: 'user' },
  maxSteps: 2,
  limit: { name: 'tokens', scope: 'turn', max: 100, spent: 120 },
  name: 'look',
  count: 3,
  policy: 'p',
  reason: 'r',
}

/** Optional keys, and what they say when they are there. */
const OPTIONAL: Readonly<Record<string, Loose>> = {
  'agent/inbox/spliced': { outcome: 'canceled', wake: true },
  'turn/cancel': { keepInbox: true },
  'assistant/message': { interrupted: true, usage: { inputTokens: 1, outputTokens: 1 } },
  'tool/result': { error: { name: 'E', code: 'E' }, concludesTurn: true, meta: 1 },
  'session/resumed': { cause: 'recovery-limit' },
  'tool/approval-requested': { expiresAt: 99_999 },
  'tool/approval-resolved': { by: 'somebody', reason: 'r' },
  'assistant/chunk': { request: 'sha256:0' },
}

type Vocabulary = { readonly ids: ReadonlyMap<string, readonly string[]> }

/** The ids of the log, by the key they stand under: one may be taken for another. */
function vocabularyOf(log: readonly SessionEvent[]): Vocabulary {
  const ids = new Map<string, Set<string>>()
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (typeof inner === 'string' && IDS.has(key)) {
        const set = ids.get(key) ?? new Set()
        ids.set(key, set.add(inner))
      }
      walk(inner)
    }
  }
  walk(log)
  return { ids: new Map([...ids].map(([key, set]) => [key, [...set]])) }
}

const IDS: ReadonlySet<string> = new Set(['id', 'callId', 'toolCallId', 'retryId'])

function* changesOf(value: unknown, path: readonly string[], vocabulary: Vocabulary, type = ''): Generator<Change> {
  if (Array.isArray(value)) {
    if (value.length > 0) yield { path, values: [value.slice(1), [...value, value[0]]] }
    if (value.length > 1) yield { path, values: [value.toReversed()] }
    for (const [index, item] of value.entries()) yield* changesOf(item, [...path, String(index)], vocabulary, type)
  } else if (typeof value === 'object' && value !== null) {
    const record = value as Loose
    const of = path.length === 0 ? String(record.type) : type
    for (const [key, inner] of Object.entries(record)) yield* changesOf(inner, [...path, key], vocabulary, of)
    if (path.join() === 'data') yield* optionalChanges(record, path, of)
  } else yield { path, values: valuesFor(value, path, type, vocabulary) }
}

function* optionalChanges(record: Loose, path: readonly string[], type: string): Generator<Change> {
  for (const [key, there] of Object.entries(OPTIONAL[type] ?? {})) {
    yield { path: [...path, key], values: [key in record ? GONE : there] }
  }
}

function valuesFor(value: unknown, path: readonly string[], type: string, { ids }: Vocabulary): readonly unknown[] {
  const key = path.at(-1) ?? ''
  if (typeof value === 'number') return value > 0 ? [value - 1, value + 1] : [value + 1]
  if (typeof value === 'boolean') return path.length === 1 ? [GONE] : []
  if (typeof value !== 'string') return []
  const kinds = KINDS[`${type} ${nameOf(path)}`] ?? ENUMS[key]
  if (kinds) return kinds.filter((other) => other !== value)
  if (IDS.has(key)) return [...(ids.get(key) ?? []).filter((other) => other !== value).slice(0, 4), 'another']
  if (key === 'arguments' || key === 'argumentsDelta') return [`${value} `, '{"other":1}']
  return key === 'request' || key === 'argumentsDigest' ? ['sha256:another'] : [`${value} and more`]
}

function withValue(value: unknown, path: readonly string[], to: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return to
  if (Array.isArray(value)) return value.with(Number(key), withValue(value[Number(key)], rest, to))
  const record = value as Loose
  const facts = key === 'kind' && rest.length === 0 ? FACTS : {}
  return { ...facts, ...record, [key]: withValue(record[key], rest, to) }
}

function without(value: unknown, path: readonly string[]): unknown {
  const [key = '', ...rest] = path
  const record = value as Loose
  if (rest.length > 0) return { ...record, [key]: without(record[key], rest) }
  const { [key]: _, ...left } = record
  return left
}
