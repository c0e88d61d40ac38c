/**
 * What a change has to pass after `npm ci`: the tests, the checks, and the counts of what a step takes. The last line
 * counts the tests; checks that fail are one more failure, and so are counts above their allowance and a run that failed
 * beside its tests.
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { countsOf, summary } from './summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const report = fileURLToPath(new URL('../node_modules/.cache/test-report.json', import.meta.url))

const npm = (/** @type {string[]} */ ...words) =>
  spawnSync('npm', words, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }).status === 0

rmSync(report, { force: true })
const tested = npm('test', '--', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`)
const checked = npm('run', 'check')
const guarded = npm('run', 'bench', '--', 'guard')
const counts = countsOf(report)
const beside = (tested || counts.failed > 0 ? 0 : 1) + (checked ? 0 : 1) + (guarded ? 0 : 1)
console.log(summary({ ...counts, failed: counts.failed + beside }))
process.exitCode = tested && checked && guarded ? 0 : 1
