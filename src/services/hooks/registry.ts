/** The hooks of one agent: in order of registration, each removable. What an observer throws changes nothing. */
import { renderCauses } from '../llm/failure.ts'
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
  const registry = new AgentHooks()
  for (const name of Object.keys(initial) as (keyof Hooks)[]) addInitial(registry, initial, name)
  return registry
}

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentHooks implements HookRegistry {
  /** Replaced, never written to: those who have no hooks share one. */
  #lists: Lists = NO_LISTS

  add<K extends keyof Hooks>(name: K, handler: Hooks[K]): () => void {
    this.#set(name, [...this.of(name), handler])
    let removed = false
    return () => {
      if (removed) return
      removed = true
      const handlers = [...this.of(name)]
      handlers.splice(handlers.indexOf(handler), 1)
      this.#set(name, handlers)
    }
  }

  #set<K extends keyof Hooks>(name: K, handlers: readonly Hooks[K][]): void {
    this.#lists = { ...this.#lists, [name]: handlers }
  }

  of<K extends keyof Hooks>(name: K): readonly Hooks[K][] {
    return (this.#lists[name] ?? NOBODY) as readonly Hooks[K][]
  }

  has(name: keyof Hooks): boolean {
    return this.of(name).length > 0
  }

  tell<K extends Observed>(name: K, payload: Parameters<Hooks[K]>[0]): void {
    const observers = this.of(name)
    if (observers.length > 0) Object.freeze(payload)
    for (const observer of observers) contain(name, observer as Observer, payload)
  }
}

const NOBODY: readonly never[] = Object.freeze([])
const NO_LISTS: Lists = Object.freeze({})

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
    process.emitWarning(`An observer of "${name}" failed: ${renderCauses(thrown)}`, 'PawlObserverWarning')
  }
  try {
    const result = observer(payload)
    if (result instanceof Promise) result.catch(warn)
  } catch (thrown) {
    warn(thrown)
  }
}
