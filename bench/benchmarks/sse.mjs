/** Events of a stream per second, from the bytes of a socket to each contender's own deltas. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spread } from '../harness/figures.mjs'
import { runner, serve } from '../harness/processes.mjs'
import { ratioOf } from '../harness/standing.mjs'
import { TOKENS, WORD } from '../wire/answers.mjs'
import { NAMES } from '../wire/contenders.mjs'

const SERVER = new URL('../wire/server.mjs', import.meta.url)
const READER = new URL('../wire/reader.mjs', import.meta.url)

/** @type {Readonly<Record<string, string>>} */
const ANSWERS = { tokens: 'written 16 kB at a time', frames: 'each in a frame of its own' }
const COLUMNS = {
  name: '',
  median: 'events/s',
  min: 'min',
  max: 'max',
  perCpuSecond: 'per CPU second',
  ratio: 'of Pawl’s',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const sse = {
  about: 'chat-completions events from a socket to deltas, one after the other in turns; median, min and max',
  peers: true,
  async run(pace) {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
    const server = await serve(SERVER)
    const readers = NAMES.map((name) => ({ name, ...runner(READER) }))
    try {
      const tables = []
      const events = pace.of(TOKENS.many, TOKENS.few)
      for (const [answer, how] of Object.entries(ANSWERS)) {
        const job = { baseURL: `${server.url}/${answer}${pace.quick ? '-few' : ''}/v1`, folder }
        const rows = await compare(readers, { job, events }, pace)
        tables.push({ id: `sse-${answer}`, title: `${events} events of a stream, ${how}`, columns: COLUMNS, rows })
      }
      return tables
    } finally {
      for (const { stop } of readers) stop()
      server.stop()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    }
  },
}

/**
 * In turns, so that what else the machine does hits all alike. The first turns only warm up.
 * @param {readonly ({ name: string } & import('../harness/processes.mjs').Runner)[]} readers
 * @param {{ job: { baseURL: string, folder: string }, events: number }} answer
 * @param {import('../harness/pace.mjs').Pace} pace
 */
async function compare(readers, { job, events }, pace) {
  /** @type {Map<string, import('../wire/reader.mjs').Reading[]>} */
  const readings = new Map(readers.map(({ name }) => [name, []]))
  for (let round = -pace.of(5, 0); round < pace.rounds; round++) {
    for (const { name, run } of readers) {
      const reading = /** @type {import('../wire/reader.mjs').Reading} */ (await run({ contender: name, ...job }))
      const { read, logged = events } = reading
      if (read.deltas !== events || read.characters !== events * WORD.length || logged !== events)
        throw new Error(`${name} read ${read.deltas} deltas, ${read.characters} characters, and logged ${logged}`)
      if (round >= 0) readings.get(name)?.push(reading)
    }
  }
  const rows = [...readings].map(([name, of]) => ({
    name,
    ...rounded(spread(of.map(({ ms }) => (events / ms) * 1_000))),
    perCpuSecond: Math.round(spread(of.map(({ cpuMs }) => (events / cpuMs) * 1_000)).median),
  }))
  const own = rows.find(({ name }) => name === 'pawl')?.median ?? Number.NaN
  return rows.map((row) => ({ ...row, ratio: ratioOf(row.median / own) }))
}

/** @param {ReturnType<typeof spread>} figures */
const rounded = ({ median, min, max }) => ({ median: Math.round(median), min: Math.round(min), max: Math.round(max) })
