/**
 * Fork: a new session whose log is a prefix of this one's and `session/end-seed`. What happened in the world is never
 * done twice: the chart answers for it on the child's first opening. The prefix is read twice, first for where it may
 * end and then to be copied piece by piece, so that a long log needs no more memory than a short one. The child's
 * header says how long its seed is; one that is cut off before its `session/end-seed` is refused by whoever opens it.
 */
import { ForkRefused, SessionBusy } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import { inTime, type Patience } from '../log/patience.ts'
import type { Session } from '../log/session.ts'
import type { LogStore, Ownership, SessionHeader, SummaryUpdate } from '../log/store.ts'
import { timedStore } from '../log/stores/timed.ts'
import { createFold } from '../machines/fold.ts'
import { summaryOf } from './status.ts'

export interface ForkOptions {
  /** How many events the child inherits, rounded on to where a log may end; all of them by default. */
  readonly at?: number
  readonly sessionId?: string
}

/** What the child begins with. */
interface Seed {
  readonly length: number
  readonly end: SessionEvent
  /** Of the child, before it was ever opened. */
  readonly summary: SummaryUpdate
}

/** One append copies at most this many events, and about this many characters. */
const CHUNK = { events: 500, characters: 1_048_576 } as const

export interface ForkParts {
  readonly store: LogStore
  /** The parent. */
  readonly session: Session
  readonly newId: () => string
  /** ms for each answer of the store. */
  readonly storeTimeoutMs: number
}

/**
 * @throws ForkRefused INVALID_BOUNDARY, SESSION_ALREADY_EXISTS; what the store throws, and then there is no child, or none
 * once a store that is late has answered
 */
export async function forkSession(
  { store: slow, session, newId, storeTimeoutMs }: ForkParts,
  { at, sessionId = newId() }: ForkOptions = {},
): Promise<{ sessionId: string }> {
  const patience = { timeoutMs: storeTimeoutMs, wayOut: WAY_OUT }
  const store = timedStore(slow, patience)
  await session.flush()
  const boundary = at ?? session.head
  if (!Number.isSafeInteger(boundary) || boundary < 0 || boundary > session.head) {
    throw new ForkRefused(`Cannot fork at ${boundary}: give a seq from 0 to ${session.head}`, 'INVALID_BOUNDARY')
  }
  if ((await store.header(sessionId)) !== undefined) throw isThere(sessionId)
  const seed = await measure(store, session, boundary)
  const header: SessionHeader = {
    format: 1,
    id: sessionId,
    createdAt: seed.end.time,
    parentSession: session.id,
    seedLength: seed.length,
  }
  const child = await createChild(slow, header, patience)
  const { append, release } = timedOwner(child, patience)
  try {
    await plant(store, session.id, append, seed)
    await release()
  } catch (error) {
    await inTime(discard(slow, child), `delete session "${sessionId}"`, patience).catch(() => {})
    throw error
  }
  return { sessionId }
}

const WAY_OUT = 'fork again once the store answers, or allow more with `storeTimeoutMs`'

const isThere = (sessionId: string): ForkRefused =>
  new ForkRefused(`Session "${sessionId}" is there already: give another id`, 'SESSION_ALREADY_EXISTS')

/** Where the seed ends that has at least `boundary` events, and what the child is then. */
async function measure(store: LogStore, { id, header }: Session, boundary: number): Promise<Seed> {
  const folded = createFold()
  let length = 0
  let last: SessionEvent | undefined
  let lastReason: string | undefined
  for await (const event of store.read(id)) {
    if (length >= boundary && mayEnd(last, event, folded.snapshot().value)) break
    folded.push(event)
    length += 1
    last = event
    if (event.type === 'turn/end') lastReason = event.data.reason.kind
  }
  const end: SessionEvent = { type: 'session/end-seed', seq: length, time: last?.time ?? header.createdAt, data: {} }
  folded.push(end)
  const summary = { ...summaryOf(folded.snapshot()), ...(lastReason === undefined ? {} : { lastReason }) }
  return { length, end, summary }
}

/** A log may not end before the messages of a step, before the end of a step that was answered, or between two states. */
function mayEnd(last: SessionEvent | undefined, next: SessionEvent, state: unknown): boolean {
  if (last === undefined) return true
  const entering = next.type === 'user/message' && (last.type === 'step/start' || last.type === 'user/message')
  const answered = last.type === 'assistant/message' && last.data.calls.length === 0
  return !entering && !answered && state !== 'turnOpen' && state !== 'stepClosed'
}

/** Somebody may have made a session of that id since it was looked for. */
async function createChild(store: LogStore, create: SessionHeader, patience: Patience): Promise<Ownership> {
  const isNew = (child: Ownership) => child.head === 0 && child.header.parentSession === create.parentSession
  const acquired = inTime(store.acquire(create.id, { create }), `acquire session "${create.id}"`, patience, {
    late: (child) => (isNew(child) ? discard(store, child) : child.release()),
  })
  const child = await acquired.catch((error: unknown) => {
    throw error instanceof SessionBusy ? isThere(create.id) : error
  })
  if (isNew(child)) return child
  await timedOwner(child, patience).release()
  throw isThere(create.id)
}

function timedOwner(owner: Ownership, patience: Patience): Pick<Ownership, 'append' | 'release'> {
  const { id } = owner.header
  return {
    append: (events, options) => inTime(owner.append(events, options), `append to session "${id}"`, patience),
    release: () => inTime(owner.release(), `release session "${id}"`, patience),
  }
}

/** The last append brings the end of the seed, and with it the summary. */
async function plant(store: LogStore, parent: string, appendTo: Ownership['append'], seed: Seed): Promise<void> {
  let planted = 0
  let chunk: SessionEvent[] = []
  let characters = 0
  const append = async (summary?: SummaryUpdate): Promise<void> => {
    await appendTo(chunk, { expectedSeq: planted, ...(summary === undefined ? {} : { summary }) })
    planted += chunk.length
    chunk = []
    characters = 0
  }
  for await (const event of seed.length === 0 ? [] : store.read(parent)) {
    chunk.push(event)
    characters += JSON.stringify(event).length
    if (planted + chunk.length === seed.length) break
    if (chunk.length >= CHUNK.events || characters >= CHUNK.characters) await append()
  }
  chunk.push(seed.end)
  await append(seed.summary)
}

/**
 * A seed that could not be planted leaves no session, however late the store answers; where even that fails, its header
 * says that it is not whole. Never rejects: the store failed, which is told already.
 */
async function discard(store: LogStore, child: Ownership): Promise<void> {
  // A release whose answer alone was lost was done.
  await child.release().catch(() => {})
  await store.delete(child.header.id).catch(() => {})
}
