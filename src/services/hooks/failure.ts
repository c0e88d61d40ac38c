/** A waterfall that failed leaves a trace in the log; what it means for the loop is decided where it was called. */
import { failureOf } from '../llm/failure.ts'
import type { AgentRuntime } from '../runtime.ts'
import { checkedAnswer } from './answers.ts'
import type { Hooks } from './contract.ts'
import { type Handler, runWaterfall } from './waterfall.ts'

type Position = { readonly turn: number; readonly step?: number }

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
  const { signal } = runtime.turn
  let inCore: { readonly thrown: unknown } | undefined
  const watched = (): Promise<ResultOf<K>> =>
    core().catch((thrown: unknown) => {
      inCore = { thrown }
      throw thrown
    })
  const answered = async (): Promise<ResultOf<K>> =>
    checkedAnswer(hook, await runWaterfall(hook, handlers, payload, watched), runtime.mask) as ResultOf<K>
  return answered().catch((thrown: unknown) => {
    // A hook left behind by its turn speaks to nobody.
    const late = signal !== runtime.turn.signal
    const ofCore = inCore?.thrown === thrown
    if (!ofCore && !late && !heeds(signal, thrown)) reportHookFailure(runtime, hook, at, thrown)
    throw thrown
  })
}

/** Throwing because the turn was cancelled is what a signal is for, and no failure. */
const heeds = (signal: AbortSignal, thrown: unknown): boolean =>
  signal.aborted && (thrown === signal.reason || (thrown instanceof Error && thrown.name === 'AbortError'))

/** Records `agent/hook-failed`. A session that failed or closes takes nothing, and nobody is owed the trace then. */
export function reportHookFailure(runtime: AgentRuntime, hook: string, at: Position, thrown: unknown): void {
  if (runtime.session.failed.aborted || runtime.closing.aborted) return
  runtime.append({ type: 'agent/hook-failed', data: { hook, ...at, error: failureOf(thrown) } })
}
