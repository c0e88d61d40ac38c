/** A long conversation: what a turn takes late in it, and how much more that is than early on. */
import { compare } from '../harness/compare.mjs'
import { columnsOf, ratioOf, standing } from '../harness/standing.mjs'

const DELTAS = 20

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
export const chat = {
  about: 'turns of one conversation, one step of 20 deltas each, up to the adapter’s boundary',
  peers: true,
  async run(pace) {
    const long = ENTRIES.filter(({ name }) => name === 'floor' || name === 'pawl')
    return [
      await late('chat', ENTRIES, pace.of(200, 15), pace),
      await late('chat-long', long, pace.of(2_000, 50), pace),
    ]
  },
}

/** @param {string} id @param {typeof ENTRIES} entries @param {number} turns @param {import('../harness/pace.mjs').Pace} pace */
async function late(id, entries, turns, pace) {
  const spec = { turns, deltas: DELTAS }
  const measured = await compare(entries, { workload: 'chat', spec, script: { deltas: DELTAS } }, pace)
  const rows = standing(measured, { key: 'last', pawl: 'Pawl' }).map((row, i) => ({
    ...row,
    early: measured[i]?.figures.early?.median ?? Number.NaN,
    growth: ratioOf(measured[i]?.figures.growth?.median ?? Number.NaN),
  }))
  const { keeps, warm, ...columns } = columnsOf(`ms, turn ${turns}`)
  return {
    id,
    title: `Turn ${turns} of a conversation`,
    columns: { ...columns, early: 'ms, turn 10', growth: 'growth', keeps, warm },
    rows,
  }
}
