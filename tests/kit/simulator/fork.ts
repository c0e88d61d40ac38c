/** Cutting a log as a fork does: never between what a step asks with and its opening, never in a passing state. */
import type { SessionEvent } from '../../../src/log/events.ts'
import { createFold } from '../../../src/machines/fold.ts'
import type { Past } from './past.ts'

const PASSING: ReadonlySet<unknown> = new Set(['turnOpen', 'stepClosed'])

/** The first length from `length` on at which the log may be cut. */
export function roundFork(log: readonly SessionEvent[], length: number): number {
  const folded = createFold()
  for (const event of log.slice(0, length)) folded.push(event)
  let cut = length
  for (const event of log.slice(length)) {
    if (!splits(log[cut - 1], event) && !PASSING.has(folded.snapshot().value)) break
    folded.push(event)
    cut++
  }
  return cut
}

/** A cut between these two would leave a step half opened, or not closed after its answer. */
function splits(before: SessionEvent | undefined, after: SessionEvent): boolean {
  const opens = before?.type === 'step/start' || before?.type === 'user/message'
  if (after.type === 'user/message' && opens) return true
  return before?.type === 'assistant/message' && before.data.calls.length === 0
}

/** What the child of a fork after so many events inherits, the mark of its end included. */
export function forkOf(past: Past, length: number): Past {
  const log = past.log.slice(0, roundFork(past.log, length))
  const end: SessionEvent = { type: 'session/end-seed', seq: log.length, time: log.at(-1)?.time ?? 0, data: {} }
  return {
    log: [...log, end],
    batches: [...past.batches.filter((batch) => batch <= log.length), log.length + 1],
    deeds: past.deeds.filter(({ at }) => at <= log.length),
  }
}
