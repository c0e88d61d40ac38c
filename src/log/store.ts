/**
 * The store port. A store keeps logs: one owner a session, appends that are all or nothing, a mailbox for commands
 * from elsewhere, and reading that never locks. What every implementation must hold is `tests/kit/store-contract.ts`.
 */
import type { PawlError } from './errors.ts'
import type { CancelCause, SessionEvent } from './events.ts'
import type { Json } from './json.ts'
import type { UserMessage } from './messages.ts'

/** Written once, when the session is created. */
export interface SessionHeader {
  readonly format: 1
  readonly id: string
  /** Epoch ms. */
  readonly createdAt: number
  readonly parentSession?: string
  /** How many events a fork inherited. */
  readonly seedLength?: number
  readonly meta?: Json
}

/** What a list shows of a session without reading its log; kept in the transaction of each append. */
export interface SessionSummary {
  readonly id: string
  readonly createdAt: number
  /** The time of the last event; before the first, `createdAt`. */
  readonly updatedAt: number
  /** The next seq. */
  readonly head: number
  readonly turns: number
  readonly state: 'idle' | 'running' | 'waiting'
  readonly waitingFor?: 'approval' | 'retry'
  /** Epoch ms at which something is due. */
  readonly wakeAt?: number
  /** Something would run if the session were opened. */
  readonly owed: boolean
  /** A living owner has it. */
  readonly owned: boolean
  readonly lastReason?: string
  readonly parentSession?: string
}

/** What another process may ask of a session's owner. */
export type Command =
  | { readonly kind: 'followup' | 'steer' | 'inject'; readonly message: UserMessage }
  | { readonly kind: 'cancel'; readonly turn: number; readonly cause: CancelCause; readonly keepInbox?: true }
  | {
      readonly kind: 'approve' | 'deny'
      readonly callId: string
      readonly run: number
      readonly digest: string
      readonly reason?: string
      readonly by?: string
    }
  | { readonly kind: 'wake' }

/** What became of a posted command. */
export type CommandOutcome =
  | { readonly kind: 'taken'; readonly seq?: number }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }

export type PostedCommand = { readonly id: string } & Command

/** The fields of a summary its owner knows; the store fills in the rest. */
export type SummaryUpdate = Partial<
  Pick<SessionSummary, 'turns' | 'state' | 'waitingFor' | 'wakeAt' | 'owed' | 'lastReason'>
>

export interface AppendOptions {
  /** The seq of the first event; with no events, the head. */
  readonly expectedSeq: number
  /** A command that is not there, or already taken, is passed over: its first outcome stays. */
  readonly takes?: readonly { readonly id: string; readonly outcome: CommandOutcome }[]
  /**
   * Replaces the fields an owner keeps as a whole: `waitingFor`, `wakeAt` and `lastReason` absent means none,
   * the others absent stay as they are.
   */
  readonly summary?: SummaryUpdate
}

/** A stretch of a log as a store keeps it. */
export interface StoredPage {
  /** The seq of its first event. */
  readonly first: number
  /** How many events it is, those left out too. */
  readonly count: number
  /** Of the last of them, epoch ms. */
  readonly time: number
  /** All but runs of deltas; what comes last in the log is there in any case. */
  readonly events: readonly SessionEvent[]
  /** By index: the store made it of its own words, so its shape needs no look. */
  readonly formed: readonly boolean[]
}

/**
 * What an owner keeps beside its log so that the next opening need not fold all of it. It is no part of the log: a store
 * may lose it at any time, and only time is lost with it.
 */
export interface Checkpoint {
  /** The seq after the last event it covers. */
  readonly seq: number
  /** As its writer made it; a store does not look inside. */
  readonly body: Uint8Array
}

/** Who rests and has to be told: at any time after `rest` returned, and until it wakes. Neither throws. */
export interface RestingOwner {
  /** A command waits that nobody has taken. */
  onPosted(): void
  /** Another owner took the session, or the store was closed. */
  onLost(reason: PawlError): void
}

/** A session whose owner rests: as much theirs as before, and no more of it in memory than this. */
export interface Resting {
  /** The ownership once more, of the same epoch; `head` is the next seq. */
  wake(head: number): Ownership
  /** As `Ownership.release`. */
  release(): Promise<void>
}

export interface LogStore extends AsyncDisposable {
  /**
   * Becomes the one owner. With `create` the session is opened or, if missing, created.
   * @throws SessionBusy while an owner lives (also in this process), unless `steal`; SessionNotFound; StoreFailure.
   */
  acquire(sessionId: string, options?: { create?: SessionHeader; steal?: boolean }): Promise<Ownership>
  /** Durable events in order from `from` (0) to the head at the time of asking. Never writes or locks. @throws SessionNotFound */
  read(sessionId: string, options?: { from?: number; types?: readonly string[] }): AsyncIterable<SessionEvent>
  /** As `read` from 0, for who folds the log and has no use for deltas. A store may leave it out. @throws SessionNotFound */
  pages?(sessionId: string, options?: { from?: number }): AsyncIterable<StoredPage>
  /**
   * As `pages`, up to `to`, exclusive, and without waiting: for an owner that wakes and must answer on the spot. With
   * `deltas` nothing is left out. A store may leave it out: its agents do not hibernate then. @throws SessionNotFound
   */
  readNow?(sessionId: string, options: { from: number; to: number; deltas: boolean }): Iterable<StoredPage>
  /**
   * Keeps a session for an owner that has nothing to do. The ownership is void from here on, as if it were released, but
   * nobody else may take the session. Undefined, and nothing changed, for an ownership that this very store did not give
   * out, so that one that was wrapped stays in use. A store may leave it out.
   */
  rest?(ownership: Ownership, owner: RestingOwner): Resting | undefined
  /** Durable events from `from`, then each new one once and in order, until `signal` aborts. @throws SessionNotFound */
  subscribe(sessionId: string, options: { from: number; signal: AbortSignal }): AsyncIterable<SessionEvent>
  /**
   * Leaves a command for the owner, now or later. The same id twice is the same command, as long as what became of it can
   * be asked for: a day after it was taken, and while it is among the last hundred taken. @throws SessionNotFound
   */
  post(sessionId: string, command: PostedCommand): Promise<void>
  /** Resolves with what became of a posted command; rejects with the signal's reason. @throws SessionNotFound */
  outcome(sessionId: string, id: string, signal: AbortSignal): Promise<CommandOutcome>
  /** Sessions, oldest first. `owed`: those that would run; `dueBefore`: those with `wakeAt` before that epoch ms. Both: either. */
  list(options?: { owed?: boolean; dueBefore?: number }): AsyncIterable<SessionSummary>
  header(sessionId: string): Promise<SessionHeader | undefined>
  /** Removes a session and all of its log. @throws SessionBusy while owned; SessionNotFound */
  delete(sessionId: string): Promise<void>
}

export interface Ownership {
  readonly header: SessionHeader
  /** From a counter of the whole store, never used twice, not even after `delete`. */
  readonly epoch: number
  /** The next seq when it was acquired. */
  readonly head: number
  /** Commands that waited when it was acquired, oldest first; `commands()` gives them too. A store may leave it out. */
  readonly posted?: readonly PostedCommand[]
  /** Aborts when another owner took the session or the store was closed; its reason is a PawlError. */
  readonly lost: AbortSignal
  /**
   * All or nothing; resolved means durable. With no events it still takes commands and updates the summary.
   * @throws SeqConflict, Fenced, StoreFailure; nothing was written then, unless the failure itself was in doubt.
   */
  append(events: readonly SessionEvent[], options: AppendOptions): Promise<void>
  /**
   * The checkpoint that was kept last, if what it covers is the log's beginning to the byte, as a digest of that beginning
   * says; undefined otherwise, also when it is damaged. Rejects for nothing that concerns the checkpoint alone. A store that
   * keeps none leaves this and `keep` out.
   */
  checkpoint?(): Promise<Checkpoint | undefined>
  /**
   * The same without waiting, of a checkpoint that this ownership kept or was given: that one it vouches for as long as
   * the session is its own, also after a rest; undefined for any other. A store that has no `readNow` leaves it out.
   */
  checkpointNow?(): Checkpoint | undefined
  /**
   * Keeps it in place of the last; `seq` is a head that was acknowledged. The body belongs to the store from then on.
   * @throws Fenced, StoreFailure; what was kept before then stays, or nothing is.
   */
  keep?(checkpoint: Checkpoint): Promise<void>
  /** After how many events it would have another one (1,000), where the log has also grown enough in bytes. */
  readonly keepEvery?: number
  /** Commands not yet taken, oldest first, each once, then new ones as they are posted, until `signal` aborts or the ownership ends. */
  commands(signal: AbortSignal): AsyncIterable<PostedCommand>
  /** Gives the session up. Idempotent; later appends are Fenced. */
  release(): Promise<void>
}
