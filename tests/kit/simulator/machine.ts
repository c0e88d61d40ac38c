/** The real chart, with actors and ports that lead into the world its agent lives in. */
import { type AnyActorRef, type EventObject, fromCallback } from 'xstate'
import { type ChartPorts, provideEffects } from '../../../src/machines/live.ts'
import type {
  AskModelInput,
  CallInput,
  PrepareStepInput,
  StopTurnInput,
  WaitInput,
} from '../../../src/services/inputs.ts'
import type { Verdict } from '../../../src/services/verdicts.ts'
import type { Work } from './effects.ts'

/** The world that an agent lives in. */
export interface Host extends ChartPorts {
  /** Starts an actor's work; what it returns stops it. */
  start(work: Work, say: (verdict: Verdict) => void): () => void
}

/** Every agent's world. */
export const hosted = new WeakMap<AnyActorRef, Host>()

function hostOf(agent: AnyActorRef): Host {
  const host = hosted.get(agent)
  if (host === undefined) throw new Error('This agent has no world')
  return host
}

type OfAgent = { readonly agent: AnyActorRef }

const actor = <Input extends OfAgent>(workOf: (input: Input) => Work) =>
  fromCallback<EventObject, Input>(({ input, sendBack }) => hostOf(input.agent).start(workOf(input), sendBack))

/** The chart with a world's effects, provided once. */
export const simulatedMachine = provideEffects(hostOf, {
  prepareStep: actor<PrepareStepInput>((input) => ({ kind: 'prepareStep', input })),
  askModel: actor<AskModelInput>((input) => ({ kind: 'askModel', input })),
  wait: actor<WaitInput>((input) => ({ kind: 'wait', input })),
  call: actor<CallInput>((input) => ({ kind: 'call', input })),
  stopTurn: actor<StopTurnInput>((input) => ({ kind: 'stopTurn', input })),
})
