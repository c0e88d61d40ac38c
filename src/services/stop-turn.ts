/** Actor: lets the `agent/turn-stopping` hooks act before a turn ends. They act by data: a steer wins over a reason. */
import type { TurnEndReason } from '../log/events.ts'
import { type Service, serviceActor } from './actor.ts'
import { HookMisuse } from './errors.ts'
import { traced } from './hooks/failure.ts'
import { inWords } from './hooks/words.ts'
import type { StopTurnInput } from './inputs.ts'
import type { AskedHook } from './runtime.ts'
import type { Verdict } from './verdicts.ts'

const HOOK = 'agent/turn-stopping'

export const stopTurn = serviceActor<StopTurnInput>(run, ({ turn, step }, failure) => ({
  type: 'verdict.stopping',
  turn,
  step,
  failure,
}))

async function run({ input, runtime }: Service<StopTurnInput>): Promise<Verdict> {
  const { turn, step, reason } = input
  const { signal, asked } = runtime.turn
  const payload = Object.freeze({ turn, reason: Object.freeze({ ...reason }), signal })
  const trace = traced(runtime, HOOK, { turn, step })
  let decided: TurnEndReason | undefined
  for (const hook of runtime.hooks.of(HOOK)) {
    if (signal.aborted) break
    const entry: AskedHook = { hook: HOOK, at: { turn, step }, inCore: false }
    asked.add(entry)
    try {
      decided = checked(await hook(payload)) ?? decided
    } catch (thrown) {
      trace(thrown)
      throw thrown
    } finally {
      asked.delete(entry)
    }
  }
  return { type: 'verdict.stopping', turn, step, ...(decided === undefined ? {} : { reason: decided }) }
}

/** A turn that is about to end well may be ended by a policy instead; nothing else is a hook's to say. */
function checked(reason: void | TurnEndReason): TurnEndReason | undefined {
  if (reason === undefined || reason === null) return undefined
  if (reason.kind === 'completed') return { kind: 'completed' }
  if (reason.kind === 'stopped-by-policy' && typeof reason.policy === 'string') {
    const why = reason.reason === undefined ? {} : { reason: inWords(reason.reason) }
    return { kind: 'stopped-by-policy', policy: inWords(reason.policy), ...why }
  }
  throw new HookMisuse(HOOK, 'it may give { kind: "completed" }, { kind: "stopped-by-policy", policy } or nothing')
}
