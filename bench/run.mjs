/**
 * Measures, side by side with others where there are others: `npm run bench`, or `npm run bench -- sse` for the
 * benchmarks whose names begin so. `--rounds N` repeats what is compared, `--json` prints data instead of tables.
 */
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { sse } from './benchmarks/sse.mjs'
import { sseMemory } from './benchmarks/sse-memory.mjs'
import { linesOf } from './harness/table.mjs'

/** By name. @type {Readonly<Record<string, import('./harness/table.mjs').Benchmark>>} */
const benchmarks = { sse, 'sse-memory': sseMemory }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
})
const rounds = Number(values.rounds)
if (!Number.isSafeInteger(rounds) || rounds < 1) throw new Error(`"${values.rounds}" is no number of rounds`)
const chosen = Object.entries(benchmarks).filter(
  ([name]) => positionals.length === 0 || positionals.some((word) => name.startsWith(word)),
)
if (chosen.length === 0)
  throw new Error(`No benchmark "${positionals}": there are ${Object.keys(benchmarks).join(', ')}`)

const load = () => loadavg().map((average) => Number(average.toFixed(2)))
const machine = { node: process.version, cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, load: load() }
if (!values.json) {
  console.log(`Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, load ${machine.load.join(' ')}`)
}

const results = []
for (const [name, { about, run }] of chosen) {
  const tables = await run({ rounds })
  results.push({ name, about, tables: tables.map(({ title, rows }) => ({ title, rows })) })
  if (!values.json) console.log(`\n${name}: ${about}\n\n${tables.map(linesOf).join('\n\n')}`)
}
if (values.json) console.log(JSON.stringify({ machine, loadAfter: load(), rounds, results }))
else
  console.log(
    `\nLoad at the end ${load().join(' ')}. Above the number of cores, the figures are those of a busy machine.`,
  )
