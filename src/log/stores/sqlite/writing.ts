/**
 * What writing takes, on whichever thread it happens: the connection, this store's owner lock, and the sessions held
 * under it. Opened by the first commit.
 */
import { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import { commitGroup, failedReply, type GroupBounds } from './group.ts'
import type { OwnerLock } from './owners.ts'
import { fileAt } from './place.ts'
import type { Reply, Request } from './protocol.ts'
import { isOlder, openWriter, type WriterOptions } from './schema.ts'
import type { Ledger } from './transactions.ts'

export interface WritingOptions extends WriterOptions {
  readonly path: string
  readonly bounds?: GroupBounds
}

/** Who this store is to others, and which sessions it holds, by epoch. */
export interface Standing {
  readonly owner: OwnerLock | undefined
  readonly held: ReadonlyMap<number, number>
}

export interface Writing {
  /** Opens the file now rather than at the first commit. @throws StoreFailure */
  open(): void
  /** The file's schema is to be brought up first, which copies the file. @throws StoreFailure */
  isOlder(): boolean
  /** Commits as many requests, from the front and at least one, as a group holds, and answers those. Never throws. */
  commit(requests: readonly Request[]): readonly Reply[]
  /** Folds the write-ahead log back into the file and cuts it to nothing, unless somebody reads or writes. */
  truncate(): void
  /** Goes on as the one that `standing` was, before anything is committed. */
  take(standing: Standing): void
  /** Closes the file for another to go on; the owner lock stays held. */
  leave(): Standing
  /** Closes the file, and gives up the lock and all that was held. */
  close(): void
}

export function createWriting(options: WritingOptions): Writing {
  const { path, busyTimeoutMs } = options
  let ledger: Ledger | undefined
  /** The file the ledger was opened on. */
  let file: string | undefined
  let standing: Standing = { owner: undefined, held: new Map() }

  function open(): Ledger {
    if (ledger === undefined) {
      const { owner, held } = standing
      ledger = { connection: openWriter(path, options), owner, held: new Map(held), undo: [] }
      file = fileAt(path)
    }
    // SQLite would go on writing to a file that nobody finds any more.
    if (fileAt(path) !== file) throw storeFailure('io', path, 'it was moved or deleted while it was open')
    return ledger
  }

  function truncate(): void {
    try {
      ledger?.connection.statement('PRAGMA wal_checkpoint(TRUNCATE)').get()
    } catch {
      // Someone else is reading or writing: the log stays as long as it is until the next idle moment.
    }
  }

  /** Sessions still held are free once the lock is gone; saying so in the file spares the next owner the look. */
  function disown({ connection, owner, held }: Ledger): void {
    if (owner === undefined || held.size === 0) return
    try {
      connection.statement('UPDATE sessions SET owner = NULL, owner_pid = NULL WHERE owner = ?').run(owner.id)
    } catch {
      // A full or locked file: the lock about to be dropped says the same.
    }
  }

  /** What SQLite has learnt of the tables' sizes is kept for whoever opens the file next. */
  function optimize({ connection }: Ledger): void {
    try {
      connection.exec('PRAGMA optimize')
    } catch {
      // A full, locked or read-only file: queries are as fast as they were.
    }
  }

  return {
    open: () => void open(),
    isOlder: () => ledger === undefined && isOlder(path),
    commit(requests) {
      try {
        return commitGroup(open(), requests, { busyTimeoutMs, bounds: options.bounds })
      } catch (error) {
        const failure = error instanceof StoreFailure ? error : storeFailure('io', path, String(error), error)
        return requests.map(() => failedReply(failure))
      }
    },
    truncate,
    take(given) {
      standing = given
      if (ledger === undefined) return
      ledger.owner = given.owner
      for (const [session, epoch] of given.held) ledger.held.set(session, epoch)
    },
    leave() {
      if (ledger !== undefined) standing = { owner: ledger.owner, held: ledger.held }
      ledger?.connection.close()
      ledger = undefined
      return standing
    },
    close() {
      const { owner } = ledger ?? standing
      try {
        if (ledger === undefined) return
        disown(ledger)
        optimize(ledger)
        // Closing does this only where it is the last connection, and libsql's readers linger until they are collected.
        truncate()
        ledger.connection.close()
      } finally {
        ledger = undefined
        owner?.release()
      }
    },
  }
}
