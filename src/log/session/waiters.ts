/**
 * Promises that wait for a count to be reached. Each is handled from birth: one that nobody awaits and that rejects
 * never brings the process down.
 */
import type { PawlError } from '../errors.ts'

export interface Waiters {
  /** Resolves once the count is `goal` or more; rejects once failed. */
  until(goal: number): Promise<void>
  /** The count is `value` now. */
  reach(value: number): void
  /** Rejects all that wait, and from now on all that ask for more than was reached. */
  fail(error: PawlError): void
}

interface Waiter {
  readonly goal: number
  readonly resolve: () => void
  readonly reject: (error: PawlError) => void
}

/** Marks a promise as handled without changing it. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {}) // Whoever awaits it still gets the rejection.
  return promise
}

export const createWaiters = (start: number): Waiters => new CountWaiters(start)

const NOBODY: Waiter[] = []

/** A class, because an agent has some of each and a thousand agents share their methods. */
class CountWaiters implements Waiters {
  #count: number
  #failure: PawlError | undefined
  /** Those for whom nobody waits share one empty list, which is never written to. */
  #waiting = NOBODY

  constructor(start: number) {
    this.#count = start
  }

  until(goal: number): Promise<void> {
    if (this.#count >= goal) return Promise.resolve()
    if (this.#failure !== undefined) return quiet(Promise.reject(this.#failure))
    const waits = new Promise<void>((resolve, reject) => {
      if (this.#waiting === NOBODY) this.#waiting = []
      this.#waiting.push({ goal, resolve, reject })
    })
    return quiet(waits)
  }

  reach(value: number): void {
    this.#count = value
    if (this.#waiting.length === 0) return
    const after: Waiter[] = []
    for (const waiter of this.#waiting) {
      if (waiter.goal > value) after.push(waiter)
      else waiter.resolve()
    }
    this.#waiting = after.length === 0 ? NOBODY : after
  }

  fail(error: PawlError): void {
    this.#failure = error
    const before = this.#waiting
    this.#waiting = NOBODY
    for (const waiter of before) waiter.reject(error)
  }
}
