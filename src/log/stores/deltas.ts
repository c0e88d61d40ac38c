/**
 * Deltas, most of any log. One that has its type's fields and nothing else, in their usual order, can be made again from
 * its place, its block and its piece of text; stores keep neighbours of one block together and say the rest once.
 */
import type { SessionEvent } from '../events.ts'

export type DeltaType = 'text-delta' | 'reasoning-delta' | 'tool-call-delta'

/** What neighbouring deltas share. */
export interface DeltaBlock {
  readonly turn: number
  readonly step: number
  readonly attempt: number
  readonly type: DeltaType
  readonly index: number
}

/** A delta that can be made again. */
export interface PlainDelta {
  readonly block: DeltaBlock
  readonly time: number
  readonly text: string
}

/** What `event` is made of, or undefined if it is more or other than a plain delta. */
export function plainDelta(event: SessionEvent): PlainDelta | undefined {
  if (event.type !== 'assistant/chunk' || !hasKeys(event, ENVELOPE) || !isCount(event.time)) return undefined
  const { data, time } = event
  if (!hasKeys(data, DATA) || !isOrdinal(data.turn) || !isOrdinal(data.step) || !isOrdinal(data.attempt))
    return undefined
  const { turn, step, attempt, chunk } = data
  if (!isObject(chunk)) return undefined
  const { type } = chunk
  if (type !== 'text-delta' && type !== 'reasoning-delta' && type !== 'tool-call-delta') return undefined
  if (!hasKeys(chunk, type === 'tool-call-delta' ? ARGUMENTS : TEXT) || !isCount(chunk.index)) return undefined
  const text = type === 'tool-call-delta' ? chunk.argumentsDelta : chunk.text
  if (typeof text !== 'string') return undefined
  return { block: { turn, step, attempt, type, index: chunk.index }, time, text }
}

/** The delta at `seq` that says `text`, as `plainDelta` found it; not frozen. */
export function deltaEvent(block: DeltaBlock, seq: number, time: number, text: string): SessionEvent {
  const { turn, step, attempt, type, index } = block
  const chunk = type === 'tool-call-delta' ? { type, index, argumentsDelta: text } : { type, index, text }
  return { type: 'assistant/chunk', seq, time, data: { turn, step, attempt, chunk } }
}

export const isSameBlock = (one: DeltaBlock, other: DeltaBlock): boolean =>
  one.index === other.index &&
  one.type === other.type &&
  one.attempt === other.attempt &&
  one.step === other.step &&
  one.turn === other.turn

const ENVELOPE = ['type', 'seq', 'time', 'data']
const DATA = ['turn', 'step', 'attempt', 'chunk']
const TEXT = ['type', 'index', 'text']
const ARGUMENTS = ['type', 'index', 'argumentsDelta']

/** Exactly these keys, in this order. A store is given whatever a caller records, also what no session would. */
export function hasKeys(value: unknown, keys: readonly string[]): boolean {
  if (!isObject(value)) return false
  let i = 0
  // Every delta comes by here: `Object.keys` would make a list for each.
  for (const key in value) if (key !== keys[i++]) return false
  return i === keys.length
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An integer from 0. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0
/** An integer from 1. */
export const isOrdinal = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 1
