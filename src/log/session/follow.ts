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
  /** Durable events from `from`; `live`: then each new one until the end. An aborted signal ends it quietly. */
  read(options: {
    from: number
    live: boolean
    signal: AbortSignal | undefined
  }): AsyncGenerator<SessionEvent, void, void>
}

/** The stored events from a seq on. */
type ReadStored = (from: number) => AsyncIterable<SessionEvent>

/** `head` is the next seq, durable: no event from there on is shown. */
interface Durable {
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
  readonly #durable: Durable
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

  read({ from, live, signal }: Parameters<Feed['read']>[0]): AsyncGenerator<SessionEvent, void, void> {
    const to = this.#durable.head
    return live ? this.#live(from, signal) : this.#stored(from, () => to, signal)
  }

  async *#stored(from: number, to: () => number, signal: AbortSignal | undefined) {
    for await (const event of this.#readStored(from)) {
      if (signal?.aborted || event.seq >= to()) return
      yield event
    }
  }

  /** New events from `next` on, until the reader lags, the signal aborts or the feed ends. */
  async *#tapped(next: number, signal: AbortSignal | undefined) {
    const tap: Tap = { groups: [], bytes: 0, behind: false, wake: () => {} }
    const wake = (): void => tap.wake()
    this.#taps ??= new Set()
    this.#taps.add(tap)
    signal?.addEventListener('abort', wake)
    try {
      while (!tap.behind && !signal?.aborted) {
        const groups = tap.groups
        tap.groups = []
        tap.bytes = 0
        for (const event of groups.flat()) {
          if (tap.behind || signal?.aborted) return
          if (event.seq >= next) yield event
        }
        if (tap.groups.length > 0 || tap.behind || signal?.aborted) continue
        if (this.#ended !== undefined) return
        await new Promise<void>((resolve) => {
          tap.wake = resolve
        })
      }
    } finally {
      this.#taps.delete(tap)
      signal?.removeEventListener('abort', wake)
    }
  }

  async *#live(from: number, signal: AbortSignal | undefined) {
    const head = (): number => this.#durable.head
    let next = from
    while (!signal?.aborted) {
      // Between the last look at the head and the tap nothing can run, so nothing is missed.
      const catchingUp = next < head()
      const before = next
      for await (const event of catchingUp ? this.#stored(next, head, signal) : this.#tapped(next, signal)) {
        next = event.seq + 1
        yield event
      }
      if (catchingUp && next === before && !signal?.aborted) {
        throw new InvalidLog(next, 'CONTIGUOUS', 'the store does not return an event it acknowledged')
      }
      if (this.#ended !== undefined && next >= head() && !signal?.aborted) {
        if (this.#ended.failure !== undefined) throw this.#ended.failure
        return
      }
    }
  }
}
