/** Steps on disk, by a process whose disk somebody slows; it says when it measured, so that its syncs can be counted. */
import { start } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'
import { prepare } from '../workloads/steps.mjs'

/** @typedef {{ folder: string, steps: number, deltas: number, warm: number, runs: number }} Job */
/** `from` and `to` are epoch ms, each run in between. @typedef {{ msPerStep: number[], from: number, to: number }} Taken */

await answerJob(async (/** @type {Job} */ { folder, steps, deltas, warm, runs }) => {
  const program = await start({ script: { deltas, steps }, store: 'sqlite', folder })
  const run = prepare(program, { steps, deltas })
  for (let i = 0; i < warm; i++) await run()
  /** @type {Taken} */
  const taken = { msPerStep: [], from: now(), to: 0 }
  for (let i = 0; i < runs; i++) taken.msPerStep.push((await run()).msPerStep ?? Number.NaN)
  taken.to = now()
  await program.end()
  return taken
})

/** Finer than Date.now(), as the trace has it. */
function now() {
  return performance.timeOrigin + performance.now()
}
