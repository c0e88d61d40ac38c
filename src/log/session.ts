/**
 * The one writer of one log. Events are recorded in memory, in batches; a batch is stored whole or not at all, and what
 * leaves the process (readers, `events$`, receipts) shows an event only once the store acknowledged it.
 */

import { Observable } from 'rxjs'
import { ABORTED } from './aborted.ts'
import { InvalidEvent, PawlError } from './errors.ts'
import { type EventMap, KNOWN, type KnownEvent, type Recordable, type SessionEvent } from './events.ts'
import { LazyAbort } from './lazy-abort.ts'
import type { Message, StreamChunk, UserMessage } from './messages.ts'
import { createWatch, inTime, itemsInTime, sessionPatience, type Watch } from './patience.ts'
import type { SummaryState } from './projections/summary.ts'
import type { UsageState } from './projections/usage.ts'
import type { RequestHeader } from './requests.ts'
import { type Checkpoints, createCheckpoints } from './session/checkpoints.ts'
import type { ChunkPlace, Left, ReadOptions, Session, SessionOptions } from './session/contract.ts'
import { asPawlError, report } from './session/failure.ts'
import type { Folded } from './session/folded.ts'
import { createFeed, type Durable, type Feed } from './session/follow.ts'
import { type Loaded, type LoadOptions, load, loadNow } from './session/load.ts'
import { createRecorder, type Note, type Recorder } from './session/recorder.ts'
import type { MessageRecord } from './session/standings.ts'
import { quiet } from './session/waiters.ts'
import { createWriter, type Writer, type WriterObserver } from './session/writer.ts'
import type { CommandOutcome, LogStore, Ownership, SessionHeader } from './store.ts'

export type { CheckpointHolder } from './session/checkpoint.ts'
export type { Left, ReadOptions, Session, SessionOptions, SessionView } from './session/contract.ts'
export { asPawlError } from './session/failure.ts'
export type { Feed } from './session/follow.ts'

const WINDOW_MS = 20

/**
 * Reads the stored log once, refusing what breaks its rules, and takes over writing it. Events are not kept.
 * @throws InvalidLog with seq and rule, LogTooNew, StoreFailure, or why the ownership is lost. The ownership stays the
 * caller's to release then.
 */
export async function openSession(store: LogStore, ownership: Ownership, options: SessionOptions): Promise<Session> {
  const loaded = await load(store, ownership, loadOptions(options))
  return new OwnedSession(store, ownership, loaded, options)
}

/**
 * As `openSession`, without waiting, for an owner that left the session before.
 * @throws StoreFailure too for a store that does not read without waiting.
 */
export function reopenSession(store: LogStore, ownership: Ownership, options: SessionOptions, left: Left): Session {
  return new OwnedSession(store, ownership, loadNow(store, ownership, loadOptions(options)), options, left)
}

const loadOptions = (options: SessionOptions): LoadOptions => ({
  patience: sessionPatience(options.storeTimeoutMs),
  deltas: options.countsDeltas?.() !== false,
  onLoaded: (event) => options.onLoaded?.(event),
  checkpoints: options.checkpoints,
})

/** Durable events of a session as far as `durable` says, for readers that outlast whoever records. */
export function openFeed(store: LogStore, id: string, durable: Durable, timeoutMs: number | undefined): Feed {
  const patience = sessionPatience(timeoutMs)
  return createFeed((from) => itemsInTime(store.read(id, { from }), `read session "${id}"`, patience), durable)
}

/** A class, because an agent has one of each and a thousand agents share their methods. */
class OwnedSession implements Session, WriterObserver {
  readonly id: string
  readonly header: SessionHeader
  readonly epoch: number
  readonly #ownership: Ownership
  readonly #options: SessionOptions
  readonly #store: LogStore
  readonly #folded: Folded
  readonly #writer: Writer
  readonly #recorder: Recorder
  readonly #checkpoints: Checkpoints | undefined
  readonly #failed = new LazyAbort()
  /** Made with the first reader. */
  #feed: Feed | undefined
  #onLost: (() => void) | undefined
  #watch: Watch | undefined
  #failure: PawlError | undefined
  #closing: Promise<void> | undefined
  #closed = false

  constructor(
    store: LogStore,
    ownership: Ownership,
    { folded, checkpoint }: Loaded,
    options: SessionOptions,
    left?: Left,
  ) {
    const { header, epoch } = ownership
    this.id = header.id
    this.header = header
    this.epoch = epoch
    this.#store = store
    this.#ownership = ownership
    this.#options = options
    this.#folded = folded
    this.#writer = createWriter({
      store,
      ownership,
      windowMs: options.windowMs ?? WINDOW_MS,
      gathers: options.gathers ?? false,
      told: this,
    })
    this.#feed = left?.feed
    this.#feed?.over(this.#writer)
    this.#recorder = createRecorder(folded, options, this.#writer)
    const holder = options.checkpoints
    this.#checkpoints =
      holder &&
      createCheckpoints({
        ownership,
        holder,
        folded,
        kept: checkpoint,
        growth: left?.growth,
        patience: sessionPatience(options.storeTimeoutMs),
      })
    // The one before it watched, if it ever recorded.
    if (left !== undefined) this.#watchOwner()
    else this.checkOwner()
  }

  checkOwner(): void {
    const { lost } = this.#ownership
    if (lost.aborted) this.fail(asPawlError(lost.reason, 'keep the session'))
  }

  /** From the first time that it matters: a listener is much of what an idle session would take. */
  #watchOwner(): void {
    if (this.#onLost !== undefined || this.#closed) return
    this.#onLost = () => this.checkOwner()
    this.#ownership.lost.addEventListener('abort', this.#onLost)
    this.checkOwner()
  }

  #unwatchOwner(): void {
    if (this.#onLost !== undefined) this.#ownership.lost.removeEventListener('abort', this.#onLost)
  }

  get head(): number {
    return this.#writer.head
  }

  get nextSeq(): number {
    return this.#folded.nextSeq
  }

  get failed(): AbortSignal {
    this.#watchOwner()
    return this.#failed.signal
  }

  get queuedBytes(): number {
    return this.#writer.queuedBytes
  }

  get requestHeader(): RequestHeader | null {
    return this.#folded.requestHeader
  }

  get requestContext(): EventMap['request/context'] | null {
    return this.#folded.requestContext
  }

  get usage(): UsageState {
    return this.#folded.usage
  }

  get summary(): SummaryState {
    return this.#folded.summary
  }

  get events$(): Observable<SessionEvent> {
    return observableOf((signal) => this.events({ live: true, signal }))
  }

  record(events: readonly Recordable[]): readonly SessionEvent[] {
    this.#assertOpen()
    return this.#recorder.record(events)
  }

  recordOwn(events: readonly Recordable[]): readonly SessionEvent[] {
    this.#assertOpen()
    return this.#recorder.recordOwn(events)
  }

  take(id: string, outcome: CommandOutcome): void {
    this.#assertOpen()
    this.#recorder.take(id, outcome)
  }

  seal(): void {
    this.#recorder.seal()
  }

  sealDeltas(): void {
    this.#recorder.sealDeltas()
  }

  append(event: Recordable): SessionEvent {
    return this.#addOne(event)
  }

  appendChunk(place: ChunkPlace, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'> {
    this.#assertOpen()
    return this.#recorder.recordChunk(place, chunk, request)
  }

  note(type: string, data: unknown): SessionEvent {
    if (KNOWN.has(type)) throw new InvalidEvent(`${type}: only Pawl records it; name a plug-in's event "owner/name"`)
    return this.#addOne({ type, data, ignorable: true })
  }

  replace({ start, end, message }: { start: number; end: number; message: UserMessage }): SessionEvent {
    if (this.#options.mayReplace?.() === false) {
      throw new InvalidEvent('user/message: the conversation cannot be replaced while a step is open')
    }
    const sourceEventSeqs = between(this.#folded.surface.nodes(), start, end)
    return this.#addOne({
      type: 'user/message',
      data: message,
      surfaceOp: { op: 'replace', start, end },
      sourceEventSeqs,
    })
  }

  flush(): Promise<void> {
    // Whoever makes the batch does so without yielding, and seals it.
    return quiet(this.#options.held?.() ? Promise.resolve().then(() => this.#flush()) : this.#flush())
  }

  checkpointed(): Promise<void> {
    return this.#checkpoints?.settled() ?? Promise.resolve()
  }

  /** Resolves when it is kept, or cannot be, which costs only time. */
  async #keepCheckpoint(): Promise<void> {
    const kept = this.#failure === undefined ? this.#checkpoints?.keep(this.#writer.head) : undefined
    if (kept === undefined) return
    const patience = sessionPatience(this.#options.storeTimeoutMs)
    // One that is under way keeps no process from ending; whoever waits here does.
    await inTime(kept, `keep a checkpoint of session "${this.id}"`, patience).catch(() => {})
  }

  ready(): Promise<void> {
    return this.#writer.ready()
  }

  durable(seq: number): Promise<void> {
    return this.#writer.durable(seq)
  }

  unflushed(): readonly SessionEvent[] {
    return [...this.#writer.unacknowledged(), ...this.#recorder.inHand()]
  }

  messages(): readonly Message[] {
    return this.#folded.surface.messages()
  }

  events({ from = 0, live = false, signal }: ReadOptions = {}): AsyncIterable<SessionEvent> {
    if (live) this.#watchOwner()
    return this.#read().read({ from, live, signal })
  }

  #read(): Feed {
    if (this.#feed !== undefined) return this.#feed
    this.#feed = openFeed(this.#store, this.id, this.#writer, this.#options.storeTimeoutMs)
    if (this.#closed || this.#failure !== undefined) this.#feed.end(this.#failure)
    return this.#feed
  }

  hasMessageId(id: string): boolean {
    return this.standingOf(id) !== undefined
  }

  hasCallId(id: string): boolean {
    return this.#folded.calls.has(id)
  }

  messageOf(id: string): UserMessage | undefined {
    return this.standingOf(id)?.message
  }

  standingOf(id: string): MessageRecord | undefined {
    return this.#folded.standings.get(id)
  }

  close(): Promise<void> {
    if (this.#closing === undefined) {
      const flushed = this.flush()
      // What observers recorded while the batch in hand was closed is flushed too; only now nothing more is.
      this.#closing ??= quiet(this.#shutDown(flushed))
    }
    return this.#closing
  }

  leave(): Left | undefined {
    if (this.#failure !== undefined || this.#closing !== undefined) return undefined
    if (!this.#recorder.isEmpty || !this.#writer.isFlushed(this.#recorder.lastBatch)) return undefined
    this.#unwatchOwner()
    this.#closed = true
    this.#closing = Promise.resolve()
    return { feed: this.#feed?.isRead ? this.#feed : undefined, growth: this.#checkpoints?.growth }
  }

  #assertOpen(): void {
    this.#watchOwner()
    if (this.#failure !== undefined) throw this.#failure
    if (this.#closing !== undefined) throw this.#isOver()
  }

  #addOne(event: Recordable | Note): SessionEvent {
    this.#assertOpen()
    const [recorded] = this.#recorder.record([event])
    this.#recorder.seal()
    return recorded!
  }

  inTime<T>(answer: Promise<T>): Promise<T> {
    // Nobody may be waiting for it, and then it keeps no process from ending.
    return this.#appending(answer, false)
  }

  acknowledged(events: readonly SessionEvent[], bytes: number): void {
    if (events.length === 0) return
    this.#feed?.publish(events, bytes)
    report(() => this.#options.onDurable?.(events))
    this.#checkpoints?.grown(this.#writer.head, bytes)
  }

  fail(error: PawlError): void {
    if (this.#failure !== undefined || this.#closed) return
    this.#options.maskError?.(error)
    this.#failure = error
    this.#writer.fail(error)
    this.#feed?.end(error)
    this.#failed.abort(error)
    report(() => this.#options.onFailed?.(error))
  }

  #flush(): Promise<void> {
    this.#recorder.seal()
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const target = this.#recorder.lastBatch
    if (this.#writer.isFlushed(target)) return Promise.resolve()
    const flushed = this.#appending(this.#writer.flushed(target), true)
    flushed.catch((error: unknown) => {
      // A store that does not answer leaves all that is queued in doubt, not only what this flush waited for.
      this.fail(asPawlError(error, 'flush the log'))
    })
    return flushed
  }

  async #shutDown(flushed: Promise<void>): Promise<void> {
    const [outcome] = await Promise.allSettled([flushed])
    this.#unwatchOwner()
    this.#closed = true
    this.#feed?.end(this.#failure)
    this.#writer.fail(this.#failure ?? this.#isOver()) // Lets go who waits for what will never be recorded.
    await this.#keepCheckpoint()
    const patience = sessionPatience(this.#options.storeTimeoutMs)
    const released = inTime(this.#ownership.release(), `release session "${this.id}"`, patience)
    const [release] = await Promise.allSettled([released])
    if (outcome.status === 'rejected') throw outcome.reason
    if (release.status === 'rejected') throw asPawlError(release.reason, 'release the session')
  }

  #appending<T>(answer: Promise<T>, holds: boolean): Promise<T> {
    this.#watch ??= createWatch(`append to session "${this.id}"`, sessionPatience(this.#options.storeTimeoutMs))
    return this.#watch.over(answer, holds)
  }

  #isOver(): PawlError {
    return new PawlError(`Session "${this.id}" is closed: open it again`, 'AGENT_CLOSED')
  }
}

/** The surface's nodes from `start` to `end`, both of them seqs on it. */
function between(nodes: readonly number[], start: number, end: number): readonly number[] {
  const first = nodes.indexOf(start)
  const last = nodes.indexOf(end)
  if (first >= 0 && last >= first) return nodes.slice(first, last + 1)
  throw new InvalidEvent(`user/message: cannot replace seq ${start} to ${end}: no such range is on the surface`)
}

/** Reads anew for each subscriber, until it unsubscribes. */
export function observableOf(read: (signal: AbortSignal) => AsyncIterable<SessionEvent>): Observable<SessionEvent> {
  return new Observable((subscriber) => {
    const leaving = new AbortController()
    const pass = async (): Promise<void> => {
      for await (const event of read(leaving.signal)) subscriber.next(event)
    }
    pass().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    )
    return () => leaving.abort(ABORTED)
  })
}
