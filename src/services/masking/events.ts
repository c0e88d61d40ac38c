/**
 * What a mask does to the data of an event: every string of it, save those that name something. An id, a tool or a
 * digest that changed would no longer be found, so those are never masked; what may hold a secret is none of them.
 */
import { KNOWN } from '../../log/events.ts'
import { frozenJson, type Json } from '../../log/json.ts'
import type { StreamChunk } from '../../log/messages.ts'
import type { RequestHeader } from '../../log/requests.ts'
import type { CallResult } from '../verdicts.ts'
import type { Mask, TextKind } from './mask.ts'

type Fields = { readonly [key: string]: Json }

/** Keys of Pawl's own data whose strings name, place or tell apart. */
const NAMES: ReadonlySet<string> = new Set([
  'type',
  'kind',
  'role',
  'id',
  'callId',
  'toolCallId',
  'retryId',
  'name',
  'code',
  'provider',
  'model',
  'plugin',
  'form',
  'hook',
  'blockType',
  'mode',
  'queue',
  'mutation',
  'outcome',
  'decision',
  'purpose',
  'onCrash',
  'recovery',
  'cause',
  'scope',
  'policyKey',
  'request',
  'argumentsDigest',
  'version',
  'chart',
])

/** Keys of Pawl's own data under which stands the JSON of others, masked by its keys as well. */
const FOREIGN: ReadonlySet<string> = new Set(['meta', 'attachment'])

/** Schemas, and what a provider wants back as it was: only registered values are masked in them. */
const OPAQUE: ReadonlySet<string> = new Set(['parameters', 'replayState'])

/**
 * The data with its secrets masked; itself if it has none. Deltas pass as they are: the stream they belong to was
 * masked before it was cut into them.
 */
export function maskEvent(mask: Mask, type: string, data: Json): Json {
  if (type === 'assistant/chunk') return isDelta(data) ? data : masked(mask, data, 'text')
  if (!KNOWN.has(type)) return mask.json(data)
  if (type !== 'tool/late-result' || !isFields(data)) return masked(mask, data, 'text')
  return withFields(data, (key, value) => (key === 'outcome' ? mask.json(value) : value))
}

/** A call's result as it may be recorded: what is text there is often JSON. */
export const maskResult = (mask: Mask, result: CallResult): CallResult =>
  masked(mask, result as unknown as Json, 'json') as unknown as CallResult

/** A request's header as it may be recorded. @throws NotJson */
export const maskHeader = (mask: Mask, header: RequestHeader): RequestHeader =>
  masked(mask, frozenJson(header) as unknown as Json, 'text') as unknown as RequestHeader

/** A chunk that is whole in itself: no delta. @throws NotJson */
export const maskChunk = <T extends StreamChunk>(mask: Mask, chunk: T): T =>
  masked(mask, frozenJson(chunk, 'assistant/chunk: data.chunk') as unknown as Json, 'text') as unknown as T

/** What stands in a delta beside its `said`, which is masked as a part of its stream. */
export const maskBeside = <T extends StreamChunk>(mask: Mask, delta: T, said: 'text' | 'argumentsDelta'): T =>
  withFields(delta as unknown as Fields, (key, value) =>
    key === said || NAMES.has(key) ? value : masked(mask, value, 'text'),
  ) as unknown as T

const isFields = (value: Json | undefined): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isDelta(data: Json): boolean {
  const chunk = isFields(data) ? data.chunk : undefined
  return isFields(chunk) && typeof chunk.type === 'string' && chunk.type.endsWith('-delta')
}

/** Pawl's own data: what it says is masked, what it names is not. */
function masked(mask: Mask, value: Json, kind: TextKind): Json {
  if (typeof value === 'string') return mask.text(value, kind)
  if (typeof value !== 'object' || value === null) return value
  if (!isFields(value)) return maskedList(mask, value as readonly Json[], kind)
  const { type } = value
  const opaque = typeof type === 'string' && type.includes('/')
  const inside = type === 'tool-result' ? 'json' : kind
  return withFields(value, (key, item) => {
    if (typeof item === 'string' && NAMES.has(key)) return item
    if (opaque || FOREIGN.has(key)) return mask.json(item)
    if (OPAQUE.has(key)) return mask.values(item)
    return masked(mask, item, key === 'arguments' ? 'json' : inside)
  })
}

function maskedList(mask: Mask, list: readonly Json[], kind: TextKind): Json {
  let changed: Json[] | undefined
  for (let i = 0; i < list.length; i++) {
    const item = list[i] as Json
    const next = masked(mask, item, kind)
    if (next === item) continue
    changed ??= [...list]
    changed[i] = next
  }
  return changed ?? list
}

function withFields(fields: Fields, change: (key: string, value: Json) => Json): Json {
  let changed: Record<string, Json> | undefined
  for (const key in fields) {
    const value = fields[key] as Json
    const next = change(key, value)
    if (next === value) continue
    // `fromEntries` defines each key, `__proto__` too: as data.
    changed ??= Object.fromEntries(Object.entries(fields))
    Object.defineProperty(changed, key, { value: next, enumerable: true, writable: true, configurable: true })
  }
  return changed ?? fields
}
