/** A thousand agents that stream at once. */
import { alone, inFolder } from '../harness/alone.mjs'

const COLUMNS = {
  name: '',
  p50: 'loop delay ms, p50',
  p99: 'p99',
  max: 'max',
  perSecond: 'deltas/s',
  lost: 'deltas lost',
  slowest: 'slowest agent late, ms',
  cpu: 'cores used',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const streams = {
  about: 'agents of one process, each with a model that says 50 deltas a second; the delay of its event loop meanwhile',
  async run(pace) {
    const job = { agents: pace.of(1_000, 100), perSecond: 50, seconds: pace.of(10, 1) }
    const rows = []
    for (const store of ['memory', 'sqlite']) {
      const { delay, logged, slowestMs, cpu } = /** @type {import('../processes/streams.mjs').Taken} */ (
        await inFolder((folder) => alone('streams', { folder, store, ...job }))
      )
      const said = job.agents * job.perSecond * job.seconds
      const lost = said - logged
      if (lost !== 0) throw new Error(`${lost} deltas of ${said} are not in the log`)
      const name = `${job.agents} agents, ${store === 'memory' ? 'memory' : 'one SQLite file'}`
      rows.push({ name, ...delay, perSecond: job.agents * job.perSecond, lost, slowest: slowestMs, cpu })
    }
    return [{ id: 'streams', title: 'Many agents streaming', columns: COLUMNS, rows }]
  },
}
