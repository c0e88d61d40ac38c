/**
 * Reading what is durable: from the store first, then live from acknowledged groups, without gap or duplicate. A slow
 * reader holds bounded memory: what piles up is dropped, and read again from the store.
 */
import { InvalidLog, type PawlError } from '../errors.ts'
import type { SessionEvent } from '../events.ts'

/** A reader that lags more than this behind, in rough bytes, goes back to the store. */
const TAP_BYTES = 262_144

export interface Feed {
  /** A group is durable; `bytes` is its rough size. */
  publish(events: readonly SessionEvent[], bytes: number): void
  /** Nothing more will come: live readers end, with the failure if there is one, once they read what is durable. */
  end(failure?: PawlError): void
  /** Somebody reads live. */
  readonly isRead: boolean
  /** From here on `durable` says how far may be read: its readers are another session's of the same log. */
  over(durable: Durable): void
  /** Durable events from `from`; `live`: then each new one until the end. An aborted signal ends it quietly. */
  read(options: { from: number; live: boolean; signal: AbortSignal | undefined }): AsyncIterableIterator<SessionEvent>
}

/** The stored events from a seq on. */
type ReadStored = (from: number) => AsyncIterable<SessionEvent>

/** `head` is the next seq, durable: no event from there on is shown. */
export interface Durable {
  readonly head: number
}

/** What one live reader has not yet seen. */
interface Tap {
  groups: (readonly SessionEvent[])[]
  bytes: number
  /** It lagged too far behind, and its groups were dropped. */
  behind: boolean
  wake: () => void
}

export const createFeed = (readStored: ReadStored, durable: Durable): Feed => new DurableFeed(readStored, durable)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class DurableFeed implements Feed {
  readonly #readStored: ReadStored
  #durable: Durable
  /** Live readers that have not come to an end. */
  #readers = 0
  /** Made with the first live reader. */
  #taps: Set<Tap> | undefined
  #ended: { readonly failure: PawlError | undefined } | undefined

  constructor(readStored: ReadStored, durable: Durable) {
    this.#readStored = readStored
    this.#durable = durable
  }

  publish(events: readonly SessionEvent[], bytes: number): void {
    if (this.#taps === undefined) return
    for (const tap of this.#taps) {
      if (tap.behind) continue
      tap.bytes += bytes
      tap.groups.push(events)
      if (tap.bytes > TAP_BYTES && tap.groups.length > 1) {
        tap.behind = true
        tap.groups = []
      }
      tap.wake()
    }
  }

  end(failure?: PawlError): void {
    this.#ended ??= { failure }
    for (const tap of this.#taps ?? []) tap.wake()
  }

  get isRead(): boolean {
    return this.#readers > 0
  }

  over(durable: Durable): void {
    this.#durable = durable
  }

  read({ from, live, signal }: Parameters<Feed['read']>[0]): AsyncIterableIterator<SessionEvent> {
    if (!live) return this.#upTo(this.#durable.head, from, signal)
    this.#readers += 1
    return new LiveReader(this, from, signal)
  }

  /** A live reader has come to its end. */
  left(): void {
    this.#readers -= 1
  }

  async *#upTo(head: number, from: number, signal: AbortSignal | undefined) {
    for await (const event of this.#readStored(from)) {
      if (signal?.aborted || event.seq >= head) return
      yield event
    }
  }

  /** A live reader's place: it gets what is published from here on. */
  enter(): Tap {
    const tap: Tap = { groups: [], bytes: 0, behind: false, wake: asleep }
    this.#taps ??= new Set()
    this.#taps.add(tap)
    return tap
  }

  leave(tap: Tap): void {
    this.#taps?.delete(tap)
  }

  get head(): number {
    return this.#durable.head
  }

  get ended(): { readonly failure: PawlError | undefined } | undefined {
    return this.#ended
  }

  stored(from: number): AsyncIterator<SessionEvent> {
    return this.#readStored(from)[Symbol.asyncIterator]()
  }
}

const asleep = (): void => {}
const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined }
const NOTHING: readonly SessionEvent[] = []

/**
 * One live reader: from the store up to the head, then what is published, and from the store again when it lags.
 * Written out, and no generator: what was published is given without waiting for anything.
 */
class LiveReader implements AsyncIterableIterator<SessionEvent> {
  readonly #feed: DurableFeed
  readonly #signal: AbortSignal | undefined
  #next: number
  #tap: Tap | undefined
  #group = NOTHING
  #at = 0
  #stored: AsyncIterator<SessionEvent> | undefined
  #found = false
  #over = false
  #finished = false
  /** The answer that is on its way; another question waits for it. */
  #asked: Promise<unknown> | undefined

  constructor(feed: DurableFeed, from: number, signal: AbortSignal | undefined) {
    this.#feed = feed
    this.#next = from
    this.#signal = signal
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<SessionEvent, undefined>> {
    if (this.#asked !== undefined) return this.#after(() => this.next())
    const event = this.#taken()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    return this.#waited(this.#find())
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#asked !== undefined) return this.#after(() => this.return())
    return this.#waited(this.#finish())
  }

  /** Of what was published. */
  #taken(): SessionEvent | undefined {
    if (this.#tap === undefined || this.#tap.behind || this.#signal?.aborted) return undefined
    while (this.#at < this.#group.length) {
      const event = this.#group[this.#at++] as SessionEvent
      if (event.seq < this.#next) continue
      this.#next = event.seq + 1
      return event
    }
    return undefined
  }

  #after<T>(ask: () => Promise<T>): Promise<T> {
    return (this.#asked ?? Promise.resolve()).then(ask, ask)
  }

  #waited<T>(answer: Promise<T>): Promise<T> {
    this.#asked = answer
    const answered = (): void => {
      if (this.#asked === answer) this.#asked = undefined
    }
    answer.then(answered, answered)
    return answer
  }

  async #find(): Promise<IteratorResult<SessionEvent, undefined>> {
    try {
      while (!this.#over && !this.#signal?.aborted) {
        const event = this.#tap === undefined ? await this.#fromStore() : this.#taken()
        if (event !== undefined) return { done: false, value: event }
        if (this.#tap !== undefined) await this.#nextGroup(this.#tap)
      }
    } catch (error) {
      // What threw is over by itself.
      this.#stored = undefined
      await this.#finish()
      throw error
    }
    return this.#finish()
  }

  async #fromStore(): Promise<SessionEvent | undefined> {
    const feed = this.#feed
    if (this.#stored === undefined && this.#next >= feed.head) {
      if (feed.ended !== undefined) this.#end(feed.ended.failure)
      // Between this look at the head and the tap nothing can run, so nothing is missed.
      else {
        this.#tap = feed.enter()
        this.#signal?.addEventListener('abort', this)
      }
      return undefined
    }
    if (this.#stored === undefined) {
      this.#stored = feed.stored(this.#next)
      this.#found = false
    }
    const { done, value } = await this.#stored.next()
    if (this.#signal?.aborted) return undefined
    if (!done && value.seq < feed.head) {
      this.#found = true
      this.#next = value.seq + 1
      return value
    }
    if (!done) await this.#stored.return?.()
    this.#stored = undefined
    if (this.#found) return undefined
    throw new InvalidLog(this.#next, 'CONTIGUOUS', 'the store does not return an event it acknowledged')
  }

  /** The next group, if there is one by now; else waits for it, or for the end. */
  async #nextGroup(tap: Tap): Promise<void> {
    if (tap.behind) return this.#leave()
    if (tap.groups.length > 0) {
      this.#group = tap.groups.length === 1 ? (tap.groups[0] ?? NOTHING) : tap.groups.flat()
      this.#at = 0
      tap.groups = []
      tap.bytes = 0
      return
    }
    if (this.#feed.ended !== undefined) {
      this.#leave()
      return
    }
    await new Promise<void>((resolve) => {
      tap.wake = resolve
    })
  }

  #end(failure: PawlError | undefined): void {
    this.#over = true
    if (failure !== undefined) throw failure
  }

  #leave(): void {
    if (this.#tap === undefined) return
    this.#feed.leave(this.#tap)
    this.#signal?.removeEventListener('abort', this)
    this.#tap = undefined
    this.#group = NOTHING
    this.#at = 0
  }

  async #finish(): Promise<IteratorReturnResult<undefined>> {
    this.#over = true
    if (!this.#finished) this.#feed.left()
    this.#finished = true
    this.#leave()
    const stored = this.#stored
    this.#stored = undefined
    await stored?.return?.()
    return OVER
  }

  /** The signal aborted. */
  handleEvent(): void {
    this.#tap?.wake()
  }
}
