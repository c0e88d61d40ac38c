/**
 * Receipts: what became of a message, told from durable events. A receipt never rejects for an outcome one can expect,
 * and what nobody observes is never an unhandled rejection.
 */
import type { InboxItem, SessionEvent } from '../log/events.ts'
import { type InboxState, inbox } from '../log/projections/inbox.ts'
import type { TurnResult } from './turns.ts'

export type Entered =
  | { readonly kind: 'entered'; readonly turn: number; readonly step: number; readonly seq: number }
  | { readonly kind: 'dropped'; readonly turn: number; readonly reason?: string }
  | { readonly kind: 'canceled'; readonly seq: number }

/** What becomes of a message. Each promise rejects only when the agent fails or closes first. */
export interface Receipt {
  readonly id: string
  /** It is on disk. */
  readonly accepted: Promise<{ seq: number }>
  /** It entered a step, was left out of one, or was taken out of the inbox. */
  readonly entered: Promise<Entered>
  /** The end of the turn that took it; null when it never joined one. */
  readonly turn: Promise<TurnResult | null>
}

interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: unknown): void
}

function deferred<T>(): Deferred<T> {
  const made = {} as { resolve: (value: T) => void; reject: (error: unknown) => void }
  const promise = new Promise<T>((resolve, reject) => Object.assign(made, { resolve, reject }))
  promise.catch(() => {})
  return { promise, resolve: (value) => made.resolve(value), reject: (error) => made.reject(error) }
}

interface Tracked {
  readonly id: string
  readonly accepted: Deferred<{ seq: number }>
  readonly entered: Deferred<Entered>
  readonly turn: Deferred<TurnResult | null>
  place: 'pending' | 'claimed' | 'proposed' | 'entered'
  /** The last turn that claimed it. */
  joined: number
}

const untold = (id: string): Tracked => ({
  id,
  accepted: deferred(),
  entered: deferred(),
  turn: deferred(),
  place: 'pending',
  joined: 0,
})

const receiptOf = ({ id, accepted, entered, turn }: Tracked): Receipt => ({
  id,
  accepted: accepted.promise,
  entered: entered.promise,
  turn: turn.promise,
})

export interface Receipts {
  /** The receipt of a message, the same one for the same id while it is not settled. */
  track(id: string): Receipt
  /** The receipt of a message that is not settled yet. */
  of(id: string): Receipt | undefined
  /** Nobody has one that is not settled. */
  readonly isEmpty: boolean
  /** Takes the next durable event; `ended` is the result of the turn it ended. */
  place(event: SessionEvent, ended: TurnResult | undefined): void
  /** Where the log that a checkpoint covers left off; before any event. */
  restore(at: { readonly turn: number; readonly step: number; readonly queues: InboxState }): void
  /** Nothing more will come. */
  fail(error: unknown): void
}

export const createReceipts = (): Receipts => new AgentReceipts()

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentReceipts implements Receipts {
  /** Those not settled, by message id; none while none waits. */
  #tracked: Map<string, Tracked> | undefined
  #queues = inbox.initial
  #turn = 0
  #step = 0
  /** Between `step/start` and what follows its messages. */
  #entering = false

  track(id: string): Receipt {
    this.#tracked ??= new Map()
    const one = this.#tracked.get(id) ?? untold(id)
    this.#tracked.set(id, one)
    return receiptOf(one)
  }

  of(id: string): Receipt | undefined {
    const one = this.#tracked?.get(id)
    return one && receiptOf(one)
  }

  get isEmpty(): boolean {
    return this.#tracked === undefined
  }

  place(event: SessionEvent, ended: TurnResult | undefined): void {
    if (this.#entering && event.type !== 'user/message') this.#leaveOut()
    switch (event.type) {
      case 'agent/inbox/spliced':
        this.#splice(event)
        return
      case 'session/end-seed':
        this.#queues = inbox.evolve(this.#queues, event)
        return
      case 'turn/start':
        this.#turn = event.data.turn
        return
      case 'step/start':
        this.#step = event.data.step
        this.#entering = true
        for (const one of this.#all()) if (one.place === 'claimed') one.place = 'proposed'
        return
      case 'user/message':
        this.#enter(event.data.id, event.seq)
        return
      case 'turn/end':
        if (ended !== undefined) this.#endTurn(ended)
        return
      default:
        return
    }
  }

  restore({ turn, step, queues }: Parameters<Receipts['restore']>[0]): void {
    this.#turn = turn
    this.#step = step
    this.#queues = queues
  }

  fail(error: unknown): void {
    for (const { accepted, entered, turn } of this.#all()) {
      for (const one of [accepted, entered, turn]) one.reject(error)
    }
    this.#tracked = undefined
  }

  #all(): Iterable<Tracked> {
    return this.#tracked?.values() ?? []
  }

  #find(item: InboxItem): Tracked | undefined {
    return item.kind === 'message' ? this.#tracked?.get(item.message.id) : undefined
  }

  #settle(one: Tracked, entered: Entered, result: TurnResult | null): void {
    one.entered.resolve(entered)
    one.turn.resolve(result)
    this.#tracked?.delete(one.id)
    if (this.#tracked?.size === 0) this.#tracked = undefined
  }

  #enter(id: string, seq: number): void {
    const one = this.#tracked?.get(id)
    if (one === undefined) return
    one.place = 'entered'
    one.entered.resolve({ kind: 'entered', turn: this.#turn, step: this.#step, seq })
  }

  #leaveOut(): void {
    this.#entering = false
    for (const one of this.#all()) {
      if (one.place === 'proposed') this.#settle(one, { kind: 'dropped', turn: this.#turn }, null)
    }
  }

  #endTurn(ended: TurnResult): void {
    const turn = this.#turn
    const { reason } = ended
    const why = reason.kind === 'blocked' && reason.reason !== undefined ? { reason: reason.reason } : {}
    for (const one of this.#all()) {
      if (one.place === 'claimed') this.#settle(one, { kind: 'dropped', turn, ...why }, ended)
      if (one.place === 'entered') this.#settle(one, { kind: 'entered', turn, step: this.#step, seq: 0 }, ended)
      // Taken by this turn and put back by its end: it may still enter another, but this is the turn it was for.
      if (one.place === 'pending' && one.joined === turn) one.turn.resolve(ended)
    }
  }

  #splice(event: Extract<SessionEvent, { type: 'agent/inbox/spliced' }>): void {
    const { queue, start, deleteCount, inserted, outcome } = event.data
    const again = new Set(inserted.map((item) => this.#find(item)))
    for (const item of this.#queues[queue].slice(start, start + deleteCount)) {
      const one = this.#find(item)
      if (one === undefined || again.has(one)) continue
      if (outcome === 'claimed') {
        one.place = 'claimed'
        one.joined = this.#turn
      } else this.#settle(one, { kind: 'canceled', seq: event.seq }, null)
    }
    for (const one of again) {
      if (one === undefined) continue
      one.place = 'pending'
      one.accepted.resolve({ seq: event.seq })
    }
    this.#queues = inbox.evolve(this.#queues, event)
  }
}
