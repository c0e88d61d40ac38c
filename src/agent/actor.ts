/**
 * An agent as an actor of a larger system. It is persisted as its session's id alone and restored from the log, so
 * that the parent's snapshot and the agent's log can never tell two stories.
 */

import { type ActorLogic, type ActorSystem, type AnyActorRef, fromPromise, type Snapshot } from 'xstate'
import { ABORTED } from '../log/aborted.ts'
import { PawlError } from '../log/errors.ts'
import type { CancelCause, SessionEvent, TurnEndReason } from '../log/events.ts'
import type { TokenUsage } from '../log/messages.ts'
import { type ChartState, stateName } from '../machines/fold.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import { renderCauses } from '../services/llm/failure.ts'
import type { Input } from '../services/tools/contract.ts'
import type { Agent } from './agent.ts'
import { create } from './create.ts'
import type { AgentOptions } from './options.ts'
import type { TurnResult } from './turns.ts'

/** What the parent may send. Commands sent while the agent opens are queued. */
export type AgentCommand =
  | {
      readonly type: 'command.followup' | 'command.steer' | 'command.inject'
      readonly message: Input
      readonly requestId?: string
    }
  | { readonly type: 'command.cancel'; readonly cause?: CancelCause; readonly keepInbox?: boolean }
  | {
      readonly type: 'command.approve'
      readonly callId: string
      readonly digest: string
      readonly run?: number
      readonly by?: string
    }
  | {
      readonly type: 'command.deny'
      readonly callId: string
      readonly digest: string
      readonly run?: number
      readonly reason?: string
      readonly by?: string
    }

/** What the actor emits, each only once it is durable; a refused command at once. */
export type AgentEmitted =
  | {
      readonly type: 'turn.ended'
      readonly turn: number
      readonly reason: TurnEndReason
      readonly text: string
      readonly usage: TokenUsage
    }
  | {
      readonly type: 'text.delta'
      readonly turn: number
      readonly step: number
      readonly attempt: number
      readonly text: string
    }
  | {
      readonly type: 'approval.requested'
      readonly callId: string
      readonly name: string
      readonly argumentsDigest: string
    }
  | { readonly type: 'command.refused'; readonly command: string; readonly code: string; readonly message: string }

export interface AgentState {
  readonly sessionId: string
  /** Where the chart is, such as `stepRequest.waiting`. */
  readonly state: string
  readonly status: 'opening' | AgentStatus
  readonly turn: number
}

export type AgentActorSnapshot = Snapshot<undefined> & { readonly agent: AgentState }

export type AgentActorLogic = ActorLogic<
  AgentActorSnapshot,
  AgentCommand,
  { readonly sessionId: string },
  ActorSystem<{ actors: Record<string, AnyActorRef> }>,
  AgentEmitted
>

/** How the running agent tells its own actor; never sent from outside. */
type Told =
  | { readonly type: 'agent.changed'; readonly agent: AgentState }
  | { readonly type: 'agent.failed'; readonly error: unknown }
  | { readonly type: 'xstate.stop' }

interface Instance {
  agent: Agent | undefined
  readonly queued: AgentCommand[]
  /** Aborts when the actor is stopped. */
  readonly stopped: AbortController
  /** Settles when the agent is open, or could not be. */
  opened: Promise<void>
}

const active = (agent: AgentState): AgentActorSnapshot => ({
  status: 'active',
  output: undefined,
  error: undefined,
  agent,
})

const inError = (agent: AgentState, error: unknown): AgentActorSnapshot => ({
  status: 'error',
  output: undefined,
  error,
  agent: { ...agent, status: 'failed' },
})

const opening = (sessionId: string): AgentActorSnapshot =>
  active({ sessionId, state: 'idle', status: 'opening', turn: 0 })

/**
 * The logic of an agent actor: invoke or spawn it with `{ sessionId }`. Stopping it suspends the agent. An agent that
 * cannot be opened, or whose store fails, is an actor in error.
 */
export function agentActor(options: Omit<AgentOptions, 'sessionId'>): AgentActorLogic {
  const instances = new WeakMap<AnyActorRef, Instance>()
  /** Sessions whose actor was stopped and whose agent still suspends, by id. */
  const leaving = new Map<string, Promise<void>>()
  return {
    transition(snapshot, sent, { self, emit }) {
      const instance = instances.get(self)
      // The agent's own words come the same way as the parent's commands.
      const event = sent as AgentCommand | Told
      switch (event.type) {
        case 'agent.changed':
          return active(event.agent)
        case 'agent.failed':
          return inError(snapshot.agent, event.error)
        case 'xstate.stop':
          if (instance !== undefined) stop(instance, snapshot.agent.sessionId, leaving)
          return { status: 'stopped', output: undefined, error: undefined, agent: snapshot.agent }
        default:
          if (!event.type.startsWith('command.')) return snapshot
          if (instance?.agent === undefined) instance?.queued.push(event)
          else carryOut(instance.agent, event, emit)
          return snapshot
      }
    },
    getInitialSnapshot: (_, { sessionId }) => opening(sessionId),
    getPersistedSnapshot: ({ agent: { sessionId } }) => opening(sessionId),
    restoreSnapshot: (persisted) => opening((persisted as AgentActorSnapshot).agent.sessionId),
    start({ agent: { sessionId } }, { self, emit }) {
      const stopped = new AbortController()
      const outside: Outside = {
        emit,
        tell(told) {
          // The agent suspends after its actor was stopped; nobody is told of that.
          if (!stopped.signal.aborted) (self as AnyActorRef).send(told)
        },
      }
      const instance: Instance = { agent: undefined, queued: [], stopped, opened: Promise.resolve() }
      instances.set(self, instance)
      // An actor started right after another of its session was stopped waits for that one to let go.
      const before = leaving.get(sessionId) ?? Promise.resolve()
      instance.opened = before.then(() => open(options, sessionId, instance, outside))
    },
  }
}

interface Outside {
  emit(event: AgentEmitted): void
  tell(told: Told): void
}

async function open(
  options: Omit<AgentOptions, 'sessionId'>,
  sessionId: string,
  instance: Instance,
  { emit, tell }: Outside,
): Promise<void> {
  try {
    const { signal } = instance.stopped
    let reached: ChartState | undefined
    const changed = (agent: Agent): void => {
      if (reached !== undefined) tell({ type: 'agent.changed', agent: stateOf(agent, reached) })
    }
    const agent = await create(
      { ...options, sessionId, signal },
      {
        onDurable(event, ended) {
          for (const emitted of emittedBy(event, ended)) emit(emitted)
        },
        onReached(state) {
          reached = state
          if (instance.agent !== undefined) changed(instance.agent)
        },
      },
    )
    instance.agent = agent
    if (signal.aborted) return void (await agent.close())
    agent.on('agent/status', (status) => {
      if (status !== 'failed') return changed(agent)
      tell({ type: 'agent.failed', error: failureOf(agent) })
      // Nobody else can: its actor is over, and what plug-ins hold is to be let go of.
      agent.close().catch(() => {})
    })
    changed(agent)
    for (const command of instance.queued.splice(0)) carryOut(agent, command, emit)
  } catch (error) {
    tell({ type: 'agent.failed', error })
  }
}

const failureOf = (agent: Agent): unknown => {
  // What a command throws now names the failure as its cause.
  try {
    agent.wake()
    return undefined
  } catch (error) {
    return error instanceof Error && error.cause !== undefined ? error.cause : error
  }
}

function stop(instance: Instance, sessionId: string, leaving: Map<string, Promise<void>>): void {
  instance.stopped.abort(ABORTED)
  const suspend = async (): Promise<void> => {
    await instance.opened
    await instance.agent?.close()
  }
  const warn = (error: unknown): void =>
    process.emitWarning(`A stopped agent could not be suspended: ${renderCauses(error)}`, 'PawlAgentWarning')
  const left = suspend()
    .catch(warn)
    .finally(() => {
      if (leaving.get(sessionId) === left) leaving.delete(sessionId)
    })
  leaving.set(sessionId, left)
}

const stateOf = ({ id, status }: Agent, reached: ChartState): AgentState => ({
  sessionId: id,
  state: stateName(reached),
  status,
  turn: reached.context.turn,
})

function carryOut(agent: Agent, command: AgentCommand, emit: Outside['emit']): void {
  const refuse = (error: unknown): void => {
    const { code, message } =
      error instanceof PawlError
        ? error
        : { code: 'UNKNOWN', message: error instanceof Error ? error.message : String(error) }
    emit({ type: 'command.refused', command: command.type, code, message })
  }
  try {
    perform(agent, command)?.catch(refuse)
  } catch (error) {
    refuse(error)
  }
}

function perform(agent: Agent, command: AgentCommand): Promise<void> | undefined {
  switch (command.type) {
    case 'command.followup':
    case 'command.steer':
    case 'command.inject': {
      const kind = command.type.slice('command.'.length) as 'followup' | 'steer' | 'inject'
      agent[kind](command.message, command.requestId === undefined ? {} : { requestId: command.requestId })
      return undefined
    }
    case 'command.cancel':
      return agent.cancel(command.cause ?? { kind: 'parent' }, { keepInbox: command.keepInbox ?? false })
    case 'command.approve':
      return agent.approve(command.callId, command)
    case 'command.deny':
      return agent.deny(command.callId, command)
  }
}

function emittedBy(event: SessionEvent, ended: TurnResult | undefined): readonly AgentEmitted[] {
  if (ended !== undefined) {
    const { turn, reason, text, usage } = ended
    return [{ type: 'turn.ended', turn, reason, text, usage }]
  }
  if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') {
    const { turn, step, attempt, chunk } = event.data
    return [{ type: 'text.delta', turn, step, attempt, text: chunk.text }]
  }
  if (event.type === 'tool/approval-requested') {
    const { callId, name, argumentsDigest } = event.data
    return [{ type: 'approval.requested', callId, name, argumentsDigest }]
  }
  return []
}

/**
 * One message and its turn as an actor whose output is the TurnResult: an agent that a parent asks once. Stopping it
 * cancels the turn with cause 'parent'. A message with an id of its own is recorded once, however often it is started.
 */
export const turnActor = (options: AgentOptions & { readonly message: Input }) =>
  fromPromise<TurnResult>(async ({ signal }) => {
    const agent = await create({ ...options, signal })
    const cancel = (): void => {
      agent.close({ cancel: { kind: 'parent' } }).catch(() => {
        // The failure of the agent rejects the run below as well.
      })
    }
    signal.addEventListener('abort', cancel, { once: true })
    try {
      signal.throwIfAborted()
      return await agent.run(options.message)
    } finally {
      signal.removeEventListener('abort', cancel)
      await agent.close()
    }
  })
