/** Promises that wait for a condition: looked at after every macrostep. */
export interface Waiters {
  /** Resolves once `holds()`; rejects with what `fail` is given. */
  until(holds: () => boolean): Promise<void>
  look(): void
  fail(error: unknown): void
}

interface Waiter {
  readonly holds: () => boolean
  resolve(): void
  reject(error: unknown): void
}

export function createWaiters(): Waiters {
  let waiting: Waiter[] = []
  let failure: { readonly error: unknown } | undefined
  return {
    until(holds) {
      if (failure !== undefined) return Promise.reject(failure.error)
      if (holds()) return Promise.resolve()
      return new Promise((resolve, reject) => {
        waiting.push({ holds, resolve, reject })
      })
    },
    look() {
      if (waiting.length === 0) return
      const met = waiting.filter((waiter) => waiter.holds())
      if (met.length === 0) return
      waiting = waiting.filter((waiter) => !met.includes(waiter))
      for (const waiter of met) waiter.resolve()
    },
    fail(error) {
      failure = { error }
      for (const waiter of waiting) waiter.reject(error)
      waiting = []
    },
  }
}
