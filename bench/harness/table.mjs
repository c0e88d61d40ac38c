/** What a benchmark is, and its results as tables to read. */

/**
 * One benchmark is one file of benchmarks/ that exports one of these, and a line in benchmarks.mjs.
 * @typedef {object} Benchmark
 * @property {string} about What is measured, in a sentence.
 * @property {boolean} [peers] It needs what bench/package.json names.
 * @property {(pace: import('./pace.mjs').Pace) => Promise<readonly Table[]>} run
 */

/** @typedef {Readonly<Record<string, number | string>>} Row */

/**
 * @typedef {object} Table
 * @property {string} id What the budget and the picture find it by.
 * @property {string} title
 * @property {Readonly<Record<string, string>>} columns Key in a row to the words above it.
 * @property {readonly Row[]} rows
 * @property {string} [note] What a reader must know who reads only this.
 */

/** As Markdown, its columns padded so that it is a table without being rendered. @param {Omit<Table, 'id'>} table */
export function linesOf({ title, columns, rows, note }) {
  const keys = Object.keys(columns)
  const cells = [Object.values(columns), ...rows.map((row) => keys.map((key) => shown(row[key])))]
  const widths = keys.map((_, i) => Math.max(3, ...cells.map((line) => line[i]?.length ?? 0)))
  const right = keys.map((key) => rows.every((row) => typeof (row[key] ?? 0) === 'number'))
  const line = (/** @type {readonly string[]} */ of) =>
    `| ${of.map((cell, i) => (right[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0))).join(' | ')} |`
  const rule = widths.map((width, i) => (right[i] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)))
  const [head = [], ...body] = cells
  return [
    `**${title}**`,
    '',
    line(head),
    line(rule),
    ...body.map(line),
    ...(note === undefined ? [] : ['', note]),
  ].join('\n')
}

/** @param {number | string | undefined} value */
export const shown = (value) => (typeof value === 'number' ? number(value) : (value ?? ''))

/** Three digits that matter, and none lost of a whole number. @param {number} value */
function number(value) {
  if (!Number.isFinite(value)) return ''
  const digits = value === 0 || Number.isInteger(value) ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
