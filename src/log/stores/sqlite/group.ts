/**
 * Group commit: requests that wait together share one transaction, and so one fsync. Whether a failed COMMIT took
 * effect is settled by looking, never guessed; after any failure each request of the group is tried once more, alone.
 */
import { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import { patientlySync } from './patience.ts'
import type { Reply, Request } from './protocol.ts'
import { rollback } from './schema.ts'
import { isAppended, type Ledger, perform } from './transactions.ts'

/** A group is closed by whichever comes first. */
export interface GroupBounds {
  readonly requests: number
  readonly bytes: number
  readonly ms: number
}

/** Of the worker's groups. */
export const GROUP: GroupBounds = { requests: 1_000, bytes: 4 * 1024 * 1024, ms: 20 }

export interface GroupOptions {
  /** How long a locked file is waited for, asleep. */
  readonly busyTimeoutMs: number
  readonly bounds?: GroupBounds | undefined
}

const MERGING: ReadonlySet<Request['kind']> = new Set(['settle', 'keep', 'rest'])

/** How a transaction ended. `failed`: where, and how many requests were in it. */
type Ending =
  | { readonly kind: 'committed'; readonly replies: readonly Reply[] }
  | {
      readonly kind: 'failed'
      readonly at: 'begin' | 'request' | 'commit'
      readonly performed: number
      readonly failure: StoreFailure
    }

/** Commits as many of `requests`, from the front and at least one, as one group holds, and answers those. */
export function commitGroup(ledger: Ledger, requests: readonly Request[], options: GroupOptions): readonly Reply[] {
  const { busyTimeoutMs, bounds = GROUP } = options
  const group = requests.slice(0, groupSize(requests, bounds))
  const ending = transact(ledger, group, { busyTimeoutMs, ms: bounds.ms, again: false })
  if (ending.kind === 'committed') return ending.replies
  const { at, failure, performed } = ending
  if (at === 'begin') return group.map(() => failedReply(failure))
  if (at === 'request' && performed === 1) return [failedReply(failure)]
  return group.slice(0, performed).map((request) => alone(ledger, request, busyTimeoutMs, at === 'commit'))
}

function groupSize(requests: readonly Request[], bounds: GroupBounds): number {
  let bytes = 0
  for (const [i, request] of requests.entries()) {
    // Rows that are merged are not found again by an append whose commit is in doubt, so nothing shares their transaction.
    if (MERGING.has(request.kind)) return Math.max(1, i)
    if (request.kind === 'append') bytes += request.batch.body.byteLength
    if (i > 0 && (bytes > bounds.bytes || i >= bounds.requests)) return i
  }
  return requests.length
}

function transact(
  ledger: Ledger,
  requests: readonly Request[],
  { busyTimeoutMs, ms, again }: { busyTimeoutMs: number; ms: number; again: boolean },
): Ending {
  const { connection } = ledger
  const replies: Reply[] = []
  let at: 'begin' | 'request' | 'commit' = 'begin'
  ledger.undo.length = 0
  try {
    patientlySync(() => connection.exec('BEGIN IMMEDIATE'), busyTimeoutMs)
    at = 'request'
    const deadline = performance.now() + ms
    for (const request of requests) {
      replies.push(perform(ledger, request, again))
      if (performance.now() > deadline) break
    }
    at = 'commit'
    connection.exec('COMMIT')
    return { kind: 'committed', replies }
  } catch (error) {
    if (at !== 'begin') rollback(connection)
    for (const undo of ledger.undo.reverse()) undo()
    const performed = at === 'request' ? replies.length + 1 : replies.length
    return { kind: 'failed', at, performed, failure: asFailure(error, connection.path) }
  }
}

/** `again`: it may already be in the database. */
function alone(ledger: Ledger, request: Request, busyTimeoutMs: number, again: boolean): Reply {
  const ending = transact(ledger, [request], { busyTimeoutMs, ms: GROUP.ms, again })
  if (ending.kind === 'committed')
    return ending.replies[0] ?? failedReply(asFailure('no reply', ledger.connection.path))
  const inDoubt = again || ending.at === 'commit'
  return inDoubt && isThere(ledger, request) ? { kind: 'done' } : failedReply(ending.failure)
}

function isThere(ledger: Ledger, request: Request): boolean {
  try {
    return request.kind === 'append' && isAppended(ledger.connection, request)
  } catch {
    // The file cannot even be read now: the failure already at hand is the answer.
    return false
  }
}

const asFailure = (error: unknown, path: string): StoreFailure =>
  error instanceof StoreFailure ? error : storeFailure('io', path, String(error), error)

/** The reply that carries `failure` to the main thread. */
export const failedReply = ({ reason, message }: StoreFailure): Reply => ({ kind: 'failed', reason, message })
