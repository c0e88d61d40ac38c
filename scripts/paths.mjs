/**
 * Plays paths that are generated from the chart on real agents: `npm run paths`. Prints how many, how their turns
 * ended and which transitions of the chart they took; `--budget large` plays all of them and wants every transition
 * taken, or named with its reason in paths/unreached.json. Exit code 1 at any mismatch.
 */
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chosenPaths } from './paths/choose.mjs'
import { emptyTally, linesOf, merge, missedBy } from './paths/tally.mjs'

const { values } = parseArgs({
  options: {
    budget: { type: 'string', default: 'test' },
    label: { type: 'string' },
    workers: { type: 'string', default: String(Math.min(availableParallelism(), 8)) },
    transitions: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})

if (values.list) for (const { label } of chosenPaths(values)) console.log(label)
else await play()

async function play() {
  const workers = values.label === undefined ? Math.max(1, Number(values.workers)) : 1
  if (!Number.isSafeInteger(workers)) throw new Error(`"${values.workers}" is no number of workers`)
  const begun = performance.now()
  const tallies = await Promise.all(Array.from({ length: workers }, (_, shard) => playShard({ shard, of: workers })))
  const tally = tallies.reduce(merge, emptyTally())
  if (tally.paths === 0) {
    console.error(`No path of the budget "${values.budget}" is called "${values.label}"`)
    process.exitCode = 1
    return
  }
  const whole = values.budget === 'large' && values.label === undefined
  const missed = whole ? missedBy(tally) : { unnamed: [], taken: [] }
  const told = { budget: values.budget, transitions: values.transitions || whole }
  const seconds = (performance.now() - begun) / 1000
  console.log(values.json ? JSON.stringify({ ...tally, ...missed, seconds }) : linesOf(tally, missed, told, seconds))
  const faults = tally.mismatches.length + missed.unnamed.length + missed.taken.length
  if (faults > 0) process.exitCode = 1
}

/**
 * @param {{ shard: number, of: number }} part
 * @returns {Promise<import('./paths/tally.mjs').Tally>}
 */
function playShard(part) {
  const { budget, label } = values
  return new Promise((resolve, reject) => {
    const worker = fork(fileURLToPath(new URL('paths/worker.mjs', import.meta.url)), [
      JSON.stringify({ budget, ...(label === undefined ? {} : { label }), ...part }),
    ])
    /** @type {import('./paths/tally.mjs').Tally | undefined} */
    let tally
    worker.on('message', (told) => {
      tally = /** @type {import('./paths/tally.mjs').Tally} */ (told)
    })
    worker.on('error', reject)
    worker.on('exit', (code, signal) => {
      if (tally !== undefined && code === 0) resolve(tally)
      else reject(new Error(`A worker that plays paths ended with ${signal ?? `exit code ${code}`}`))
    })
  })
}
