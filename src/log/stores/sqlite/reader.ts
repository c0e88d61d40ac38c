/**
 * The main thread's reading connection. It never writes and never holds a transaction open: a log is read in pages of
 * bounded bytes, each its own query, so a slow reader stops nobody from writing or from shortening the write-ahead log.
 */
import type { SessionEvent } from '../../events.ts'
import type { CommandOutcome, PostedCommand, SessionHeader, SessionSummary, StoredPage } from '../../store.ts'
import { type Columns, columns } from './columns.ts'
import { type Connection, storeFailure } from './driver.ts'
import { type StoredRow, unpackStored } from './rows/row.ts'
import type { Wanted } from './rows/unpacker.ts'

/** A page of the log is closed at whichever comes first. */
const PAGE = { rows: 512, bytes: 256 * 1024, events: 2_048 }

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
  list(filter: ListFilter, after: Listed | undefined): readonly Listed[]
  /** Commands without an outcome, after place `n`, at most so many. */
  posted(session: number, n: number, most: number): readonly Posted[]
  outcome(session: number, id: string): CommandOutcome | undefined
  /** Changes when anyone else has committed. */
  version(): number
  /** Changes when anyone has posted. */
  lastPosted(): number
  /** The last epoch given out. */
  lastEpoch(): number
  ownedBy(session: number): { readonly epoch: number; readonly owner: string | undefined } | undefined
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
  /** From the one that holds `from` to the one that ends at `last`, without what comes after a hole. */
  const rows = (session: number, from: number, last: number): readonly StoredRow[] =>
    unbroken(many(BODIES, session, session, from, last).map(storedRow))
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
    page(session, from, to) {
      const end = pageEnd(many(LENGTHS, session, session, from, to, PAGE.rows))
      return end === undefined ? [] : eventsOf(path, rows(session, from, end), { from, to })
    },
    stretch(session, from, to) {
      const end = pageEnd(many(LENGTHS, session, session, from, to, PAGE.rows), WIDE)
      if (end === undefined) return []
      // A row that ends before `from` says that `from` is in none.
      const found = rows(session, from, end).filter(({ last }) => last >= from)
      return found.map((row) => storedPage(path, row, { from, to }))
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
    lastEpoch: () => one("SELECT value FROM meta WHERE key = 'epoch'")?.number('value') ?? 0,
    ownedBy(session) {
      const row = one('SELECT epoch, owner FROM sessions WHERE id = ?', session)
      return row && { epoch: row.number('epoch'), owner: row.maybeText('owner') }
    },
  }
}

/** From the row that holds `from`, which need not be its first seq. */
const FROM_ROW = `session = ? AND first_seq >= coalesce(
  (SELECT max(first_seq) FROM log WHERE session = ? AND first_seq <= ?), 0)`
/** `length` of a blob is in the row's head: the body itself is not read. */
const LENGTHS = `SELECT last_seq, last_seq - first_seq + 1 AS events, length(body) AS bytes FROM log WHERE ${FROM_ROW} AND first_seq < ? ORDER BY first_seq LIMIT ?`
const BODIES = `SELECT first_seq, last_seq, encoding, body FROM log WHERE ${FROM_ROW} AND first_seq <= ? ORDER BY first_seq`

const storedRow = (row: Columns): StoredRow => ({
  first: row.number('first_seq'),
  last: row.number('last_seq'),
  encoding: row.number('encoding'),
  body: row.bytes('body'),
})

/** Without deltas a page holds more events. */
const WIDE = 1 << 20

function pageEnd(rows: readonly Columns[], most: number = PAGE.events): number | undefined {
  let [bytes, events] = [0, 0]
  let end: number | undefined
  for (const row of rows) {
    bytes += row.number('bytes')
    events += row.number('events')
    if (end !== undefined && (bytes > PAGE.bytes || events > most)) break
    end = row.number('last_seq')
  }
  return end
}

/** The rows up to a hole, if there is one: what comes after it must not be shown. */
function unbroken(rows: readonly StoredRow[]): readonly StoredRow[] {
  const hole = rows.findIndex((row, i) => i > 0 && row.first !== (rows[i - 1]?.last ?? 0) + 1)
  return hole < 0 ? rows : rows.slice(0, hole)
}

type Stretch = Pick<Wanted, 'from' | 'to'>

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
