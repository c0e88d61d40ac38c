/**
 * The one writer of one log. Events are recorded in memory, in batches; a batch is stored whole or not at all, and what
 * leaves the process (readers, `events$`, receipts) shows an event only once the store acknowledged it.
 */
import { Observable } from 'rxjs'
import { InvalidEvent, PawlError, StoreFailure } from './errors.ts'
import { type EventMap, KNOWN, type Recordable, type SessionEvent, type TurnLimits } from './events.ts'
import type { Message, UserMessage } from './messages.ts'
import type { SummaryState } from './projections/summary.ts'
import type { UsageState } from './projections/usage.ts'
import type { RequestHeader } from './requests.ts'
import { asPawlError, report } from './session/failure.ts'
import { createFeed } from './session/follow.ts'
import { load } from './session/load.ts'
import { createRecorder, type Note } from './session/recorder.ts'
import type { MessageRecord } from './session/standings.ts'
import { quiet, within } from './session/waiters.ts'
import { createWriter } from './session/writer.ts'
import type { CommandOutcome, LogStore, Ownership, SessionHeader, SummaryUpdate } from './store.ts'

export interface SessionOptions {
  /** Epoch ms, stamped on events; it may go back, the log's time does not. */
  readonly now: () => number
  /** Stamped on `turn/start`. */
  readonly limits: TurnLimits
  /**
   * Told of each sealed batch, synchronously, before it is durable; with takes alone the list is empty. What it records
   * is the next batch, sealed right after this one. A throw of this or the next is an uncaught exception and stops nothing.
   */
  readonly onSealed?: (events: readonly SessionEvent[]) => void
  /** Told of events once durable, in order, each once. */
  readonly onDurable?: (events: readonly SessionEvent[]) => void
  /** Asked when a batch was sealed and observers were told; it goes in the same append. */
  readonly summary?: () => SummaryUpdate
  /** True while a batch is being made: nothing closes it then but the `seal` that comes after. */
  readonly held?: () => boolean
  /** Asked by `replace`: false while a step is open. */
  readonly mayReplace?: () => boolean
  /** Told of each stored event at opening, in order, so that the caller folds along. */
  readonly onLoaded?: (event: SessionEvent) => void
  /** How long `flush` and `close` wait for the store, in real ms (30_000). */
  readonly storeTimeoutMs?: number
  /** How long chunks alone wait for others, in real ms (20). The first goes at once, and 64 kB do. 0: none waits. */
  readonly windowMs?: number
}

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
  /**
   * Adds the taking of a posted command to the batch in hand, also when no event is recorded. The seq of `taken` is,
   * unless given, that of the batch's first event.
   */
  take(id: string, outcome: CommandOutcome): void
  /** Closes the batch in hand: observers are told, then it is queued for one atomic append. Nothing in hand: nothing happens. */
  seal(): void
  /** `record` and `seal`, for events beside the machine. */
  append(event: Recordable): SessionEvent
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
   * Flushes, then releases the ownership; nothing is recorded from here on. Idempotent.
   * @throws what `flush` throws; the ownership is released all the same.
   */
  close(): Promise<void>
}

const STORE_TIMEOUT_MS = 30_000
const WINDOW_MS = 20

/**
 * Reads the stored log once, refusing what breaks its rules, and takes over writing it. Events are not kept.
 * @throws InvalidLog with seq and rule, LogTooNew, StoreFailure, or why the ownership is lost. The ownership stays the
 * caller's to release then.
 */
export async function openSession(store: LogStore, ownership: Ownership, options: SessionOptions): Promise<Session> {
  const folded = await load(store, ownership, options.onLoaded)
  const { header, epoch, lost } = ownership
  const timeoutMs = options.storeTimeoutMs ?? STORE_TIMEOUT_MS
  const failed = new AbortController()
  let failure: PawlError | undefined
  let closing: Promise<void> | undefined
  let closed = false

  const feed = createFeed({ store, sessionId: header.id, head: () => writer.head })
  const writer = createWriter({
    store,
    ownership,
    windowMs: options.windowMs ?? WINDOW_MS,
    onAcknowledged(events, bytes) {
      if (events.length === 0) return
      feed.publish(events, bytes)
      report(options.onDurable, events)
    },
    onFailure: (error) => fail(error),
  })
  const recorder = createRecorder({
    folded,
    now: options.now,
    limits: options.limits,
    held: options.held,
    onSealed: options.onSealed,
    summary: options.summary,
    enqueue: writer.enqueue,
  })

  const fail = (error: PawlError): void => {
    if (failure !== undefined || closed) return
    failure = error
    writer.fail(error)
    feed.end(error)
    failed.abort(error)
  }
  const onLost = (): void => fail(asPawlError(lost.reason, 'keep the session'))
  lost.addEventListener('abort', onLost, { once: true })
  if (lost.aborted) onLost()

  const timedOut = (): PawlError =>
    new StoreFailure('timeout', `The store did not answer within ${timeoutMs} ms: open session "${header.id}" again`)
  const isOver = (): PawlError => new PawlError(`Session "${header.id}" is closed: open it again`, 'AGENT_CLOSED')
  const assertOpen = (): void => {
    if (failure !== undefined) throw failure
    if (closing !== undefined) throw isOver()
  }
  const flush = async (): Promise<void> => {
    // Whoever makes the batch does so without yielding, and seals it.
    if (options.held?.()) await Promise.resolve()
    recorder.seal()
    if (failure !== undefined) throw failure
    const target = recorder.lastBatch
    if (writer.isFlushed(target)) return
    try {
      await within(writer.flushed(target), timeoutMs, timedOut)
    } catch (error) {
      // A store that does not answer leaves all that is queued in doubt, not only what this flush waited for.
      fail(asPawlError(error, 'flush the log'))
      throw error
    }
  }
  const add = (events: readonly (Recordable | Note)[]): readonly SessionEvent[] => {
    assertOpen()
    return recorder.record(events)
  }
  const addOne = (event: Recordable | Note): SessionEvent => {
    const [recorded] = add([event])
    recorder.seal()
    return recorded!
  }
  const shutDown = async (flushed: Promise<void>): Promise<void> => {
    const [outcome] = await Promise.allSettled([flushed])
    lost.removeEventListener('abort', onLost)
    closed = true
    feed.end(failure)
    writer.fail(failure ?? isOver()) // Lets go who waits for what will never be recorded.
    const [release] = await Promise.allSettled([within(ownership.release(), timeoutMs, timedOut)])
    if (outcome.status === 'rejected') throw outcome.reason
    if (release.status === 'rejected') throw asPawlError(release.reason, 'release the session')
  }
  const read = ({ from = 0, live = false, signal }: ReadOptions = {}) => feed.read({ from, live, signal })

  return {
    id: header.id,
    header,
    epoch,
    get head() {
      return writer.head
    },
    get nextSeq() {
      return folded.nextSeq
    },
    record: add,
    take(id, outcome) {
      assertOpen()
      recorder.take(id, outcome)
    },
    seal: recorder.seal,
    append: addOne,
    note(type, data) {
      if (KNOWN.has(type)) throw new InvalidEvent(`${type}: only Pawl records it; name a plug-in's event "owner/name"`)
      return addOne({ type, data, ignorable: true })
    },
    replace({ start, end, message }) {
      if (options.mayReplace?.() === false) {
        throw new InvalidEvent('user/message: the conversation cannot be replaced while a step is open')
      }
      const sourceEventSeqs = between(folded.surface.nodes(), start, end)
      return addOne({ type: 'user/message', data: message, surfaceOp: { op: 'replace', start, end }, sourceEventSeqs })
    },
    flush: () => quiet(flush()),
    ready: writer.ready,
    get queuedBytes() {
      return writer.queuedBytes
    },
    durable: writer.durable,
    failed: failed.signal,
    unflushed: () => [...writer.unacknowledged(), ...recorder.inHand()],
    messages: folded.surface.messages,
    events: read,
    events$: observableOf((signal) => read({ live: true, signal })),
    get requestHeader() {
      return folded.requestHeader
    },
    get requestContext() {
      return folded.requestContext
    },
    get usage() {
      return folded.usage
    },
    get summary() {
      return folded.summary
    },
    hasMessageId: (id) => folded.standings.get(id) !== undefined,
    hasCallId: folded.calls.has,
    messageOf: (id) => folded.standings.get(id)?.message,
    standingOf: folded.standings.get,
    close() {
      const flushed = closing === undefined ? quiet(flush()) : undefined
      // What observers recorded while the batch in hand was closed is flushed too; only now nothing more is.
      if (flushed !== undefined) closing ??= quiet(shutDown(flushed))
      return closing!
    },
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
function observableOf(read: (signal: AbortSignal) => AsyncIterable<SessionEvent>): Observable<SessionEvent> {
  return new Observable((subscriber) => {
    const leaving = new AbortController()
    const pass = async (): Promise<void> => {
      for await (const event of read(leaving.signal)) subscriber.next(event)
    }
    pass().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    )
    return () => leaving.abort()
  })
}
