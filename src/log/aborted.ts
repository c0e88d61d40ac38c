/**
 * The reason of an abort whose reason nobody reads. `abort()` without one makes an error with a stack each time, which
 * an agent would do for every actor that stops.
 */
export const ABORTED: DOMException = new DOMException('This operation was aborted', 'AbortError')
