/**
 * Settling a log: its many small rows become few large ones, which never change again, and a digest is chained over them.
 * Each request does a bounded part of it, in a transaction of its own, so that other sessions' commits wait little.
 */
import { type Chain, chained, checksumOf } from './checkpoint.ts'
import { columns } from './columns.ts'
import type { Connection } from './driver.ts'
import { logRows, type RowLimits } from './log-rows.ts'
import type { KeepRequest, Reply, RestRequest, SettleRequest } from './protocol.ts'
import { LARGE, mergeRows } from './rows/merge.ts'
import type { StoredRow } from './rows/row.ts'

/** Of one request. */
const PART: RowLimits = { rows: 512, bytes: 256 * 1024, events: 4_096 }

/** So many small rows at the end of a log are left as they are: they would be merged again with the next ones. */
export const FEW = 16

const isSmall = ({ body }: StoredRow): boolean => body.byteLength < LARGE

interface Part {
  readonly rows: readonly StoredRow[]
  /** They reach `seq`. */
  readonly whole: boolean
  readonly chain: Chain
}

/** Settles the next part of what lies before `seq`, if there is more of it than keeping a checkpoint does by the way. */
export function settle(connection: Connection, request: SettleRequest, start: Chain): Reply {
  const part = nextPart(connection, request, start)
  if (part === undefined) return { kind: 'done' }
  if (part.whole) return { kind: 'settled', chain: part.chain, more: false }
  const merged = mergeSmall(connection, request, part)
  // Small rows at the end are merged with those that come next, once there are fewer of them.
  const settled = merged.length < part.rows.length ? merged.slice(0, endOfLarge(merged)) : merged
  const chain = chained(part.chain, settled)
  return chain === undefined ? { kind: 'done' } : { kind: 'settled', chain, more: true }
}

/** Keeps the checkpoint, if it ends where a row does. What lies before it was settled but for a part. */
export function keep(connection: Connection, request: KeepRequest, start: Chain): Reply {
  const part = nextPart(connection, request, start)
  if (part?.whole !== true) return { kind: 'done' }
  const rows = mergeSmall(connection, request, part)
  const settled = chained(part.chain, rows.slice(0, endOfLarge(rows)))
  const covered = chained(part.chain, rows)
  if (settled === undefined || covered === undefined) return { kind: 'done' }
  const { session, seq, body } = request
  connection
    .statement(
      `INSERT OR REPLACE INTO checkpoints (session, seq, digest, settled_seq, settled_digest, checksum, body)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(session, seq, covered.digest, settled.seq, settled.digest, checksumOf(body), body)
  return { kind: 'done' }
}

/** Puts the small rows at the end of a log together, a bounded part of them. What a checkpoint covers stays as it is. */
export function rest(connection: Connection, request: RestRequest): Reply {
  const from = firstSmall(connection, request.session)
  const rows =
    from === undefined ? [] : logRows(connection, request.session, { from, to: Number.MAX_SAFE_INTEGER }, PART)
  mergeSmall(connection, request, { rows, whole: true })
  return { kind: 'done' }
}

/** The first seq of the small rows at the end of a log that no checkpoint covers. */
function firstSmall(connection: Connection, session: number): number | undefined {
  const rows = connection
    .statement(
      `SELECT first_seq, length(body) AS bytes FROM log
       WHERE session = ? AND first_seq >= coalesce((SELECT seq FROM checkpoints WHERE session = ?), 0)
       ORDER BY first_seq DESC LIMIT ?`,
    )
    .all(session, session, PART.rows)
    .map((row) => columns(connection.path, row))
  const large = rows.findIndex((row) => row.number('bytes') >= LARGE)
  return (large < 0 ? rows : rows.slice(0, large)).at(-1)?.number('first_seq')
}

/** Undefined where `seq` is in the middle of a row, or the log has a hole. */
function nextPart(connection: Connection, request: SettleRequest | KeepRequest, start: Chain): Part | undefined {
  const { session, seq } = request
  const chain = request.chain ?? lastChain(connection, request) ?? start
  if (chain.seq === seq) return { rows: [], whole: true, chain }
  const rows = logRows(connection, session, { from: chain.seq, to: seq }, PART)
  const last = rows.at(-1)
  if (last === undefined || rows[0]?.first !== chain.seq || last.last >= seq) return undefined
  return { rows, whole: last.last + 1 === seq, chain }
}

/** Where the last checkpoint left off. */
function lastChain(connection: Connection, { session, seq }: SettleRequest | KeepRequest): Chain | undefined {
  const row = connection.statement('SELECT settled_seq, settled_digest FROM checkpoints WHERE session = ?').get(session)
  if (row === undefined) return undefined
  const found = columns(connection.path, row)
  const settled = found.number('settled_seq')
  return settled <= seq ? { seq: settled, digest: found.text('settled_digest') } : undefined
}

/** How many of `rows` come before the small ones at their end. */
const endOfLarge = (rows: readonly StoredRow[]): number => rows.findLastIndex((row) => !isSmall(row)) + 1

/** Puts runs of small rows together, where there are more than a few. The rows as they are then. */
function mergeSmall(
  connection: Connection,
  { session, epoch }: { readonly session: number; readonly epoch: number },
  { rows, whole }: Pick<Part, 'rows' | 'whole'>,
): readonly StoredRow[] {
  if (whole && rows.filter(isSmall).length <= FEW) return rows
  return runsOf(rows).flatMap((run) => {
    const merged = run.length > 1 && run.every(isSmall) ? merge(connection.path, run) : run
    if (merged !== run) replaceRows(connection, { session, epoch }, run, merged)
    return merged
  })
}

/** Neighbours of one kind, small or large. */
function runsOf(rows: readonly StoredRow[]): readonly (readonly StoredRow[])[] {
  const runs: StoredRow[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    const before = run?.at(-1)
    if (run !== undefined && before !== undefined && isSmall(before) === isSmall(row)) run.push(row)
    else runs.push([row])
  }
  return runs
}

function merge(path: string, rows: readonly StoredRow[]): readonly StoredRow[] {
  try {
    const merged = mergeRows(path, rows)
    return merged.length < rows.length ? merged : rows
  } catch {
    // A row that is damaged, or of a later version, stays as it is: whoever reads the log is told.
    return rows
  }
}

function replaceRows(
  connection: Connection,
  { session, epoch }: { readonly session: number; readonly epoch: number },
  rows: readonly StoredRow[],
  merged: readonly StoredRow[],
): void {
  const [from, to] = [rows[0]?.first ?? 0, rows.at(-1)?.first ?? 0]
  connection.statement('DELETE FROM log WHERE session = ? AND first_seq >= ? AND first_seq <= ?').run(session, from, to)
  const insert = connection.statement(
    'INSERT INTO log (session, first_seq, last_seq, epoch, encoding, body) VALUES (?, ?, ?, ?, ?, ?)',
  )
  for (const { first, last, encoding, body } of merged) insert.run(session, first, last, epoch, encoding, body)
}
