/**
 * A store that lives and dies with the process: for tests, and for agents that need not outlive it. Each operation does
 * its work without yielding, so it is atomic; events are kept deep-frozen and never copied again, also not by a read.
 */
import { Fenced, type PawlError, SeqConflict, SessionBusy, SessionNotFound, StoreFailure } from '../errors.ts'
import type { KnownEvent, SessionEvent } from '../events.ts'
import { frozenJson, isRecorded } from '../json.ts'
import type {
  AppendOptions,
  CommandOutcome,
  LogStore,
  Ownership,
  PostedCommand,
  RestingOwner,
  SessionHeader,
  SessionSummary,
  StoredPage,
  SummaryUpdate,
} from '../store.ts'

interface Letter {
  readonly command: PostedCommand
  outcome?: CommandOutcome
}

/** A living claim on a session; replaced as a whole by whoever takes it. */
class Owner {
  readonly epoch: number
  /** Why it may not write any more, once it may not. */
  ended: PawlError | undefined
  /** Told in place of the signal, while it rests. */
  resting: RestingOwner | undefined
  /** Made when somebody asks: one that rests has none. */
  #lost: AbortController | undefined

  constructor(epoch: number) {
    this.epoch = epoch
  }

  get lost(): AbortSignal {
    this.#lost ??= new AbortController()
    return this.#lost.signal
  }

  lose(why: PawlError): void {
    this.#lost?.abort(why)
    this.resting?.onLost(why)
  }

  rest(owner: RestingOwner): void {
    this.resting = owner
    this.#lost = undefined
  }
}

/** An ownership that was given out. It ends with its owner, or when that rests. */
class Hold {
  readonly session: StoredSession
  readonly owner: Owner
  #void: PawlError | undefined

  constructor(session: StoredSession, owner: Owner) {
    this.session = session
    this.owner = owner
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
  /** Oldest first, the taken ones too: their outcomes stay. */
  readonly letters: Letter[]
  /** The same by the command's id; made with the first. */
  letterOf: Map<string, Letter> | undefined
  summary: OwnersSummary
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
    readNow: (id) => {
      const { log } = find(id)
      return {
        checkpoint: () => undefined,
        pages: ({ from, to }) => (from < to ? [pageOf([...stretch(log, from, Math.min(to, log.length))], from)] : []),
      }
    },
    rest(ownership, resting) {
      const hold = holds.get(ownership)
      if (hold === undefined || hold.ended !== undefined) return undefined
      const { session, owner } = hold
      hold.end()
      owner.rest(resting)
      // Who waits for the commands of the ownership that is void notices.
      session.mail.ring()
      if (session.letters.some(({ outcome }) => outcome === undefined)) queueMicrotask(() => owner.resting?.onPosted())
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
      session.letterOf ??= new Map()
      if (session.letterOf.has(command.id)) return
      const letter = { command: frozenJson(command) }
      session.letters.push(letter)
      session.letterOf.set(command.id, letter)
      session.mail.ring()
      session.owner?.resting?.onPosted()
    },
    async outcome(id, commandId, signal) {
      const session = find(id)
      for (;;) {
        signal.throwIfAborted()
        if (session.gone !== undefined) throw session.gone
        const outcome = session.letterOf?.get(commandId)?.outcome
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
  letters: [],
  letterOf: undefined,
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
    posted: session.letters.filter(({ outcome }) => outcome === undefined).map(({ command }) => command),
    lost: owner.lost,
    async append(events, options) {
      if (hold.ended !== undefined) throw hold.ended
      append(session, events, options)
    },
    commands: (signal) => new Letters(hold, signal),
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

/** All of it as one page. */
function pageOf(events: readonly SessionEvent[], first: number): StoredPage {
  return { first, count: events.length, time: events.at(-1)?.time ?? 0, events, formed: [] }
}

/**
 * The commands of an owner, as they come. Written out, and no generator: every idle agent waits at one, and a generator
 * that waits was a third of what it took.
 */
class Letters implements AsyncIterableIterator<PostedCommand> {
  readonly #hold: Hold
  readonly #signal: AbortSignal
  // A letter is passed once; this walks the list itself, so that what is posted meanwhile is met in its place.
  #place = 0
  #left = false
  #resolve: ((result: IteratorResult<PostedCommand>) => void) | undefined

  constructor(hold: Hold, signal: AbortSignal) {
    this.#hold = hold
    this.#signal = signal
  }

  next(): Promise<IteratorResult<PostedCommand>> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.wake()
    })
  }

  async return(): Promise<IteratorResult<PostedCommand>> {
    this.#left = true
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Something was posted, or the end came. */
  wake(): void {
    while (!this.#left && !this.#signal.aborted && this.#hold.ended === undefined) {
      const letter = this.#hold.session.letters[this.#place]
      if (letter === undefined) {
        this.#wait()
        return
      }
      this.#place += 1
      if (letter.outcome === undefined) {
        this.#give({ done: false, value: letter.command })
        return
      }
    }
    this.#give({ done: true, value: undefined })
  }

  #wait(): void {
    const { session, owner } = this.#hold
    // An owner that is lost rings as well.
    session.mail.onRing(this.#signal === owner.lost ? undefined : this.#signal, this)
  }

  #give(result: IteratorResult<PostedCommand>): void {
    this.#resolve?.(result)
    this.#resolve = undefined
  }
}

/** Checks and copies first, then changes: past the first push nothing can fail. */
function append(session: StoredSession, events: readonly SessionEvent[], options: AppendOptions): void {
  const { log, letterOf } = session
  const head = log.length
  if (options.expectedSeq !== head) throw new SeqConflict(options.expectedSeq, head)
  const batch = isRecorded(events) ? events : events.map((event) => frozenJson(event))
  batch.forEach((event, i) => {
    if (event.seq !== head + i) throw new SeqConflict(event.seq, head + i)
  })
  const takes = options.takes?.map((take) => frozenJson(take)) ?? []
  const summary = options.summary && replaceSummary(session.summary, options.summary)

  log.push(batch)
  for (const { id, outcome } of takes) {
    const letter = letterOf?.get(id)
    if (letter !== undefined) letter.outcome ??= outcome
  }
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

/** Neighbouring deltas of one block, which say once what they share. */
interface Run {
  readonly first: number
  readonly like: KnownEvent<'assistant/chunk'>
  readonly texts: string[]
  /** Of each delta; none while all came at once. */
  times: number[] | undefined
  time: number
}

type Entry = SessionEvent | Run

/** The events of one session, by seq. Deltas, most of any log, are kept as runs, and made again when they are read. */
class MemoryLog {
  length = 0
  time: number | undefined
  readonly #entries: Entry[] = []
  /** The last place that was read: reading goes on from there. */
  #place = 0

  push(events: readonly SessionEvent[]): void {
    for (const event of events) {
      if (!this.#joins(event)) this.#entries.push(runOf(event) ?? event)
      this.length += 1
      this.time = event.time
    }
  }

  at(seq: number): SessionEvent | undefined {
    if (seq < 0 || seq >= this.length) return undefined
    const entry = this.#find(seq)
    return 'texts' in entry ? deltaAt(entry, seq) : entry
  }

  #joins(event: SessionEvent): boolean {
    const run = this.#entries.at(-1)
    if (run === undefined || !('texts' in run) || !isLike(run.like, event)) return false
    if (event.time !== run.time) run.times ??= run.texts.map(() => run.time)
    run.times?.push(event.time)
    run.texts.push((event.data.chunk as { readonly text: string }).text)
    run.time = event.time
    return true
  }

  #find(seq: number): Entry {
    const entries = this.#entries
    const near = entries[this.#place]
    if (near !== undefined && firstOf(near) <= seq) {
      const next = entries[this.#place + 1]
      if (next === undefined || firstOf(next) > seq) return near
      const after = entries[this.#place + 2]
      if (after === undefined || firstOf(after) > seq) {
        this.#place += 1
        return next
      }
    }
    let [low, high] = [0, entries.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (firstOf(entries[middle] as Entry) <= seq) low = middle
      else high = middle - 1
    }
    this.#place = low
    return entries[low] as Entry
  }
}

const firstOf = (entry: Entry): number => ('texts' in entry ? entry.first : entry.seq)

function runOf(event: SessionEvent): Run | undefined {
  if (!isDelta(event)) return undefined
  const { text } = event.data.chunk as { readonly text: string }
  return { first: event.seq, like: event, texts: [text], times: undefined, time: event.time }
}

/** A delta of text that is exactly that. */
function isDelta(event: SessionEvent): event is KnownEvent<'assistant/chunk'> {
  if (event.type !== 'assistant/chunk' || event.data.request !== undefined) return false
  const { type } = event.data.chunk
  return (
    (type === 'text-delta' || type === 'reasoning-delta') &&
    size(event) + size(event.data) + size(event.data.chunk) === 11
  )
}

function isLike(like: KnownEvent<'assistant/chunk'>, event: SessionEvent): event is KnownEvent<'assistant/chunk'> {
  if (!isDelta(event)) return false
  const [one, other] = [like.data, event.data]
  return (
    one.turn === other.turn &&
    one.step === other.step &&
    one.attempt === other.attempt &&
    one.chunk.type === other.chunk.type &&
    (one.chunk as { readonly index: number }).index === (other.chunk as { readonly index: number }).index
  )
}

function size(value: object): number {
  let keys = 0
  for (const _ in value) keys += 1
  return keys
}

function deltaAt({ first, like, texts, times }: Run, seq: number): SessionEvent {
  if (seq === first) return like
  const at = seq - first
  const time = times?.[at] ?? like.time
  const { turn, step, attempt, chunk } = like.data
  const { type, index } = chunk as { readonly type: 'text-delta'; readonly index: number }
  const data = Object.freeze({ turn, step, attempt, chunk: Object.freeze({ type, index, text: texts[at] as string }) })
  return Object.freeze({ type: 'assistant/chunk', seq, time, data })
}

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

/** Who waits at a bell. Called once; it may wait again from there. */
interface Waiting {
  wake(): void
}

const NOBODY: readonly Waiting[] = Object.freeze([])

/** A class, because a session has two and a thousand sessions share their methods. */
class Bell {
  /** Replaced, never written to: one that nobody waits for costs nothing. */
  #waiting = NOBODY

  ring(): void {
    const waiting = this.#waiting
    this.#waiting = NOBODY
    for (const one of waiting) one.wake()
  }

  /** Resolves at the next ring, or when `signal` aborts. */
  rung(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => this.onRing(signal, { wake: resolve }))
  }

  /** Calls back once, at the next ring or when `signal` aborts. */
  onRing(signal: AbortSignal | undefined, one: Waiting): void {
    if (signal === undefined) {
      this.#waiting = [...this.#waiting, one]
      return
    }
    const withSignal: Waiting = {
      wake: () => {
        signal.removeEventListener('abort', aborted)
        one.wake()
      },
    }
    const aborted = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== withSignal)
      one.wake()
    }
    this.#waiting = [...this.#waiting, withSignal]
    signal.addEventListener('abort', aborted, { once: true })
  }
}
