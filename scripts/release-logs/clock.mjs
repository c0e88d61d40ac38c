/** A clock that stands still but for what it is told, so that a log has the same times whenever it is written. */

/** @typedef {import('../../dist/index.js').Clock} Clock */
/** @typedef {Clock & { tick(ms: number): void, pass(ms: number): void }} FixedClock */

/** @param {number} start epoch ms @returns {FixedClock} */
export function fixedClock(start) {
  let now = start
  /** @type {Set<{ at: number, fire: () => void }>} */
  const timers = new Set()
  const due = (/** @type {number} */ until) =>
    [...timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
  return {
    now: () => now,
    setTimeout(callback, ms) {
      const timer = { at: now + ms, fire: callback }
      timers.add(timer)
      // What is due at once needs nobody to move the clock.
      if (ms <= 0) setImmediate(() => timers.delete(timer) && callback())
      return timer
    },
    clearTimeout: (timer) => void timers.delete(/** @type {{ at: number, fire: () => void }} */ (timer)),
    /** Time that goes by while something happens: nothing becomes due by it. */
    tick(ms) {
      now += ms
    },
    /** Time that is waited for: what is due fires. */
    pass(ms) {
      const until = now + ms
      for (let timer = due(until); timer !== undefined; timer = due(until)) {
        timers.delete(timer)
        now = Math.max(now, timer.at)
        timer.fire()
      }
      now = Math.max(now, until)
    },
  }
}
