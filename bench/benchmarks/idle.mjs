/** What an agent weighs that has nothing to do. */
import { compare } from '../harness/compare.mjs'
import { ratioOf } from '../harness/standing.mjs'

const DELTAS = 20
const PEERS = [
  { title: 'pi', name: 'pi' },
  { title: 'AI SDK', name: 'ai-sdk' },
  { title: 'OpenAI Agents', name: 'openai-agents' },
  { title: 'LangGraph', name: 'langgraph' },
]
/** @type {import('../harness/compare.mjs').Entry} */
const ON_DISK = { title: 'Pawl, its log on disk', name: 'pawl', store: 'sqlite' }

const COLUMNS = { name: '', state: '', median: 'heap bytes', min: 'min', max: 'max', ratio: 'of Pawl’s' }

/** @type {import('../harness/table.mjs').Benchmark} */
export const idle = {
  about:
    'heap of an idle agent and buffers it holds, after collection; options, model and tool are shared and not counted',
  peers: true,
  async run(pace) {
    const agents = pace.of(1_000, 10)
    const weigh = async (/** @type {import('../harness/compare.mjs').Entry[]} */ entries, state = {}) => {
      const spec = { agents, turns: 1, hibernated: 0, deltas: DELTAS, ...state }
      const work = { workload: 'idle', spec, script: { deltas: DELTAS }, execArgv: ['--expose-gc'], unwatched: true }
      // One run is one sample, and the garbage collector leaves little to chance.
      return compare(entries, work, { ...pace, rounds: Math.min(pace.rounds, 3), sampleMs: 0, leastWarmMs: 0 })
    }
    const states = [
      { state: 'fresh', measured: await weigh([ON_DISK], { turns: 0 }) },
      {
        state: 'after a turn',
        measured: await weigh([ON_DISK, { title: 'Pawl, its log in memory', name: 'pawl' }, ...PEERS]),
      },
      { state: 'hibernated', measured: await weigh([ON_DISK], { hibernated: 1 }) },
    ]
    const own = states[1]?.measured[0]?.figures.bytes?.median ?? Number.NaN
    const rows = states.flatMap(({ state, measured }) =>
      measured.map(({ title, figures: { bytes } }) => {
        if (bytes === undefined) return { name: title, state: `${state}: this build cannot` }
        return { name: title, state, ...rounded(bytes), ratio: ratioOf(bytes.median / own) }
      }),
    )
    return [{ id: 'idle', title: `An idle agent, one of ${agents}`, columns: COLUMNS, rows }]
  },
}

/** @param {ReturnType<typeof import('../harness/figures.mjs').spread>} figures */
const rounded = ({ median, min, max }) => ({ median: Math.round(median), min: Math.round(min), max: Math.round(max) })
