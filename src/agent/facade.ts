/** The agent as its holder sees it: commands checked and sent, promises kept, one way to close. */
import { isDeepStrictEqual } from 'node:util'
import type { Observable } from 'rxjs'
import type { CancelCause } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'
import type { AgentCommand } from '../machines/commands.ts'
import { AgentClosed, type ApprovalRefused, DuplicateMessage, MessageDropped, Overloaded } from '../services/errors.ts'
import type { AgentStatus, Hooks } from '../services/hooks/contract.ts'
import { toMessage } from '../services/input.ts'
import type { Input } from '../services/tools/contract.ts'
import type {
  Agent,
  ApproveOptions,
  CloseOptions,
  DeliverOptions,
  DenyOptions,
  Inbox,
  PendingApproval,
  SessionView,
} from './agent.ts'
import { type Answer, pendingApprovals } from './approvals.ts'
import { assertOpen } from './assert-open.ts'
import type { AgentRef } from './chart.ts'
import { checkedCause, checkedWords } from './checked.ts'
import { createInbox } from './inbox.ts'
import type { LivingAgent } from './living.ts'
import type { Presence } from './presence.ts'
import { createReceipts, type Receipt } from './receipts.ts'
import { createSessionView } from './session-view.ts'
import { createTurns, type TurnResult } from './turns.ts'

/** More than this waiting for the store, and commands are refused. */
const MAX_QUEUED_BYTES = 8 * 1_048_576

export const createFacade = (presence: Presence): Agent => new AgentFacade(presence)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentFacade implements Agent {
  readonly #presence: Presence
  /** This and the next are made when somebody asks. */
  #session: SessionView | undefined
  #inbox: Inbox | undefined
  /** Sent and not yet recorded: an observer's commands wait for the macrostep to end. Made with the first message. */
  #sent: Map<string, UserMessage> | undefined

  constructor(presence: Presence) {
    this.#presence = presence
  }

  get id(): string {
    return this.#presence.id
  }

  get status(): AgentStatus {
    return this.#presence.status
  }

  get status$(): Observable<AgentStatus> {
    return this.#presence.status$
  }

  get session(): SessionView {
    this.#session ??= createSessionView(this.#presence)
    return this.#session
  }

  get inbox(): Inbox {
    this.#inbox ??= createInbox(this.#presence, {
      has: (id) => this.#known(id) !== undefined,
      // Until the macrostep is over, if an observer sent it.
      add: (message) => {
        const sent = this.#note(message)
        queueMicrotask(() => this.#forget(sent, message.id))
      },
    })
    return this.#inbox
  }

  get actor(): AgentRef {
    return this.#working().shownActor()
  }

  followup(message: Input, options?: DeliverOptions): Receipt {
    return this.#deliver('followup', message, options)
  }

  steer(message: Input, options?: DeliverOptions): Receipt {
    return this.#deliver('steer', message, options)
  }

  inject(message: Input, options?: DeliverOptions): Receipt {
    return this.#deliver('inject', message, options)
  }

  async run(message: Input, { signal }: { readonly signal?: AbortSignal } = {}): Promise<TurnResult> {
    signal?.throwIfAborted()
    const receipt = this.#deliver('followup', message)
    const stop = (): void => {
      // What an abort listener throws is nobody's to catch; a failed or closing agent rejects the receipt by itself.
      if (this.status === 'failed' || this.#presence.closing.begun || this.#presence.working() === undefined) return
      if (this.inbox.remove(receipt.id)) return
      if (!this.#mayBeInOpenTurn(receipt.id)) return
      this.cancel().catch(() => {
        // The failure of the agent rejects the receipt as well.
      })
    }
    signal?.addEventListener('abort', stop, { once: true })
    try {
      return (await receipt.turn) ?? (await dropped(receipt))
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  /** One that an observer sent a moment ago stands nowhere yet. */
  #mayBeInOpenTurn(id: string): boolean {
    const standing = this.#working().session.standingOf(id)?.standing
    return standing === undefined || ('turn' in standing && standing.turn === this.#openTurn())
  }

  #openTurn(): number | undefined {
    return this.#presence.isIdle ? undefined : this.#working().state.context.turn
  }

  cancel(cause?: CancelCause, options?: { readonly keepInbox?: boolean }): Promise<void> {
    const done = this.#cancel(cause, options)
    // Many do not wait for it, and the agent may be closed meanwhile.
    done.catch(() => {})
    return done
  }

  async #cancel(cause: CancelCause = { kind: 'user' }, { keepInbox = false } = {}): Promise<void> {
    const open = this.#openTurn()
    this.#send({ type: 'command.cancel', cause: checkedCause(cause), ...(keepInbox ? { keepInbox } : {}) })
    // An observer's command, and one that it gave just before, take effect when the macrostep is over.
    await Promise.resolve()
    const turn = open ?? this.#openTurn()
    if (turn !== undefined) await this.#presence.waiters.until(() => this.#openTurn() !== turn)
    // Closed before the turn was over: it ends at the next opening.
    if (turn !== undefined && this.#presence.isOpen(turn)) throw new AgentClosed(this.id)
    await this.#presence.flush()
  }

  approvals(): readonly PendingApproval[] {
    return pendingApprovals(this.#working().state.context)
  }

  async approve(callId: string, { digest, run = 0, by }: ApproveOptions): Promise<void> {
    this.#assertAnswerable({ callId, run, digest })
    const onCrash = this.#working().onCrashOf(callId)
    this.#send({ type: 'command.approve', callId, run, onCrash, ...checkedWords({ by }) })
    await this.#recorded()
    this.#assertAnswered({ callId, run, digest }, 'approved')
  }

  async deny(callId: string, { digest, run = 0, reason, by }: DenyOptions): Promise<void> {
    this.#assertAnswerable({ callId, run, digest })
    this.#send({ type: 'command.deny', callId, run, ...checkedWords({ reason, by }) })
    await this.#recorded()
    this.#assertAnswered({ callId, run, digest }, 'denied')
  }

  async fork(options?: Parameters<Agent['fork']>[0]): Promise<{ sessionId: string }> {
    assertOpen(this.#presence)
    return this.#presence.fork(options)
  }

  on<K extends keyof Hooks>(name: K, handler: Hooks[K]): () => void {
    return this.#presence.hooks.add(name, handler)
  }

  wake(): void {
    this.#send({ type: 'command.wake' })
  }

  whenIdle(): Promise<void> {
    return this.#whenSettled(() => this.#presence.isIdle)
  }

  whenQuiet(): Promise<void> {
    return this.#whenSettled(() => this.#presence.isIdle || this.status === 'waiting')
  }

  hibernate(): Promise<void> {
    return this.#presence.hibernate()
  }

  close(options?: CloseOptions): Promise<void> {
    return this.#presence.closing.close(options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #working(): LivingAgent {
    return this.#presence.awake()
  }

  #refusal(answer: Answer): ApprovalRefused | undefined {
    const { approvals, state, clock } = this.#working()
    return approvals.refusal(state.context, answer, clock.now())
  }

  #assertAnswerable(answer: Answer): void {
    assertOpen(this.#presence)
    const refusal = this.#refusal(answer)
    if (refusal !== undefined) throw refusal
  }

  /** Two answers may wait for the same macrostep to end: the second one came too late. */
  #assertAnswered(answer: Answer, decision: 'approved' | 'denied'): void {
    if (this.#working().approvals.decisionOf(answer) === decision) return
    const refusal = this.#refusal(answer)
    if (refusal !== undefined) throw refusal
  }

  #send(command: AgentCommand): void {
    assertOpen(this.#presence)
    this.#working().send(command)
  }

  /** A command of an observer is recorded once the macrostep is over: after a microtask it is. */
  async #recorded(): Promise<void> {
    await Promise.resolve()
    await this.#presence.flush()
  }

  #deliver(kind: 'followup' | 'steer' | 'inject', input: Input, options: DeliverOptions = {}): Receipt {
    assertOpen(this.#presence)
    const { session, receipts } = this.#working()
    if (session.queuedBytes > MAX_QUEUED_BYTES) throw new Overloaded(session.queuedBytes)
    const message = this.#identify(input, options)
    const before = this.#known(message.id)
    if (before !== undefined) {
      if (isDeepStrictEqual(before, message)) return receipts.of(message.id) ?? replayReceipt(this.session, message.id)
      throw new DuplicateMessage(message.id)
    }
    const receipt = receipts.track(message.id)
    this.#remember(message, receipt)
    this.#send({ type: `command.${kind}`, message })
    return receipt
  }

  #remember(message: UserMessage, receipt: Receipt): void {
    const sent = this.#note(message)
    const forget = (): void => this.#forget(sent, message.id)
    receipt.accepted.then(forget, forget)
  }

  #note(message: UserMessage): Map<string, UserMessage> {
    this.#sent ??= new Map()
    return this.#sent.set(message.id, message)
  }

  #forget(sent: Map<string, UserMessage>, id: string): void {
    sent.delete(id)
    if (sent.size === 0 && this.#sent === sent) this.#sent = undefined
  }

  #identify(input: Input, { requestId }: DeliverOptions): UserMessage {
    const { newId, mask } = this.#presence
    const message = toMessage(input, requestId ?? newId(), mask)
    return requestId === undefined || message.id === requestId
      ? message
      : toMessage({ ...message, id: requestId }, '', mask)
  }

  /** The message recorded or sent under that id; null for one that was never in the inbox. */
  #known(id: string): UserMessage | null | undefined {
    const standing = this.#working().session.standingOf(id)
    return standing === undefined ? this.#sent?.get(id) : (standing.message ?? null)
  }

  async #whenSettled(holds: () => boolean): Promise<void> {
    do {
      await Promise.resolve()
      await this.#presence.waiters.until(holds)
      if (this.status !== 'closed') await this.#presence.flush()
    } while (!holds())
  }
}

/** A message that joined no turn was taken out, or left out by `agent/pre-step`. */
async function dropped(receipt: Receipt): Promise<never> {
  const entered = await receipt.entered
  throw entered.kind === 'canceled'
    ? new MessageDropped(`Message "${receipt.id}" was canceled before a turn took it`, 'MESSAGE_CANCELED')
    : new MessageDropped(`Message "${receipt.id}" was left out of its step by agent/pre-step`, 'MESSAGE_REJECTED')
}

/** The receipt of a message of an earlier process, or of a turn that is over: told from the log. */
function replayReceipt(session: SessionView, id: string): Receipt {
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
