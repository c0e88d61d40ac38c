/**
 * Measures, side by side with others where there are others: `npm run bench`, or `npm run bench -- sse` for the
 * benchmarks whose names begin so. `--quick` shows in a minute that all of it works, `--rounds N` repeats what is
 * compared, `--json` prints data instead of tables. `npm run bench -- guard` counts instead of timing.
 */
import { parseArgs } from 'node:util'
import { benchmarks } from './benchmarks.mjs'
import { load, machineNow } from './harness/machine.mjs'
import { paceOf } from './harness/pace.mjs'
import { installPeers } from './harness/peers.mjs'
import { linesOf } from './harness/table.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
if (rounds !== undefined && (!Number.isSafeInteger(rounds) || rounds < 1))
  throw new Error(`"${values.rounds}" is no number of rounds`)
const chosen = Object.entries(benchmarks).filter(
  ([name]) => positionals.length === 0 || positionals.some((word) => name.startsWith(word)),
)
if (chosen.length === 0)
  throw new Error(`No benchmark "${positionals}": there are ${Object.keys(benchmarks).join(', ')}`)

if (chosen.some(([, { peers }]) => peers)) installPeers()
const pace = paceOf({ quick: values.quick, rounds })
const say = (/** @type {string} */ text) => {
  if (!values.json) console.log(text)
}

const loadBefore = load()
const machine = machineNow()
say(`Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, load ${loadBefore.join(' ')}`)
const results = []
for (const [name, { about, run }] of chosen) {
  const begun = performance.now()
  const tables = await run(pace)
  const seconds = Math.round((performance.now() - begun) / 100) / 10
  results.push({ name, about, seconds, tables })
  say(`\n## ${name}: ${about} (${seconds} s)\n\n${tables.map(linesOf).join('\n\n')}`)
}
const taken = { machine, load: { before: loadBefore, after: load() }, quick: pace.quick, rounds: pace.rounds, results }
if (values.json) console.log(JSON.stringify(taken))
say(`\nLoad at the end ${taken.load.after.join(' ')}. Above the number of cores, the figures are those of a busy machine.`)
