/**
 * Fork: a new session whose log is a prefix of this one's and `session/end-seed`. What happened in the world is never
 * done twice: the chart answers for it on the child's first opening.
 */
import { ForkRefused } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import type { Session } from '../log/session.ts'
import type { LogStore } from '../log/store.ts'
import { createFold } from '../machines/fold.ts'

export interface ForkOptions {
  /** How many events the child inherits, rounded on to where a log may end; all of them by default. */
  readonly at?: number
  readonly sessionId?: string
}

const CHUNK = 500

/** @throws ForkRefused INVALID_BOUNDARY, SESSION_ALREADY_EXISTS; what the store throws */
export async function forkSession(
  store: LogStore,
  session: Session,
  newId: () => string,
  { at, sessionId = newId() }: ForkOptions = {},
): Promise<{ sessionId: string }> {
  await session.flush()
  const boundary = at ?? session.head
  if (!Number.isSafeInteger(boundary) || boundary < 0 || boundary > session.head) {
    throw new ForkRefused(`Cannot fork at ${boundary}: give a seq from 0 to ${session.head}`, 'INVALID_BOUNDARY')
  }
  if ((await store.header(sessionId)) !== undefined) {
    throw new ForkRefused(`Session "${sessionId}" is there already: give another id`, 'SESSION_ALREADY_EXISTS')
  }
  const seed: SessionEvent[] = []
  const folded = createFold()
  for await (const event of store.read(session.id)) {
    if (seed.length >= boundary && mayEnd(seed, event, folded.snapshot().value)) break
    seed.push(event)
    folded.push(event)
  }
  await plant(store, session, sessionId, seed)
  return { sessionId }
}

/** A log may not end before the messages of a step, before the end of a step that was answered, or between two states. */
function mayEnd(seed: readonly SessionEvent[], next: SessionEvent, state: unknown): boolean {
  const last = seed.at(-1)
  if (last === undefined) return true
  const entering = next.type === 'user/message' && (last.type === 'step/start' || last.type === 'user/message')
  const answered = last.type === 'assistant/message' && last.data.calls.length === 0
  return !entering && !answered && state !== 'turnOpen' && state !== 'stepClosed'
}

async function plant(
  store: LogStore,
  { id, header }: Session,
  sessionId: string,
  seed: readonly SessionEvent[],
): Promise<void> {
  const time = seed.at(-1)?.time ?? header.createdAt
  const child = await store.acquire(sessionId, {
    create: { format: 1, id: sessionId, createdAt: time, parentSession: id, seedLength: seed.length },
  })
  const log: SessionEvent[] = [...seed, { type: 'session/end-seed', seq: seed.length, time, data: {} }]
  try {
    for (let from = 0; from < log.length; from += CHUNK) {
      await child.append(log.slice(from, from + CHUNK), { expectedSeq: from })
    }
  } finally {
    await child.release()
  }
}
