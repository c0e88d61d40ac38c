/** One session owned by this store: its appends, its mailbox, and the moment it is lost. */
import { ABORTED } from '../../aborted.ts'
import { Fenced, type PawlError, SeqConflict, StoreFailure } from '../../errors.ts'
import type { SessionEvent } from '../../events.ts'
import { frozenJson } from '../../json.ts'
import type { AppendOptions, Checkpoint, Ownership, PostedCommand, SessionHeader } from '../../store.ts'
import { encodeEvents } from './batch.ts'
import { type Chain, chainStart, type Found, readCheckpoint } from './checkpoint.ts'
import type { Lease, Leases } from './leases.ts'
import type { AppendRequest, KeepRequest, Reply, Request, SettleRequest } from './protocol.ts'
import type { Pulse } from './pulse.ts'
import type { Reader } from './reader.ts'
import { FEW } from './settling.ts'
import { isAppended } from './transactions.ts'

/** What an ownership needs of its store. */
export interface OwnershipPorts {
  ask(request: Request): Promise<Reply>
  /** A query, tried again while the file is locked. */
  look<T>(query: (reader: Reader) => T): Promise<T | undefined>
  readonly leases: Leases
  /** Wakes those who wait for a session's log or for outcomes. */
  readonly logs: Pulse
  /** Wakes those who wait for a session's commands. */
  readonly posts: Pulse
}

/** The ownership that `acquired` tells of; from here on it is in the leases. */
export function createOwnership(acquired: Reply & { kind: 'acquired' }, ports: OwnershipPorts): Ownership {
  const { session, epoch } = acquired
  const header: SessionHeader = JSON.parse(acquired.header)
  const lost = new AbortController()
  const ended = new AbortController()
  let released: Promise<void> | undefined
  /** What the next checkpoint goes on from, if not from the last. */
  let settled: Chain | undefined
  /** How many rows were written since anybody put rows together. */
  let written = 0
  const lease: Lease = {
    session,
    epoch,
    owner: acquired.owner,
    lose(reason) {
      lost.abort(reason)
      ended.abort(ABORTED)
    },
  }
  ports.leases.add(lease)

  const lose = (reason: PawlError): PawlError => {
    ports.leases.remove(lease)
    lease.lose(reason)
    return reason
  }

  async function append(events: readonly SessionEvent[], options: AppendOptions): Promise<void> {
    refuseEnded()
    const request = appendRequest({ session, epoch }, events, options)
    const reply = await ports.ask(request)
    switch (reply.kind) {
      case 'fenced':
        throw released === undefined ? lose(new Fenced(epoch)) : releasedError()
      case 'conflict':
        throw new SeqConflict(options.expectedSeq, reply.actual)
      case 'failed': {
        const { reason, message } = reply
        const inDoubt = reply.doubtful === true
        if (inDoubt && (await ports.look(({ connection }) => isAppended(connection, request)).catch(() => false))) break
        throw new StoreFailure(reason, message)
      }
    }
    written += request.batch.rows.length
    ports.logs.wake(session)
  }

  async function checkpoint(): Promise<Checkpoint | undefined> {
    refuseEnded()
    const found = await readCheckpoint(ports.look, session, acquired.header).catch(ifDamaged)
    // What it was chained from may be as wrong as it is: the next one begins anew.
    settled = found.kind === 'wrong' ? chainStart(acquired.header) : undefined
    return found.kind === 'good' ? { seq: found.seq, body: found.body } : undefined
  }

  async function keep({ seq, body }: Checkpoint): Promise<void> {
    refuseEnded()
    let chain = settled
    for (let more = true; more; ) {
      const reply = await settle({ kind: 'settle', session, epoch, seq, ...(chain && { chain }) })
      chain = reply?.chain
      more = reply?.more ?? false
    }
    await settle({ kind: 'keep', session, epoch, seq, body, ...(chain && { chain }) })
    settled = undefined
    written = 0
  }

  async function settle(request: SettleRequest | KeepRequest): Promise<(Reply & { kind: 'settled' }) | undefined> {
    const reply = await ports.ask(request)
    switch (reply.kind) {
      case 'settled':
        return reply
      case 'fenced':
        throw released === undefined ? lose(new Fenced(epoch)) : releasedError()
      case 'conflict':
        throw new SeqConflict(request.seq, reply.actual)
      case 'failed':
        throw new StoreFailure(reply.reason, reply.message)
    }
    return undefined
  }

  function refuseEnded(): void {
    if (lost.signal.aborted) {
      const reason: unknown = lost.signal.reason
      throw reason instanceof Fenced ? reason : new Fenced(epoch, reason instanceof Error ? reason.message : undefined)
    }
    if (released !== undefined) throw releasedError()
  }

  const releasedError = (): Fenced => new Fenced(epoch, `Epoch ${epoch} was released: acquire the session again`)

  async function* commands(signal: AbortSignal): AsyncGenerator<PostedCommand> {
    const until = AbortSignal.any([signal, ended.signal])
    let after = 0
    while (!until.aborted) {
      // One at a time: while its consumer is busy with one, the next may be taken.
      const next = (await ports.look((reader) => reader.posted(session, after, 1)))?.[0]
      if (until.aborted) return
      if (next === undefined) await ports.posts.wait(session, { signal: until, keepAlive: false })
      else {
        after = next.n
        yield next.command
      }
    }
  }

  async function release(): Promise<void> {
    ports.leases.remove(lease)
    ended.abort(ABORTED)
    if (lost.signal.aborted) return
    // Whether it can be done or not, the log is whole and the session given up.
    const rested = written > FEW ? ports.ask({ kind: 'rest', session, epoch }) : undefined
    const reply = await ports.ask({ kind: 'release', session, epoch })
    await rested
    if (reply.kind === 'failed') throw new StoreFailure(reply.reason, reply.message)
    // Lists show it as free.
    ports.logs.wake(session)
  }

  return {
    header,
    epoch,
    head: acquired.head,
    lost: lost.signal,
    append,
    checkpoint,
    keep,
    commands,
    release() {
      released ??= release()
      return released
    },
  }
}

/** A row that cannot be one is no checkpoint, and covers none. */
function ifDamaged(error: unknown): Found {
  if (error instanceof StoreFailure && error.reason === 'damaged') return { kind: 'wrong' }
  throw error
}

function appendRequest(
  { session, epoch }: { session: number; epoch: number },
  events: readonly SessionEvent[],
  { expectedSeq, takes, summary }: AppendOptions,
): AppendRequest {
  events.forEach(({ seq }, i) => {
    if (seq !== expectedSeq + i) throw new SeqConflict(seq, expectedSeq + i)
  })
  const time = events.at(-1)?.time
  return {
    kind: 'append',
    session,
    epoch,
    expectedSeq,
    batch: encodeEvents(events),
    takes: (takes ?? []).map(({ id, outcome }) => ({ id, outcome: JSON.stringify(frozenJson(outcome)) })),
    ...(time === undefined ? {} : { time }),
    ...(summary === undefined ? {} : { summary }),
  }
}
