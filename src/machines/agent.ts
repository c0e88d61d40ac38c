/**
 * The agent as a statechart. Only durable events move it; commands and verdicts record, and what they recorded is
 * raised in the same macrostep. So the state folded from the log is the live state, by construction.
 */
import { type AnyActorRef, type EventObject, fromCallback, setup } from 'xstate'
import type { KnownEvent, MovingEvent, Recordable } from '../log/events.ts'
import type { AskModelInput, CallInput, PrepareStepInput, StopTurnInput, WaitInput } from '../services/inputs.ts'
import type { CallPhase, Verdict } from '../services/verdicts.ts'
import type { AgentCommand } from './commands.ts'
import { type AgentContext, type Call, evolve, initialContext, isMessage } from './evolve.ts'
import * as records from './records.ts'
import * as tools from './tool-records.ts'

/** An actor of the chart threw: XState's own event, taken as a failed verdict. */
export type ActorError = {
  readonly type: `xstate.error.actor.${string}`
  readonly error: unknown
  readonly actorId: string
}

/** Everything the chart is sent: what moves it, and what only records. */
export type AgentEvent = MovingEvent | AgentCommand | Verdict | ActorError

type EventOf<T extends AgentEvent['type']> = Extract<AgentEvent, { readonly type: T }>
type At = { readonly context: AgentContext; readonly event: AgentEvent }

/** What a record action is given: the pure function that says what to record. */
export interface RecordParams {
  readonly events: (at: At) => readonly Recordable[]
}

/** `decide` is called by the provided action only, so that a fold never runs it. */
const record = <T extends AgentEvent['type']>(
  decide: (context: AgentContext, event: EventOf<T>) => readonly Recordable[],
) => ({
  type: 'record' as const,
  params: { events: ({ context, event }: At) => decide(context, event as EventOf<T>) } satisfies RecordParams,
})

const failureOf = (event: ActorError) => ({
  code: 'UNKNOWN',
  message: event.error instanceof Error && event.error.message !== '' ? event.error.message : 'An actor failed',
})

/** The phase a call under way is in: what its actor does. */
export function phaseOf(call: Call): CallPhase | undefined {
  switch (call.status) {
    case 'called':
      return 'authorizing'
    case 'awaiting':
      return 'awaiting'
    case 'dispatched':
      return call.recovering ? 'recovering' : 'executing'
    default:
      return undefined
  }
}

/** Phase and run are part of the id: a word of an earlier actor is never taken for this one's. */
export const actorIdOf = (call: Call): string => `tool.${call.callId}.${phaseOf(call) ?? 'none'}.${call.run}`

/** The open call whose actor failed. */
const failedCall = (context: AgentContext, event: ActorError): Call | undefined =>
  context.calls.find((call) => phaseOf(call) !== undefined && actorIdOf(call) === event.actorId)

type CallEvent = KnownEvent<'tool/call' | 'tool/approval-requested' | 'tool/dispatch' | 'tool/result'>

/** The call that an event is about, as the context has it now. */
const subject = ({ context, event }: At): Call | undefined => {
  const { data } = event as CallEvent
  return tools.callOf(context, 'callId' in data ? data.callId : data.message.source.callId)
}

/** Stands for an actor in the chart; composition provides the real ones. */
const inert = <Input>() => fromCallback<EventObject, Input>(() => {})

const chart = setup({
  types: {
    context: {} as AgentContext,
    events: {} as AgentEvent,
  },
  actors: {
    prepareStep: inert<PrepareStepInput>(),
    askModel: inert<AskModelInput>(),
    wait: inert<WaitInput>(),
    call: inert<CallInput>(),
    stopTurn: inert<StopTurnInput>(),
  },
  actions: {
    /** Writes to the log what `events` says and raises it; inert in a fold. */
    record: (_, _params: RecordParams) => {},
    openTurn: () => {},
    abortTurn: () => {},
    closeTurn: () => {},
  },
  guards: {
    claimed: ({ event }) => event.type === 'agent/inbox/spliced' && event.data.outcome === 'claimed',
    lastClaim: ({ context, event }) =>
      event.type === 'agent/inbox/spliced' &&
      event.data.outcome === 'claimed' &&
      (event.data.queue === 'next-turn' || context.inbox['next-turn'].length === 0),
    asksForTools: ({ event }) => event.type === 'assistant/message' && event.data.calls.length > 0,
    mayStop: ({ context, event }) =>
      event.type === 'step/end' &&
      context.cancel === null &&
      (event.data.outcome.kind === 'completed' ||
        event.data.outcome.kind === 'concluded' ||
        event.data.outcome.kind === 'max-tokens') &&
      context.inbox['next-step'].length === 0,
    cancelled: ({ context }) => context.cancel !== null,
    finishes: ({ context, event }) =>
      context.cancel !== null || (event.type === 'session/resumed' && event.data.recovery === 'interrupt'),
    ofNextStep: ({ context, event }) =>
      'step' in event && event.turn === context.turn && event.step === context.step + 1,
    ofStep: ({ context, event }) => 'step' in event && event.turn === context.turn && event.step === context.step,
    ofAttempt: ({ context, event }) =>
      'attempt' in event &&
      event.turn === context.turn &&
      event.step === context.step &&
      event.attempt === context.attempt,
    ofCall: ({ context, event }) => {
      if (!('phase' in event)) return false
      const call = tools.callOf(context, event.callId)
      return call !== undefined && call.run === event.run && phaseOf(call) === event.phase
    },
    settles: ({ context, event }) =>
      event.type === 'verdict.settle' && context.cancel !== null && event.turn === context.turn,
    /** A cancel that names a turn is for that turn only. */
    ofTurn: ({ context, event }) =>
      event.type === 'command.cancel' && (event.turn === undefined || event.turn === context.turn),
    forIdle: ({ event }) => event.type === 'command.cancel' && event.turn === undefined,
    answersQuestion: ({ context, event }) => {
      if (event.type !== 'command.approve' && event.type !== 'command.deny') return false
      const call = tools.callOf(context, event.callId)
      return call?.status === 'awaiting' && call.run === event.run
    },
  },
})

/** The only way the context changes: by the event that came. */
const apply = chart.assign(({ context, event }) => evolve(context, event as MovingEvent))

/** Asking again after a crash is another attempt; the lost one's chunks stay, unused. */
const nextAttempt = chart.assign(({ context }) => ({ attempt: context.attempt + 1 }))

const callInput = (agent: AnyActorRef, context: AgentContext, call: Call): CallInput => ({
  agent,
  turn: context.turn,
  step: context.step,
  callId: call.callId,
  name: call.name,
  arguments: call.arguments,
  phase: phaseOf(call) ?? 'authorizing',
  run: call.run,
  ...(call.onCrash === undefined ? {} : { onCrash: call.onCrash }),
  ...(call.approval?.expiresAt === undefined ? {} : { expiresAt: call.approval.expiresAt }),
})

/** Before the event is applied: the actor of the phase that it ends. */
const stopActor = chart.stopChild((at) => {
  const call = subject(at)
  return call === undefined ? 'none' : actorIdOf(call)
})

/** After the event is applied: the actor of the phase that it begins. */
const spawnActor = chart.assign(({ context, event, spawn, self }) => {
  const call = subject({ context, event })
  if (call !== undefined) spawn('call', { id: actorIdOf(call), input: callInput(self, context, call) })
  return {}
})

/** After a crash each call under way that is not answered at once gets its actor again. */
const respawnActors = chart.assign(({ context, event, spawn, self }) => {
  if (context.cancel !== null || context.interrupted !== null || event.type !== 'session/resumed') return {}
  for (const call of context.calls) {
    if (phaseOf(call) === undefined || tools.isLost(call, event.time)) continue
    spawn('call', { id: actorIdOf(call), input: callInput(self, context, call) })
  }
  return {}
})

const ofStep = ({ context, self }: { readonly context: AgentContext; readonly self: AnyActorRef }) => ({
  agent: self,
  turn: context.turn,
  step: context.step,
})

/** What every state but idle does with the messages that come in. */
const inbox = {
  'command.followup': { actions: record<'command.followup'>(records.deliver) },
  'command.steer': { actions: record<'command.steer'>(records.deliver) },
  'command.inject': { actions: record<'command.inject'>(records.deliver) },
} as const

const cancelled = { actions: [apply, 'abortTurn'] } as const
const ended = { target: 'idle', actions: [apply, 'closeTurn'] } as const
const claimed = { guard: 'claimed', target: 'preStep', actions: apply } as const
const finishTurn = { guard: 'finishes', actions: [apply, record(records.finishTurn)] } as const
const closed = [
  { guard: 'mayStop', target: '#agent.turnStopping', actions: apply },
  { target: '#agent.stepClosed', actions: apply },
] as const

/** The chart of design. Start it from a folded snapshot; its real actors and `record` are provided by composition. */
export const agentMachine = chart.createMachine({
  id: 'agent',
  context: initialContext,
  initial: 'idle',
  options: { maxIterations: 100_000 },
  on: {
    'agent/inbox/spliced': { actions: apply },
    'session/suspended': { actions: apply },
    'session/end-seed': { actions: apply },
    ...inbox,
    'command.remove': { actions: record<'command.remove'>(records.remove) },
    'command.clear': { actions: record(records.clear) },
    'command.resume': { actions: record<'command.resume'>(records.resume) },
    'command.suspend': { actions: record(records.suspend) },
    // An actor that was stopped may still fail; nobody waits for it any more.
    'xstate.error.actor.*': {},
  },
  states: {
    idle: {
      entry: record(records.startOwed),
      on: {
        'command.followup': { actions: record<'command.followup'>(records.deliverIdle) },
        'command.steer': { actions: record<'command.steer'>(records.deliverIdle) },
        'command.inject': { actions: record<'command.inject'>(records.deliverIdle) },
        'command.wake': { actions: record(records.wake) },
        'command.cancel': { guard: 'forIdle', actions: record<'command.cancel'>(records.cancelIdle) },
        // At rest nothing is left open by closing.
        'command.suspend': {},
        'session/resumed': { actions: [apply, record(records.startOwed)] },
        'turn/start': { target: 'turnOpen', actions: [apply, 'openTurn'] },
      },
    },
    turnOpen: {
      entry: record(records.openTurn),
      on: {
        'agent/inbox/spliced': { guard: 'lastClaim', target: 'preStep', actions: apply },
        'turn/end': ended,
        // Never a state at rest; a log cut here by other means is carried on all the same.
        'session/resumed': [finishTurn, { target: 'turnOpen', reenter: true, actions: apply }],
      },
    },
    preStep: {
      invoke: {
        id: 'prepareStep',
        src: 'prepareStep',
        input: ({ context, self }) => ({
          agent: self,
          turn: context.turn,
          step: context.step + 1,
          // Hooks are shown it: a proposal, and no place to add to.
          messages: Object.freeze(context.claimed.flatMap(({ item }) => (isMessage(item) ? [item.message] : []))),
        }),
      },
      on: {
        'verdict.prepared': {
          guard: 'ofNextStep',
          actions: record<'verdict.prepared'>((context, { decision }) => records.enterStep(context, decision)),
        },
        'verdict.settle': { guard: 'settles', actions: record(records.finishTurn) },
        'xstate.error.actor.prepareStep': {
          actions: record<ActorError['type']>((context, event) =>
            records.enterStep(context, { kind: 'failed', failure: failureOf(event) }),
          ),
        },
        'command.cancel': {
          guard: 'ofTurn',
          actions: record<'command.cancel'>((context, command) => records.cancel(context, command)),
        },
        'turn/cancel': cancelled,
        'session/resumed': [finishTurn, { target: 'preStep', reenter: true, actions: apply }],
        'step/start': { target: 'stepRequest', actions: apply },
        'turn/end': ended,
      },
    },
    stepRequest: {
      initial: 'streaming',
      states: {
        streaming: {
          invoke: {
            id: 'askModel',
            src: 'askModel',
            input: ({ context, self }) => ({
              ...ofStep({ context, self }),
              attempt: context.attempt,
              chain: context.retry,
            }),
          },
          on: {
            'verdict.answered': { guard: 'ofAttempt', actions: record<'verdict.answered'>(records.answer) },
            'verdict.retry': { guard: 'ofAttempt', actions: record<'verdict.retry'>(records.retry) },
            'verdict.failed': {
              guard: 'ofAttempt',
              actions: record<'verdict.failed'>((context, { failure }) => records.failStep(context, failure)),
            },
            'verdict.aborted': {
              guard: 'ofAttempt',
              actions: record<'verdict.aborted'>((context, { partial }) => records.abandon(context, partial)),
            },
            'verdict.settle': {
              guard: 'settles',
              actions: record<'verdict.settle'>((context, { partial }) => records.abortStep(context, partial)),
            },
            'xstate.error.actor.askModel': {
              actions: record<ActorError['type']>((context, event) => records.failStep(context, failureOf(event))),
            },
            'command.cancel': {
              guard: 'ofTurn',
              actions: record<'command.cancel'>((context, command) => records.cancel(context, command)),
            },
            'turn/cancel': cancelled,
            'session/resumed': [
              { guard: 'finishes', actions: [apply, record(records.finishStep)] },
              { target: 'streaming', reenter: true, actions: [apply, nextAttempt] },
            ],
            'llm/retry': { target: 'waiting', actions: apply },
          },
        },
        waiting: {
          invoke: {
            id: 'wait',
            src: 'wait',
            input: ({ context, self }) => ({
              ...ofStep({ context, self }),
              attempt: context.attempt,
              at: context.retry?.at ?? 0,
              delayMs: context.retry?.delayMs ?? 0,
            }),
          },
          on: {
            'verdict.waited': { guard: 'ofAttempt', actions: record(records.startRetry) },
            'xstate.error.actor.wait': {
              actions: record<ActorError['type']>((context, event) => records.failStep(context, failureOf(event))),
            },
            'command.cancel': {
              guard: 'ofTurn',
              actions: record<'command.cancel'>((context, command) =>
                records.cancel(context, command, records.abortStep),
              ),
            },
            'turn/cancel': cancelled,
            'session/resumed': [
              { guard: 'finishes', actions: [apply, record(records.finishStep)] },
              { target: 'waiting', reenter: true, actions: apply },
            ],
            'llm/retry-started': { target: 'streaming', actions: apply },
          },
        },
      },
      on: {
        'assistant/message': [{ guard: 'asksForTools', target: 'toolExec', actions: apply }, { actions: apply }],
        'step/end': closed,
      },
    },
    toolExec: {
      entry: record(tools.proceed),
      on: {
        'verdict.authorized': { guard: 'ofCall', actions: record<'verdict.authorized'>(tools.authorize) },
        'verdict.ask': { guard: 'ofCall', actions: record<'verdict.ask'>(tools.ask) },
        'verdict.settled': { guard: 'ofCall', actions: record<'verdict.settled'>(tools.settle) },
        'verdict.recovered': { guard: 'ofCall', actions: record<'verdict.recovered'>(tools.recover) },
        'verdict.expired': { guard: 'ofCall', actions: record<'verdict.expired'>(tools.expire) },
        'verdict.settle': { guard: 'settles', actions: record(tools.settleTools) },
        'xstate.error.actor.*': {
          actions: record<ActorError['type']>((context, event) => {
            const call = failedCall(context, event)
            return call === undefined ? [] : tools.crash(context, call, failureOf(event))
          }),
        },
        'command.approve': { guard: 'answersQuestion', actions: record<'command.approve'>(tools.approve) },
        'command.deny': { guard: 'answersQuestion', actions: record<'command.deny'>(tools.deny) },
        'command.cancel': {
          guard: 'ofTurn',
          actions: record<'command.cancel'>((context, command) => records.cancel(context, command, tools.proceed)),
        },
        'turn/cancel': cancelled,
        'session/resumed': { actions: [apply, respawnActors, record<'session/resumed'>(tools.resumeTools)] },
        // Under a cancel nothing begins: the call's result follows in the same record.
        'tool/call': [{ guard: 'cancelled', actions: apply }, { actions: [apply, spawnActor] }],
        'tool/approval-requested': { actions: [stopActor, apply, spawnActor] },
        'tool/approval-resolved': { actions: [stopActor, apply] },
        'tool/dispatch': { actions: [stopActor, apply, spawnActor] },
        'tool/result': { actions: [stopActor, apply] },
        'step/end': closed,
      },
    },
    stepClosed: {
      entry: record(records.closeStep),
      on: {
        'agent/inbox/spliced': claimed,
        'turn/end': ended,
        'session/resumed': [finishTurn, { target: 'stepClosed', reenter: true, actions: apply }],
      },
    },
    turnStopping: {
      invoke: {
        id: 'stopTurn',
        src: 'stopTurn',
        input: ({ context, self }) => ({ ...ofStep({ context, self }), reason: records.ownReason(context) }),
      },
      on: {
        'verdict.stopping': { guard: 'ofStep', actions: record<'verdict.stopping'>(records.stop) },
        'verdict.settle': { guard: 'settles', actions: record(records.finishTurn) },
        'xstate.error.actor.stopTurn': {
          actions: record<ActorError['type']>((context, event) => records.failStopping(context, failureOf(event))),
        },
        'command.cancel': {
          guard: 'ofTurn',
          actions: record<'command.cancel'>((context, command) => records.cancel(context, command)),
        },
        'turn/cancel': cancelled,
        'session/resumed': [finishTurn, { target: 'turnStopping', reenter: true, actions: apply }],
        'agent/inbox/spliced': claimed,
        'turn/end': ended,
      },
    },
  },
})
