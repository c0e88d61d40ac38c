/**
 * The queue between a session and its store: one append in flight, all that is sealed meanwhile is the next one. An
 * append that fails is settled by reading back; if what it wrote is not there, nothing is ever written again.
 */
import { Fenced, type PawlError, SeqConflict } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { canonicalJson, type Json, markRecorded } from '../json.ts'
import type { AppendOptions, CommandOutcome, LogStore, Ownership, SummaryUpdate } from '../store.ts'
import { asPawlError } from './failure.ts'
import { createWaiters, type Waiters } from './waiters.ts'

/** A posted command that was taken, and what became of it. */
export interface Take {
  readonly id: string
  readonly outcome: CommandOutcome
}

/** All that one macrostep recorded. Numbered from 1 in the order of opening, which is the order of sealing. */
export interface Batch {
  readonly number: number
  readonly events: SessionEvent[]
  takes: readonly Take[]
  /** Rough bytes of the events. */
  bytes: number
  /** Nothing but chunks is in it, so it may wait for more of them. */
  patient: boolean
  summary?: SummaryUpdate | undefined
}

export interface WriterOptions {
  readonly store: LogStore
  readonly ownership: Ownership
  /** Chunks alone wait this long for others, in ms; the first goes at once. 0: none waits. */
  readonly windowMs: number
  /** What nobody waits for goes at the end of this turn of the event loop, together with what follows from it by then. */
  readonly gathers: boolean
  readonly told: WriterObserver
}

export interface WriterObserver {
  /** The answer of the store, or a rejection when it takes too long. */
  inTime<T>(answer: Promise<T>): Promise<T>
  /** Told of each group once durable, with its rough bytes. */
  acknowledged(events: readonly SessionEvent[], bytes: number): void
  /** Told once, when an append failed for good. */
  fail(error: PawlError): void
}

export interface Writer {
  /** The next seq, durable. */
  readonly head: number
  /** Rough bytes that wait for the store. */
  readonly queuedBytes: number
  enqueue(batch: Batch): void
  /** The batch of that number, and so all before it, is durable. */
  isFlushed(number: number): boolean
  /** Resolves once the batch of that number is durable, and makes it and all that is queued wait for no window. */
  flushed(number: number): Promise<void>
  durable(seq: number): Promise<void>
  ready(): Promise<void>
  /** What is queued or in flight, oldest first. */
  unacknowledged(): readonly SessionEvent[]
  /** Ends all writing; whoever waits is rejected. */
  fail(error: PawlError): void
}

/** Chunks that wait for the window go once they are this many bytes. */
const WINDOW_BYTES = 65_536
/** `ready` holds while more than this waits. */
const READY_BYTES = 1_048_576

export const createWriter = (options: WriterOptions): Writer => new LogWriter(options)

/** Nothing queued or in flight; never written to. */
const NO_BATCHES: Batch[] = []

/** A class, because an agent has one of each and a thousand agents share their methods. */
class LogWriter implements Writer {
  readonly #options: WriterOptions
  readonly #numbers = createWaiters(0)
  readonly #heads: Waiters
  readonly #room = createWaiters(0)
  #head: number
  #queue = NO_BATCHES
  #inFlight = NO_BATCHES
  #waitingBytes = 0
  #flightBytes = 0
  /** Counts acknowledgements that left room; who finds none waits for the next. */
  #rooms = 0
  #urgent = false
  #hurried = 0
  #flushedNumber = 0
  #failed = false
  /** The summary that the store has, if this session told it. */
  #told: SummaryUpdate | undefined
  #window: ReturnType<typeof setTimeout> | undefined
  /** What is queued goes when the event loop next turns: what follows from it by then shares its append. */
  #due: ReturnType<typeof setImmediate> | undefined

  constructor(options: WriterOptions) {
    this.#options = options
    this.#head = options.ownership.head
    this.#heads = createWaiters(this.#head)
  }

  get head(): number {
    return this.#head
  }

  get queuedBytes(): number {
    return this.#waitingBytes + this.#flightBytes
  }

  enqueue(batch: Batch): void {
    if (this.#queue === NO_BATCHES) this.#queue = [batch]
    else this.#queue.push(batch)
    this.#waitingBytes += batch.bytes
    if (!batch.patient || batch.number <= this.#hurried) this.#urgent = true
    const full = this.#waitingBytes >= WINDOW_BYTES
    if (full || !this.#options.gathers || batch.number <= this.#hurried) this.#pump()
    else this.#due ??= setImmediate(onLoopTurn, this)
  }

  loopTurned(): void {
    this.#due = undefined
    this.#pump()
  }

  isFlushed(number: number): boolean {
    return this.#flushedNumber >= number
  }

  flushed(number: number): Promise<void> {
    this.#hurried = Math.max(this.#hurried, number)
    if (this.#queue.length > 0) this.#urgent = true
    this.#pump()
    return this.#numbers.until(number)
  }

  durable(seq: number): Promise<void> {
    return this.#heads.until(seq + 1)
  }

  ready(): Promise<void> {
    return this.#room.until(this.#failed || this.queuedBytes > READY_BYTES ? this.#rooms + 1 : this.#rooms)
  }

  unacknowledged(): readonly SessionEvent[] {
    return [...eventsOf(this.#inFlight), ...eventsOf(this.#queue)]
  }

  fail(error: PawlError): void {
    this.#failed = true
    clearTimeout(this.#window)
    for (const waiters of [this.#numbers, this.#heads, this.#room]) waiters.fail(error)
  }

  #pump(): void {
    if (this.#failed || this.#inFlight.length > 0 || this.#queue.length === 0) return
    if (this.#window !== undefined && !this.#urgent && this.#waitingBytes < WINDOW_BYTES) {
      this.#window.ref()
      return
    }
    if (!this.#urgent) this.#openWindow()
    this.#window?.unref()
    this.#inFlight = this.#queue
    this.#flightBytes = this.#waitingBytes
    this.#queue = NO_BATCHES
    this.#waitingBytes = 0
    this.#urgent = false
    this.#write(this.#inFlight)
  }

  #openWindow(): void {
    const { windowMs } = this.#options
    if (windowMs <= 0 || this.#window !== undefined) return
    this.#window = setTimeout(() => {
      this.#window = undefined
      this.#pump()
    }, windowMs)
    this.#window.unref() // Until something waits for it.
  }

  /** Whatever happens ends in an acknowledgement or in the failure. Bounded, also when nobody flushes. */
  #write(group: readonly Batch[]): void {
    const { ownership, told } = this.#options
    const events = markRecorded(eventsOf(group))
    const request = this.#request(group)
    const { summary } = request
    const appended = told.inTime(asked(() => ownership.append(events, request)))
    const written = (): void => {
      if (this.#failed) return
      if (summary !== undefined) this.#told = summary
      this.#acknowledge(group, events)
    }
    appended.then(written, async (thrown: unknown) => {
      const error = asPawlError(thrown, 'append to the log')
      const settled = await this.#settled(error, events, request)
      if (this.#failed) return
      if (settled) this.#acknowledge(group, events)
      else told.fail(error)
    })
  }

  /** A summary that the store knows already is not told again: it is kept in indexes, each of them a page to write. */
  #request(group: readonly Batch[]): AppendOptions {
    const { takes, summary } = gather(group)
    const said = summary !== undefined && !isSame(summary, this.#told) ? { summary } : {}
    return { expectedSeq: this.#head, ...(takes === undefined ? {} : { takes }), ...said }
  }

  /** Was it written after all? The acknowledgement may have been lost. */
  async #settled(error: PawlError, events: readonly SessionEvent[], request: AppendOptions): Promise<boolean> {
    if (this.#failed || error instanceof Fenced) return false
    const { store, ownership, told } = this.#options
    try {
      if (events.length > 0) return await told.inTime(isWritten(store, ownership.header.id, events))
      if (error instanceof SeqConflict) return false
      // Only takes and a summary: nothing to read back, and asking again changes nothing that was done.
      await told.inTime(ownership.append(events, request))
      return true
    } catch {
      return false // The first error says more than a failed look or second try.
    }
  }

  #acknowledge(group: readonly Batch[], events: readonly SessionEvent[]): void {
    const bytes = this.#flightBytes
    this.#head += events.length
    this.#inFlight = NO_BATCHES
    this.#flightBytes = 0
    this.#options.told.acknowledged(events, bytes)
    this.#heads.reach(this.#head)
    this.#flushedNumber = group.at(-1)?.number ?? this.#flushedNumber
    this.#numbers.reach(this.#flushedNumber)
    if (this.#waitingBytes <= READY_BYTES) this.#room.reach(++this.#rooms)
    this.#pump()
  }
}

function isSame(one: SummaryUpdate, other: SummaryUpdate | undefined): boolean {
  return (
    other !== undefined &&
    one.turns === other.turns &&
    one.state === other.state &&
    one.owed === other.owed &&
    one.waitingFor === other.waitingFor &&
    one.wakeAt === other.wakeAt &&
    one.lastReason === other.lastReason
  )
}

const onLoopTurn = (writer: LogWriter): void => writer.loopTurned()

/** The store's answer, also where asking it throws: it may be anybody's. */
function asked(ask: () => Promise<void>): Promise<void> {
  try {
    return Promise.resolve(ask())
  } catch (error) {
    return Promise.reject(error)
  }
}

const eventsOf = (group: readonly Batch[]): readonly SessionEvent[] =>
  group.length === 1 ? (group[0]?.events ?? []) : group.flatMap((batch) => batch.events)

/** What a group takes, and the latest summary: an earlier one describes a moment that is over. */
function gather(group: readonly Batch[]): Omit<AppendOptions, 'expectedSeq'> {
  const [only] = group
  if (group.length === 1 && only !== undefined && only.takes.length === 0) {
    return only.summary === undefined ? {} : { summary: only.summary }
  }
  const takes = group.flatMap((batch) => batch.takes)
  const summary = group.findLast((batch) => batch.summary !== undefined)?.summary
  return { ...(takes.length > 0 ? { takes } : {}), ...(summary === undefined ? {} : { summary }) }
}

/** The store holds exactly these events where they belong. */
async function isWritten(store: LogStore, sessionId: string, events: readonly SessionEvent[]): Promise<boolean> {
  let matched = 0
  for await (const stored of store.read(sessionId, { from: events[0]?.seq ?? 0 })) {
    const mine = events[matched]
    if (mine === undefined || canonical(stored) !== canonical(mine)) break
    matched += 1
  }
  return matched === events.length
}

const canonical = (event: SessionEvent): string => canonicalJson(event as unknown as Json)
