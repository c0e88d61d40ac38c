/**
 * Deltas, most of any log. One that has its type's fields and nothing else, in their usual order, can be made again from
 * its place, its block and its piece of text; stores keep neighbours of one block together and say the rest once.
 */
import type { KnownEvent, SessionEvent } from '../events.ts'

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
export type PlainDelta = KnownEvent<'assistant/chunk'> & {
  readonly data: {
    readonly chunk: {
      readonly type: DeltaType
      readonly index: number
      readonly text?: string
      readonly argumentsDelta?: string
    }
  }
}

/** Whether `event` is a plain delta, and nothing more or other. Nothing is made to tell: every delta comes by here. */
export function isPlainDelta(event: SessionEvent): event is PlainDelta {
  if (event.type !== 'assistant/chunk' || !hasKeys(event, ENVELOPE) || !isCount(event.time)) return false
  const { data } = event
  if (!hasKeys(data, DATA) || !isOrdinal(data.turn) || !isOrdinal(data.step) || !isOrdinal(data.attempt)) return false
  const { chunk } = data
  if (!isObject(chunk)) return false
  if (chunk.type === 'tool-call-delta') {
    return hasKeys(chunk, ARGUMENTS) && isCount(chunk.index) && typeof chunk.argumentsDelta === 'string'
  }
  if (chunk.type !== 'text-delta' && chunk.type !== 'reasoning-delta') return false
  return hasKeys(chunk, TEXT) && isCount(chunk.index) && typeof chunk.text === 'string'
}

export const deltaText = ({ data: { chunk } }: PlainDelta): string => chunk.text ?? chunk.argumentsDelta ?? ''

export function blockOf({ data }: PlainDelta): DeltaBlock {
  const { turn, step, attempt, chunk } = data
  return { turn, step, attempt, type: chunk.type, index: chunk.index }
}

export const isOfBlock = ({ data }: PlainDelta, block: DeltaBlock): boolean =>
  data.chunk.index === block.index &&
  data.chunk.type === block.type &&
  data.attempt === block.attempt &&
  data.step === block.step &&
  data.turn === block.turn

/** The delta of `block` at `seq` that says `text`; not frozen. */
export function deltaEvent(block: DeltaBlock, seq: number, time: number, text: string): SessionEvent {
  const { turn, step, attempt, type, index } = block
  const chunk = type === 'tool-call-delta' ? { type, index, argumentsDelta: text } : { type, index, text }
  return { type: 'assistant/chunk', seq, time, data: { turn, step, attempt, chunk } }
}

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
export const isCount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && Number.isSafeInteger(value)
/** An integer from 1. */
export const isOrdinal = (value: unknown): value is number => isCount(value) && value >= 1
