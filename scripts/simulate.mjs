/**
 * Plays random schedules, of the chart alone and of whole agents, and prints what they came to.
 * `npm run simulate -- --seeds 2000 [--from N] [--seed N] [--tape WORD] [--minutes M]`
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
const FILES = ['tests/machines/simulator.test.ts', 'tests/agent/simulator.test.ts']

const text = /** @type {const} */ ({ type: 'string' })
const { values } = parseArgs({ options: { seeds: text, from: text, seed: text, tape: text, minutes: text } })

/** @type {Record<string, string>} */
const asked = {}
for (const [option, value] of Object.entries(values)) asked[`PAWL_${option.toUpperCase()}`] = value
if (values.seeds === undefined && values.seed === undefined && values.tape === undefined) asked.PAWL_SEEDS = '2000'

// Only whole agents are played from tapes.
const files = values.tape === undefined ? FILES : FILES.slice(1)
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--disable-console-intercept', '--reporter=dot', ...files],
  { cwd: root, stdio: 'inherit', env: { ...process.env, ...asked } },
)
process.exitCode = status ?? 1
