/** A waterfall that failed leaves a trace in the log; what it means for the loop is decided where it was called. */
import { failureOf } from '../llm/failure.ts'
import type { AgentRuntime, AskedHook } from '../runtime.ts'
import { checkedAnswer } from './answers.ts'
import type { Hooks } from './contract.ts'
import { type Handler, runWaterfall } from './waterfall.ts'

/** Where in the loop a hook was called. */
export type Position = { readonly turn: number; readonly step?: number }

type Waterfall = {
  [K in keyof Hooks]: Hooks[K] extends (payload: infer P, next: () => Promise<infer R>) => unknown
    ? { readonly name: K; readonly payload: P; readonly result: R }
    : never
}[keyof Hooks]

type PayloadOf<K> = Extract<Waterfall, { readonly name: K }>['payload']
type ResultOf<K> = Extract<Waterfall, { readonly name: K }>['result']

/**
 * Runs a hook's waterfall around `core`, on a frozen payload. A handler's throw, or an answer that is none, is recorded
 * as `agent/hook-failed` and goes on; a throw of the core is not the hook's failure.
 */
export function callHook<K extends Waterfall['name']>(
  runtime: AgentRuntime,
  hook: K,
  at: Position,
  payload: PayloadOf<K>,
  core: () => Promise<ResultOf<K>>,
): Promise<ResultOf<K>> {
  // The same handlers, seen as what every waterfall's are: TypeScript cannot tell so for a name it does not know yet.
  const handlers = runtime.hooks.of(hook) as unknown as readonly Handler<PayloadOf<K>, ResultOf<K>>[]
  if (handlers.length === 0) return core()
  Object.freeze(payload)
  const trace = traced(runtime, hook, at)
  const { asked } = runtime.turn
  const entry: AskedHook = { hook, at, inCore: false }
  asked.add(entry)
  let inCore: { readonly thrown: unknown } | undefined
  const watched = async (): Promise<ResultOf<K>> => {
    entry.inCore = true
    try {
      return Object.freeze(await core()) as ResultOf<K>
    } catch (thrown) {
      inCore = { thrown }
      throw thrown
    } finally {
      entry.inCore = false
    }
  }
  const answered = async (): Promise<ResultOf<K>> => {
    try {
      const answer = await runWaterfall(hook, handlers, payload, watched)
      return checkedAnswer(hook, answer, runtime.mask) as ResultOf<K>
    } catch (thrown) {
      if (inCore === undefined || inCore.thrown !== thrown) trace(thrown)
      throw thrown
    } finally {
      asked.delete(entry)
    }
  }
  return answered()
}

/** Made when a hook is called: records what it throws, unless it heeds its cancel or was left behind by its turn. */
export function traced(runtime: AgentRuntime, hook: string, at: Position): (thrown: unknown) => void {
  const { signal } = runtime.turn
  return (thrown) => {
    // A hook left behind speaks to nobody.
    const late = signal !== runtime.turn.signal
    if (!late && !heeds(signal, thrown)) reportHookFailure(runtime, hook, at, thrown)
  }
}

/** Throwing because the turn was cancelled is what a signal is for, and no failure. */
const heeds = (signal: AbortSignal, thrown: unknown): boolean =>
  signal.aborted && (thrown === signal.reason || (thrown instanceof Error && thrown.name === 'AbortError'))

/** Records `agent/hook-failed`. A session that failed or closes takes nothing, and nobody is owed the trace then. */
export function reportHookFailure(runtime: AgentRuntime, hook: string, at: Position, thrown: unknown): void {
  if (runtime.session.failed.aborted || runtime.closing.aborted) return
  runtime.append({ type: 'agent/hook-failed', data: { hook, ...at, error: failureOf(thrown) } })
}
