/**
 * Where each message of the inbox stands, folded from the log: pending, claimed, entered, dropped or canceled. It is
 * what makes sending the same message twice harmless, also over a crash.
 */
import type { InboxItem, KnownEvent, Queue, SessionEvent } from '../events.ts'
import type { UserMessage } from '../messages.ts'
import { type InboxState, inbox } from '../projections/inbox.ts'

/** Where a message stands. `seq` is the event that decided it. */
export type MessageStanding =
  | { readonly kind: 'pending'; readonly queue: Queue; readonly seq: number }
  | { readonly kind: 'claimed'; readonly turn: number; readonly seq: number }
  | { readonly kind: 'entered'; readonly turn: number; readonly step: number; readonly seq: number }
  | { readonly kind: 'dropped'; readonly turn: number; readonly reason?: string }
  | { readonly kind: 'canceled'; readonly seq: number }

/** A message's place in the session. */
export interface MessageRecord {
  /** As it last stood in the inbox; absent for one that entered without passing through it. */
  readonly message?: UserMessage
  /** The seq that first recorded the id. */
  readonly seq: number
  readonly standing: MessageStanding
}

export interface Standings {
  place(event: SessionEvent): void
  get(id: string): MessageRecord | undefined
  /** All of it. */
  saved(): SavedStandings
}

/** Standings as a checkpoint holds them. */
export interface SavedStandings {
  readonly turn: number
  readonly step: number
  readonly claimed: readonly string[]
  readonly queues: InboxState
  /** Asked for when somebody wants to know. */
  records(): readonly SavedRecord[]
}

export type SavedRecord = readonly [id: string, record: MessageRecord]

export const createStandings = (saved?: SavedStandings): Standings => new SessionStandings(saved)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class SessionStandings implements Standings {
  /** Those of before, until somebody asks for one that is not among the new. */
  #before: (() => readonly SavedRecord[]) | undefined
  /** Made with the first message. */
  #records: Map<string, MessageRecord> | undefined
  /** Claimed for the open turn and not in a step yet, or left out by the open step. */
  #claimed: Set<string> | undefined
  #queues = inbox.initial
  #turn = 0
  #step = 0

  constructor(saved: SavedStandings | undefined) {
    if (saved === undefined) return
    this.#before = saved.records
    if (saved.claimed.length > 0) this.#claimed = new Set(saved.claimed)
    this.#queues = saved.queues
    this.#turn = saved.turn
    this.#step = saved.step
  }

  get(id: string): MessageRecord | undefined {
    const known = this.#records?.get(id)
    if (known !== undefined || this.#before === undefined) return known
    this.#look()
    return this.#records?.get(id)
  }

  saved(): SavedStandings {
    this.#look()
    const records = [...(this.#records ?? [])]
    const claimed = [...(this.#claimed ?? [])]
    return { turn: this.#turn, step: this.#step, claimed, queues: this.#queues, records: () => records }
  }

  /** What was recorded since stands. */
  #look(): void {
    if (this.#before === undefined) return
    const before = this.#before()
    this.#before = undefined
    if (before.length === 0) return
    const since = this.#records
    this.#records = new Map(before)
    for (const [id, record] of since ?? []) this.#records.set(id, record)
  }

  place(event: SessionEvent): void {
    this.#note(event)
    this.#queues = inbox.evolve(this.#queues, event)
  }

  #note(event: SessionEvent): void {
    switch (event.type) {
      case 'agent/inbox/spliced':
        this.#splice(event)
        break
      case 'turn/start':
        this.#turn = event.data.turn
        this.#step = 0
        break
      case 'step/start':
        this.#step = event.data.step
        // What the step takes in follows in the same batch; what it leaves out stays dropped.
        this.#dropClaimed()
        break
      case 'user/message':
        this.#enter(event.data.id, event.seq)
        break
      case 'step/end':
        this.#claimed = undefined
        break
      case 'turn/end':
        this.#dropClaimed(event.data.reason.kind === 'blocked' ? event.data.reason.reason : undefined)
        this.#claimed = undefined
        break
      case 'session/end-seed':
        for (const items of Object.values(this.#queues)) this.#remove(items, { kind: 'canceled', seq: event.seq })
        break
    }
  }

  #splice({ seq, data }: KnownEvent<'agent/inbox/spliced'>): void {
    const removed = this.#queues[data.queue].slice(data.start, data.start + data.deleteCount)
    const claim = data.outcome === 'claimed'
    this.#remove(removed, claim ? { kind: 'claimed', turn: this.#turn, seq } : { kind: 'canceled', seq })
    // After the removal: a replaced message, or one put back by an interrupt, is pending again.
    this.#insert(data.inserted, data.queue, seq)
  }

  #remove(items: readonly InboxItem[], standing: MessageStanding): void {
    for (const item of items) {
      if (item.kind !== 'message') continue
      if (standing.kind === 'claimed') {
        this.#claimed ??= new Set()
        this.#claimed.add(item.message.id)
      }
      this.#settle(item.message.id, standing)
    }
  }

  #insert(items: readonly InboxItem[], queue: Queue, seq: number): void {
    for (const item of items) {
      if (item.kind !== 'message') continue
      const { message } = item
      this.#claimed?.delete(message.id)
      const first = this.get(message.id)?.seq ?? seq
      this.#record(message.id, { message, seq: first, standing: { kind: 'pending', queue, seq } })
    }
  }

  #enter(id: string, seq: number): void {
    const standing = { kind: 'entered', turn: this.#turn, step: this.#step, seq } as const
    if (this.#claimed?.delete(id)) this.#settle(id, standing)
    else if (this.get(id) === undefined) this.#record(id, { seq, standing })
  }

  #dropClaimed(reason?: string): void {
    const why = reason === undefined ? {} : { reason }
    for (const id of this.#claimed ?? []) this.#settle(id, { kind: 'dropped', turn: this.#turn, ...why })
  }

  #settle(id: string, standing: MessageStanding): void {
    const record = this.get(id)
    if (record !== undefined) this.#record(id, { ...record, standing })
  }

  #record(id: string, record: MessageRecord): void {
    this.#records ??= new Map()
    this.#records.set(id, record)
  }
}
