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
  SessionHeader,
  SessionSummary,
  SummaryUpdate,
} from '../store.ts'
import { Bell } from './memory/bell.ts'
import { Commands } from './memory/commands.ts'
import { MemoryLog } from './memory/log.ts'
import { Mailbox } from './memory/mailbox.ts'

/** A living claim on a session; replaced as a whole by whoever takes it. */
interface Owner {
  readonly epoch: number
  readonly lost: AbortController
  /** Why it may not write any more, once it may not. */
  ended?: PawlError
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

  return {
    async acquire(id, { create, steal = false } = {}) {
      const session = findOrCreate(id, create)
      const loser = session.owner
      if (loser !== undefined && !steal) throw busy(id, loser)
      const owner: Owner = { epoch: ++epochs, lost: new AbortController() }
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
    async *subscribe(id, { from, signal }) {
      yield* follow(find(id), from, signal)
    },
    async post(id, command) {
      const session = find(id)
      session.mailbox.post(frozenJson(command))
      session.mail.ring()
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

const ownershipOf = (session: StoredSession, owner: Owner): Ownership => ({
  header: session.header,
  epoch: owner.epoch,
  head: session.log.length,
  posted: session.mailbox.waiting(),
  lost: owner.lost.signal,
  async append(events, options) {
    if (owner.ended !== undefined) throw owner.ended
    append(session, events, options)
  },
  async checkpoint() {
    if (owner.ended !== undefined) throw owner.ended
    // A copy: what its reader does to it changes nothing here.
    return session.checkpoint && { ...session.checkpoint, body: session.checkpoint.body.slice() }
  },
  async keep(checkpoint) {
    if (owner.ended !== undefined) throw owner.ended
    const { length } = session.log
    if (checkpoint.seq > length) throw new SeqConflict(checkpoint.seq, length)
    session.checkpoint = checkpoint
  },
  commands: (signal) => new Commands(session.mailbox, session.mail, owner, signal),
  async release() {
    if (owner.ended !== undefined) return
    delete session.owner
    end(session, owner, new Fenced(owner.epoch, `Epoch ${owner.epoch} was released: acquire the session again`))
  },
})

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
  owner.lost.abort(why)
}

/** Lets go whoever waits at a session that is no more. */
function leave(session: StoredSession, why: PawlError): void {
  session.gone = why
  session.grown.ring()
  session.mail.ring()
}
