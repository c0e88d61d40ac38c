/** Failures from outside the session: what a store throws becomes one of our errors, what an observer throws stops nothing. */
import { PawlError, StoreFailure } from '../errors.ts'

/** `thrown` itself if it is ours, else a StoreFailure around it. `doing` completes "Could not ...". */
export function asPawlError(thrown: unknown, doing: string): PawlError {
  if (thrown instanceof PawlError) return thrown
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return new StoreFailure('io', `Could not ${doing}: ${why}`, { cause: thrown })
}

/** Tells an observer. What it throws is its defect: an uncaught exception, and never the log's failure. */
export function report(tell: () => void): void {
  try {
    tell()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
