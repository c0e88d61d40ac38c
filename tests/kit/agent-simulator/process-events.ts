/** While a world is played, what the process itself is told of becomes part of it: nothing may be left unhandled. */
import type { World } from './world.ts'

const EVENTS = ['unhandledRejection', 'uncaughtException'] as const

/** Gives the process back its listeners when called. */
export function takeProcessEvents(world: World): () => void {
  const found = (kind: (typeof EVENTS)[number]) => (error: unknown) =>
    world.breach(kind.toUpperCase(), error instanceof Error ? `${error.stack}` : String(error))
  const restores = EVENTS.map((event) => {
    const before = process.listeners(event as 'uncaughtException')
    const mine = found(event)
    process.removeAllListeners(event)
    process.on(event, mine)
    return () => {
      process.off(event, mine)
      for (const listener of before) process.on(event, listener)
    }
  })
  const { emitWarning } = process
  const { error } = console
  process.emitWarning = (warning: string | Error) =>
    world.count(
      `warning ${String(warning)
        .replace(/^\d+ events?/, 'Events')
        .split(/[:"]/)[0]
        ?.trim()}`,
    )
  // What a failing store did not take is told there.
  console.error = () => world.count('unsaved tails told')
  return () => {
    for (const restore of restores) restore()
    process.emitWarning = emitWarning
    console.error = error
  }
}
