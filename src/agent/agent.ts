/** What an agent is to whoever holds it. */
import type { Observable } from 'rxjs'
import type { ActorRefFrom } from 'xstate'
import type { CancelCause, InboxItem, SessionEvent } from '../log/events.ts'
import type { SessionView as LogView } from '../log/session.ts'
import type { agentMachine } from '../machines/agent.ts'
import type { AgentStatus, Hooks } from '../services/hooks/contract.ts'
import type { Input } from '../services/tools/contract.ts'
import type { Receipt } from './receipts.ts'
import type { TurnResult } from './turns.ts'

/** The session as its agent shows it: durable reading, and the two things one may add. */
export interface SessionView extends LogView {
  /** Records a plug-in's event, named `owner/name`: ignorable, never moving. @throws InvalidEvent, NotJson */
  note(type: string, data: unknown): SessionEvent
  /** Puts a message in place of a range of the conversation (seqs, inclusive). @throws InvalidEvent, also while a step is open */
  replace(range: { readonly start: number; readonly end: number; readonly message: Input }): SessionEvent
}

/** The messages that wait. Tool results on their way to the model show here for no longer than a macrostep. */
export interface Inbox {
  readonly nextTurn: readonly InboxItem[]
  readonly nextStep: readonly InboxItem[]
  /** Puts another message in a waiting one's place; false if none of that id waits. @throws DuplicateMessage */
  replace(id: string, message: Input): boolean
  /** Takes a waiting message out; false if none of that id waits. */
  remove(id: string): boolean
  clear(): void
}

/** A call that somebody must allow. Answer with its digest: what was seen is what is allowed. */
export interface PendingApproval {
  readonly callId: string
  readonly run: number
  readonly name: string
  /** The model's raw string. */
  readonly arguments: string
  readonly argumentsDigest: string
  readonly purpose: 'run' | 'rerun'
  /** Epoch ms. */
  readonly expiresAt?: number
}

export interface DeliverOptions {
  /** Becomes the message's id: the same id with equal content is the same message, and is recorded once. */
  readonly requestId?: string
}

export interface ApproveOptions {
  readonly digest: string
  /** Which run is allowed: 0, the first, by default. */
  readonly run?: number
  readonly by?: string
}

export interface DenyOptions extends ApproveOptions {
  readonly reason?: string
}

export interface CloseOptions {
  /** ms that dispatched tools have to settle; 5,000. */
  readonly graceMs?: number
  /** Ends the open turn first, instead of leaving it open. */
  readonly cancel?: CancelCause
}

/**
 * An LLM agent over one durable session. Commands take effect at once; an observer's take effect right after what it
 * observes. After `close()`, and once the store failed, they throw AgentClosed.
 */
export interface Agent extends AsyncDisposable {
  readonly id: string
  /** 'waiting': only for the outside, an approval or a retry's time. */
  readonly status: AgentStatus
  /** The status now, then each change; completes on close. */
  readonly status$: Observable<AgentStatus>
  readonly session: SessionView
  readonly inbox: Inbox
  /** The chart's actor, until the agent hibernates; reading this wakes it. */
  readonly actor: ActorRefFrom<typeof agentMachine>
  /** A message for a turn of its own. @throws NotJson, InvalidEvent, DuplicateMessage, Overloaded, AgentClosed */
  followup(message: Input, options?: DeliverOptions): Receipt
  /** A message for the next step of the open turn; idle, it opens one. Throws as `followup`. */
  steer(message: Input, options?: DeliverOptions): Receipt
  /** A message for the next step, whenever there is one. Throws as `followup`. */
  inject(message: Input, options?: DeliverOptions): Receipt
  /**
   * A followup, and the end of its turn, whatever the reason. An aborted `signal` cancels the message or its turn.
   * @throws StoreFailure, AgentClosed; MessageDropped if the message never joined a turn
   */
  run(message: Input, options?: { readonly signal?: AbortSignal }): Promise<TurnResult>
  /**
   * Recorded at once; resolves when the turn is over and durable. Idle, it clears the inbox. @throws AgentClosed for an
   * agent that is closed, also when it closes before the turn is over: that ends at the next opening
   */
  cancel(cause?: CancelCause, options?: { readonly keepInbox?: boolean }): Promise<void>
  approvals(): readonly PendingApproval[]
  /** Resolves when durable. @throws ApprovalRefused */
  approve(callId: string, options: ApproveOptions): Promise<void>
  /** Resolves when durable; the model sees the denial. @throws ApprovalRefused */
  deny(callId: string, options: DenyOptions): Promise<void>
  /** A new session with this one's log up to `at` (a seq, exclusive; all of it). @throws ForkRefused */
  fork(options?: { readonly at?: number; readonly sessionId?: string }): Promise<{ sessionId: string }>
  on<K extends keyof Hooks>(name: K, handler: Hooks[K]): () => void
  /** Starts parked messages, if any. */
  wake(): void
  /** Resolves when nothing runs, and all of it is durable. @throws the failure of the store */
  whenIdle(): Promise<void>
  /** Resolves when idle, or waiting only for an approval or a retry. @throws the failure of the store */
  whenQuiet(): Promise<void>
  /**
   * Lets go of all but what its holder can see, about a kilobyte, and keeps the session; whatever it is asked or sent
   * next wakes it, from its log, without waiting: a message, another process's command, a look at the conversation.
   * Only `actor` is another one then: what was subscribed to the one before completes. Resolves when it is asleep, or
   * when it stays awake: something runs or began meanwhile, the store cannot read without waiting, the agent is closed
   * or failed. One that waits for an approval or a retry is suspended as by `close()`, and woken in time.
   */
  hibernate(): Promise<void>
  /** Suspends: the open turn goes on at the next opening. Memoised. @throws the failure of the store */
  close(options?: CloseOptions): Promise<void>
}
