/** One session owned by this store: its appends, its mailbox, its rests, and the moment it is lost. */
import { Fenced, type PawlError, SeqConflict, StoreFailure } from '../../errors.ts'
import type { SessionEvent } from '../../events.ts'
import { frozenJson } from '../../json.ts'
import type {
  AppendOptions,
  Checkpoint,
  Ownership,
  PostedCommand,
  Resting,
  RestingOwner,
  SessionHeader,
} from '../../store.ts'
import { encodeEvents } from './batch.ts'
import { type Chain, chainStart, checksumOf, type Found, readCheckpoint } from './checkpoint.ts'
import { Commands } from './commands.ts'
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
  /** The same, asleep until then. */
  lookNow<T>(query: (reader: Reader) => T): T | undefined
  readonly leases: Leases
  /** Wakes those who wait for a session's log or for outcomes. */
  readonly logs: Pulse
  /** Wakes those who wait for a session's commands. */
  readonly posts: Pulse
}

/**
 * A session that this store owns, whether its owner works or rests. A class, because it is all that is left of one that
 * rests, and ten thousand of those share their methods.
 */
export class Tenure implements Lease, Resting {
  readonly session: number
  readonly epoch: number
  readonly owner: string
  readonly header: SessionHeader
  readonly #ports: OwnershipPorts
  /** The ownership that was given out; none while its owner rests. */
  #hold: Hold | undefined
  #resting: RestingOwner | undefined
  #lost: PawlError | undefined
  #released: Promise<void> | undefined
  /** How many rows were written since anybody put rows together. */
  #written = 0
  /** What the next checkpoint goes on from, if not from the last. */
  #start: Chain | undefined
  /** The checkpoint that it kept or was given, and vouches for. */
  #known: { readonly seq: number; readonly checksum: number } | undefined

  /** In the leases from here on. @throws SyntaxError for a header that is no JSON */
  constructor({ session, epoch, owner, header }: Reply & { kind: 'acquired' }, ports: OwnershipPorts) {
    this.session = session
    this.epoch = epoch
    this.owner = owner
    this.header = JSON.parse(header)
    this.#ports = ports
    ports.leases.add(this)
  }

  // While its owner works.

  /** `posted`: the commands that waited when it was acquired. */
  wake(head: number, posted?: readonly PostedCommand[]): Ownership {
    this.#stopResting()
    this.#hold = new Hold()
    if (this.#lost !== undefined) this.#hold.lose(this.#lost)
    return ownershipOf(this, this.#hold, { head, posted })
  }

  async append(events: readonly SessionEvent[], options: AppendOptions): Promise<void> {
    const { session, epoch } = this
    const { ask, look, logs } = this.#ports
    const request = appendRequest({ session, epoch }, events, options)
    const reply = await ask(request)
    switch (reply.kind) {
      case 'fenced':
        throw this.#fenced()
      case 'conflict':
        throw new SeqConflict(options.expectedSeq, reply.actual)
      case 'failed': {
        const { reason, message } = reply
        const inDoubt = reply.doubtful === true
        if (inDoubt && (await look(({ connection }) => isAppended(connection, request)).catch(() => false))) break
        throw new StoreFailure(reason, message)
      }
    }
    this.#written += request.batch.rows.length
    logs.wake(session)
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    const header = JSON.stringify(this.header)
    const found = await readCheckpoint(this.#ports.look, this.session, header).catch(ifDamaged)
    // What it was chained from may be as wrong as it is: the next one begins anew.
    this.#start = found.kind === 'wrong' ? chainStart(header) : undefined
    if (found.kind !== 'good') return undefined
    const { seq, body } = found
    this.#known = { seq, checksum: checksumOf(body) }
    return { seq, body }
  }

  checkpointNow(): Checkpoint | undefined {
    const known = this.#known
    const found = known && this.#ports.lookNow((reader) => reader.checkpoint(this.session))
    if (found === undefined || found.seq !== known?.seq) return undefined
    const { seq, body } = found
    return checksumOf(body) === known.checksum ? { seq, body } : undefined
  }

  async keep({ seq, body }: Checkpoint): Promise<void> {
    const { session, epoch } = this
    const checksum = checksumOf(body)
    let chain = this.#start
    for (let more = true; more; ) {
      const reply = await this.#settle({ kind: 'settle', session, epoch, seq, ...(chain && { chain }) })
      chain = reply?.chain
      more = reply?.more ?? false
    }
    await this.#settle({ kind: 'keep', session, epoch, seq, body, ...(chain && { chain }) })
    this.#start = undefined
    this.#known = { seq, checksum }
    this.#written = 0
  }

  async #settle(request: SettleRequest | KeepRequest): Promise<(Reply & { kind: 'settled' }) | undefined> {
    const reply = await this.#ports.ask(request)
    switch (reply.kind) {
      case 'settled':
        return reply
      case 'fenced':
        throw this.#fenced()
      case 'conflict':
        throw new SeqConflict(request.seq, reply.actual)
      case 'failed':
        throw new StoreFailure(reply.reason, reply.message)
    }
    return undefined
  }

  commands(hold: Hold, signal: AbortSignal): Commands {
    const { look, posts } = this.#ports
    const listener = { session: this.session, lost: hold.lost, isOver: () => hold.rests || this.isOver }
    return new Commands({ look, posts }, listener, signal)
  }

  // While its owner rests.

  rest(hold: Hold, ports: OwnershipPorts, owner: RestingOwner): Resting | undefined {
    if (this.isOver || hold !== this.#hold || ports !== this.#ports) return undefined
    const { session, epoch } = this
    const { ask, posts } = this.#ports
    hold.rests = true
    this.#hold = undefined
    this.#resting = owner
    posts.poll(1)
    // Who waits for the commands of the ownership that is void notices.
    posts.wake(session)
    // What was posted before is looked for now, the rest when it is heard of.
    queueMicrotask(() => this.posted())
    // Whether rows can be put together or not, the log is whole.
    if (this.#written > FEW) ask({ kind: 'rest', session, epoch }).catch(() => {})
    this.#written = 0
    return this
  }

  posted(): void {
    if (this.#resting === undefined) return
    try {
      const waiting = this.#ports.lookNow((reader) => reader.posted(this.session, 0, 1)) ?? []
      if (waiting.length > 0) this.#resting.onPosted()
    } catch {
      // A file that cannot be read now is looked at again when more is posted, and by whoever wakes.
    }
  }

  #stopResting(): RestingOwner | undefined {
    const resting = this.#resting
    this.#resting = undefined
    if (resting !== undefined) this.#ports.posts.poll(-1)
    return resting
  }

  // How it ends.

  get isOver(): boolean {
    return this.#lost !== undefined || this.#released !== undefined
  }

  /** Why nothing more can be done with it. */
  ended(): Fenced {
    const { epoch } = this
    if (this.#lost instanceof Fenced) return this.#lost
    return new Fenced(epoch, this.#lost?.message ?? `Epoch ${epoch} was released: acquire the session again`)
  }

  lose(reason: PawlError): void {
    if (this.#lost !== undefined) return
    this.#lost = reason
    this.#hold?.lose(reason)
    this.#ports.posts.wake(this.session)
    this.#stopResting()?.onLost(reason)
  }

  release(): Promise<void> {
    this.#released ??= this.#giveBack()
    return this.#released
  }

  async #giveBack(): Promise<void> {
    const { session, epoch } = this
    const { ask, leases, logs, posts } = this.#ports
    leases.remove(this)
    this.#stopResting()
    posts.wake(session)
    if (this.#lost !== undefined) return
    // Whether it can be done or not, the log is whole and the session given up.
    const rested = this.#written > FEW ? ask({ kind: 'rest', session, epoch }) : undefined
    const reply = await ask({ kind: 'release', session, epoch })
    await rested
    if (reply.kind === 'failed') throw new StoreFailure(reply.reason, reply.message)
    // Lists show it as free.
    logs.wake(session)
  }

  #fenced(): Fenced {
    if (this.#released !== undefined) return this.ended()
    const reason = new Fenced(this.epoch)
    this.#ports.leases.remove(this)
    this.lose(reason)
    return reason
  }
}

interface Given {
  readonly head: number
  readonly posted: readonly PostedCommand[] | undefined
}

/** An ownership that was given out. */
class Hold {
  rests = false
  readonly #lost = new AbortController()

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  lose(reason: PawlError): void {
    this.#lost.abort(reason)
  }
}

const holds = new WeakMap<Ownership, readonly [Tenure, Hold]>()

/** Undefined for an ownership that another store gave out, or that was wrapped. */
export function rest(ownership: Ownership, ports: OwnershipPorts, owner: RestingOwner): Resting | undefined {
  const [tenure, hold] = holds.get(ownership) ?? []
  return hold && tenure?.rest(hold, ports, owner)
}

function ownershipOf(tenure: Tenure, hold: Hold, { head, posted }: Given): Ownership {
  const { header, epoch } = tenure
  const refuseEnded = (): void => {
    if (hold.rests) throw new Fenced(epoch, `Epoch ${epoch} rests: its owner must wake first`)
    if (tenure.isOver) throw tenure.ended()
  }
  const ownership: Ownership = {
    header,
    epoch,
    head,
    ...(posted === undefined ? {} : { posted }),
    lost: hold.lost,
    async append(events, options) {
      refuseEnded()
      await tenure.append(events, options)
    },
    async checkpoint() {
      refuseEnded()
      return tenure.checkpoint()
    },
    checkpointNow: () => (hold.rests || tenure.isOver ? undefined : tenure.checkpointNow()),
    async keep(checkpoint) {
      refuseEnded()
      await tenure.keep(checkpoint)
    },
    commands: (signal) => tenure.commands(hold, signal),
    release: async () => {
      if (!hold.rests) await tenure.release()
    },
  }
  holds.set(ownership, [tenure, hold])
  return ownership
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
