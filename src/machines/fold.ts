/**
 * The state a log leaves. The chart runs without its actors and without `record`: what the events say happened,
 * happened, and nothing else does.
 */
import { type AnyActorScope, createActor, type SnapshotFrom } from 'xstate'
import { isMoving, type SessionEvent } from '../log/events.ts'
import { agentMachine } from './agent.ts'
import { initialContext } from './evolve.ts'

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>

/** A scope in which nothing runs; what it is told of an action is up to `actionExecutor`. Make it once: it costs an actor. */
export function createInertScope(actionExecutor: AnyActorScope['actionExecutor'] = () => {}): AnyActorScope {
  const self = createActor(agentMachine)
  return {
    self,
    id: self.id,
    sessionId: self.sessionId,
    logger: () => {},
    defer: () => {},
    emit: () => {},
    system: self.system,
    stopChild: () => {},
    actionExecutor,
  }
}

const inertScope = createInertScope()

/** The snapshot without its children: what a live actor may be started from. */
const bare = (snapshot: AgentSnapshot): AgentSnapshot =>
  agentMachine.resolveState({ value: snapshot.value, context: snapshot.context })

/** Of an empty log; one for all agents that start with it. */
const initialSnapshot = agentMachine.resolveState({ value: 'idle', context: initialContext })

/** Where the chart is and what it knows: all of a snapshot that a log tells of. */
export type ChartState = Pick<AgentSnapshot, 'value' | 'context'>

/** The snapshot of a state, to start an actor from. @throws if the chart has no such state */
export const restoreState = ({ value, context }: ChartState): AgentSnapshot =>
  agentMachine.resolveState({ value, context })

/**
 * Folds a log as it is read, or what comes after the state `from`; `accepts` says whether the chart has a transition for
 * an event in the state reached.
 */
export function createFold(from = initialSnapshot): {
  push(event: SessionEvent): void
  accepts(event: SessionEvent): boolean
  snapshot(): AgentSnapshot
} {
  let reached = from
  return {
    push(event) {
      if (isMoving(event)) reached = agentMachine.transition(reached, event, inertScope)
    },
    accepts: (event) => !isMoving(event) || reached.can(event),
    snapshot: () => (reached === initialSnapshot ? initialSnapshot : bare(reached)),
  }
}

/** The snapshot that the events of a log, or of its beginning, leave: value and context, no children. */
export function fold(events: Iterable<SessionEvent>): AgentSnapshot {
  const folded = createFold()
  for (const event of events) folded.push(event)
  return folded.snapshot()
}

/** A snapshot's place in words, such as `stepRequest.waiting`. */
export const stateName = ({ value }: { readonly value: AgentSnapshot['value'] }): string =>
  typeof value === 'string' ? value : Object.entries(value).flat().join('.')
