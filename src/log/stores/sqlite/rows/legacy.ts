/**
 * The encodings of 0.1.0, which are read for ever and not written any more. Both are a JSON array of events; in the second
 * an item that is itself an array is a run: neighbouring deltas of one block, which say once what they share.
 */
import type { SessionEvent } from '../../../events.ts'
import { Damaged } from './checked.ts'
import type { Span } from './unpacker.ts'

/** What the deltas of a run share: turn, step, attempt, type, index. */
type Shared = readonly [number, number, number, string, number]

/** The time of its first delta, what its deltas share, their texts, and the ms from each to the one before. */
type Run = readonly [time: number, shared: Shared, texts: readonly string[], later: readonly number[]]

/** The events of such a row whose text was parsed. @throws Damaged */
export function unpackLegacy(parsed: readonly unknown[], { first, last }: Span): SessionEvent[] {
  const events: SessionEvent[] = []
  for (const item of parsed) {
    if (!Array.isArray(item)) events.push(item as SessionEvent)
    else if (isRun(item)) unpackRun(item, first + events.length, events)
    else throw new Damaged('no run')
  }
  const isWrong = events.length !== last - first + 1 || events.some((event, i) => event?.seq !== first + i)
  if (isWrong) throw new Damaged('other events')
  return events
}

function isRun(item: readonly unknown[]): item is Run {
  const [time, shared, texts, later] = item
  return (
    Number.isSafeInteger(time) &&
    Array.isArray(shared) &&
    shared.length === 5 &&
    Array.isArray(texts) &&
    texts.every((text) => typeof text === 'string') &&
    Array.isArray(later) &&
    (later.length === 0 || later.length === texts.length - 1)
  )
}

function unpackRun([start, shared, texts, later]: Run, first: number, into: SessionEvent[]): void {
  const [turn, step, attempt, type, index] = shared
  let time = start
  texts.forEach((text, i) => {
    if (i > 0) time += later[i - 1] ?? 0
    const chunk = { type, index, text }
    into.push({ type: 'assistant/chunk', seq: first + i, time, data: { turn, step, attempt, chunk } } as SessionEvent)
  })
}
