/** What a run leaves behind, as `--json` prints it and `bench/results.json` keeps it. */
import { readFileSync } from 'node:fs'

/**
 * @typedef {object} Results
 * @property {import('../harness/machine.mjs').Machine} machine
 * @property {{ before: number[], after: number[] }} load Processes that wanted a core, over 1, 5 and 15 minutes.
 * @property {boolean} quick
 * @property {number} rounds
 * @property {readonly Result[]} results
 */

/** @typedef {{ name: string, about: string, seconds: number, tables: readonly import('../harness/table.mjs').Table[] }} Result */

/** The run that docs/benchmarks.md tells of. */
export const KEPT = new URL('../results.json', import.meta.url)

/** @param {string | URL} file @returns {Results} */
export const readResults = (file) => JSON.parse(readFileSync(file, 'utf8'))

/**
 * One figure; NaN where it was not taken.
 * @param {readonly Result[]} results
 * @param {{ table: string, row: (row: import('../harness/table.mjs').Row, i: number) => boolean, key: string }} at
 */
export function figure(results, { table, row, key }) {
  const found = results.flatMap(({ tables }) => tables).find(({ id }) => id === table)
  const value = found?.rows.find(row)?.[key]
  return typeof value === 'number' ? value : Number.NaN
}

/** @param {string} name */
export const named = (name) => (/** @type {import('../harness/table.mjs').Row} */ row) => row.name === name

/** @param {number} n from 0 */
export const nth = (n) => (/** @type {import('../harness/table.mjs').Row} */ _row, /** @type {number} */ i) => i === n
