/** Time, injected once at the root. The shape is that of XState's clock plus `now`. */
export interface Clock {
  /** Epoch ms. */
  now(): number
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(id: unknown): void
}

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (id) => clearTimeout(id as ReturnType<typeof setTimeout>),
}

/** The longest delay a timer takes, in ms; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1
