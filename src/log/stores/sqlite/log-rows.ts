/** The rows of a session's log, as many as are to be held at once. */
import { type Columns, columns } from './columns.ts'
import type { Connection } from './driver.ts'
import type { StoredRow } from './rows/row.ts'

export interface Stretch {
  /** The first seq. */
  readonly from: number
  /** The seq after the last. */
  readonly to: number
}

/** Rows are given until one of these is reached, but one row in any case. */
export interface RowLimits {
  readonly rows: number
  readonly bytes: number
  readonly events: number
}

/** From the row that holds `from`, which need not be its first seq. */
const FROM_ROW = `session = ? AND first_seq >= coalesce(
  (SELECT max(first_seq) FROM log WHERE session = ? AND first_seq <= ?), 0)`
/** `length` of a blob is in the row's head: the body itself is not read. */
const LENGTHS = `SELECT last_seq, last_seq - first_seq + 1 AS events, length(body) AS bytes FROM log WHERE ${FROM_ROW} AND first_seq < ? ORDER BY first_seq LIMIT ?`
const BODIES = `SELECT first_seq, last_seq, encoding, body FROM log WHERE ${FROM_ROW} AND first_seq <= ? ORDER BY first_seq`

/** From the row that holds `from` on, those that begin before `to`; what comes after a hole is left out. */
export function logRows(
  connection: Connection,
  session: number,
  { from, to }: Stretch,
  limits: RowLimits,
): readonly StoredRow[] {
  const many = (sql: string, ...values: number[]): readonly Columns[] =>
    connection
      .statement(sql)
      .all(session, session, from, ...values)
      .map((row) => columns(connection.path, row))
  const end = lastWithin(limits, many(LENGTHS, to, limits.rows))
  return end === undefined ? [] : unbroken(many(BODIES, end).map(storedRow))
}

const storedRow = (row: Columns): StoredRow => ({
  first: row.number('first_seq'),
  last: row.number('last_seq'),
  encoding: row.number('encoding'),
  body: row.bytes('body'),
})

function lastWithin(limits: RowLimits, rows: readonly Columns[]): number | undefined {
  let [bytes, events] = [0, 0]
  let end: number | undefined
  for (const row of rows) {
    bytes += row.number('bytes')
    events += row.number('events')
    if (end !== undefined && (bytes > limits.bytes || events > limits.events)) break
    end = row.number('last_seq')
  }
  return end
}

/** The rows up to a hole, if there is one: what comes after it must not be shown. */
function unbroken(rows: readonly StoredRow[]): readonly StoredRow[] {
  const hole = rows.findIndex((row, i) => i > 0 && row.first !== (rows[i - 1]?.last ?? 0) + 1)
  return hole < 0 ? rows : rows.slice(0, hole)
}
