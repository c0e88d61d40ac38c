/**
 * The chart with its loop closed: one input goes in, what it records is fed back as the durable events that move the
 * machine, and so on until it is quiet. Pure, so that paths can be searched: no actor runs, no clock ticks, nothing is
 * written. What the actors would say is what the path says they say.
 */
import { isMoving, type Recordable, type SessionEvent } from '../log/events.ts'
import { type AgentEvent, agentMachine, type RecordParams } from '../machines/agent.ts'
import type { Call } from '../machines/evolve.ts'
import { type AgentSnapshot, createInertScope, fold } from '../machines/fold.ts'
import { resumption } from '../machines/resumption.ts'
import { InputRefused, isStreaming, type LoopState } from './loop-state.ts'
import type { PathEvent, PathSetup } from './path.ts'
import type { PathInput } from './path-input.ts'
import { abortedVerdict, recoveredVerdict, type Sent, stimulusOf } from './stimulus.ts'
import { isRetryOverdue, overdueCall } from './waits.ts'

/** What an input brought about. */
export interface Applied {
  readonly state: LoopState
  /** The events that move the machine or enter the conversation, in order. */
  readonly events: readonly PathEvent[]
}

/** Told of each transition of the chart that is taken: the state it belongs to, its event, and which of its candidates. */
export type OnTransition = (transition: string) => void

const EMPTY = fold([])

/** A new agent, at rest. */
export const beginLoop = (setup: PathSetup): LoopState => ({
  setup,
  value: EMPTY.value,
  context: EMPTY.context,
  now: 0,
  asked: 'silent',
  cancelledAt: undefined,
})

/** @throws InputRefused if nothing in this state waits for the input */
export function applyInput(before: LoopState, input: PathInput, onTransition?: OnTransition): Applied {
  const overdue = overdueCall(before)
  if (overdue !== undefined && !(input.type === 'expired' && input.callId === overdue.callId)) {
    throw new InputRefused(`The approval of ${overdue.callId} expires before ${JSON.stringify(input)}`)
  }
  if (isRetryOverdue(before) && input.type !== 'waited') {
    throw new InputRefused(`The retry that a hook asked for begins before ${JSON.stringify(input)}`)
  }
  const loop = new Loop({ ...before, now: before.now + 1 }, onTransition)
  loop.take(input)
  return loop.applied
}

/** What `record` has asked for, instead of writing it. */
let collected: Recordable[] = []

const scope = createInertScope(({ type, params, info }) => {
  if (type !== 'record') return
  const { events } = params as unknown as RecordParams
  // The context as it is where the action stands: after the assignments before it.
  collected.push(...events(info as unknown as Parameters<RecordParams['events']>[0]))
})

function takeCollected(): readonly Recordable[] {
  const taken = collected
  collected = []
  return taken
}

class Loop {
  readonly #onTransition: OnTransition | undefined
  readonly #events: PathEvent[] = []
  #state: LoopState
  #snapshot: AgentSnapshot

  constructor(state: LoopState, onTransition: OnTransition | undefined) {
    this.#state = state
    this.#onTransition = onTransition
    this.#snapshot = agentMachine.resolveState({ value: state.value, context: state.context })
  }

  get applied(): Applied {
    return { state: this.#reached(), events: this.#events }
  }

  take(input: PathInput): void {
    switch (input.type) {
      case 'crash':
        this.#reopen(input.recovery, input.cancel)
        break
      case 'suspend':
        if (this.#snapshot.value !== 'idle') this.#feed({ type: 'command.suspend' })
        this.#reopen('continue')
        break
      case 'fork':
        this.#record([{ type: 'session/end-seed', data: {} }])
        this.#reopen('continue')
        break
      case 'speaks':
        this.#speak()
        break
      case 'request-fails':
        this.#fail(input.retryable)
        break
      default:
        this.#stimulate(input)
    }
    this.#follow()
  }

  #stimulate(input: Sent): void {
    const { at = this.#state.now, events } = stimulusOf(this.#reached(), input)
    this.#state = { ...this.#state, now: at }
    const recorded = this.#events.length
    for (const event of events) this.#feed(event)
    if (mayChangeNothing(input) || this.#events.length > recorded) return
    throw new InputRefused(`${JSON.stringify(input)} changes nothing in ${JSON.stringify(this.#snapshot.value)}`)
  }

  #speak(): void {
    const { asked } = this.#demandStreaming('speaks')
    if (asked !== 'silent') throw new InputRefused('The model speaks already')
    this.#state = { ...this.#state, asked: 'spoke' }
  }

  #fail(retryable: boolean): void {
    const { asked } = this.#demandStreaming('fails')
    if (typeof asked === 'object') throw new InputRefused('The request failed already')
    this.#state = { ...this.#state, asked: { failed: retryable ? 'for now' : 'for good' } }
  }

  #demandStreaming(what: string): LoopState {
    if (!isStreaming(this.#snapshot)) throw new InputRefused(`The model ${what} while nobody asks it`)
    return this.#state
  }

  /** Opens the log as it is, as composition does. */
  #reopen(recovery: 'continue' | 'interrupt', cancel?: true): void {
    this.#state = { ...this.#state, asked: 'silent' }
    const resumed = resumption(this.#snapshot, { recovery, maxResumes: this.#state.setup.maxResumes })
    if (resumed === undefined) return
    this.#feed({
      type: 'command.resume',
      resumed: { ...resumed, version: 'path', chart: 'path' },
      ...(cancel ? { cancel: { cause: { kind: 'user' } } } : {}),
    })
  }

  /** What the surroundings say by themselves: an aborted stream ends, and a tool that says it may be run again does so. */
  #follow(): void {
    const { context } = this.#snapshot
    if (isStreaming(this.#snapshot) && context.cancel !== null && typeof this.#state.asked === 'string') {
      this.#feed(abortedVerdict(this.#reached()))
    }
    for (const { callId } of context.calls) {
      const call = this.#snapshot.context.calls.find((open) => open.callId === callId)
      if (call !== undefined && recoversByItself(call)) this.#feed(recoveredVerdict(this.#reached(), call))
    }
  }

  /** One event, and all that follows from what it records. */
  #feed(event: AgentEvent): void {
    const queue: AgentEvent[] = [event]
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      this.#move(next)
      for (const recorded of this.#record(takeCollected(), false)) if (isMoving(recorded)) queue.push(recorded)
    }
  }

  #move(event: AgentEvent): void {
    const before = this.#snapshot
    if (this.#onTransition !== undefined) transitionsOf(before, event).forEach(this.#onTransition)
    this.#snapshot = agentMachine.transition(before, event, scope)
    if (isStreaming(this.#snapshot) && (event.type === 'step/start' || event.type === 'llm/retry-started')) {
      this.#state = { ...this.#state, asked: 'silent' }
    }
    if (event.type === 'turn/cancel') this.#state = { ...this.#state, cancelledAt: this.#state.now }
    if (event.type === 'turn/end') this.#state = { ...this.#state, cancelledAt: undefined }
  }

  /** Gives the events their place; those that come from nowhere else also move the machine. */
  #record(events: readonly Recordable[], moves = true): readonly SessionEvent[] {
    const { maxSteps, maxParallelToolCalls } = this.#state.setup
    const placed = events.map((event) => {
      const stamped =
        event.type === 'turn/start'
          ? { ...event, data: { ...event.data, limits: { maxSteps, maxParallelToolCalls } } }
          : event
      const timed = { ...stamped, time: this.#state.now }
      this.#events.push(timed)
      return { ...timed, seq: this.#events.length } as SessionEvent
    })
    if (moves) for (const event of placed) if (isMoving(event)) this.#move(event)
    return placed
  }

  #reached(): LoopState {
    const { value, context } = this.#snapshot
    return { ...this.#state, value, context }
  }
}

/** Commands may change nothing, and so may an actor that fails when nobody waits for it any more; a verdict may not. */
const mayChangeNothing = ({ type }: PathInput): boolean =>
  ['followup', 'steer', 'inject', 'cancel', 'remove', 'clear', 'wake', 'actor-fails'].includes(type)

const recoversByItself = ({ status, recovering, onCrash }: Call): boolean =>
  status === 'dispatched' && recovering === true && (onCrash === 'rerun' || onCrash === 'ask')

/** The transitions that an event takes, each named `STATE on EVENT`, with its place among several candidates. */
function transitionsOf(snapshot: AgentSnapshot, event: AgentEvent): readonly string[] {
  return (agentMachine.getTransitionData(snapshot, event) ?? []).map((transition) => {
    const candidates = transition.source.transitions.get(transition.eventType) ?? []
    const place = candidates.length > 1 ? ` (${candidates.indexOf(transition) + 1} of ${candidates.length})` : ''
    return `${transition.source.key} on ${transition.eventType}${place}`
  })
}

/** All transitions of the chart, named as above. */
export function allTransitions(): readonly string[] {
  const names: string[] = []
  const walk = (node: typeof agentMachine.root): void => {
    for (const [event, candidates] of node.transitions) {
      candidates.forEach((_, index) => {
        const place = candidates.length > 1 ? ` (${index + 1} of ${candidates.length})` : ''
        names.push(`${node.key} on ${event}${place}`)
      })
    }
    for (const child of Object.values(node.states)) walk(child)
  }
  walk(agentMachine.root)
  return names
}
