/** The hooks of one agent: in order of registration, each removable. What an observer throws changes nothing. */
import type { Hooks } from './contract.ts'

type Observed =
  | 'agent/status'
  | 'agent/error'
  | 'session/event'
  | 'agent/inbox/inserted'
  | 'agent/inbox/claimed'
  | 'agent/inbox/discarded'

export interface HookRegistry {
  /** Adds a handler; the result takes it away again. */
  add<K extends keyof Hooks>(name: K, handler: Hooks[K]): () => void
  /** As they are now: what is added or removed while they run counts from the next time. */
  of<K extends keyof Hooks>(name: K): readonly Hooks[K][]
  /** Somebody listens: saves the work of telling nobody. */
  has(name: keyof Hooks): boolean
  /** Tells every observer, whatever the others throw. */
  tell<K extends Observed>(name: K, payload: Parameters<Hooks[K]>[0]): void
}

type Lists = { [K in keyof Hooks]?: readonly Hooks[K][] }

export function createHooks(initial: Partial<Hooks> = {}): HookRegistry {
  const lists: Lists = {}
  const registry: HookRegistry = {
    add(name, handler) {
      const entry = { handler }
      lists[name] = [...registry.of(name), entry.handler] as Lists[typeof name]
      let removed = false
      return () => {
        if (removed) return
        removed = true
        const handlers = [...registry.of(name)]
        handlers.splice(handlers.indexOf(handler), 1)
        lists[name] = handlers as Lists[typeof name]
      }
    },
    of: (name) => (lists[name] ?? []) as readonly Hooks[typeof name][],
    has: (name) => (lists[name]?.length ?? 0) > 0,
    tell(name, payload) {
      for (const observer of registry.of(name)) contain(name, observer as Observer, payload)
    },
  }
  for (const name of Object.keys(initial) as (keyof Hooks)[]) addInitial(registry, initial, name)
  return registry
}

function addInitial<K extends keyof Hooks>(registry: HookRegistry, initial: Partial<Hooks>, name: K): void {
  const handler = initial[name]
  if (handler !== undefined) registry.add(name, handler as Hooks[K])
}

type Observer = (payload: unknown) => unknown

const warnedOf = new WeakSet<Observer>()

/** A throw, or a promise that rejects, is a warning of the process: once for each observer, which may fail on every chunk. */
function contain(name: string, observer: Observer, payload: unknown): void {
  const warn = (thrown: unknown): void => {
    if (warnedOf.has(observer)) return
    warnedOf.add(observer)
    process.emitWarning(`An observer of "${name}" failed: ${String(thrown)}`, 'PawlObserverWarning')
  }
  try {
    const result = observer(payload)
    if (result instanceof Promise) result.catch(warn)
  } catch (thrown) {
    warn(thrown)
  }
}
