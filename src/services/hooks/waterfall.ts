/** A waterfall: handlers around a core, the first registered outermost, each calling `next()` at most once. */
import { HookMisuse } from '../errors.ts'

/** One handler of a waterfall. */
export type Handler<P, R> = (payload: P, next: () => Promise<R>) => R | Promise<R>

/**
 * Runs the handlers around `core`.
 * @throws what a handler or the core throws; HookMisuse when one calls `next()` a second time.
 */
export function runWaterfall<P, R>(
  hook: string,
  handlers: readonly Handler<P, R>[],
  payload: P,
  core: () => Promise<R>,
): Promise<R> {
  const run = async (index: number): Promise<R> => {
    const handler = handlers[index]
    if (handler === undefined) return core()
    let called = false
    const next = async (): Promise<R> => {
      if (called) throw new HookMisuse(hook, 'next() was called twice: call it once and keep what it gave')
      called = true
      return run(index + 1)
    }
    return handler(payload, next)
  }
  return run(0)
}
