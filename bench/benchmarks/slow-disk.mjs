/** Steps on a disk that takes its time: only the commits may grow. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { whyNoTrace } from '../../scripts/crash/strace.mjs'
import { alone, inFolder } from '../harness/alone.mjs'
import { spread } from '../harness/figures.mjs'

const COLUMNS = {
  name: '',
  median: 'ms per step',
  min: 'min',
  max: 'max',
  syncs: 'syncs a step',
  growth: 'ms more a step per ms of delay',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const slowDisk = {
  about: 'steps on SQLite with each sync of the disk delayed; strace delays and counts them, and costs time itself',
  async run(pace) {
    const why = whyNoTrace()
    if (why !== undefined)
      return [{ id: 'slow-disk', title: 'A slow disk', columns: { name: '' }, rows: [], note: `Skipped: ${why}.` }]
    /** @type {({ name: string, median: number } & Record<string, number | string>)[]} */
    const rows = []
    for (const delayMs of [0, 4, 20]) {
      const { msPerStep, syncs } = await steps(delayMs, pace)
      const base = rows[0]?.median ?? msPerStep.median
      const growth = delayMs === 0 ? '' : Number(((msPerStep.median - base) / delayMs).toFixed(2))
      rows.push({ name: `each sync ${delayMs} ms later`, ...msPerStep, syncs: Number(syncs.toFixed(2)), growth })
    }
    return [{ id: 'slow-disk', title: 'A slow disk', columns: COLUMNS, rows }]
  },
}

/** @param {number} delayMs @param {import('../harness/pace.mjs').Pace} pace */
function steps(delayMs, pace) {
  return inFolder(async (folder) => {
    const spec = { steps: pace.of(50, 10), deltas: 20 }
    const trace = join(folder, 'trace')
    const flags = ['-f', '--seccomp-bpf', '-qq', '-ttt', '-e', 'trace=fsync,fdatasync', '-o', trace]
    const delay = delayMs === 0 ? [] : ['-e', `inject=fsync,fdatasync:delay_exit=${delayMs * 1_000}`]
    const job = { folder, ...spec, warm: pace.of(delayMs > 4 ? 5 : 40, 1), runs: pace.rounds }
    const taken = /** @type {import('../processes/slow-disk.mjs').Taken} */ (
      await alone('slow-disk', job, { under: ['strace', ...flags, ...delay] })
    )
    const syncs = syncsIn(readFileSync(trace, 'utf8'), taken) / (job.runs * (spec.steps + 1))
    return { msPerStep: spread(taken.msPerStep), syncs }
  })
}

/** Lines are `pid seconds call(...)`; a call that another thread interrupts has a second line, `<... resumed>`. @param {string} trace @param {{ from: number, to: number }} between */
function syncsIn(trace, { from, to }) {
  return trace.split('\n').filter((line) => {
    const [, seconds, call] = line.split(/\s+/)
    const ms = Number(seconds) * 1_000
    return /^f(?:data)?sync\(/.test(call ?? '') && ms >= from && ms <= to
  }).length
}
