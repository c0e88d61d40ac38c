/**
 * The tail of a log that a failing store did not take: kept as a file, one a failure, or told on stderr. It names what
 * it continues, so that it is only ever put where it belongs.
 */
import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { Fenced, type PawlError, SeqConflict } from '../log/errors.ts'
import { canonicalJson, toJson } from '../log/json.ts'

/** What a file holds. */
export interface UnsavedTail {
  readonly format: 1
  readonly sessionId: string
  /** Of the session: another one of the same name is another session. */
  readonly createdAt: number
  /** Of the owner that recorded the tail. */
  readonly epoch: number
  /** The seq of its first event, the head of the log as far as it was acknowledged. */
  readonly expectedSeq: number
  /** Digest of the event before that one, null at the beginning of a log. */
  readonly after: string | null
  /** As recorded; unchecked when it was read. */
  readonly events: readonly unknown[]
}

/** A file, and what it holds; no tail when it cannot be read. */
export interface UnsavedFile {
  readonly path: string
  readonly tail: UnsavedTail | undefined
}

/** Longer lines on stderr leave events out. */
const MAX_LINE = 65_536
const SUFFIX = '.unsaved.json'

/**
 * Keeps the tail, or says what of it fits in a line. It does so before it returns, because a process whose store failed
 * may be about to end; and it throws nothing, because there is nobody left to tell.
 */
export function saveUnsaved(tail: UnsavedTail, failure: PawlError, folder: string | undefined): void {
  // Whoever took the session went on from what is stored: what was not is void.
  if (tail.events.length === 0 || failure instanceof Fenced || failure instanceof SeqConflict) return
  const kept =
    folder !== undefined &&
    contained(`keep ${count(tail)} of session "${tail.sessionId}" in ${folder}`, () => {
      const path = writeTail(folder, tail)
      warn(`${count(tail)} of session "${tail.sessionId}" wait in ${path} for its next opening (${failure.message})`)
    })
  if (!kept) console.error(lineOf(tail))
}

/** The files of a session, in the order its owners wrote them. None when the folder is not there. @throws what reading throws */
export function findUnsaved(folder: string, sessionId: string): readonly UnsavedFile[] {
  const files = namesIn(folder)
    .filter((name) => name.startsWith(`${fileName(sessionId)}.`) && name.endsWith(SUFFIX))
    .map((name) => readTail(join(folder, name)))
  const epochOf = ({ tail }: UnsavedFile): number => tail?.epoch ?? 0
  return files.sort((a, b) => epochOf(a) - epochOf(b))
}

/** Renames a file so that it is kept and not looked at again. The path it has then. */
export function setAside(path: string): string {
  const aside = `${path.slice(0, -SUFFIX.length)}.set-aside.json`
  return contained(`set ${path} aside`, () => renameSync(path, aside)) ? aside : path
}

/** A file that stays all the same is found to be in the log at the next opening. */
export const removeUnsaved = (path: string): void => {
  contained(`remove ${path}`, () => rmSync(path, { force: true }))
}

/** What tells one event from another in the same place. @throws NotJson */
export const eventDigest = (event: unknown): string => `sha256:${sha256(canonicalJson(toJson(event)))}`

export const warn = (message: string): void => process.emitWarning(message, 'PawlUnsavedWarning')

/** Whether it was done; if not, the process is warned. */
function contained(what: string, work: () => void): boolean {
  try {
    work()
    return true
  } catch (thrown) {
    warn(`Cannot ${what}: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
    return false
  }
}

const count = ({ events }: UnsavedTail): string => (events.length === 1 ? '1 event' : `${events.length} events`)

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Readable as far as it is safe on every file system, and different for different ids. */
const fileName = (sessionId: string): string =>
  `${sessionId.replace(/[^\w-]/g, '_').slice(0, 64)}-${sha256(sessionId).slice(0, 16)}`

/** Under another name until it is whole and on disk. */
function writeTail(folder: string, tail: UnsavedTail): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, `${fileName(tail.sessionId)}.${tail.epoch}-${tail.expectedSeq}.${randomUUID()}${SUFFIX}`)
  const partial = `${path}.partial`
  try {
    writeWhole(partial, `${JSON.stringify(tail)}\n`)
    renameSync(partial, path)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
  return path
}

function writeWhole(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function lineOf(tail: UnsavedTail): string {
  const { events, ...what } = tail
  const kept: unknown[] = []
  let length = 1_024
  for (const event of events) {
    length += Buffer.byteLength(JSON.stringify(event)) + 1
    if (length > MAX_LINE) break
    kept.push(event)
  }
  const omitted = events.length - kept.length
  return JSON.stringify({ unsaved: { ...what, ...(omitted > 0 ? { omitted } : {}), events: kept } })
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

function readTail(path: string): UnsavedFile {
  const text = readFileSync(path, 'utf8')
  try {
    const value: unknown = JSON.parse(text)
    return { path, tail: isTail(value) ? value : undefined }
  } catch {
    return { path, tail: undefined } // JSON.parse says that the file is no JSON.
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

function isTail(value: unknown): value is UnsavedTail {
  if (typeof value !== 'object' || value === null) return false
  const { format, sessionId, createdAt, epoch, expectedSeq, after, events }: Partial<UnsavedTail> = value
  return (
    format === 1 &&
    typeof sessionId === 'string' &&
    typeof createdAt === 'number' &&
    isCount(epoch) &&
    isCount(expectedSeq) &&
    (after === null || typeof after === 'string') &&
    Array.isArray(events)
  )
}
