/**
 * Counts instead of timing: `npm run bench -- guard` fails when a turn, a step or a delta asks more of the disk, of the
 * worker thread or of the processor than `bench/guard.json` allows. `--lower` lowers what has become better,
 * `--raise REASON` raises what is above, too, and writes the reason beside it, `--where` names the functions that are
 * called most.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { alone, inFolder } from '../harness/alone.mjs'
import { linesOf } from '../harness/table.mjs'
import { failures, judge, rewritten } from './judge.mjs'

const FILE = fileURLToPath(new URL('../guard.json', import.meta.url))
const COLUMNS = { name: '', what: 'count', measured: 'measured', allowed: 'allowed', says: '' }

const WORDS = {
  fine: '',
  above: 'ABOVE',
  'well below': 'well below: lower it',
  'no reason': 'its allowance has NO REASON',
  'no allowance': 'has NO ALLOWANCE',
  'not counted': 'was NOT COUNTED',
}

/** @param {{ lower: boolean, raise?: string | undefined, where: boolean, json: boolean }} options */
export async function guard({ lower, raise, where, json }) {
  if (raise?.trim() === '') throw new Error('--raise wants a reason in words')
  const counted = await countAll()
  const figures = figuresOf(counted)
  /** @type {import('./judge.mjs').Allowances} */
  let allowances = JSON.parse(readFileSync(FILE, 'utf8'))
  if (lower || raise !== undefined) {
    allowances = rewritten(figures, allowances, raise)
    writeFileSync(FILE, `${JSON.stringify(allowances, null, 2)}\n`)
  }
  const verdicts = judge(figures, allowances)
  const title = `What one more asks, Node ${process.version}`
  if (json) console.log(JSON.stringify({ node: process.version, figures, verdicts }))
  else console.log(linesOf({ title, columns: COLUMNS, rows: verdicts.map(row) }))
  if (where) console.log(`\n${whereLines(counted).join('\n')}`)
  if (verdicts.some(({ says }) => says === 'well below'))
    console.error('Some are well below what is allowed: `npm run bench -- guard --lower` writes them down.')
  const failed = failures(verdicts)
  if (failed.length === 0) return
  console.error(
    `${failed.length} of ${verdicts.length} counts are not as bench/guard.json has them. What must be more is raised by`,
  )
  console.error('`npm run bench -- guard --raise "…"`, with the reason; `-- guard --where` says what is called.')
  process.exitCode = 1
}

/** By store and unit. @typedef {Record<string, Record<string, import('../processes/count.mjs').Counted>>} Counted */

async function countAll() {
  /** @type {Counted} */
  const all = {}
  for (const store of ['memory', 'sqlite'])
    all[store] = /** @type {Counted[string]} */ (await inFolder((folder) => alone('count', { folder, store })))
  return all
}

/** @param {Counted} counted @returns {import('./judge.mjs').Figures} */
const figuresOf = (counted) => mapped(counted, (units) => mapped(units, ({ counts }) => counts))

/** @param {Counted} counted */
const whereLines = (counted) =>
  Object.entries(counted).flatMap(([store, units]) =>
    Object.entries(units).flatMap(([unit, { where }]) => [
      `${unit}, ${store}`,
      ...where.map(([name, calls]) => `${String(calls).padStart(10)}  ${name}`),
    ]),
  )

/** @template T, U @param {Readonly<Record<string, T>>} of @param {(value: T) => U} map @returns {Record<string, U>} */
const mapped = (of, map) => Object.fromEntries(Object.entries(of).map(([key, value]) => [key, map(value)]))

/** @param {import('./judge.mjs').Verdict} verdict @returns {import('../harness/table.mjs').Row} */
const row = ({ store, unit, what, measured, allowed, says }) => ({
  name: `${unit}, ${store}`,
  what,
  measured: measured ?? '',
  allowed: allowed ?? '',
  says: WORDS[says],
})
