/** A clock that stands still until it is moved. */
import type { Clock } from '../../src/services/clock.ts'

export interface ManualClock extends Clock {
  /** Moves time on by `ms` and fires what is due, in order. */
  advance(ms: number): void
  /** Timers that wait. */
  readonly pending: number
}

/** A clock at `start`, epoch ms. */
export function manualClock(start = 0): ManualClock {
  let now = start
  let ids = 0
  const timers = new Map<number, { readonly at: number; readonly fire: () => void }>()
  const due = (until: number) =>
    [...timers].filter(([, timer]) => timer.at <= until).sort(([, a], [, b]) => a.at - b.at)[0]
  return {
    now: () => now,
    setTimeout(fire, ms) {
      timers.set(++ids, { at: now + ms, fire })
      return ids
    },
    clearTimeout: (id) => void timers.delete(Number(id)),
    advance(ms) {
      const until = now + ms
      for (let next = due(until); next !== undefined; next = due(until)) {
        const [id, timer] = next
        timers.delete(id)
        now = timer.at
        timer.fire()
      }
      now = until
    },
    get pending() {
      return timers.size
    },
  }
}
