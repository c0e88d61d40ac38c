/** Cutting a log as a fork does: never between what a step asks with and its opening, never in a passing state. */
import type { SessionEvent } from '../../../src/log/events.ts'
import { fold } from '../../../src/machines/fold.ts'
import type { Past } from './world.ts'

const PASSING: ReadonlySet<unknown> = new Set(['turnOpen', 'stepClosed'])

/** The first length from `length` on at which the log may be cut. */
export function roundFork(log: readonly SessionEvent[], length: number): number {
  for (let cut = length; cut < log.length; cut++) if (mayCut(log, cut)) return cut
  return log.length
}

function mayCut(log: readonly SessionEvent[], cut: number): boolean {
  const before = log[cut - 1]
  const after = log[cut]
  if (after?.type === 'user/message' && (before?.type === 'step/start' || before?.type === 'user/message')) return false
  if (before?.type === 'assistant/message' && before.data.calls.length === 0) return false
  return !PASSING.has(fold(log.slice(0, cut)).value)
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
