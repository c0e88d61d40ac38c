/** One timer for very many that wait: a thousand timers a few ms apart would be measured instead of who uses them. */

const TICK_MS = 1

export function createMetronome() {
  /** By whole ms. @type {Map<number, (() => void)[]>} */
  const due = new Map()
  let next = Math.floor(performance.now())
  const timer = setInterval(() => {
    const now = performance.now()
    for (; next <= now; next++) {
      for (const go of due.get(next) ?? []) go()
      due.delete(next)
    }
  }, TICK_MS)
  return {
    /** Resolves at that time of `performance.now()`, or within the ms after it. @param {number} time */
    until(time) {
      const at = Math.ceil(time)
      if (at < next) return Promise.resolve()
      return /** @type {Promise<void>} */ (
        new Promise((resolve) => {
          const waiting = due.get(at)
          if (waiting === undefined) due.set(at, [resolve])
          else waiting.push(resolve)
        })
      )
    },
    stop: () => clearInterval(timer),
  }
}
