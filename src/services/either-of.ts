/**
 * As `either`, where nobody need have the signals: no listener is added to one.
 * that one leaves a trace in each of its sources, and an agent's closing outlives thousands of requests.
 */

import { LazyAbort } from '../log/lazy-abort.ts'

export interface EitherOf {
  /** Aborts with the reason of the first source that did. */
  readonly abort: LazyAbort
  /** Stops listening to the sources. */
  release(): void
}

export function eitherOf(one: LazyAbort, other: LazyAbort): EitherOf {
  const abort = new LazyAbort()
  const left = one.listen(() => abort.abort(one.reason))
  const right = other.listen(() => abort.abort(other.reason))
  return {
    abort,
    release() {
      left()
      right()
    },
  }
}
