/** One answer of very many deltas. */
import { compare } from '../harness/compare.mjs'
import { columnsOf, standing } from '../harness/standing.mjs'

/** @type {import('../harness/compare.mjs').Entry[]} */
const ENTRIES = [
  { title: 'a while loop', name: 'floor' },
  { title: 'Pawl', name: 'pawl' },
  { title: 'Pawl, SQLite', name: 'pawl', store: 'sqlite' },
  { title: 'pi', name: 'pi' },
  { title: 'AI SDK', name: 'ai-sdk' },
  { title: 'OpenAI Agents', name: 'openai-agents' },
  { title: 'LangGraph', name: 'langgraph' },
]

/** @type {import('../harness/table.mjs').Benchmark} */
export const answer = {
  about: 'one answer of 20,000 deltas, each of them read, and with Pawl each of them an event of the log',
  peers: true,
  async run(pace) {
    const spec = { deltas: pace.of(20_000, 2_000) }
    const measured = await compare(ENTRIES, { workload: 'answer', spec, script: spec }, pace)
    const rows = standing(measured, { key: 'perSecond', pawl: 'Pawl' })
    return [{ id: 'answer', title: `One answer of ${spec.deltas} deltas`, columns: columnsOf('deltas/s'), rows }]
  },
}
