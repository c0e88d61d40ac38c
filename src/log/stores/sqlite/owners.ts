/**
 * Who is alive. Each store instance holds an exclusive lock on a small file of its own, `<db>-owner-<uuid>`; the
 * operating system drops it the moment the process is gone, whatever killed it. No pid, no clock, no lease to renew.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { StoreFailure } from '../../errors.ts'
import { connect } from './driver.ts'
import { createPrivate } from './place.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export interface OwnerLock {
  readonly id: string
  /** Drops the lock and removes the file. */
  release(): void
}

/** The file whose lock says that `owner` lives. */
export const ownerFile = (path: string, owner: string): string => `${path}-owner-${owner}`

/**
 * Takes a new owner's lock and removes the files of owners that are gone. Call it inside a write transaction on the
 * database at `path`: nobody else sweeps then, so a file is never swept between its creation and its lock.
 */
export function holdOwner(path: string): OwnerLock {
  sweep(path)
  const id = randomUUID()
  const file = ownerFile(path, id)
  createPrivate(file)
  const connection = connect(file)
  // In memory, or SQLite would put a journal beside a file that is never written.
  connection.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  return {
    id,
    release() {
      connection.close()
      rmSync(file, { force: true })
    },
  }
}

/** Whether `owner` still holds its lock. Shares a lock for an instant, so that two who ask do not see each other. */
export function ownerLives(path: string, owner: string): boolean {
  const file = ownerFile(path, owner)
  if (!existsSync(file)) return false
  const connection = connect(file)
  try {
    // Not prepared: with libsql a statement would keep the file open until it is collected.
    connection.exec('SELECT count(*) FROM sqlite_master')
    return false
  } catch (error) {
    if (error instanceof StoreFailure && error.reason === 'locked') return true
    throw error
  } finally {
    connection.close()
  }
}

function sweep(path: string): void {
  const prefix = basename(ownerFile(path, ''))
  for (const name of readdirSync(dirname(path))) {
    const owner = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    if (UUID.test(owner) && !ownerLives(path, owner)) rmSync(ownerFile(path, owner), { force: true })
  }
}
