/** The commands that only read: `pawl sessions`, `pawl log`, `pawl verify`. None of them opens a session. */
import { existsSync } from 'node:fs'
import { InvalidLog, SessionNotFound } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import type { LogStore, SessionSummary } from '../log/store.ts'
import { verify } from '../machines/verify.ts'
import { eventLines } from '../services/terminal/event-list.ts'
import { sessionLines, sessionTotals } from '../services/terminal/session-list.ts'
import { count } from '../services/terminal/text.ts'
import { type Console, usage } from './console.ts'
import { logFile } from './log-file.ts'
import { openExistingStore, sessionName, storePath } from './settings.ts'

interface StoreFlags {
  readonly store?: string
}

/** Lists the sessions of a store and says which store it is. */
export async function sessions(flags: StoreFlags, console: Console): Promise<number> {
  const path = storePath(flags.store)
  const found: SessionSummary[] = []
  if (existsSync(path)) {
    await using store = openExistingStore(path)
    for await (const summary of store.list()) found.push(summary)
  }
  if (console.json) for (const summary of found) console.value(summary)
  else for (const line of sessionLines(found, console.palette.out)) console.out(`${line}\n`)
  if (!console.json) console.note(`${sessionTotals(found)} in ${path}`)
  return 0
}

/** Shows a session's log: a line an event to read, or with --json the events as they are. */
export async function log(session: string, flags: StoreFlags, console: Console): Promise<number> {
  await using store = openExistingStore(storePath(flags.store))
  const events = readSession(store, sessionName(session))
  const lines = console.json ? jsonLines(events) : eventLines(events, console.palette.out)
  for await (const line of lines) {
    console.out(`${line}\n`)
    await console.ready()
    if (console.closed) break
  }
  return 0
}

async function* jsonLines(events: AsyncIterable<SessionEvent>): AsyncGenerator<string> {
  for await (const event of events) yield JSON.stringify(event)
}

/** A session's events. @throws SessionNotFound */
export async function* readSession(store: LogStore, session: string): AsyncGenerator<SessionEvent> {
  if ((await store.header(session)) === undefined) throw new SessionNotFound(session)
  yield* store.read(session)
}

/** Checks a session's log, or a file of events, against every rule. 0 if it holds, else 1. */
export async function check(
  session: string | undefined,
  flags: StoreFlags & { readonly file?: string },
  console: Console,
): Promise<number> {
  if ((session === undefined) === (flags.file === undefined)) throw usage('name a session, or a file with --file')
  try {
    const verdict = verify(await eventsOf(session, flags))
    console.out(verdictLines(verdict))
    return verdict.ok ? 0 : 1
  } catch (error) {
    // An event that cannot even be read is a finding like the others; its message has their shape.
    if (!(error instanceof InvalidLog)) throw error
    console.out(`${error.message}\n`)
    return 1
  }
}

/** `ok: 42 events, 2 turns, idle`, or a line for each violation. */
export function verdictLines(verdict: ReturnType<typeof verify>): string {
  if (!verdict.ok)
    return verdict.violations.map(({ seq, rule, message }) => `seq ${seq}: ${rule}: ${message}\n`).join('')
  return `ok: ${count(verdict.events, 'event')}, ${count(verdict.turns, 'turn')}, ${verdict.state}\n`
}

async function eventsOf(
  session: string | undefined,
  flags: StoreFlags & { readonly file?: string },
): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = []
  if (flags.file !== undefined) {
    for await (const event of logFile(flags.file)) events.push(event)
    return events
  }
  await using store = openExistingStore(storePath(flags.store))
  for await (const event of readSession(store, sessionName(session ?? ''))) events.push(event)
  return events
}
