/**
 * `npm run mutate [-- folder or file ...] [--tests=folder] [--stryker-option ...]`: mutants of src/machines and src/log,
 * and the share of them that the tests kill, by folder. Takes long; runs at the lowest priority.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import config from '../stryker.config.mjs'

/** @typedef {{ readonly status: string }} Mutant */
/** @typedef {{ readonly files: { readonly [file: string]: { readonly mutants: readonly Mutant[] } } }} Report */
/** @typedef {{ killed: number, endless: number, survived: number, uncovered: number }} Count */

const TESTS = '--tests='
const root = fileURLToPath(new URL('..', import.meta.url))
process.chdir(root)
setPriority(constants.priority.PRIORITY_LOW)

const given = process.argv.slice(2)
const places = given.filter((each) => !each.startsWith('--'))
const tests = given.find((each) => each.startsWith(TESTS))?.slice(TESTS.length)
const options = given.filter((each) => each.startsWith('--') && !each.startsWith(TESTS))
const left = config.mutate.filter((each) => each.startsWith('!'))
const chosen = places.map((place) => (isFolder(place) ? `${place.replace(/\/$/, '')}/**/*.ts` : place))

const stryker = 'node_modules/@stryker-mutator/core/bin/stryker.js'
const mutate = chosen.length > 0 ? ['--mutate', [...chosen, ...left].join(',')] : []
const { status } = spawnSync(process.execPath, [stryker, 'run', ...mutate, ...options], {
  stdio: 'inherit',
  env: { ...process.env, ...(tests === undefined ? {} : { PAWL_MUTATE_TESTS: tests }) },
})
if (status === 0) tell(JSON.parse(readFileSync(config.jsonReporter.fileName, 'utf8')))
process.exitCode = status ?? 1

/** @param {string} place */
function isFolder(place) {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** @param {Report} report */
function tell({ files }) {
  /** @type {Map<string, Count>} */
  const folders = new Map()
  for (const [file, { mutants }] of Object.entries(files)) {
    const count = folders.get(dirname(file)) ?? { killed: 0, endless: 0, survived: 0, uncovered: 0 }
    folders.set(dirname(file), count)
    for (const mutant of mutants) add(count, mutant)
  }
  for (const [folder, { killed, endless, survived, uncovered }] of [...folders].sort()) {
    const all = killed + survived + uncovered
    const share = all === 0 ? 'no mutants' : `${((100 * killed) / all).toFixed(1)} % of ${all} killed`
    console.log(
      `${folder}: ${share} (${endless} by running out of time), ${survived} survived, ${uncovered} reached by no test`,
    )
  }
}

/** One that a test fails on, or that never ends, is killed. @param {Count} count @param {Mutant} mutant */
function add(count, { status }) {
  if (status === 'Killed' || status === 'Timeout') count.killed += 1
  if (status === 'Timeout') count.endless += 1
  if (status === 'Survived') count.survived += 1
  if (status === 'NoCoverage') count.uncovered += 1
}
