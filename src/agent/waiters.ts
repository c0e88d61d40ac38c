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

export const createWaiters = (): Waiters => new AgentWaiters()

const NOBODY: readonly Waiter[] = Object.freeze([])

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentWaiters implements Waiters {
  #waiting = NOBODY
  #failure: { readonly error: unknown } | undefined

  until(holds: () => boolean): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error)
    if (holds()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#waiting = [...this.#waiting, { holds, resolve, reject }]
    })
  }

  look(): void {
    if (this.#waiting.length === 0) return
    const met = this.#waiting.filter((waiter) => waiter.holds())
    if (met.length === 0) return
    const left = this.#waiting.filter((waiter) => !met.includes(waiter))
    this.#waiting = left.length === 0 ? NOBODY : left
    for (const waiter of met) waiter.resolve()
  }

  fail(error: unknown): void {
    this.#failure = { error }
    const waiting = this.#waiting
    this.#waiting = NOBODY
    for (const waiter of waiting) waiter.reject(error)
  }
}
