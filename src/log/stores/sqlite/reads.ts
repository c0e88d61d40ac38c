/** Everything a store is asked without writing: logs, as far as they go or as they grow, outcomes, and the list. */
import { SessionNotFound } from '../../errors.ts'
import type { SessionEvent } from '../../events.ts'
import type { CommandOutcome, LogStore, SessionSummary, StoredPage } from '../../store.ts'
import { storeFailure } from './driver.ts'
import type { Pulse } from './pulse.ts'
import type { Found, Listed, ListFilter, Reader } from './reader.ts'

/** What reading needs of its store. */
export interface ReadPorts {
  /** For messages. */
  readonly path: string
  /** A query, tried again while the file is locked; undefined while there is no database. */
  look<T>(query: (reader: Reader) => T): Promise<T | undefined>
  /** The same, asleep until then. */
  lookNow<T>(query: (reader: Reader) => T): T | undefined
  /** Wakes when a session's log may have grown, or an outcome may have come. */
  readonly logs: Pulse
  /** For one list: tells whether the owner that the file names is alive. */
  owning(): (listed: Listed) => boolean
}

interface Span {
  readonly sessionId: string
  readonly session: number
  readonly from: number
  readonly to: number
}

/** The reading half of the store port. */
export function createReads(
  ports: ReadPorts,
): Pick<LogStore, 'read' | 'pages' | 'readNow' | 'subscribe' | 'outcome' | 'list' | 'header'> {
  const { look, lookNow, logs } = ports

  async function found(sessionId: string): Promise<Found> {
    const session = await look((open) => open.find(sessionId))
    if (session === undefined) throw new SessionNotFound(sessionId)
    return session
  }

  async function* read(
    sessionId: string,
    { from = 0, types }: { from?: number; types?: readonly string[] } = {},
  ): AsyncGenerator<SessionEvent> {
    const wanted = types && new Set<string>(types)
    const { session, head } = await found(sessionId)
    for await (const event of pages({ sessionId, session, from: firstSeq(from), to: head })) {
      if (wanted === undefined || wanted.has(event.type)) yield event
    }
  }

  async function* pages({ sessionId, session, from, to }: Span): AsyncGenerator<SessionEvent> {
    for (let next = from; next < to; ) {
      const page = (await look((open) => open.page(session, next, to))) ?? []
      if (page[0]?.seq !== next) throw await whyMissing(sessionId, session, next)
      yield* page
      next += page.length
      // A long log is read among other work, not instead of it.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async function* stretches(sessionId: string, { from = 0 }: { from?: number } = {}): AsyncGenerator<StoredPage> {
    const { session, head } = await found(sessionId)
    for (let next = firstSeq(from); next < head; ) {
      const pages = (await look((open) => open.stretch(session, next, head))) ?? []
      if (pages[0]?.first !== next) throw await whyMissing(sessionId, session, next)
      for (const page of pages) {
        yield page
        next = page.first + page.count
      }
      // A long log is read among other work, not instead of it.
      if (next < head) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  function* stretchesNow(
    sessionId: string,
    { from, to, deltas }: { from: number; to: number; deltas: boolean },
  ): Generator<StoredPage> {
    const found = lookNow((open) => open.find(sessionId))
    if (found === undefined) throw new SessionNotFound(sessionId)
    const { session, head } = found
    const end = Math.min(to, head)
    for (let next = from; next < end; ) {
      const pages = lookNow((open) =>
        deltas ? whole(open.page(session, next, end)) : open.stretch(session, next, end),
      )
      if (pages?.[0]?.first !== next) throw missing(sessionId, next, head)
      for (const page of pages) {
        yield page
        next = page.first + page.count
      }
    }
  }

  async function whyMissing(sessionId: string, session: number, seq: number): Promise<Error> {
    return missing(sessionId, seq, await look((open) => open.head(session)))
  }

  function missing(sessionId: string, seq: number, head: number | undefined): Error {
    if (head === undefined) return new SessionNotFound(sessionId)
    return storeFailure('damaged', ports.path, `session "${sessionId}" has no event ${seq}, though its head is ${head}`)
  }

  async function* subscribe(
    sessionId: string,
    { from, signal }: { from: number; signal: AbortSignal },
  ): AsyncGenerator<SessionEvent> {
    const { session } = await found(sessionId)
    for (let next = firstSeq(from); !signal.aborted; ) {
      const head = await look((open) => open.head(session))
      if (head === undefined) throw new SessionNotFound(sessionId)
      // Waiting comes right after a look that found nothing, or what changed in between would go unnoticed.
      if (head <= next) await logs.wait(session, { signal, keepAlive: true })
      for await (const event of pages({ sessionId, session, from: next, to: head })) {
        if (signal.aborted) return
        next = event.seq + 1
        yield event
      }
    }
  }

  async function outcome(sessionId: string, id: string, signal: AbortSignal): Promise<CommandOutcome> {
    const { session } = await found(sessionId)
    for (;;) {
      signal.throwIfAborted()
      const now = await look((open) => ({ head: open.head(session), outcome: open.outcome(session, id) }))
      if (now?.head === undefined) throw new SessionNotFound(sessionId)
      if (now.outcome !== undefined) return now.outcome
      await logs.wait(session, { signal, keepAlive: true })
    }
  }

  async function* list(filter: ListFilter = {}): AsyncGenerator<SessionSummary> {
    const isOwned = ports.owning()
    let last: Listed | undefined
    for (;;) {
      const page: readonly Listed[] = (await look((open) => open.list(filter, last))) ?? []
      for (const listed of page) yield { ...listed.summary, owned: isOwned(listed) }
      last = page.at(-1)
      if (last === undefined) return
    }
  }

  return {
    read,
    pages: stretches,
    readNow: stretchesNow,
    subscribe,
    outcome,
    list,
    header: (sessionId) => look((open) => open.find(sessionId)?.header),
  }
}

/** Events as one page. */
function whole(events: readonly SessionEvent[]): readonly StoredPage[] {
  const [first] = events
  return first === undefined
    ? []
    : [{ first: first.seq, count: events.length, time: events.at(-1)?.time ?? 0, events, formed: [] }]
}

/** The first seq at or after `from`. */
const firstSeq = (from: number): number => Math.max(0, Math.ceil(from))
