/** What answers of extreme size take of time and memory, each in a new process. */
import { runner, serve } from '../harness/processes.mjs'

const SERVER = new URL('../wire/server.mjs', import.meta.url)
const EXTREME = new URL('../wire/extreme.mjs', import.meta.url)

/** @param {import('../harness/pace.mjs').Pace} pace @returns {Readonly<Record<string, string>>} */
const answersAt = ({ quick }) => ({
  ...(quick ? { 'long-few': '2 MB in deltas of 64 characters' } : { long: '100 MB in deltas of 64 characters' }),
  'line-2': 'a line of 2 MB in packets of 1,460',
  ...(!quick && { 'line-8': 'a line of 8 MB in packets of 1,460' }),
  'endless-line': 'a line without end',
  'endless-json': 'one JSON text without end',
})
const COLUMNS = {
  name: '',
  ms: 'ms',
  characters: 'characters',
  heapMB: 'peak heap MB',
  rssMB: 'peak RSS MB',
  end: 'ends with',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const sseMemory = {
  about: 'the adapter alone, its memory at the peak above what it was before the request',
  async run(pace) {
    const server = await serve(SERVER)
    const rows = []
    try {
      for (const [answer, name] of Object.entries(answersAt(pace)))
        rows.push({ name, ...(await take(`${server.url}/${answer}/v1`)) })
    } finally {
      server.stop()
    }
    return [{ id: 'sse-memory', title: 'One answer each', columns: COLUMNS, rows }]
  },
}

/** @param {string} baseURL */
async function take(baseURL) {
  const { run, stop } = runner(EXTREME, ['--expose-gc'])
  try {
    const { ms, heapMB, rssMB, ...taken } = /** @type {import('../wire/extreme.mjs').Taken} */ (await run({ baseURL }))
    return { ...taken, ms: Math.round(ms), heapMB: Math.round(heapMB), rssMB: Math.round(rssMB) }
  } finally {
    stop()
  }
}
