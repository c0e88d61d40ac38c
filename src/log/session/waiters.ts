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

export function createWaiters(start: number): Waiters {
  let count = start
  let failure: PawlError | undefined
  let waiting: Waiter[] = []
  return {
    until(goal) {
      if (count >= goal) return Promise.resolve()
      if (failure !== undefined) return quiet(Promise.reject(failure))
      return quiet(new Promise((resolve, reject) => waiting.push({ goal, resolve, reject })))
    },
    reach(value) {
      count = value
      if (waiting.length === 0) return
      const before = waiting
      waiting = before.filter((waiter) => waiter.goal > value)
      for (const waiter of before) if (waiter.goal <= value) waiter.resolve()
    },
    fail(error) {
      failure = error
      const before = waiting
      waiting = []
      for (const waiter of before) waiter.reject(error)
    },
  }
}

/** `promise`, or a rejection with `onTimeout()` when it takes over `ms` of real time. The timer holds the process. */
export async function within<T>(promise: Promise<T>, ms: number, onTimeout: () => PawlError): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(onTimeout()), Math.min(ms, 2 ** 31 - 1))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
