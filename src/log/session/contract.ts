/** What a session is to whoever holds it: recording for its owner, reading for everybody. */
import type { Observable } from 'rxjs'
import type { PawlError } from '../errors.ts'
import type { EventMap, KnownEvent, Recordable, SessionEvent, TurnLimits } from '../events.ts'
import type { Json } from '../json.ts'
import type { Message, StreamChunk, UserMessage } from '../messages.ts'
import type { SummaryState } from '../projections/summary.ts'
import type { UsageState } from '../projections/usage.ts'
import type { RequestHeader } from '../requests.ts'
import type { CommandOutcome, SessionHeader, SummaryUpdate } from '../store.ts'
import type { CheckpointHolder } from './checkpoint.ts'
import type { Growth } from './checkpoints.ts'
import type { Feed } from './follow.ts'
import type { MessageRecord } from './standings.ts'

export interface SessionOptions {
  /** Epoch ms, stamped on events; it may go back, the log's time does not. */
  now(): number
  /** Stamped on `turn/start`. */
  readonly limits: TurnLimits
  /**
   * Told of each sealed batch, synchronously, before it is durable; with takes alone the list is empty. What it records
   * is the next batch, sealed right after this one. A throw of this or the next is an uncaught exception and stops nothing.
   */
  onSealed?(events: readonly SessionEvent[]): void
  /** Told of events once durable, in order, each once. */
  onDurable?(events: readonly SessionEvent[]): void
  /** Asked when a batch was sealed and observers were told; it goes in the same append. */
  summary?(): SummaryUpdate
  /** False while nobody has to be told of each delta at once: they are sealed together then. */
  eager?(): boolean
  /** True while a batch is being made: nothing closes it then but the `seal` that comes after. */
  held?(): boolean
  /** What the data of an event is recorded as, which keeps its shape: secrets are masked here. The data itself if it stays. */
  masked?(type: string, data: Json): Json
  /** Told of the session's failure before anybody else, to mask what it says, in place. */
  maskError?(error: PawlError): void
  /** Asked by `replace`: false while a step is open. */
  mayReplace?(): boolean
  /** Told of each stored event at opening, in order, so that the caller folds along. */
  onLoaded?(event: SessionEvent): void
  /** False if `onLoaded` has no use for deltas: they need not be read. */
  countsDeltas?(): boolean
  /** Told once of the failure, right after `failed` aborted: for who would else make a signal only to listen. */
  onFailed?(error: PawlError): void
  /** How long the store may take for each answer, in real ms (30_000); of a log that is read, for each event. */
  readonly storeTimeoutMs?: number
  /** How long chunks alone wait for others, in real ms (20). The first goes at once, and 64 kB do. 0: none waits. */
  readonly windowMs?: number
  /** None: the whole log is folded at each opening. */
  readonly checkpoints?: CheckpointHolder
  /** An append that nobody waits for goes at the end of this turn of the event loop, with all that follows by then (false). */
  readonly gathers?: boolean
}

/** What is left of a session that was left. */
export interface Left {
  /** Somebody reads live. */
  readonly feed: Feed | undefined
  /** Of a log that is kept checkpoints of. */
  readonly growth: Growth | undefined
}

/** Which attempt a chunk is of. */
export type ChunkPlace = { readonly turn: number; readonly step: number; readonly attempt: number }

export interface ReadOptions {
  /** The first seq (0). */
  readonly from?: number
  /** Goes on with new events until the session is closed; throws its failure when it failed. */
  readonly live?: boolean
  /** Ends the reading quietly. */
  readonly signal?: AbortSignal
}

/** What everybody may see of a session, and the two things they may add to it. */
export interface SessionView {
  readonly id: string
  readonly header: SessionHeader
  /** The next seq, durable. */
  readonly head: number
  /** Durable events, from the store and then live. A slow reader holds bounded memory. */
  events(options?: ReadOptions): AsyncIterable<SessionEvent>
  /** Durable events from seq 0, then live. Completes on close, errors with the failure. */
  readonly events$: Observable<SessionEvent>
  /** The conversation as recorded so far, durable or not. */
  messages(): readonly Message[]
  /**
   * Closes the batch in hand; resolves when all recorded so far is durable.
   * @throws StoreFailure 'timeout' after `storeTimeoutMs`, which is a failure of the session; or its failure.
   */
  flush(): Promise<void>
}

export interface Session extends SessionView {
  readonly epoch: number
  /** The next seq to record. */
  readonly nextSeq: number
  /**
   * Validates all, then numbers, times, stamps, freezes and adds them to the batch in hand. One bad event and none is
   * recorded. Surface events get `surfaceOp:'append'`, a `tool/result` the seq of its `tool/call` in the open step,
   * `turn/start` the limits, each unless given. An event that replaces part of the surface is recorded alone.
   * @throws InvalidEvent, NotJson, TooLarge; the session's failure; AGENT_CLOSED once closed.
   */
  record(events: readonly Recordable[]): readonly SessionEvent[]
  /** As `record`, for the chart's own events: what they are made of was guarded and masked when it came in. */
  recordOwn(events: readonly Recordable[]): readonly SessionEvent[]
  /**
   * Adds the taking of a posted command to the batch in hand, also when no event is recorded. The seq of `taken` is,
   * unless given, that of the batch's first event.
   */
  take(id: string, outcome: CommandOutcome): void
  /** Closes the batch in hand: observers are told, then it is queued for one atomic append. Nothing in hand: nothing happens. */
  seal(): void
  /** `seal`, if chunks alone are in hand: what comes next is a batch of its own. */
  sealDeltas(): void
  /** Resolves when no checkpoint is being kept. */
  checkpointed(): Promise<void>
  /** `record` and `seal`, for events beside the machine. */
  append(event: Recordable): SessionEvent
  /** `append` for one chunk of an answer, which was masked: deltas are the most of any log. */
  appendChunk(place: ChunkPlace, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'>
  /** Records a plug-in's event, named `owner/name`, ignorable and never moving. @throws InvalidEvent for one of our types. */
  note(type: string, data: unknown): SessionEvent
  /** Puts a message in place of the surface's nodes `start` to `end` (seqs, inclusive). @throws InvalidEvent, also while a step is open. */
  replace(range: { start: number; end: number; message: UserMessage }): SessionEvent
  /** Resolves at once unless over 1 MiB waits for the store; rejects once failed. */
  ready(): Promise<void>
  /** Rough bytes that wait for the store. */
  readonly queuedBytes: number
  /** Resolves once the event of that seq is acknowledged; rejects once failed. It does not close the batch in hand. */
  durable(seq: number): Promise<void>
  /** Ends the session with that failure, unless it is over. */
  fail(error: PawlError): void
  /** Fails the session if its ownership is lost: for who learns of it in another way than the signal's. */
  checkOwner(): void
  /** Aborts once, with the PawlError, after any failure of the store or when the ownership is lost. */
  readonly failed: AbortSignal
  /** The tail that was recorded and not acknowledged. */
  unflushed(): readonly SessionEvent[]
  /** The header of the last `request/header`, null before the first; of what is recorded, durable or not, as are the next three. */
  readonly requestHeader: RequestHeader | null
  /** The data of the last `request/context`. */
  readonly requestContext: EventMap['request/context'] | null
  /** Tokens spent, by the session and by its last turn. */
  readonly usage: UsageState
  /** Turns started, whether one is open, how the last one ended. */
  readonly summary: SummaryState
  /** Used by a message of the inbox or of the conversation. */
  hasMessageId(id: string): boolean
  /** Used by a call of an answer. */
  hasCallId(id: string): boolean
  /** The message the inbox recorded under that id, as it was last replaced; undefined for one that never was in it. */
  messageOf(id: string): UserMessage | undefined
  /** When the id was first recorded, and where its message stands. */
  standingOf(id: string): MessageRecord | undefined
  /**
   * Gives the session up and keeps its ownership, for an owner that rests; undefined, and nothing happened, unless all
   * that was recorded is durable. Nothing is recorded from here on. Live readers wait on: `reopenSession` takes them over.
   */
  leave(): Left | undefined
  /**
   * Flushes, then releases the ownership; nothing is recorded from here on. Idempotent.
   * @throws what `flush` throws; the ownership is released all the same.
   */
  close(): Promise<void>
}
