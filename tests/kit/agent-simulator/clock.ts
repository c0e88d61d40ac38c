/**
 * The one clock of a simulated world. It stands still until the scheduler fires the timer that is due next; each timer
 * belongs to a process and dies with it. Timers that the code under test sets with the global functions land here too.
 */
import type { Clock } from '../../../src/services/clock.ts'

export interface Timer {
  readonly id: number
  readonly owner: object | undefined
  /** Epoch ms. */
  readonly at: number
  readonly ms: number
  readonly fire: () => void
}

/** Epoch ms at which a world begins. */
const START = 1_800_000_000_000

export class WorldClock {
  now = START
  #timers: Timer[] = []
  #ids = 0

  /** Those that wait, the next one first. */
  get timers(): readonly Timer[] {
    return this.#timers
  }

  set(owner: object | undefined, fire: () => void, ms: number): number {
    const timer = { id: ++this.#ids, owner, at: this.now + Math.max(0, Math.ceil(ms)), ms, fire }
    const after = this.#timers.findIndex(({ at }) => at > timer.at)
    this.#timers.splice(after < 0 ? this.#timers.length : after, 0, timer)
    return timer.id
  }

  clear(id: unknown): void {
    this.#timers = this.#timers.filter((timer) => timer.id !== id)
  }

  dropOf(owner: object): void {
    this.#timers = this.#timers.filter((timer) => timer.owner !== owner)
  }

  /** Takes the next timer, and moves time to it. */
  next(): Timer | undefined {
    const timer = this.#timers.shift()
    if (timer !== undefined) this.now = Math.max(this.now, timer.at)
    return timer
  }

  /** The clock as one process has it. */
  of(owner: object): Clock {
    return {
      now: () => this.now,
      setTimeout: (fire, ms) => this.set(owner, fire, ms),
      clearTimeout: (id) => this.clear(id),
    }
  }
}

/** What `setTimeout` gives: the code under test holds on to it, and says whether it keeps the process. */
class GlobalTimer {
  id: number
  readonly #set: () => number
  readonly #clear: (id: number) => void

  constructor(set: () => number, clear: (id: number) => void) {
    this.#set = set
    this.#clear = clear
    this.id = set()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  refresh(): this {
    this.#clear(this.id)
    this.id = this.#set()
    return this
  }
}

/** Puts the clock in place of the global timers; `owner` says whose code is running. Gives them back when called. */
export function takeGlobalTimers(clock: WorldClock, owner: () => object | undefined): () => void {
  const { setTimeout, clearTimeout } = globalThis
  const set = (fire: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): GlobalTimer =>
    new GlobalTimer(
      () => clock.set(owner(), () => fire(...args), ms),
      (id) => clock.clear(id),
    )
  const clear = (timer: unknown): void => {
    if (timer instanceof GlobalTimer) clock.clear(timer.id)
  }
  Object.assign(globalThis, { setTimeout: set, clearTimeout: clear })
  return () => void Object.assign(globalThis, { setTimeout, clearTimeout })
}
