/** What a benchmark is, and its results as tables to read. */

/**
 * One benchmark is one file of benchmarks/ that exports one of these, and a line in run.mjs.
 * @typedef {object} Benchmark
 * @property {string} about What is measured, in a sentence.
 * @property {(options: { rounds: number }) => Promise<readonly Table[]>} run
 */

/** @typedef {Readonly<Record<string, number | string>>} Row */

/**
 * @typedef {object} Table
 * @property {string} title
 * @property {Readonly<Record<string, string>>} columns Key in a row to the words above it.
 * @property {readonly Row[]} rows
 */

/** @param {Table} table */
export function linesOf({ title, columns, rows }) {
  const cells = [Object.values(columns), ...rows.map((row) => Object.keys(columns).map((key) => shown(row[key])))]
  const widths = Object.keys(columns).map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)))
  const lines = cells.map((line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))),
  )
  return [title, ...lines.map((line) => `  ${line.join('  ').trimEnd()}`)].join('\n')
}

/** @param {number | string | undefined} value */
const shown = (value) => (typeof value === 'number' ? value.toLocaleString('en-US') : (value ?? ''))
