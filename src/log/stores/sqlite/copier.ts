/** Entry of the worker that makes a backup: a copy takes a while, and neither the event loop nor the writer waits. */
import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../../errors.ts'
import type { CopierData, FromCopier } from './backup.ts'
import { storeFailure } from './driver.ts'
import { copyTo, openReading } from './schema.ts'

const { path, to }: CopierData = workerData
parentPort?.postMessage(copy())

function copy(): FromCopier {
  // A name of its own: another backup may be on its way to the same place, and any other file is somebody's.
  const partial = `${to}.${randomUUID()}.partial`
  try {
    const connection = openReading(path)
    if (connection === undefined) throw storeFailure('io', path, 'there is nothing in it yet')
    try {
      // SQLite takes the copy for a write.
      connection.exec('PRAGMA query_only = 0')
      copyTo(connection, partial)
    } finally {
      connection.close()
    }
    // No connection of this process is open on the copy any more.
    sync(partial)
    if (existsSync(to)) throw storeFailure('io', to, 'a backup never replaces a file that exists')
    renameSync(partial, to)
    return { kind: 'done' }
  } catch (error) {
    rmSync(partial, { force: true })
    const { reason, message } = error instanceof StoreFailure ? error : storeFailure('io', to, String(error), error)
    return { kind: 'failed', reason, message }
  }
}

function sync(file: string): void {
  const descriptor = openSync(file, 'r+')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
