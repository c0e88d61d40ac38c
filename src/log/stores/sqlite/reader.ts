/**
 * The main thread's reading connection. It never writes and never holds a transaction open: a log is read in pages of
 * bounded bytes, each its own query, so a slow reader stops nobody from writing or from shortening the write-ahead log.
 */
import type { SessionEvent } from '../../events.ts'
import type {
  Checkpoint,
  CommandOutcome,
  PostedCommand,
  SessionHeader,
  SessionSummary,
  StoredPage,
} from '../../store.ts'
import { type Columns, columns } from './columns.ts'
import { type Connection, storeFailure } from './driver.ts'
import { logRows, type RowLimits, type Stretch } from './log-rows.ts'
import { type StoredRow, unpackStored } from './rows/row.ts'

/** A page of the log is closed at whichever comes first. */
const PAGE: RowLimits = { rows: 512, bytes: 256 * 1024, events: 2_048 }
/** Without deltas a page holds more events. */
const WIDE_PAGE: RowLimits = { ...PAGE, events: 1 << 20 }
/** Of rows that are not unpacked. */
const ROWS: RowLimits = { rows: 512, bytes: 1024 * 1024, events: Number.POSITIVE_INFINITY }

/** What a session is at the time of looking. */
export interface Found {
  readonly session: number
  readonly head: number
  readonly epoch: number
  readonly header: SessionHeader
}

/** A line of the list, with what is needed to find out whether its owner lives and to ask for the next page. */
export interface Listed {
  readonly session: number
  readonly epoch: number
  readonly owner: string | undefined
  readonly summary: Omit<SessionSummary, 'owned'>
}

export interface ListFilter {
  readonly owed?: boolean
  readonly dueBefore?: number
}

/** A checkpoint as the table has it. */
export interface StoredCheckpoint extends Checkpoint {
  /** Of the rows before `seq`. */
  readonly digest: string
  /** Of the body. */
  readonly checksum: number
}

export interface Owned {
  readonly session: number
  readonly epoch: number
  /** As the file has it; undefined once it was given back. */
  readonly owner: string | undefined
}

export interface Posted {
  /** Its place in the mailbox. */
  readonly n: number
  readonly command: PostedCommand
}

/** Synchronous queries. Each throws StoreFailure. */
export interface Reader {
  find(name: string): Found | undefined
  head(session: number): number | undefined
  /** Events from `from` on, at most one page and never past `to`; empty when the log has none there. */
  page(session: number, from: number, to: number): readonly SessionEvent[]
  /** The same without deltas, save the one that ends the log at `to`; a row each, and empty in the same case. */
  stretch(session: number, from: number, to: number): readonly StoredPage[]
  /** Rows from the one that holds `from` on, about a megabyte of them. */
  rows(session: number, stretch: Stretch): readonly StoredRow[]
  checkpoint(session: number): StoredCheckpoint | undefined
  list(filter: ListFilter, after: Listed | undefined): readonly Listed[]
  /** Commands without an outcome, after place `n`, at most so many. */
  posted(session: number, n: number, most: number): readonly Posted[]
  outcome(session: number, id: string): CommandOutcome | undefined
  /** Changes when anyone else has committed. */
  version(): number
  /** Grows when anyone has posted, and may shrink when mail is cleared. */
  lastPosted(): number
  /** The sessions for which commands wait that came after place `n`. */
  postedSince(n: number): readonly number[]
  /** The last epoch given out. */
  lastEpoch(): number
  /** The sessions that got an owner after that epoch. */
  ownedSince(epoch: number): readonly Owned[]
  readonly connection: Connection
}

/** A reader over `connection`, whose schema was checked. */
export function createReader(connection: Connection): Reader {
  const { path } = connection
  const one = (sql: string, ...values: (string | number)[]): Columns | undefined => {
    const row = connection.statement(sql).get(...values)
    return row && columns(path, row)
  }
  const many = (sql: string, ...values: (string | number)[]): readonly Columns[] =>
    connection
      .statement(sql)
      .all(...values)
      .map((row) => columns(path, row))
  const rows = (session: number, stretch: Stretch, limits: RowLimits): readonly StoredRow[] =>
    logRows(connection, session, stretch, limits)
  const json = (text: string, what: string): unknown => {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw storeFailure('damaged', path, `${what} is not JSON`, cause)
    }
  }

  return {
    connection,
    find(name) {
      const row = one('SELECT id, head, epoch, header FROM sessions WHERE name = ?', name)
      if (row === undefined) return undefined
      const header = json(row.text('header'), `the header of ${name}`) as SessionHeader
      return { session: row.number('id'), head: row.number('head'), epoch: row.number('epoch'), header }
    },
    head: (session) => one('SELECT head FROM sessions WHERE id = ?', session)?.number('head'),
    page: (session, from, to) => eventsOf(path, rows(session, { from, to }, PAGE), { from, to }),
    stretch(session, from, to) {
      // A row that ends before `from` says that `from` is in none.
      const found = rows(session, { from, to }, WIDE_PAGE).filter(({ last }) => last >= from)
      return found.map((row) => storedPage(path, row, { from, to }))
    },
    rows: (session, stretch) => rows(session, stretch, ROWS),
    checkpoint(session) {
      const row = one('SELECT seq, digest, checksum, body FROM checkpoints WHERE session = ?', session)
      return (
        row && {
          seq: row.number('seq'),
          digest: row.text('digest'),
          checksum: row.number('checksum'),
          body: row.bytes('body'),
        }
      )
    },
    list: (filter, after) => many(listSql(filter), ...listValues(filter, after)).map(listed),
    posted: (session, n, most) =>
      many(
        'SELECT n, command FROM mailbox WHERE session = ? AND n > ? AND outcome IS NULL ORDER BY n LIMIT ?',
        session,
        n,
        most,
      ).map((row) => ({ n: row.number('n'), command: json(row.text('command'), 'a posted command') as PostedCommand })),
    outcome(session, id) {
      const text = one('SELECT outcome FROM mailbox WHERE session = ? AND id = ?', session, id)?.maybeText('outcome')
      return text === undefined ? undefined : (json(text, `the outcome of ${id}`) as CommandOutcome)
    },
    version: () => one('PRAGMA data_version')?.number('data_version') ?? 0,
    lastPosted: () => one('SELECT max(n) AS n FROM mailbox')?.maybeNumber('n') ?? 0,
    postedSince: (n) =>
      many('SELECT DISTINCT session FROM mailbox WHERE n > ? AND outcome IS NULL', n).map((row) =>
        row.number('session'),
      ),
    lastEpoch: () => one("SELECT value FROM meta WHERE key = 'epoch'")?.number('value') ?? 0,
    ownedSince: (epoch) =>
      many('SELECT id, epoch, owner FROM sessions WHERE epoch > ?', epoch).map((row) => ({
        session: row.number('id'),
        epoch: row.number('epoch'),
        owner: row.maybeText('owner'),
      })),
  }
}

/** What lies before a damaged row is shown; the page that begins with it says that it is damaged. */
function eventsOf(path: string, rows: readonly StoredRow[], stretch: Stretch): readonly SessionEvent[] {
  const events: SessionEvent[] = []
  for (const row of rows) {
    try {
      for (const event of unpackStored(path, row, stretch).events) events.push(event)
    } catch (error) {
      if (events.length === 0) throw error
      break
    }
  }
  return events
}

/** Of the deltas only the one that ends the log. */
function storedPage(path: string, row: StoredRow, { from, to }: Stretch): StoredPage {
  const first = Math.max(row.first, from)
  const unpacked = unpackStored(path, row, { from, to, deltasFrom: to - 1 })
  return { first, count: Math.min(row.last + 1, to) - first, ...unpacked }
}

function listSql({ owed, dueBefore }: ListFilter): string {
  const wanted = [owed === true ? 'owed = 1' : '', dueBefore === undefined ? '' : 'wake_at < ?'].filter(Boolean)
  return `SELECT id, name, created_at, updated_at, head, epoch, owner, turns, state, waiting_for, wake_at, owed, last_reason,
      json_extract(header, '$.parentSession') AS parent
    FROM sessions WHERE (created_at, id) > (?, ?) ${wanted.length > 0 ? `AND (${wanted.join(' OR ')})` : ''}
    ORDER BY created_at, id LIMIT 200`
}

function listValues({ dueBefore }: ListFilter, after: Listed | undefined): number[] {
  const place = after === undefined ? [-Number.MAX_VALUE, 0] : [after.summary.createdAt, after.session]
  return dueBefore === undefined ? place : [...place, dueBefore]
}

function listed(row: Columns): Listed {
  const waitingFor = row.maybeText('waiting_for')
  const wakeAt = row.maybeNumber('wake_at')
  const lastReason = row.maybeText('last_reason')
  const parentSession = row.maybeText('parent')
  const state = row.text('state')
  return {
    session: row.number('id'),
    epoch: row.number('epoch'),
    owner: row.maybeText('owner'),
    summary: {
      id: row.text('name'),
      createdAt: row.number('created_at'),
      updatedAt: row.number('updated_at'),
      head: row.number('head'),
      turns: row.number('turns'),
      state: state === 'running' || state === 'waiting' ? state : 'idle',
      owed: row.number('owed') === 1,
      ...(waitingFor === 'approval' || waitingFor === 'retry' ? { waitingFor } : {}),
      ...(wakeAt === undefined ? {} : { wakeAt }),
      ...(lastReason === undefined ? {} : { lastReason }),
      ...(parentSession === undefined ? {} : { parentSession }),
    },
  }
}
