/** One turn of many steps, in memory and with everything on disk before each effect. */
import { compare } from '../harness/compare.mjs'
import { columnsOf, standing } from '../harness/standing.mjs'

const IN_MEMORY = [
  { title: 'a while loop', name: 'floor' },
  { title: 'Pawl', name: 'pawl' },
  { title: 'pi', name: 'pi' },
  { title: 'AI SDK', name: 'ai-sdk' },
  { title: 'OpenAI Agents', name: 'openai-agents' },
  { title: 'LangGraph', name: 'langgraph' },
]
/** @type {import('../harness/compare.mjs').Entry[]} */
const DURABLE = [
  { title: 'two commits of a worker', name: 'floor', store: 'sqlite' },
  { title: 'Pawl', name: 'pawl', store: 'sqlite' },
  { title: 'LangGraph, SQLite saver', name: 'langgraph', store: 'sqlite' },
  { title: 'LangGraph, SQLite saver, synced', name: 'langgraph', store: 'sqlite-full' },
]

/** @type {import('../harness/table.mjs').Benchmark} */
export const steps = {
  about: 'one turn of 50 steps, 20 deltas and a tool call each, and a final answer',
  peers: true,
  async run(pace) {
    const spec = { steps: pace.of(50, 5), deltas: 20 }
    const work = { workload: 'steps', spec, script: spec }
    const columns = columnsOf('ms per step')
    const of = { key: 'msPerStep', pawl: 'Pawl' }
    return [
      {
        id: 'steps-memory',
        title: 'Steps in memory',
        columns,
        rows: standing(await compare(IN_MEMORY, work, pace), of),
      },
      { id: 'steps-disk', title: 'Steps on disk', columns, rows: standing(await compare(DURABLE, work, pace), of) },
    ]
  },
}
