/** The worker of the floor: what it is sent is one row and one synced commit. */
import { parentPort, workerData } from 'node:worker_threads'
import { openSqlite } from '../harness/sqlite.mjs'

const database = openSqlite(workerData)
database.exec('PRAGMA journal_mode = WAL')
database.exec('PRAGMA synchronous = FULL')
database.exec('CREATE TABLE log (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)')
const insert = database.prepare('INSERT INTO log (body) VALUES (?)')

parentPort?.on('message', (/** @type {string | null} */ body) => {
  if (body === null) {
    database.close()
    parentPort?.close()
    return
  }
  database.exec('BEGIN IMMEDIATE')
  insert.run(body)
  database.exec('COMMIT')
  parentPort?.postMessage(0)
})
