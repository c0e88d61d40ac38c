/**
 * The one door to SQLite: `node:sqlite` where this Node has it, else `libsql`. A process uses one of them, never both:
 * two copies of SQLite on one file would drop each other's locks. Whatever goes wrong leaves here as a StoreFailure.
 */
import { createRequire } from 'node:module'
import { StoreFailure, type StoreFailureReason } from '../../errors.ts'

export type Value = null | number | string | Uint8Array

export type Row = Readonly<Record<string, unknown>>

export interface Statement {
  /** Rows changed. */
  run(...values: readonly Value[]): number
  get(...values: readonly Value[]): Row | undefined
  all(...values: readonly Value[]): readonly Row[]
}

export interface Connection {
  readonly path: string
  exec(sql: string): void
  /** Prepared once per connection. */
  statement(sql: string): Statement
  close(): void
}

interface RawStatement {
  run(...values: unknown[]): { readonly changes: number | bigint }
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
}

interface RawDatabase {
  exec(sql: string): unknown
  prepare(sql: string): RawStatement
  close(): unknown
}

interface Driver {
  readonly name: 'node:sqlite' | 'libsql'
  open(path: string): RawDatabase
  /** The values as the driver wants them given. */
  bind(values: readonly Value[]): unknown[]
}

let chosen: Driver | undefined

/** Which SQLite this process uses. @throws StoreFailure when there is none */
export function driverName(): 'node:sqlite' | 'libsql' {
  return driver('SQLite').name
}

/** Opens `path`, creating it when missing. Every method throws only StoreFailure. */
export function connect(path: string): Connection {
  const { open, bind } = driver(path)
  const guard = <T>(act: () => T): T => {
    try {
      return act()
    } catch (error) {
      throw toStoreFailure(error, path)
    }
  }
  const database = guard(() => open(path))
  const prepared = new Map<string, Statement>()
  return {
    path,
    exec: (sql) => void guard(() => database.exec(sql)),
    statement(sql) {
      const known = prepared.get(sql)
      if (known !== undefined) return known
      const raw = guard(() => database.prepare(sql))
      const statement: Statement = {
        run: (...values) => guard(() => Number(raw.run(...bind(kept(values))).changes)),
        get: (...values) => guard(() => rowOf(raw.get(...bind(kept(values))))),
        all: (...values) => guard(() => raw.all(...bind(kept(values))).filter(isRow)),
      }
      prepared.set(sql, statement)
      return statement
    },
    close() {
      prepared.clear()
      guard(() => database.close())
    },
  }
}

/** What has no form in SQLite's text, or is cut off there: two names that differ only in it would be one. */
const NOT_KEPT = /[\0\p{Surrogate}]/u

function kept(values: readonly Value[]): readonly Value[] {
  const lossy = values.find((value) => typeof value === 'string' && NOT_KEPT.test(value))
  if (lossy === undefined) return values
  throw new RangeError(`${JSON.stringify(lossy)} has a character that cannot be kept: a NUL or half of a pair`)
}

const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null
const rowOf = (value: unknown): Row | undefined => (isRow(value) ? value : undefined)

function driver(path: string): Driver {
  chosen ??= nodeDriver() ?? libsqlDriver(path)
  return chosen
}

function nodeDriver(): Driver | undefined {
  const builtin: unknown = withoutSqliteWarning(() => process.getBuiltinModule?.('node:sqlite'))
  if (!hasDatabaseSync(builtin)) return undefined
  const { DatabaseSync } = builtin
  return { name: 'node:sqlite', open: (path) => new DatabaseSync(path), bind: (values) => [...values] }
}

const hasDatabaseSync = (value: unknown): value is { DatabaseSync: new (path: string) => RawDatabase } =>
  typeof value === 'object' && value !== null && 'DatabaseSync' in value && typeof value.DatabaseSync === 'function'

/** Node 22 warns once, while loading, that its SQLite is experimental; every other warning goes through. */
function withoutSqliteWarning<T>(load: () => T): T {
  const emit = process.emitWarning
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === 'ExperimentalWarning' && String(warning).includes('SQLite')) return
    Reflect.apply(emit, process, [warning, ...rest])
  }
  try {
    return load()
  } finally {
    process.emitWarning = emit
  }
}

function libsqlDriver(path: string): Driver {
  const Database = loadLibsql(path)
  // Arrays only: libsql takes a lone Buffer for a bag of named values, and aborts the process.
  return { name: 'libsql', open: (file) => new Database(file), bind: (values) => [[...values]] }
}

function loadLibsql(path: string): new (path: string) => RawDatabase {
  try {
    const Database: unknown = createRequire(import.meta.url)('libsql')
    if (isDatabaseClass(Database)) return Database
    throw new TypeError('it exports no Database')
  } catch (cause) {
    const way = 'install "libsql", or run Node 22.13 or later, which has SQLite built in'
    throw new StoreFailure('io', `Cannot open ${path}, since "libsql" cannot be loaded: ${way}`, { cause })
  }
}

const isDatabaseClass = (value: unknown): value is new (path: string) => RawDatabase => typeof value === 'function'

/** SQLite's primary result codes that mean more than "input/output". */
const REASONS: Readonly<Record<number, StoreFailureReason>> = {
  3: 'read-only', // PERM
  5: 'locked', // BUSY
  6: 'locked', // LOCKED
  8: 'read-only', // READONLY
  11: 'damaged', // CORRUPT
  13: 'full', // FULL
  26: 'damaged', // NOTADB
}

function toStoreFailure(error: unknown, path: string): StoreFailure {
  if (error instanceof StoreFailure) return error
  const detail = error instanceof Error ? error.message : String(error)
  const code = resultCode(error, detail)
  return storeFailure(REASONS[(code ?? 0) & 0xff] ?? 'io', path, detail, error)
}

/** node:sqlite says `errcode`, libsql `rawCode`, and libsql's constructor only a number at the end of its message. */
function resultCode(error: unknown, detail: string): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode
  if ('rawCode' in error && typeof error.rawCode === 'number') return error.rawCode
  const tail = /: (\d+)"\)$/.exec(detail)?.[1]
  return tail === undefined ? undefined : Number(tail)
}

/** A StoreFailure that names the file and the way out. */
export function storeFailure(reason: StoreFailureReason, path: string, detail: string, cause?: unknown): StoreFailure {
  return new StoreFailure(reason, MESSAGES[reason](path, detail), cause === undefined ? undefined : { cause })
}

const MESSAGES: Readonly<Record<StoreFailureReason, (path: string, detail: string) => string>> = {
  locked: (path, detail) =>
    `${path} is locked by something else (${detail}): close what holds it, or give a longer \`busyTimeoutMs\``,
  'read-only': (path, detail) =>
    `${path} cannot be written (${detail}): make the file and its folder writable, or choose another path`,
  full: (path, detail) => `There is no room left for ${path} (${detail}): free some, then open the session again`,
  damaged: (path, detail) =>
    `${path} is damaged (${detail}): it was left as it is; restore a backup, or try \`sqlite3 ${path} .recover\``,
  'newer-schema': (path, detail) => `${path} was written by a newer Pawl (${detail}): use that version or later`,
  'network-file-system': (path, detail) =>
    `${path} is on a network file system (${detail}), where SQLite's locks do not hold: put it on a local disk`,
  io: (path, detail) => `${path} could not be read or written (${detail}): check the path and the disk`,
  timeout: (path, detail) => `${path} did not answer in time (${detail}): check the disk, then open the session again`,
}
