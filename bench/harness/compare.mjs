/**
 * Contenders side by side: each in a process of its own, warmed until two samples in a row agree, then sampled one after
 * the other in turns, each round beginning with the next. Whatever else the machine does hits all alike.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spread } from './figures.mjs'
import { runner } from './processes.mjs'

const CHILD = new URL('./child.mjs', import.meta.url)

/**
 * @typedef {object} Entry
 * @property {string} title What it is called in the table.
 * @property {string} name The file in contenders/ or peers/.
 * @property {import('./contender.mjs').Setup['store']} [store] Memory by default.
 */

/**
 * @typedef {object} Work
 * @property {string} workload The file in workloads/.
 * @property {Record<string, number>} spec What it is told.
 * @property {import('./script.mjs').Script} script
 * @property {readonly string[]} [execArgv]
 * @property {boolean} [unwatched]
 */

/**
 * @typedef {object} Measured
 * @property {string} title
 * @property {string} keeps
 * @property {Record<string, ReturnType<typeof spread>>} figures By name.
 * @property {number} warmRuns
 * @property {boolean} settled Two samples in a row agreed.
 */

/** @typedef {{ title: string, keeps: string, samples: import('./child.mjs').Sample[], warmRuns: number, settled: boolean } & import('./processes.mjs').Runner} Racer */

/** @param {readonly Entry[]} entries @param {Work} work @param {import('./pace.mjs').Pace} pace @returns {Promise<Measured[]>} */
export async function compare(entries, work, pace) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
  /** @type {import('./processes.mjs').Runner[]} */
  const started = []
  try {
    const racers = await Promise.all(
      entries.map(async (entry, i) => {
        const process = runner(CHILD, work.execArgv)
        started.push(process)
        return ready(process, entry, work, mkdtempSync(join(folder, `${i}-`)))
      }),
    )
    for (const racer of racers) await warm(racer, pace)
    for (let round = 0; round < pace.rounds; round++) {
      for (const racer of [...racers.slice(round % racers.length), ...racers.slice(0, round % racers.length)])
        racer.samples.push(await sample(racer, pace.sampleMs))
    }
    await Promise.all(racers.map(({ end }) => end()))
    return racers.map(measured)
  } finally {
    for (const { stop } of started) stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/**
 * @param {import('./processes.mjs').Runner} process
 * @param {Entry} entry
 * @param {Work} work
 * @param {string} folder
 * @returns {Promise<Racer>}
 */
async function ready(process, { title, name, store = 'memory' }, { workload, spec, script, unwatched }, folder) {
  const setup = { script, store, folder, ...(unwatched && { unwatched }) }
  const { keeps } = /** @type {{ keeps: string }} */ (await process.run({ name, workload, spec, setup }))
  return { ...process, title, keeps, samples: [], warmRuns: 0, settled: false }
}

/** @param {Racer} racer @param {import('./pace.mjs').Pace} pace */
async function warm(racer, { sampleMs, leastWarmMs, mostWarmMs, agreement }) {
  const begun = performance.now()
  let before = Number.NaN
  for (;;) {
    const { runs, figures } = await sample(racer, sampleMs)
    racer.warmRuns += runs
    const now = Object.values(figures)[0] ?? 0
    const ms = performance.now() - begun
    racer.settled = Math.abs(now - before) <= agreement * now
    if (ms >= mostWarmMs || (ms >= leastWarmMs && racer.settled)) return
    before = now
  }
}

/** @param {Racer} racer @param {number} sampleMs */
const sample = async ({ run }, sampleMs) => /** @type {import('./child.mjs').Sample} */ (await run({ sampleMs }))

/** @param {Racer} racer @returns {Measured} */
function measured({ title, keeps, samples, warmRuns, settled }) {
  const keys = Object.keys(samples[0]?.figures ?? {})
  const figures = keys.map((key) => [key, spread(samples.map((taken) => taken.figures[key] ?? 0))])
  return { title, keeps, figures: Object.fromEntries(figures), warmRuns, settled }
}
