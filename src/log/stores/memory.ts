/**
 * A store that lives and dies with the process: for tests, and for agents that need not outlive it. Each operation does
 * its work without yielding, so it is atomic; events are kept deep-frozen and never copied again, also not by a read.
 */
import { Fenced, type PawlError, SeqConflict, SessionBusy, SessionNotFound, StoreFailure } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { frozenJson, isRecorded } from '../json.ts'
import type {
  AppendOptions,
  Checkpoint,
  LogStore,
  Ownership,
  RestingOwner,
  SessionHeader,
  SessionSummary,
  StoredPage,
  SummaryUpdate,
} from '../store.ts'
import { Bell } from './memory/bell.ts'
import { Commands, type Listener } from './memory/commands.ts'
import { MemoryLog } from './memory/log.ts'
import { Mailbox } from './memory/mailbox.ts'

/** A living claim on a session; replaced as a whole by whoever takes it. */
class Owner {
  readonly epoch: number
  /** Why it may not write any more, once it may not. */
  ended: PawlError | undefined
  /** Told in place of the signal, while it rests. */
  resting: RestingOwner | undefined
  /** Made when somebody asks: one that rests has none. */
  #lost: AbortController | undefined
  #lostBy: PawlError | undefined

  constructor(epoch: number) {
    this.epoch = epoch
  }

  get lost(): AbortSignal {
    if (this.#lost === undefined) {
      this.#lost = new AbortController()
      if (this.#lostBy !== undefined) this.#lost.abort(this.#lostBy)
    }
    return this.#lost.signal
  }

  lose(why: PawlError): void {
    this.#lostBy = why
    this.#lost?.abort(why)
    this.resting?.onLost(why)
  }

  rest(owner: RestingOwner): void {
    this.resting = owner
    this.#lost = undefined
  }
}

/** An ownership that was given out. It ends with its owner, or when that rests. */
class Hold implements Listener {
  readonly session: StoredSession
  readonly owner: Owner
  #void: PawlError | undefined

  constructor(session: StoredSession, owner: Owner) {
    this.session = session
    this.owner = owner
  }

  get lost(): AbortSignal {
    return this.owner.lost
  }

  get ended(): PawlError | undefined {
    return this.#void ?? this.owner.ended
  }

  end(): void {
    const { epoch } = this.owner
    this.#void = new Fenced(epoch, `Epoch ${epoch} rests: its owner must wake first`)
  }
}

/** What the owner said last; the store knows the rest of a summary by itself. */
type OwnersSummary = SummaryUpdate & Pick<SessionSummary, 'turns' | 'state' | 'owed'>

const AT_REST: OwnersSummary = { turns: 0, state: 'idle', owed: false }

interface StoredSession {
  readonly id: string
  readonly header: SessionHeader
  readonly log: MemoryLog
  readonly mailbox: Mailbox
  summary: OwnersSummary
  checkpoint?: Checkpoint
  owner?: Owner
  /** Why nobody may wait here any more: the session was deleted, or the store closed. */
  gone?: PawlError
  /** Rings when the log grew. */
  readonly grown: Bell
  /** Rings when a command was posted or taken, and when the owner changed. */
  readonly mail: Bell
}

/** A store in memory. Its sessions are gone once it is closed or nobody refers to it; it has no second instance. */
export function memoryStore(): LogStore {
  const sessions = new Map<string, StoredSession>()
  const holds = new WeakMap<Ownership, Hold>()
  let epochs = 0
  let closed: StoreFailure | undefined

  const find = (id: string): StoredSession => {
    if (closed !== undefined) throw closed
    const session = sessions.get(id)
    if (session === undefined) throw new SessionNotFound(id)
    return session
  }

  const findOrCreate = (id: string, create: SessionHeader | undefined): StoredSession => {
    if (create === undefined || closed !== undefined || sessions.has(id)) return find(id)
    const session = newSession(id, create)
    sessions.set(id, session)
    return session
  }

  const ownershipOf = (session: StoredSession, owner: Owner): Ownership => {
    const hold = new Hold(session, owner)
    const ownership = createOwnership(hold)
    holds.set(ownership, hold)
    return ownership
  }

  return {
    async acquire(id, { create, steal = false } = {}) {
      const session = findOrCreate(id, create)
      const loser = session.owner
      if (loser !== undefined && !steal) throw busy(id, loser)
      const owner = new Owner(++epochs)
      session.owner = owner
      if (loser !== undefined) lose(session, loser, new Fenced(loser.epoch))
      return ownershipOf(session, owner)
    },
    async *read(id, { from = 0, types } = {}) {
      const { log } = find(id)
      const head = log.length
      const wanted = types && new Set(types)
      for (const event of stretch(log, from, head)) if (wanted?.has(event.type) ?? true) yield event
    },
    readNow(id, { from, to }) {
      const { log } = find(id)
      const events = [...stretch(log, from, Math.min(to, log.length))]
      return events.length === 0 ? [] : [pageOf(events, from)]
    },
    rest(ownership, resting) {
      const hold = holds.get(ownership)
      if (hold === undefined || hold.ended !== undefined) return undefined
      const { session, owner } = hold
      hold.end()
      owner.rest(resting)
      // Who waits for the commands of the ownership that is void notices.
      session.mail.ring()
      if (session.mailbox.after(0) !== undefined) queueMicrotask(() => owner.resting?.onPosted())
      return {
        wake() {
          owner.resting = undefined
          return ownershipOf(session, owner)
        },
        release: async () => release(session, owner),
      }
    },
    async *subscribe(id, { from, signal }) {
      yield* follow(find(id), from, signal)
    },
    async post(id, command) {
      const session = find(id)
      session.mailbox.post(frozenJson(command))
      session.mail.ring()
      session.owner?.resting?.onPosted()
    },
    async outcome(id, commandId, signal) {
      const session = find(id)
      for (;;) {
        signal.throwIfAborted()
        if (session.gone !== undefined) throw session.gone
        const outcome = session.mailbox.outcome(commandId)
        if (outcome !== undefined) return outcome
        await session.mail.rung(signal)
      }
    },
    async *list({ owed = false, dueBefore } = {}) {
      if (closed !== undefined) throw closed
      const all = owed === false && dueBefore === undefined
      const oldestFirst = [...sessions.values()].sort((a, b) => a.header.createdAt - b.header.createdAt)
      for (const session of oldestFirst) {
        const summary = summaryOf(session)
        const due = dueBefore !== undefined && summary.wakeAt !== undefined && summary.wakeAt < dueBefore
        if (session.gone === undefined && (all || (owed && summary.owed) || due)) yield summary
      }
    },
    async header(id) {
      if (closed !== undefined) throw closed
      return sessions.get(id)?.header
    },
    async delete(id) {
      const session = find(id)
      if (session.owner !== undefined) throw busy(id, session.owner)
      sessions.delete(id)
      leave(session, new SessionNotFound(id))
    },
    async [Symbol.asyncDispose]() {
      closed = new StoreFailure('io', 'This memory store is closed, and what it held is gone: open another')
      for (const session of sessions.values()) {
        if (session.owner !== undefined) lose(session, session.owner, closed)
        leave(session, closed)
      }
      sessions.clear()
    },
  }
}

const busy = (id: string, owner: Owner): SessionBusy =>
  new SessionBusy(id, `an agent of this process (epoch ${owner.epoch})`)

const newSession = (id: string, header: SessionHeader): StoredSession => ({
  id,
  header: frozenJson(header),
  log: new MemoryLog(),
  mailbox: new Mailbox(),
  summary: AT_REST,
  grown: new Bell(),
  mail: new Bell(),
})

function createOwnership(hold: Hold): Ownership {
  const { session, owner } = hold
  return {
    header: session.header,
    epoch: owner.epoch,
    head: session.log.length,
    posted: session.mailbox.waiting(),
    lost: owner.lost,
    async append(events, options) {
      if (hold.ended !== undefined) throw hold.ended
      append(session, events, options)
    },
    async checkpoint() {
      if (hold.ended !== undefined) throw hold.ended
      return copyOf(session.checkpoint)
    },
    checkpointNow: () => (hold.ended === undefined ? copyOf(session.checkpoint) : undefined),
    async keep(checkpoint) {
      if (hold.ended !== undefined) throw hold.ended
      const { length } = session.log
      if (checkpoint.seq > length) throw new SeqConflict(checkpoint.seq, length)
      session.checkpoint = checkpoint
    },
    commands: (signal) => new Commands(session.mailbox, session.mail, hold, signal),
    async release() {
      if (hold.ended === undefined) release(session, owner)
    },
  }
}

function release(session: StoredSession, owner: Owner): void {
  if (owner.ended !== undefined) return
  delete session.owner
  end(session, owner, new Fenced(owner.epoch, `Epoch ${owner.epoch} was released: acquire the session again`))
}

/** What its reader does to it changes nothing here. */
const copyOf = (checkpoint: Checkpoint | undefined): Checkpoint | undefined =>
  checkpoint && { ...checkpoint, body: checkpoint.body.slice() }

/** All of it as one page. */
function pageOf(events: readonly SessionEvent[], first: number): StoredPage {
  return { first, count: events.length, time: events.at(-1)?.time ?? 0, events, formed: [] }
}

/** Checks and copies first, then changes: past the first push nothing can fail. */
function append(session: StoredSession, events: readonly SessionEvent[], options: AppendOptions): void {
  const { log, mailbox } = session
  const head = log.length
  if (options.expectedSeq !== head) throw new SeqConflict(options.expectedSeq, head)
  const batch = isRecorded(events) ? events : events.map((event) => frozenJson(event))
  batch.forEach((event, i) => {
    if (event.seq !== head + i) throw new SeqConflict(event.seq, head + i)
  })
  const takes = options.takes?.map((take) => frozenJson(take)) ?? []
  const summary = options.summary && replaceSummary(session.summary, options.summary)

  log.push(batch)
  for (const { id, outcome } of takes) mailbox.take(id, outcome)
  if (summary !== undefined) session.summary = summary
  if (batch.length > 0) session.grown.ring()
  if (takes.length > 0) session.mail.ring()
}

/** What a summary must have stays when an update does not name it; what it may have goes. */
const replaceSummary = ({ turns, state, owed }: OwnersSummary, update: SummaryUpdate): OwnersSummary => ({
  turns,
  state,
  owed,
  ...update,
})

const summaryOf = ({ id, header, log, summary, owner }: StoredSession): SessionSummary => ({
  id,
  createdAt: header.createdAt,
  updatedAt: log.time ?? header.createdAt,
  head: log.length,
  ...summary,
  owned: owner !== undefined,
  ...(header.parentSession !== undefined && { parentSession: header.parentSession }),
})

/** The first seq at or after `from`. */
const firstSeq = (from: number): number => Math.max(0, Math.ceil(from))

/** Walks the log by index: it only ever grows, so a stretch of it is what it was when it was asked for. */
function* stretch(log: MemoryLog, from: number, to: number): Iterable<SessionEvent> {
  for (let seq = firstSeq(from); seq < to; seq += 1) {
    const event = log.at(seq)
    if (event !== undefined) yield event
  }
}

async function* follow(session: StoredSession, from: number, signal: AbortSignal): AsyncIterable<SessionEvent> {
  for (let seq = firstSeq(from); !signal.aborted; ) {
    if (session.gone !== undefined) throw session.gone
    const event = session.log.at(seq)
    if (event === undefined) await session.grown.rung(signal)
    else {
      seq += 1
      yield event
    }
  }
}

/** Ends an ownership for good; who waits for its commands notices. */
function end(session: StoredSession, owner: Owner, why: PawlError): void {
  owner.ended = why
  session.mail.ring()
}

function lose(session: StoredSession, owner: Owner, why: PawlError): void {
  end(session, owner, why)
  owner.lose(why)
}

/** Lets go whoever waits at a session that is no more. */
function leave(session: StoredSession, why: PawlError): void {
  session.gone = why
  session.grown.ring()
  session.mail.ring()
}
