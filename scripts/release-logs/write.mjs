/** Lives the lives, and writes what they left: files of stores, logs as JSON lines, and an index that tells of each. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../dist/log.js'
import { fold, stateName, verify } from '../../dist/machines.js'
import { FILES } from './lives.mjs'
import { VOCABULARY } from './vocabulary.mjs'

/** @typedef {import('../../dist/log.js').LogStore} LogStore */
/** @typedef {import('../../dist/log.js').SessionEvent} SessionEvent */
/** @typedef {import('./life.mjs').Left} Left */

const ACT = fileURLToPath(new URL('./act.mjs', import.meta.url))

/**
 * @param {object} place
 * @param {string} place.folder where it goes; it exists
 * @param {string} place.scratch a folder for the time being
 * @param {string} place.version
 * @param {readonly string[]} place.files which stores
 * @param {(line: string) => void} place.say
 */
export async function writeLogs({ folder, scratch, version, files, say }) {
  const sessions = []
  /** @type {Record<string, readonly string[]>} */
  const stores = {}
  for (const file of files) {
    const home = join(scratch, file)
    mkdirSync(home)
    live(file, join(home, `${file}.db`))
    stores[file] = keep(home, folder)
    const told = await tell(file, home)
    for (const { events, ...session } of told) {
      writeFileSync(join(folder, `${session.name}.jsonl`), linesOf(events))
      sessions.push({ ...session, events: events.length })
    }
    say(`${file}: ${told.length} sessions`)
  }
  writeFileSync(join(folder, 'index.json'), indexOf({ version, stores, vocabulary: VOCABULARY }, sessions))
}

/** A line for each session. @param {object} about @param {readonly object[]} sessions */
const indexOf = (about, sessions) =>
  `${JSON.stringify(about).slice(0, -1)},"sessions":[\n${sessions.map((one) => JSON.stringify(one)).join(',\n')}\n]}\n`

/** @param {string} file @param {string} path of the database */
function live(file, path) {
  for (const [life, { sessions, acts }] of (FILES[file] ?? []).entries()) {
    for (const act of acts.keys()) {
      const work = JSON.stringify({ path, file, life, act })
      const { status, signal, stderr } = spawnSync(process.execPath, [ACT, work], { encoding: 'utf8', timeout: 60_000 })
      if (status === 0 || signal === 'SIGKILL') continue
      throw new Error(`Act ${act + 1} of ${Object.keys(sessions)[0]} ended with ${status ?? signal}:\n${stderr}`)
    }
  }
}

/** What a store consists of. The shared memory beside it is made anew by whoever opens it. @param {string} home @param {string} folder */
function keep(home, folder) {
  const files = readdirSync(home).filter((name) => !name.endsWith('-shm') && !isEmptyLog(join(home, name)))
  for (const name of files) cpSync(join(home, name), join(folder, name))
  return files
}

/** Of a write-ahead log nothing may be left but its name. @param {string} path */
const isEmptyLog = (path) => path.endsWith('-wal') && statSync(path).size === 0

/** From a copy: looking at a store that a killed process left changes it. @param {string} file @param {string} home */
async function tell(file, home) {
  const copy = `${home}-copy`
  cpSync(home, copy, { recursive: true })
  const sessions = (FILES[file] ?? []).flatMap(({ sessions }) => Object.entries(sessions))
  const left = new Map(sessions.map(([name, one]) => [one.id ?? name, { name, ...one }]))
  const store = sqliteStore(join(copy, `${file}.db`))
  const told = []
  for await (const { owned: _, ...summary } of store.list()) {
    const { id } = summary
    const known = left.get(id)
    if (known === undefined) throw new Error(`No life tells of session "${id}" in ${file}`)
    left.delete(id)
    told.push(await tellOne(store, { file, left: { ...known, summary } }))
  }
  await store[Symbol.asyncDispose]()
  if (left.size > 0) throw new Error(`No log was left of ${[...left.keys()].join(', ')}`)
  return told
}

/** @param {LogStore} store @param {{ file: string, left: Left & { name: string, summary: { id: string } } }} what */
async function tellOne(store, { file, left: { name, shows, state, opened, summary } }) {
  const { id } = summary
  /** @type {SessionEvent[]} */
  const events = []
  for await (const event of store.read(id)) events.push(event)
  const reached = stateName(fold(events))
  if (reached !== state) throw new Error(`"${name}" ends in ${reached}, not in ${state}`)
  const verdict = verify(events)
  if (!verdict.ok) throw new Error(`"${name}" breaks its rules: ${JSON.stringify(verdict.violations)}`)
  const owner = await store.acquire(id)
  await owner.release()
  return {
    name,
    store: file,
    shows,
    header: owner.header,
    summary,
    state,
    verifies: verdict.ok,
    posted: owner.posted ?? [],
    opened,
    events,
  }
}

/** @param {readonly SessionEvent[]} events */
const linesOf = (events) => events.map((event) => `${JSON.stringify(event)}\n`).join('')

/** Removes a folder that did not become whole. @param {string} folder */
export const discard = (folder) => rmSync(folder, { recursive: true, force: true })
