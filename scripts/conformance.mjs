/**
 * Plays the conformance corpus against the adapters, every small body cut at every byte, and prints what it came to.
 * `npm run conformance [-- --only SSE-01] [--json]`; exits 1 on a mismatch.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { rowsOf, tableOf, totalOf } from './conformance/table.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({ options: { only: { type: 'string' }, json: { type: 'boolean' } } })
const known = JSON.parse(readFileSync(join(root, 'tests/corpus/rows.json'), 'utf8'))

if (values.only !== undefined && !Object.hasOwn(known, values.only)) {
  console.error(`There is no row "${values.only}": the rows are in tests/corpus/rows.json`)
  process.exit(1)
}
const { played, output, status } = play(values.only)
const rows = rowsOf(played, known)
if (values.json) console.log(JSON.stringify({ rows, total: totalOf(rows) }, null, 2))
else console.log(tableOf(rows, process.stdout.columns ?? 120))
const failed = status !== 0 || rows.length === 0 || rows.some(({ ok }) => !ok)
// What is wrong beside the files, such as a row without one, only the tests say.
if (failed && rows.every(({ ok }) => ok)) console.error(output)
process.exitCode = failed ? 1 : 0

/**
 * Node 20 runs no TypeScript, so the player runs as a test.
 * @param {string | undefined} only
 * @returns {{ played: import('./conformance/table.mjs').Played[], output: string, status: number }}
 */
function play(only) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-conformance-'))
  const report = join(folder, 'report.json')
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const env = { ...process.env, PAWL_CONFORMANCE_REPORT: report, ...(only && { PAWL_CONFORMANCE_ONLY: only }) }
  try {
    const ran = spawnSync(
      process.execPath,
      [vitest, 'run', '--reporter=dot', 'tests/services/adapters/conformance.test.ts'],
      { cwd: root, encoding: 'utf8', env, maxBuffer: 2 ** 28 },
    )
    const output = `${ran.stdout}${ran.stderr}`
    return { played: reportAt(report), output, status: ran.status ?? 1 }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {string} file */
function reportAt(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    // Nothing was played: the run failed before, and its output says why.
    return []
  }
}
