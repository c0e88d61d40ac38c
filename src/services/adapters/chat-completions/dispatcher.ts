/**
 * Node's fetch gives up when no byte came for 300 s, whatever limits there are here. A request that may wait longer
 * goes through the process's own dispatcher with that switched off, so that the watchdog alone decides.
 */

/** ms that Node waits for headers, and from one byte of a body to the next. */
const PATIENCE_MS = 300_000

/** Where Node's fetch, and the undici of npm that is like it, find the dispatcher of the process. */
export const SHARED: symbol = Symbol.for(
  `undici.globalDispatcher.${Number.parseInt(process.versions.undici ?? '', 10) >= 8 ? 2 : 1}`,
)

/** What to give fetch beside the rest; nothing where Node waits long enough, or where there is no such dispatcher. */
export function patience(longestMs: number): Pick<RequestInit, 'dispatcher'> {
  if (longestMs <= PATIENCE_MS) return {}
  // Node loads its fetch, and with it the dispatcher, when one of its globals is first looked at.
  Reflect.get(globalThis, 'Response')
  const shared: unknown = Reflect.get(globalThis, SHARED)
  if (typeof shared !== 'object' || shared === null || !('dispatch' in shared)) return {}
  const { dispatch } = shared
  if (typeof dispatch !== 'function') return {}
  const value = (options: object, handler: unknown): unknown =>
    dispatch.call(shared, { ...options, headersTimeout: 0, bodyTimeout: 0 }, handler)
  return { dispatcher: Object.create(shared, { dispatch: { value } }) }
}
