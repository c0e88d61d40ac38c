/** Events of a stream per second, from the bytes of a socket to each contender's own deltas. */
import { spread } from '../harness/figures.mjs'
import { runner, serve } from '../harness/processes.mjs'
import { TOKENS, WORD } from '../wire/answers.mjs'
import { contenders } from '../wire/contenders.mjs'

const SERVER = new URL('../wire/server.mjs', import.meta.url)
const READER = new URL('../wire/reader.mjs', import.meta.url)

const ANSWERS = {
  tokens: `${TOKENS} events, written 16 kB at a time`,
  frames: `${TOKENS} events, each in a frame of its own`,
}
const COLUMNS = {
  name: '',
  median: 'events/s',
  min: 'min',
  max: 'max',
  perCpuSecond: 'per CPU second',
  ofPawl: 'pawl is',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const sse = {
  about: 'chat-completions events from a socket to deltas, one after the other in turns; median, min and max',
  async run({ rounds }) {
    const server = await serve(SERVER)
    const readers = Object.keys(contenders).map((name) => ({ name, ...runner(READER) }))
    try {
      const tables = []
      for (const [answer, title] of Object.entries(ANSWERS)) {
        tables.push({ title, columns: COLUMNS, rows: await compare(readers, `${server.url}/${answer}/v1`, rounds) })
      }
      return tables
    } finally {
      for (const { stop } of readers) stop()
      server.stop()
    }
  },
}

/** In turns, so that what else the machine does hits all alike. The first turns only warm up. */
const WARM_UP = 3

/**
 * @param {readonly ({ name: string } & import('../harness/processes.mjs').Runner)[]} readers
 * @param {string} baseURL
 * @param {number} rounds
 */
async function compare(readers, baseURL, rounds) {
  /** @type {Map<string, import('../wire/reader.mjs').Reading[]>} */
  const readings = new Map(readers.map(({ name }) => [name, []]))
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const { name, run } of readers) {
      const reading = /** @type {import('../wire/reader.mjs').Reading} */ (await run({ contender: name, baseURL }))
      const { deltas, characters } = reading.read
      if (deltas !== TOKENS || characters !== TOKENS * WORD.length) throw new Error(`${name} read ${deltas} deltas`)
      if (round >= 0) readings.get(name)?.push(reading)
    }
  }
  const rows = [...readings].map(([name, of]) => ({
    name,
    ...rounded(spread(of.map(({ ms }) => (TOKENS / ms) * 1_000))),
    perCpuSecond: Math.round(spread(of.map(({ cpuMs }) => (TOKENS / cpuMs) * 1_000)).median),
  }))
  const own = rows.find(({ name }) => name === 'pawl')?.median ?? 0
  return rows.map((row) => ({ ...row, ofPawl: `${(own / row.median).toFixed(2)} x` }))
}

/** @param {ReturnType<typeof spread>} figures */
const rounded = ({ median, min, max }) => ({ median: Math.round(median), min: Math.round(min), max: Math.round(max) })
