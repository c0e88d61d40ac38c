/** The agent as its holder sees it: commands checked and sent, promises kept, one way to close. */
import { isDeepStrictEqual } from 'node:util'
import type { BehaviorSubject } from 'rxjs'
import type { ActorRefFrom } from 'xstate'
import type { CancelCause, OnCrash } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'
import type { Session } from '../log/session.ts'
import type { agentMachine } from '../machines/agent.ts'
import type { AgentCommand } from '../machines/commands.ts'
import { isMessage } from '../machines/evolve.ts'
import type { Clock } from '../services/clock.ts'
import { AgentClosed, DuplicateMessage, MessageDropped, Overloaded } from '../services/errors.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import type { HookRegistry } from '../services/hooks/registry.ts'
import { toMessage } from '../services/input.ts'
import type { Input } from '../services/tools/contract.ts'
import type { Agent, DeliverOptions, Inbox, SessionView } from './agent.ts'
import { type Approvals, pendingApprovals } from './approvals.ts'
import type { Closing } from './closing.ts'
import { createReceipts, type Receipt, type Receipts } from './receipts.ts'
import { createTurns } from './turns.ts'
import type { Waiters } from './waiters.ts'

export interface Parts {
  readonly session: Session
  readonly actor: ActorRefFrom<typeof agentMachine>
  readonly hooks: HookRegistry
  readonly approvals: Approvals
  readonly receipts: Receipts
  readonly waiters: Waiters
  readonly status: BehaviorSubject<AgentStatus>
  readonly closing: Closing
  readonly clock: Clock
  readonly newId: () => string
  readonly onCrashOf: (callId: string) => OnCrash
  readonly fork: Agent['fork']
}

/** More than this waiting for the store, and commands are refused. */
const MAX_QUEUED_BYTES = 8 * 1_048_576

export function createFacade(parts: Parts): Agent {
  const { session, actor, hooks, approvals, receipts, waiters, status, closing } = parts
  /** Sent and not yet recorded: an observer's commands wait for the macrostep to end. */
  const sent = new Map<string, UserMessage>()
  const snapshot = () => actor.getSnapshot()
  const isIdle = (): boolean => status.value === 'closed' || snapshot().value === 'idle'

  const assertOpen = (): void => {
    if (status.value === 'failed') throw new AgentClosed(session.id, { cause: session.failed.reason })
    if (closing.begun) throw new AgentClosed(session.id)
  }
  const send = (command: AgentCommand): void => {
    assertOpen()
    actor.send(command)
  }
  /** A command of an observer is recorded once the macrostep is over: after a microtask it is. */
  const recorded = async (): Promise<void> => {
    await Promise.resolve()
    await session.flush()
  }

  const identify = (input: Input, { requestId }: DeliverOptions): UserMessage => {
    const message = toMessage(input, requestId ?? parts.newId())
    return requestId === undefined || message.id === requestId ? message : toMessage({ ...message, id: requestId }, '')
  }
  const known = (id: string): UserMessage | null | undefined => {
    const standing = session.standingOf(id)
    return standing === undefined ? sent.get(id) : (standing.message ?? null)
  }
  const assertNew = (id: string): void => {
    if (known(id) !== undefined) throw new DuplicateMessage(id)
  }
  const deliver = (kind: 'followup' | 'steer' | 'inject', input: Input, options: DeliverOptions = {}): Receipt => {
    assertOpen()
    if (session.queuedBytes > MAX_QUEUED_BYTES) throw new Overloaded(session.queuedBytes)
    const message = identify(input, options)
    const before = known(message.id)
    if (before !== undefined) {
      if (isDeepStrictEqual(before, message)) return receipts.of(message.id) ?? replayReceipt(session, message.id)
      throw new DuplicateMessage(message.id)
    }
    const receipt = receipts.track(message.id)
    sent.set(message.id, message)
    receipt.accepted.then(
      () => sent.delete(message.id),
      () => sent.delete(message.id),
    )
    send({ type: `command.${kind}`, message })
    return receipt
  }

  const inbox: Inbox = {
    get nextTurn() {
      return snapshot().context.inbox['next-turn']
    },
    get nextStep() {
      return snapshot().context.inbox['next-step']
    },
    replace(id, input) {
      assertOpen()
      const replacement = toMessage(input, parts.newId())
      if (!isPending(id)) return false
      if (replacement.id !== id) assertNew(replacement.id)
      send({ type: 'command.remove', id, replacement })
      return true
    },
    remove(id) {
      assertOpen()
      if (!isPending(id)) return false
      send({ type: 'command.remove', id })
      return true
    },
    clear: () => send({ type: 'command.clear' }),
  }
  const isPending = (id: string): boolean =>
    [...inbox.nextStep, ...inbox.nextTurn].some((item) => isMessage(item) && item.message.id === id)

  const cancel = async (cause: CancelCause, keepInbox: boolean): Promise<void> => {
    const { value, context } = snapshot()
    send({ type: 'command.cancel', cause, ...(keepInbox ? { keepInbox } : {}) })
    await Promise.resolve()
    if (value !== 'idle') {
      await waiters.until(() => isIdle() || snapshot().context.turn > context.turn)
    }
    await session.flush()
  }

  const view: SessionView = {
    id: session.id,
    header: session.header,
    get head() {
      return session.head
    },
    events: session.events,
    events$: session.events$,
    messages: session.messages,
    flush: session.flush,
    note: session.note,
    replace: ({ start, end, message }) => {
      assertOpen()
      return session.replace({ start, end, message: toMessage(message, parts.newId()) })
    },
  }

  const whenSettled = async (holds: () => boolean): Promise<void> => {
    do {
      await Promise.resolve()
      await waiters.until(holds)
      if (status.value !== 'closed') await session.flush()
    } while (!holds())
  }

  const agent: Agent = {
    id: session.id,
    get status() {
      return status.value
    },
    status$: status.asObservable(),
    session: view,
    inbox,
    actor,
    followup: (message, options) => deliver('followup', message, options),
    steer: (message, options) => deliver('steer', message, options),
    inject: (message, options) => deliver('inject', message, options),
    async run(message, { signal } = {}) {
      signal?.throwIfAborted()
      const receipt = deliver('followup', message)
      const stop = (): void => {
        if (closing.begun || inbox.remove(receipt.id)) return
        agent.cancel().catch(() => {
          // The failure of the agent rejects the receipt as well.
        })
      }
      signal?.addEventListener('abort', stop, { once: true })
      try {
        return (await receipt.turn) ?? (await dropped(receipt))
      } finally {
        signal?.removeEventListener('abort', stop)
      }
    },
    cancel: (cause = { kind: 'user' }, { keepInbox = false } = {}) => cancel(cause, keepInbox),
    approvals: () => pendingApprovals(snapshot().context),
    async approve(callId, { digest, run = 0, by }) {
      assertOpen()
      const refusal = approvals.refusal(snapshot().context, { callId, run, digest }, parts.clock.now())
      if (refusal !== undefined) throw refusal
      const onCrash = parts.onCrashOf(callId)
      send({ type: 'command.approve', callId, run, onCrash, ...(by === undefined ? {} : { by }) })
      await recorded()
    },
    async deny(callId, { digest, run = 0, reason, by }) {
      assertOpen()
      const refusal = approvals.refusal(snapshot().context, { callId, run, digest }, parts.clock.now())
      if (refusal !== undefined) throw refusal
      const why = reason === undefined ? {} : { reason }
      send({ type: 'command.deny', callId, run, ...why, ...(by === undefined ? {} : { by }) })
      await recorded()
    },
    fork: parts.fork,
    on: hooks.add,
    wake: () => send({ type: 'command.wake' }),
    whenIdle: () => whenSettled(isIdle),
    whenQuiet: () => whenSettled(() => isIdle() || status.value === 'waiting'),
    close: (options) => closing.close(options),
    [Symbol.asyncDispose]: () => closing.close(),
  }
  return agent
}

/** A message that joined no turn was taken out, or left out by `agent/pre-step`. */
async function dropped(receipt: Receipt): Promise<never> {
  const entered = await receipt.entered
  throw entered.kind === 'canceled'
    ? new MessageDropped(`Message "${receipt.id}" was canceled before a turn took it`, 'MESSAGE_CANCELED')
    : new MessageDropped(`Message "${receipt.id}" was left out of its step by agent/pre-step`, 'MESSAGE_REJECTED')
}

/** The receipt of a message of an earlier process, or of a turn that is over: told from the log. */
function replayReceipt(session: Session, id: string): Receipt {
  const turns = createTurns()
  const receipts = createReceipts()
  const receipt = receipts.track(id)
  const read = async (): Promise<void> => {
    for await (const event of session.events({ live: true })) {
      receipts.place(event, turns.place(event))
      if (receipts.of(id) === undefined) return
    }
    receipts.fail(new AgentClosed(session.id))
  }
  read().catch((error: unknown) => receipts.fail(error))
  return receipt
}
