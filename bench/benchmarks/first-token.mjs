/** How much later the first word is with everything on disk before it is shown. */
import { alone, inFolder } from '../harness/alone.mjs'
import { spread } from '../harness/figures.mjs'
import { serve } from '../harness/processes.mjs'

const COLUMNS = { name: '', median: 'ms to the first word', min: 'min', max: 'max' }

/** @type {import('../harness/table.mjs').Benchmark} */
export const firstToken = {
  about: 'question to first word over a loopback socket: the adapter, and a reader of durable events, in turns',
  async run(pace) {
    const server = await serve(new URL('../wire/server.mjs', import.meta.url))
    try {
      const job = { baseURL: `${server.url}/first/v1`, times: pace.of(101, 5), warm: pace.of(100, 1) }
      const { adapter, agent } = /** @type {import('../processes/first-token.mjs').Taken} */ (
        await inFolder((folder) => alone('first-token', { folder, ...job }))
      )
      const later = agent.map((ms, i) => ms - (adapter[i] ?? Number.NaN))
      const rows = [
        { name: 'the adapter alone', ...spread(adapter) },
        { name: 'an agent on SQLite', ...spread(agent) },
        { name: 'later by', ...spread(later) },
      ]
      return [{ id: 'first-token', title: 'The first word', columns: COLUMNS, rows }]
    } finally {
      server.stop()
    }
  },
}
