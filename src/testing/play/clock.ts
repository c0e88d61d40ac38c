/** A clock that stands still until it is told to go on, and knows what waits for it. */
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../services/clock.ts'

export interface PathClock extends Clock {
  /** Goes on to that epoch ms, unless it is there already; what is due by then runs. */
  travel(to: number): void
  /** When the timers that are set are due, in order. */
  due(): readonly number[]
}

/** Starts at `now`, epoch ms. */
export function createPathClock(now: number): PathClock {
  const clock = new SimulatedClock()
  clock.set(now)
  const timers = new Map<number, number>()
  return {
    now: () => clock.now(),
    setTimeout(callback, ms) {
      const id = clock.setTimeout(() => {
        timers.delete(id)
        callback()
      }, ms)
      timers.set(id, clock.now() + ms)
      return id
    },
    clearTimeout(id) {
      if (typeof id !== 'number') return
      timers.delete(id)
      clock.clearTimeout(id)
    },
    travel: (to) => clock.set(Math.max(to, clock.now())),
    due: () => [...timers.values()].sort((a, b) => a - b),
  }
}
