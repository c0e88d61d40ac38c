/** As `either`, of sources that need not have a signal: their listeners cost next to nothing, and are let go of as well. */

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
