/**
 * The tables, and how an older file becomes a newer one. Every change of the schema is one more migration, never an
 * edit of one that was released; a file newer than this code is refused.
 */
import { columns } from './columns.ts'
import { type Connection, connect, storeFailure } from './driver.ts'
import { patientlySync } from './patience.ts'
import { createPrivate } from './place.ts'

/** In the file's header, so that a database of something else is never taken for ours: "Pawl". */
const APPLICATION_ID = 0x5061776c

/** From version n to n + 1. */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
   INSERT INTO meta (key, value) VALUES ('epoch', 0);
   CREATE TABLE sessions (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL UNIQUE,
     header TEXT NOT NULL,
     created_at NUMERIC NOT NULL,
     updated_at NUMERIC NOT NULL,
     head INTEGER NOT NULL DEFAULT 0,
     epoch INTEGER NOT NULL DEFAULT 0,
     owner TEXT,
     owner_pid INTEGER,
     turns INTEGER NOT NULL DEFAULT 0,
     state TEXT NOT NULL DEFAULT 'idle',
     waiting_for TEXT,
     wake_at NUMERIC,
     owed INTEGER NOT NULL DEFAULT 0,
     last_reason TEXT
   );
   CREATE INDEX sessions_by_age ON sessions (created_at, id);
   CREATE INDEX sessions_owed ON sessions (created_at, id) WHERE owed = 1;
   CREATE INDEX sessions_due ON sessions (wake_at) WHERE wake_at IS NOT NULL;
   CREATE TABLE log (
     session INTEGER NOT NULL,
     first_seq INTEGER NOT NULL,
     last_seq INTEGER NOT NULL,
     epoch INTEGER NOT NULL,
     encoding INTEGER NOT NULL,
     body BLOB NOT NULL
   );
   CREATE UNIQUE INDEX log_by_seq ON log (session, first_seq);
   CREATE TABLE mailbox (
     n INTEGER PRIMARY KEY AUTOINCREMENT,
     session INTEGER NOT NULL,
     id TEXT NOT NULL,
     command TEXT NOT NULL,
     outcome TEXT
   );
   CREATE UNIQUE INDEX mailbox_by_id ON mailbox (session, id);
   CREATE INDEX mailbox_open ON mailbox (session, n) WHERE outcome IS NULL;`,
  // The body comes last: what stands before it is read without it.
  `CREATE TABLE checkpoints (
     session INTEGER PRIMARY KEY,
     seq INTEGER NOT NULL,
     digest TEXT NOT NULL,
     settled_seq INTEGER NOT NULL,
     settled_digest TEXT NOT NULL,
     checksum INTEGER NOT NULL,
     body BLOB NOT NULL
   );
   ALTER TABLE mailbox ADD COLUMN taken_at NUMERIC;
   UPDATE mailbox SET taken_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE outcome IS NOT NULL;`,
]

/** Of 4 kB: the write-ahead log stays near 1 MB, for a few hundredths more of a commit. */
const WAL_PAGES = 250

export interface WriterOptions {
  readonly busyTimeoutMs: number
  /** Run on the connection once it is set up. */
  readonly pragmas?: readonly string[]
}

/** Opens the connection that writes: durable at every commit, its schema up to date. @throws StoreFailure */
export function openWriter(path: string, options: WriterOptions): Connection {
  const connection = connect(path)
  try {
    // SQLite waits a little in its sleep; the rest of `busyTimeoutMs` is ours to spread.
    connection.exec('PRAGMA busy_timeout = 20')
    patientlySync(() => useWal(connection), options.busyTimeoutMs)
    connection.exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${WAL_PAGES}`)
    if (process.platform === 'darwin') connection.exec('PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1')
    patientlySync(() => migrate(connection), options.busyTimeoutMs)
    for (const pragma of options.pragmas ?? []) connection.exec(`PRAGMA ${pragma}`)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens a connection that only reads, or undefined while the file has no tables yet. @throws StoreFailure */
export function openReading(path: string): Connection | undefined {
  const connection = connect(path)
  try {
    connection.exec('PRAGMA busy_timeout = 20; PRAGMA query_only = 1')
    const version = schemaVersion(connection, MIGRATIONS.length)
    // An older file is read as it lies: what reading asks for was in the first version.
    if (version > 0) return connection
  } catch (error) {
    connection.close()
    throw error
  }
  connection.close()
  return undefined
}

/** The file has tables of an earlier version. @throws StoreFailure */
export function isOlder(path: string): boolean {
  const connection = connect(path)
  try {
    connection.exec('PRAGMA busy_timeout = 20; PRAGMA query_only = 1')
    const version = schemaVersion(connection, MIGRATIONS.length)
    return version > 0 && version < MIGRATIONS.length
  } finally {
    connection.close()
  }
}

/** Brings the file to the last of `migrations` in one transaction, after a copy of what was there. */
export function migrate(connection: Connection, migrations: readonly string[] = MIGRATIONS): void {
  const found = schemaVersion(connection, migrations.length)
  if (found === migrations.length) return
  if (found > 0) copyTo(connection, `${connection.path}-v${found}-${Date.now()}.backup`)
  connection.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have come first.
    const version = schemaVersion(connection, migrations.length)
    for (const migration of migrations.slice(version)) connection.exec(migration)
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${migrations.length}`)
    connection
      .statement(
        "INSERT INTO meta (key, value) VALUES ('schema', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      )
      .run(migrations.length)
    connection.exec('COMMIT')
  } catch (error) {
    rollback(connection)
    throw error
  }
}

/** Leaves the transaction, if SQLite has not already done so by itself after the error at hand. */
export function rollback(connection: Connection): void {
  try {
    connection.exec('ROLLBACK')
  } catch {
    // "no transaction is active": the failed statement rolled it back; nothing else makes ROLLBACK fail.
  }
}

/** Writes a copy of the database, readable by its user alone, to `to`, which must not exist or be empty. */
export function copyTo(connection: Connection, to: string): void {
  createPrivate(to)
  connection.statement('VACUUM INTO ?').run(to)
}

function useWal(connection: Connection): void {
  const row = connection.statement('PRAGMA journal_mode = WAL').get()
  const mode = row?.journal_mode
  if (mode !== 'wal') throw storeFailure('io', connection.path, `it cannot have a write-ahead log: ${String(mode)}`)
}

/** 0 for a file without tables. */
function schemaVersion(connection: Connection, known: number): number {
  const { path } = connection
  const pragma = (name: string): number =>
    columns(path, connection.statement(`PRAGMA ${name}`).get() ?? {}).number(name)
  const version = pragma('user_version')
  const application = pragma('application_id')
  if (application === APPLICATION_ID) {
    if (version > known) throw storeFailure('newer-schema', path, `schema ${version}, this version knows ${known}`)
    return version
  }
  const tables = columns(path, connection.statement('SELECT count(*) AS n FROM sqlite_master').get() ?? {}).number('n')
  if (tables > 0 || version > 0) throw storeFailure('damaged', path, 'it is a database of something else')
  return 0
}
