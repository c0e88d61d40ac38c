/** A conversation on disk, looked at from outside when it is closed, then carried on. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { start } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'
import { openSqlite } from '../harness/sqlite.mjs'

/** @typedef {{ folder: string, turns: readonly number[], deltas: number }} Job */
/** @typedef {{ turns: number, rowBytes: number, fileBytes: number, walBytes: number }} Size walBytes: at its largest. */

await answerJob(async (/** @type {Job} */ { folder, turns, deltas }) => {
  const path = join(folder, 'pawl.db')
  /** @type {Size[]} */
  const sizes = []
  let taken = 0
  for (const until of turns) {
    const walBytes = await take({ folder, from: taken, until, deltas })
    taken = until
    sizes.push({ turns: until, rowBytes: rowBytes(path), fileBytes: statSync(path).size, walBytes })
  }
  return sizes
})

/** @param {{ folder: string, from: number, until: number, deltas: number }} of @returns the largest that the write-ahead log was */
async function take({ folder, from, until, deltas }) {
  const program = await start({ script: { deltas }, store: 'sqlite', folder, unwatched: true })
  const chat = await program.open('chat')
  let largest = 0
  for (let turn = from + 1; turn <= until; turn++) {
    await chat.turn(`Question ${turn}?`)
    largest = Math.max(largest, statSync(join(folder, 'pawl.db-wal')).size)
  }
  const logged = await chat.logged?.()
  if (logged !== until * deltas) throw new Error(`The log has ${logged} deltas of ${until * deltas}`)
  await chat.close()
  await program.end()
  return largest
}

/** @param {string} path */
function rowBytes(path) {
  const database = openSqlite(path)
  try {
    const row = database.prepare('SELECT sum(length(body)) AS bytes FROM log').get()
    return /** @type {{ bytes: number }} */ (row).bytes
  } finally {
    database.close()
  }
}
