/**
 * Measures, side by side with others where there are others: `npm run bench`, or `npm run bench -- sse` for the
 * benchmarks whose names begin so. `--quick` shows in a minute that all of it works, `--rounds N` repeats what is
 * compared, `--json` prints data instead of tables, `--write` keeps a full run for docs/benchmarks.md. `guard` as the one
 * name counts instead of timing.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { benchmarks } from './benchmarks.mjs'
import { guard } from './guard/guard.mjs'
import { load, machineNow } from './harness/machine.mjs'
import { paceOf } from './harness/pace.mjs'
import { installPeers } from './harness/peers.mjs'
import { linesOf } from './harness/table.mjs'
import { budgetTable, heldTo } from './report/budget.mjs'
import { writeReport } from './report/report.mjs'
import { KEPT } from './report/results.mjs'

const flag = /** @type {const} */ ({ type: 'boolean', default: false })
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string' },
    raise: { type: 'string' },
    quick: flag,
    json: flag,
    write: flag,
    lower: flag,
    where: flag,
  },
})

if (positionals.includes('guard')) await guard(values)
else await measure()

async function measure() {
  const chosen = chosenBenchmarks()
  if (values.write && (values.quick || positionals.length > 0)) throw new Error('--write keeps whole runs only')
  if (chosen.some(([, { peers }]) => peers)) installPeers()
  const pace = paceOf({ quick: values.quick, rounds: rounds() })

  const before = load()
  const machine = machineNow()
  say(`Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, load ${before.join(' ')}`)
  const results = []
  for (const [name, { about, run }] of chosen) {
    const begun = performance.now()
    const tables = await run(pace)
    const seconds = Math.round((performance.now() - begun) / 100) / 10
    results.push({ name, about, seconds, tables })
    say(`\n## ${name}: ${about} (${seconds} s)\n\n${tables.map(linesOf).join('\n\n')}`)
  }
  const taken = { machine, load: { before, after: load() }, quick: pace.quick, rounds: pace.rounds, results }
  if (values.json) console.log(JSON.stringify(taken))
  // A quick run is of other sizes.
  const held = pace.quick ? [] : heldTo(results)
  if (held.length > 0) say(`\n${linesOf(budgetTable(held))}`)
  say(
    `\nLoad at the end ${taken.load.after.join(' ')}. Above the number of cores, the figures are those of a busy machine.`,
  )
  if (!values.write) return
  writeFileSync(KEPT, `${JSON.stringify(taken, null, 2)}\n`)
  writeReport()
}

function chosenBenchmarks() {
  const all = Object.entries(benchmarks)
  const unknown = positionals.filter((word) => !all.some(([name]) => name.startsWith(word)))
  if (unknown.length > 0)
    throw new Error(`No benchmark "${unknown}": there are ${all.map(([name]) => name).join(', ')}, and guard`)
  return all.filter(([name]) => positionals.length === 0 || positionals.some((word) => name.startsWith(word)))
}

function rounds() {
  if (values.rounds === undefined) return undefined
  const given = Number(values.rounds)
  if (!Number.isSafeInteger(given) || given < 1) throw new Error(`"${values.rounds}" is no number of rounds`)
  return given
}

/** @param {string} text */
function say(text) {
  if (!values.json) console.log(text)
}
