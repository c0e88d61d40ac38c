/**
 * What each request does to the database, inside a transaction its caller has begun. A request that is refused is found
 * out by query before anything is written, so it leaves the other requests of its group unharmed.
 */
import { type Batch, rowBodies } from './batch.ts'
import { chainStart } from './checkpoint.ts'
import { type Columns, columns } from './columns.ts'
import type { Connection } from './driver.ts'
import { clearMail, takeCommands } from './mailbox.ts'
import { holdOwner, type OwnerLock, ownerLives } from './owners.ts'
import type { AppendRequest, KeepRequest, Reply, Request, RestRequest, SettleRequest } from './protocol.ts'
import { keep, rest, settle } from './settling.ts'

/** The writing connection with what this store instance owns. */
export interface Ledger {
  readonly connection: Connection
  /** This instance's lock; taken with its first acquire. */
  owner: OwnerLock | undefined
  /** The sessions this instance owns, with their epochs. */
  readonly held: Map<number, number>
  /** How to make `held` as it was, should the transaction fail. */
  readonly undo: (() => void)[]
}

/** `again`: a commit that held this request failed, so it may already be in the database. */
export function perform(ledger: Ledger, request: Request, again: boolean): Reply {
  switch (request.kind) {
    case 'acquire':
      return acquire(ledger, request)
    case 'append':
      return append(ledger, request, again)
    case 'release':
      return release(ledger, request)
    case 'post':
      return post(ledger, request)
    case 'delete':
      return remove(ledger, request, again)
    case 'settle':
    case 'keep':
    case 'rest':
      return settling(ledger, request)
  }
}

function acquire(ledger: Ledger, request: Request & { kind: 'acquire' }): Reply {
  const { connection } = ledger
  const found = find(ledger, request.name) ?? create(ledger, request)
  if (found === undefined) return { kind: 'not-found' }
  const session = found.number('id')
  const living = livingOwner(ledger, found)
  if (living !== undefined && !request.steal) return { kind: 'busy', owner: living }
  ledger.owner ??= holdOwner(connection.path)
  const epoch = nextEpoch(connection)
  connection
    .statement('UPDATE sessions SET epoch = ?, owner = ?, owner_pid = ? WHERE id = ?')
    .run(epoch, ledger.owner.id, process.pid, session)
  hold(ledger, session, epoch)
  const { id: owner } = ledger.owner
  return { kind: 'acquired', session, epoch, head: found.number('head'), header: found.text('header'), owner }
}

function find({ connection }: Ledger, name: string): Columns | undefined {
  const row = connection
    .statement('SELECT id, head, epoch, header, owner, owner_pid FROM sessions WHERE name = ?')
    .get(name)
  return row && columns(connection.path, row)
}

function create(ledger: Ledger, { name, header, createdAt }: Request & { kind: 'acquire' }): Columns | undefined {
  if (header === undefined) return undefined
  ledger.connection
    .statement('INSERT INTO sessions (name, header, created_at, updated_at) VALUES (?, ?, ?, ?)')
    .run(name, header, createdAt, createdAt)
  return find(ledger, name)
}

/** Who owns the session, in words, or undefined when nobody living does. */
function livingOwner(ledger: Ledger, found: Columns): string | undefined {
  const owner = found.maybeText('owner')
  if (owner === undefined) return undefined
  if (owner === ledger.owner?.id) {
    return ledger.held.get(found.number('id')) === found.number('epoch') ? 'another agent of this store' : undefined
  }
  if (!ownerLives(ledger.connection.path, owner)) return undefined
  const pid = found.maybeNumber('owner_pid')
  return pid === process.pid ? 'another store of this process' : `another process (pid ${pid})`
}

function nextEpoch(connection: Connection): number {
  const row = connection.statement("UPDATE meta SET value = value + 1 WHERE key = 'epoch' RETURNING value").get()
  return columns(connection.path, row ?? {}).number('value')
}

function hold({ held, undo }: Ledger, session: number, epoch: number): void {
  const before = held.get(session)
  undo.push(() => void (before === undefined ? held.delete(session) : held.set(session, before)))
  held.set(session, epoch)
}

function append(ledger: Ledger, request: AppendRequest, again: boolean): Reply {
  const { connection } = ledger
  if (again && isAppended(connection, request)) return { kind: 'done' }
  const session = ownedSession(ledger, request)
  if (session === undefined) return { kind: 'fenced' }
  const head = session.number('head')
  if (head !== request.expectedSeq) return { kind: 'conflict', actual: head }
  insertRows(connection, request)
  takeCommands(connection, request)
  updateSession(connection, request)
  return { kind: 'done' }
}

/** The session of `request`, if its owner still is that epoch of this instance. */
function ownedSession(
  { connection, owner }: Ledger,
  { session, epoch }: Pick<AppendRequest, 'session' | 'epoch'>,
): Columns | undefined {
  const row = connection.statement('SELECT head, epoch, owner, header FROM sessions WHERE id = ?').get(session)
  const found = row && columns(connection.path, row)
  return found?.number('epoch') === epoch && found.maybeText('owner') === owner?.id ? found : undefined
}

function settling(ledger: Ledger, request: SettleRequest | KeepRequest | RestRequest): Reply {
  const { connection } = ledger
  const session = ownedSession(ledger, request)
  if (session === undefined) return { kind: 'fenced' }
  if (request.kind === 'rest') return rest(connection, request)
  const head = session.number('head')
  if (request.seq > head) return { kind: 'conflict', actual: head }
  const start = chainStart(session.text('header'))
  if (request.kind === 'settle') return settle(connection, request, start)
  clearMail(connection, request.session)
  return keep(connection, request, start)
}

/** Whether the log holds these very rows, written under this epoch. */
export function isAppended(connection: Connection, request: AppendRequest): boolean {
  const { session, epoch, batch } = request
  const same = connection.statement(
    'SELECT 1 AS same FROM log WHERE session = ? AND first_seq = ? AND last_seq = ? AND epoch = ? AND body = ?',
  )
  const bodies = rowBodies(batch)
  return (
    batch.rows.length > 0 &&
    batch.rows.every(({ first, last }, i) => same.get(session, first, last, epoch, bodies[i] ?? null) !== undefined)
  )
}

function insertRows(connection: Connection, { session, epoch, batch }: AppendRequest): void {
  const insert = connection.statement(
    'INSERT INTO log (session, first_seq, last_seq, epoch, encoding, body) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const bodies = rowBodies(batch)
  batch.rows.forEach(({ first, last, encoding }, i) => {
    insert.run(session, first, last, epoch, encoding, bodies[i] ?? null)
  })
}

function updateSession(connection: Connection, { session, expectedSeq, batch, time, summary }: AppendRequest): void {
  const head = nextSeq(expectedSeq, batch)
  if (summary === undefined) {
    connection
      .statement('UPDATE sessions SET head = ?, updated_at = coalesce(?, updated_at) WHERE id = ?')
      .run(head, time ?? null, session)
    return
  }
  const { turns, state, owed, waitingFor, wakeAt, lastReason } = summary
  connection
    .statement(
      `UPDATE sessions SET head = ?, updated_at = coalesce(?, updated_at), turns = coalesce(?, turns), state = coalesce(?, state),
         owed = coalesce(?, owed), waiting_for = ?, wake_at = ?, last_reason = ? WHERE id = ?`,
    )
    .run(
      ...[head, time ?? null, turns ?? null, state ?? null, owed === undefined ? null : Number(owed)],
      ...[waitingFor ?? null, wakeAt ?? null, lastReason ?? null, session],
    )
}

const nextSeq = (expectedSeq: number, { rows }: Batch): number => {
  const last = rows.at(-1)
  return last === undefined ? expectedSeq : last.last + 1
}

function release(ledger: Ledger, { session, epoch }: Request & { kind: 'release' }): Reply {
  // Given up here even if the file cannot be told: this instance may then have it again.
  if (ledger.held.get(session) === epoch) ledger.held.delete(session)
  ledger.connection
    .statement('UPDATE sessions SET owner = NULL, owner_pid = NULL WHERE id = ? AND epoch = ? AND owner = ?')
    .run(session, epoch, ledger.owner?.id ?? null)
  clearMail(ledger.connection, session)
  return { kind: 'done' }
}

function post(ledger: Ledger, { name, id, command }: Request & { kind: 'post' }): Reply {
  const session = find(ledger, name)?.number('id')
  if (session === undefined) return { kind: 'not-found' }
  ledger.connection
    .statement('INSERT INTO mailbox (session, id, command) VALUES (?, ?, ?) ON CONFLICT (session, id) DO NOTHING')
    .run(session, id, command)
  return { kind: 'posted', session }
}

function remove(ledger: Ledger, { name }: Request & { kind: 'delete' }, again: boolean): Reply {
  const found = find(ledger, name)
  if (found === undefined) return again ? { kind: 'done' } : { kind: 'not-found' }
  const living = livingOwner(ledger, found)
  if (living !== undefined) return { kind: 'busy', owner: living }
  const session = found.number('id')
  for (const table of ['log', 'mailbox', 'checkpoints'])
    ledger.connection.statement(`DELETE FROM ${table} WHERE session = ?`).run(session)
  ledger.connection.statement('DELETE FROM sessions WHERE id = ?').run(session)
  return { kind: 'done' }
}
