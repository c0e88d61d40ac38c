/** Entry of the worker that makes a backup: a copy takes a while, and neither the event loop nor the writer waits. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../../errors.ts'
import type { CopierData, FromCopier } from './backup.ts'
import { storeFailure } from './driver.ts'
import { copyTo, openReading } from './schema.ts'

const { path, to }: CopierData = workerData
parentPort?.postMessage(copy())

function copy(): FromCopier {
  const partial = `${to}.partial`
  try {
    rmSync(partial, { force: true })
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
