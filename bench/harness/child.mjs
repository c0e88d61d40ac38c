/** The process of one contender at one workload: makes it ready, then answers each request for a sample with one. */
import { contender } from './contender.mjs'
import { spread } from './figures.mjs'

/**
 * One workload, once, with everything counted that must have come to pass; the first figure is the one that is compared.
 * @typedef {() => Promise<Record<string, number>>} Run
 */

/** @typedef {{ name: string, workload: string, spec: Record<string, number>, setup: import('./contender.mjs').Setup }} Ready */
/** @typedef {{ runs: number, figures: Record<string, number> }} Sample */

/** @type {Run | undefined} */
let run
/** @type {import('./contender.mjs').Program | undefined} */
let program

process.on('message', async (/** @type {Ready | { sampleMs: number } | 'end'} */ job) => {
  if (job === 'end') return end()
  process.send?.('sampleMs' in job ? await sample(job.sampleMs) : await ready(job))
})
process.on('disconnect', () => process.exit())

/** @param {Ready} job */
async function ready({ name, workload, spec, setup }) {
  const [start, { prepare }] = await Promise.all([contender(name), import(`../workloads/${workload}.mjs`)])
  program = /** @type {import('./contender.mjs').Program} */ (await start(setup))
  run = /** @type {Run} */ (await prepare(program, spec))
  return { keeps: program.keeps }
}

/** @param {number} ms @returns {Promise<Sample>} */
async function sample(ms) {
  if (run === undefined) throw new Error('Nothing was made ready')
  /** @type {Record<string, number>[]} */
  const taken = []
  const begun = performance.now()
  do taken.push(await run())
  while (performance.now() - begun < ms)
  const keys = Object.keys(taken[0] ?? {})
  const figures = keys.map((key) => [key, spread(taken.map((figure) => figure[key] ?? 0)).median])
  return { runs: taken.length, figures: Object.fromEntries(figures) }
}

async function end() {
  await program?.end()
  process.disconnect()
}
