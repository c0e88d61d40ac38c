/**
 * Entry of the worker thread that owns the writing connection, and with it this store's owner lock. What arrives while
 * a commit is on its way to the disk waits and forms the next group.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import { commitGroup, failedReply } from './group.ts'
import { fileAt } from './place.ts'
import type { FromWriter, Reply, Request, ToWriter, WriterData } from './protocol.ts'
import { openWriter } from './schema.ts'
import type { Ledger } from './transactions.ts'

/** So long without a request, the write-ahead log is folded back into the file and cut to nothing. */
const IDLE_MS = 1_000

const port = parentPort
const data: WriterData = workerData
const waiting: { readonly n: number; readonly request: Request }[] = []
let ledger: Ledger | undefined
/** The file the ledger was opened on. */
let file: string | undefined
let closing = false
let turnDue = false

const idle = setTimeout(truncateLog, IDLE_MS).unref()

port?.on('message', (message: ToWriter) => {
  if ('close' in message) closing = true
  else waiting.push(message)
  scheduleTurn()
})

function scheduleTurn(): void {
  if (turnDue) return
  turnDue = true
  // Messages that have already arrived are delivered before an immediate runs.
  setImmediate(turn)
}

function turn(): void {
  turnDue = false
  if (waiting.length > 0) answer(commit(waiting.map(({ request }) => request)))
  if (waiting.length > 0) scheduleTurn()
  else if (closing) close()
  else idle.refresh()
}

function commit(requests: readonly Request[]): readonly Reply[] {
  try {
    if (ledger === undefined) {
      ledger = { connection: openWriter(data.path, data), owner: undefined, held: new Map(), undo: [] }
      file = fileAt(data.path)
    }
    // SQLite would go on writing to a file that nobody finds any more.
    if (fileAt(data.path) !== file) throw storeFailure('io', data.path, 'it was moved or deleted while it was open')
    return commitGroup(ledger, requests, data.busyTimeoutMs)
  } catch (error) {
    const failure = error instanceof StoreFailure ? error : storeFailure('io', data.path, String(error), error)
    return requests.map(() => failedReply(failure))
  }
}

function answer(replies: readonly Reply[]): void {
  const asked = waiting.splice(0, replies.length)
  const message: FromWriter = asked.flatMap(({ n }, i) => {
    const reply = replies[i]
    return reply === undefined ? [] : [{ n, reply }]
  })
  Atomics.add(data.done, 0, asked.length)
  Atomics.notify(data.done, 0)
  port?.postMessage(message)
}

function truncateLog(): void {
  try {
    ledger?.connection.statement('PRAGMA wal_checkpoint(TRUNCATE)').get()
  } catch {
    // Someone else is reading or writing: the log stays as long as it is until the next idle moment.
  }
}

function close(): void {
  clearTimeout(idle)
  try {
    disown()
    // Closing does this only where it is the last connection, and libsql's readers linger until they are collected.
    truncateLog()
    ledger?.connection.close()
  } finally {
    ledger?.owner?.release()
    port?.close()
  }
}

/** Sessions still held are free once the lock is gone; saying so in the file spares the next owner the look. */
function disown(): void {
  const owner = ledger?.owner
  if (ledger === undefined || owner === undefined || ledger.held.size === 0) return
  try {
    ledger.connection.statement('UPDATE sessions SET owner = NULL, owner_pid = NULL WHERE owner = ?').run(owner.id)
  } catch {
    // A full or locked file: the lock about to be dropped says the same.
  }
}
