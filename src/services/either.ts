/**
 * A signal that aborts with the first of several. Unlike `AbortSignal.any` it is let go of when it is no longer needed:
 * that one leaves a trace in each of its sources, and an agent's closing outlives thousands of requests.
 */

export interface Either {
  /** Aborts with the reason of the first source that did. */
  readonly signal: AbortSignal
  /** Stops listening to the sources. */
  release(): void
}

export function either(...sources: readonly AbortSignal[]): Either {
  const controller = new AbortController()
  const follow = (): void => controller.abort(sources.find((source) => source.aborted)?.reason)
  for (const source of sources) source.addEventListener('abort', follow, { once: true })
  if (sources.some((source) => source.aborted)) follow()
  return {
    signal: controller.signal,
    release() {
      for (const source of sources) source.removeEventListener('abort', follow)
    },
  }
}
