/**
 * The queue between a session and its store: one append in flight, all that is sealed meanwhile is the next one. An
 * append that fails is settled by reading back; if what it wrote is not there, nothing is ever written again.
 */
import { Fenced, type PawlError, SeqConflict } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { canonicalJson, type Json } from '../json.ts'
import type { AppendOptions, CommandOutcome, LogStore, Ownership, SummaryUpdate } from '../store.ts'
import { asPawlError } from './failure.ts'
import { createWaiters } from './waiters.ts'

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
  summary?: SummaryUpdate
}

export interface WriterOptions {
  readonly store: LogStore
  readonly ownership: Ownership
  /** Chunks alone wait this long for others, in ms; the first goes at once. 0: none waits. */
  readonly windowMs: number
  /** Told of each group once durable, with its rough bytes. */
  readonly onAcknowledged: (events: readonly SessionEvent[], bytes: number) => void
  /** Told once, when an append failed for good. */
  readonly onFailure: (error: PawlError) => void
}

export interface Writer {
  /** The next seq, durable. */
  readonly head: number
  /** Rough bytes that wait for the store. */
  readonly queuedBytes: number
  enqueue(batch: Batch): void
  /** The batch of that number, and so all before it, is durable. */
  isFlushed(number: number): boolean
  /** Resolves once the batch of that number is durable, and makes it and those before it wait for no window. */
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

export function createWriter(options: WriterOptions): Writer {
  const { ownership, store, windowMs } = options
  const numbers = createWaiters(0)
  const heads = createWaiters(ownership.head)
  const room = createWaiters(0)
  let head = ownership.head
  let queue: Batch[] = []
  let inFlight: readonly Batch[] = []
  let waitingBytes = 0
  let flightBytes = 0
  // Counts acknowledgements that left room; who finds none waits for the next.
  let rooms = 0
  let urgent = false
  let hurried = 0
  let flushedNumber = 0
  let failed = false
  let window: ReturnType<typeof setTimeout> | undefined

  const openWindow = (): void => {
    if (windowMs <= 0 || window !== undefined) return
    window = setTimeout(() => {
      window = undefined
      pump()
    }, windowMs)
    window.unref() // Until something waits for it.
  }

  const pump = (): void => {
    if (failed || inFlight.length > 0 || queue.length === 0) return
    if (window !== undefined && !urgent && waitingBytes < WINDOW_BYTES) {
      window.ref()
      return
    }
    if (!urgent) openWindow()
    window?.unref()
    inFlight = queue
    flightBytes = waitingBytes
    queue = []
    waitingBytes = 0
    urgent = false
    void write(inFlight)
  }

  /** Never rejects: whatever happens ends in an acknowledgement or in the failure. */
  const write = async (group: readonly Batch[]): Promise<void> => {
    const events = eventsOf(group)
    const failure = await attempt(events, { expectedSeq: head, ...gather(group) })
    if (failed) return
    if (failure === undefined) acknowledge(group, events)
    else options.onFailure(failure)
  }

  const attempt = async (events: readonly SessionEvent[], request: AppendOptions): Promise<PawlError | undefined> => {
    try {
      await ownership.append(events, request)
      return undefined
    } catch (thrown) {
      const error = asPawlError(thrown, 'append to the log')
      return (await settled(error, events, request)) ? undefined : error
    }
  }

  /** Was it written after all? The acknowledgement may have been lost. */
  const settled = async (
    error: PawlError,
    events: readonly SessionEvent[],
    request: AppendOptions,
  ): Promise<boolean> => {
    if (failed || error instanceof Fenced) return false
    try {
      if (events.length > 0) return await isWritten(store, ownership.header.id, events)
      if (error instanceof SeqConflict) return false
      // Only takes and a summary: nothing to read back, and asking again changes nothing that was done.
      await ownership.append(events, request)
      return true
    } catch {
      return false // The first error says more than a failed look or second try.
    }
  }

  const acknowledge = (group: readonly Batch[], events: readonly SessionEvent[]): void => {
    const bytes = flightBytes
    head += events.length
    inFlight = []
    flightBytes = 0
    options.onAcknowledged(events, bytes)
    heads.reach(head)
    flushedNumber = group.at(-1)?.number ?? flushedNumber
    numbers.reach(flushedNumber)
    if (waitingBytes <= READY_BYTES) room.reach(++rooms)
    pump()
  }

  return {
    get head() {
      return head
    },
    get queuedBytes() {
      return waitingBytes + flightBytes
    },
    enqueue(batch) {
      queue.push(batch)
      waitingBytes += batch.bytes
      if (!batch.patient || batch.number <= hurried) urgent = true
      pump()
    },
    isFlushed: (number) => flushedNumber >= number,
    flushed(number) {
      hurried = Math.max(hurried, number)
      if (queue.length > 0 && (queue[0]?.number ?? 0) <= hurried) urgent = true
      pump()
      return numbers.until(number)
    },
    durable: (seq) => heads.until(seq + 1),
    ready: () => room.until(failed || waitingBytes + flightBytes > READY_BYTES ? rooms + 1 : rooms),
    unacknowledged: () => [...eventsOf(inFlight), ...eventsOf(queue)],
    fail(error) {
      if (failed) return
      failed = true
      clearTimeout(window)
      for (const waiters of [numbers, heads, room]) waiters.fail(error)
    },
  }
}

const eventsOf = (group: readonly Batch[]): readonly SessionEvent[] =>
  group.length === 1 ? (group[0]?.events ?? []) : group.flatMap((batch) => batch.events)

/** What a group takes, and the latest summary: an earlier one describes a moment that is over. */
function gather(group: readonly Batch[]): Omit<AppendOptions, 'expectedSeq'> {
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
