/**
 * Wakes what a store says is owed or due: each session is opened, driven until nothing more happens by itself, and
 * closed. It needs no lock of its own: a session has one owner, so two of these share the work.
 */
import { PawlError, SessionBusy } from '../log/errors.ts'
import { type Patience, STORE_TIMEOUT_MS } from '../log/patience.ts'
import type { LogStore, SessionSummary } from '../log/store.ts'
import { timedStore } from '../log/stores/timed.ts'
import { type Clock, systemClock } from '../services/clock.ts'
import { InvalidOption } from '../services/errors.ts'
import type { Agent } from './agent.ts'
import { createUnlessAborted } from './create.ts'
import type { AgentOptions } from './options.ts'
import { summaryOf } from './status.ts'

export interface ResumeOptions {
  /** How many sessions are open at a time; 4. */
  readonly concurrency?: number
}

/** For the list, which comes before any agent's options. */
const PATIENCE: Patience = { timeoutMs: STORE_TIMEOUT_MS, wayOut: 'try again once the store answers' }

/** What became of one session. */
export interface ResumedSession {
  readonly sessionId: string
  /** Idle, or waiting for what only the outside can give. */
  readonly result?: 'quiet'
  readonly error?: PawlError
}

/**
 * Opens the sessions that are owed a turn, or whose time to wait is over, with the options that `factory` makes for
 * them; theirs are `store` and `sessionId`. A session that somebody owns is being looked after and is left out. What
 * goes wrong with one is its own report and stops no other.
 * @returns a report for each session, oldest first.
 * @throws InvalidOption; what listing the store throws.
 */
export async function resumeAll(
  store: LogStore,
  factory: (session: SessionSummary) => AgentOptions,
  { concurrency = 4 }: ResumeOptions = {},
): Promise<readonly ResumedSession[]> {
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new InvalidOption('concurrency', 'must be a whole number of at least 1')
  }
  // Listed before anything is opened: what this opens and closes again would be met a second time.
  const sessions: SessionSummary[] = []
  for await (const session of timedStore(store, PATIENCE).list({ owed: true, dueBefore: Date.now() })) {
    if (!session.owned) sessions.push(session)
  }
  const reports: (ResumedSession | undefined)[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < sessions.length) {
      const at = next++
      const session = sessions[at]
      if (session !== undefined) reports[at] = await resume(store, factory, session)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, sessions.length) }, work))
  return reports.filter((report) => report !== undefined)
}

/** Undefined for a session that somebody took meanwhile. */
async function resume(
  store: LogStore,
  factory: (session: SessionSummary) => AgentOptions,
  session: SessionSummary,
): Promise<ResumedSession | undefined> {
  const sessionId = session.id
  try {
    const options = { ...factory(session), store, sessionId }
    const agent = await createUnlessAborted(options)
    try {
      await whenDone(agent, options.clock ?? systemClock)
    } finally {
      await agent.close()
    }
    return { sessionId, result: 'quiet' }
  } catch (thrown) {
    if (thrown instanceof SessionBusy) return undefined
    return { sessionId, error: asError(thrown) }
  }
}

/** Quiet, and what it waits for is not due by now: a retry whose time came while nobody was there begins at once. */
async function whenDone(agent: Agent, clock: Clock): Promise<void> {
  await agent.whenQuiet()
  while (agent.status === 'waiting' && isDue(agent, clock)) {
    await nextSnapshot(agent)
    await agent.whenQuiet()
  }
}

const isDue = ({ actor }: Agent, clock: Clock): boolean => {
  const { wakeAt } = summaryOf(actor.getSnapshot())
  return wakeAt !== undefined && wakeAt <= clock.now()
}

/** Resolves at the end of the agent as well. */
const nextSnapshot = ({ actor }: Agent): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      subscription.unsubscribe()
      resolve()
    }
    const subscription = actor.subscribe({ next: done, error: done, complete: done })
  })

/** A factory may throw anything. */
const asError = (thrown: unknown): PawlError =>
  thrown instanceof PawlError
    ? thrown
    : new PawlError(thrown instanceof Error ? thrown.message : String(thrown), 'UNKNOWN', { cause: thrown })
