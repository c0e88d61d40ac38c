/** The files that were played, row by row, as a table. */

/**
 * @typedef {{ row: string, title: string, kind: string, path: string, ok: boolean, splits: number, http: boolean, problem?: string }} Played
 * @typedef {{ row: string, meaning: string, ok: boolean, splits: number, files: Played[] }} Row
 */

/**
 * @param {readonly Played[]} played
 * @param {Readonly<Record<string, string>>} meanings
 * @returns {Row[]}
 */
export function rowsOf(played, meanings) {
  return Object.entries(meanings).flatMap(([row, meaning]) => {
    const files = played.filter((file) => file.row === row)
    if (files.length === 0) return []
    const splits = files.reduce((sum, file) => sum + file.splits, 0)
    return [{ row, meaning, ok: files.every(({ ok }) => ok), splits, files }]
  })
}

/** @param {readonly Row[]} rows */
export function totalOf(rows) {
  const files = rows.flatMap((row) => row.files)
  return {
    rows: rows.length,
    files: files.length,
    splits: files.reduce((sum, { splits }) => sum + splits, 0),
    http: files.filter(({ http }) => http).length,
    elsewhere: files.filter(({ kind }) => kind === 'elsewhere').length,
    failed: files.filter(({ ok }) => !ok).length,
  }
}

/**
 * @param {readonly Row[]} rows
 * @param {number} width
 */
export function tableOf(rows, width) {
  const room = Math.max(40, width - 36)
  const lines = rows.flatMap(({ row, meaning, ok, splits, files }) => [
    cells(row, `${files.length}`, splits === 0 ? '-' : `${splits}`, ok ? 'ok' : 'FAILED', clip(meaning, room)),
    ...files.filter((file) => !file.ok).map(({ path, problem }) => `    tests/corpus/${path}\n    ${problem}`),
  ])
  const { files, http, elsewhere, failed, ...total } = totalOf(rows)
  const sum = `${total.rows} rows, ${files} files (${http} over HTTP, ${elsewhere} held by a test elsewhere), ${total.splits} splits: ${failed === 0 ? 'all as expected' : `${failed} FAILED`}`
  return [cells('row', 'files', 'splits', 'result', 'what goes wrong where it is not held'), ...lines, '', sum].join(
    '\n',
  )
}

/** @param {string} row @param {string} files @param {string} splits @param {string} result @param {string} meaning */
const cells = (row, files, splits, result, meaning) =>
  `${row.padEnd(8)}${files.padStart(5)}${splits.padStart(9)}  ${result.padEnd(8)}${meaning}`

/** @param {string} text @param {number} room */
const clip = (text, room) => (text.length <= room ? text : `${text.slice(0, room - 1)}…`)
