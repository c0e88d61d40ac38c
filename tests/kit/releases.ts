/** What each release left in `tests/logs`: the sessions its index tells of, as JSON lines and in files of stores. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OnCrash, SessionEvent, ToolMode, TurnEndReason } from '../../src/log/events.ts'
import type { LogStore, PostedCommand, SessionHeader, SessionSummary } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'

/** A tool that a log needs when it is opened again. */
export interface NeededTool {
  readonly name: string
  readonly mode?: ToolMode
  readonly onCrash?: OnCrash
  /** What its probe answers. */
  readonly probe?: 'done' | 'not-done' | 'unknown'
  readonly needsApproval?: true
  readonly approvalExpiresMs?: number
}

/** What opening a log leads to, once nothing more happens by itself. */
export interface Outcome {
  /** That ended, in order. */
  readonly turns: readonly { readonly turn: number; readonly reason: TurnEndReason }[]
  /** Bodies, as `NAME CALL RUN`, sorted. */
  readonly ran: readonly string[]
  /** Calls, as `NAME CALL`, sorted. */
  readonly probed: readonly string[]
  /** Texts of the messages that still wait. */
  readonly parked: readonly string[]
  /** What became of each posted command: 'taken', or why it was refused. */
  readonly mail: Readonly<Record<string, string>>
}

/** How a log is opened again. */
export interface Opening {
  readonly options: { readonly recovery?: 'interrupt'; readonly maxResumes?: number }
  readonly tools: readonly NeededTool[]
  /** From the log's last event. */
  readonly afterMs: number
  /** To approvals, by call. */
  readonly answers: Readonly<Record<string, 'approve' | 'deny' | 'expire'>>
  /** What is parked is started. */
  readonly wake: boolean
  readonly leadsTo: Outcome
}

/** One session as a release left it. */
export interface LeftLog {
  readonly name: string
  readonly shows: string
  /** One of the release's stores. */
  readonly store: string
  readonly header: SessionHeader
  /** As the release's own store listed it. */
  readonly summary: Omit<SessionSummary, 'owned'>
  /** Of the chart, in which the log ends. */
  readonly state: string
  readonly events: number
  readonly verifies: boolean
  /** Commands that nobody has taken. */
  readonly posted: readonly PostedCommand[]
  readonly opened: Opening
}

export interface Release {
  readonly version: string
  /** Its files, by store. */
  readonly stores: Readonly<Record<string, readonly string[]>>
  /** The words that it could write into a log, by the place where they stand. */
  readonly vocabulary: Readonly<Record<string, readonly string[]>>
  readonly sessions: readonly LeftLog[]
}

const HOME = fileURLToPath(new URL('../logs', import.meta.url))

/** Oldest first. */
export const releases = (): readonly Release[] =>
  readdirSync(HOME, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /^\d/.test(entry.name))
    .map(({ name }): Release => JSON.parse(readFileSync(join(HOME, name, 'index.json'), 'utf8')))
    .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }))

/** Names of the files in a release's folder. */
export const filesOf = ({ version }: Release): readonly string[] => readdirSync(join(HOME, version)).sort()

/** The events of a log, from its JSON lines. */
export const linesOf = ({ version }: Release, { name }: LeftLog): readonly SessionEvent[] =>
  readFileSync(join(HOME, version, `${name}.jsonl`), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

/** A store of a release, opened from a copy: opening it may change it. */
export interface OpenedCopy extends AsyncDisposable {
  readonly store: LogStore
}

export function openCopy({ version, stores }: Release, name: string): OpenedCopy {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-release-'))
  for (const file of stores[name] ?? []) cpSync(join(HOME, version, file), join(folder, file))
  const store = sqliteStore(join(folder, `${name}.db`))
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The log planted into a store in memory, from its JSON lines. */
export async function openPlanted(release: Release, log: LeftLog): Promise<OpenedCopy> {
  const store = memoryStore()
  const { id } = log.header
  const owner = await store.acquire(id, { create: log.header })
  await owner.append(linesOf(release, log), { expectedSeq: 0 })
  await owner.release()
  for (const command of log.posted) await store.post(id, command)
  return { store, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() }
}
