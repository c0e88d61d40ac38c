/**
 * Receipts: what became of a message, told from durable events. A receipt never rejects for an outcome one can expect,
 * and what nobody observes is never an unhandled rejection.
 */
import type { InboxItem, SessionEvent } from '../log/events.ts'
import { inbox } from '../log/projections/inbox.ts'
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
  /** Takes the next durable event; `ended` is the result of the turn it ended. */
  place(event: SessionEvent, ended: TurnResult | undefined): void
  /** Nothing more will come. */
  fail(error: unknown): void
}

export function createReceipts(): Receipts {
  const tracked = new Map<string, Tracked>()
  let queues = inbox.initial
  let turn = 0
  let step = 0
  /** Between `step/start` and what follows its messages. */
  let entering = false

  const find = (item: InboxItem): Tracked | undefined =>
    item.kind === 'message' ? tracked.get(item.message.id) : undefined
  const settle = (one: Tracked, entered: Entered, result: TurnResult | null): void => {
    one.entered.resolve(entered)
    one.turn.resolve(result)
    tracked.delete(one.id)
  }
  const leaveOut = (): void => {
    entering = false
    for (const one of tracked.values()) if (one.place === 'proposed') settle(one, { kind: 'dropped', turn }, null)
  }
  const endTurn = (ended: TurnResult): void => {
    const { reason } = ended
    const why = reason.kind === 'blocked' && reason.reason !== undefined ? { reason: reason.reason } : {}
    for (const one of tracked.values()) {
      if (one.place === 'claimed') settle(one, { kind: 'dropped', turn, ...why }, ended)
      if (one.place === 'entered') settle(one, { kind: 'entered', turn, step, seq: 0 }, ended)
      // Taken by this turn and put back by its end: it may still enter another, but this is the turn it was for.
      if (one.place === 'pending' && one.joined === turn) one.turn.resolve(ended)
    }
  }
  const splice = (event: Extract<SessionEvent, { type: 'agent/inbox/spliced' }>): void => {
    const { queue, start, deleteCount, inserted, outcome } = event.data
    const again = new Set(inserted.map(find))
    for (const one of queues[queue].slice(start, start + deleteCount).map(find)) {
      if (one === undefined || again.has(one)) continue
      if (outcome === 'claimed') {
        one.place = 'claimed'
        one.joined = turn
      } else settle(one, { kind: 'canceled', seq: event.seq }, null)
    }
    for (const one of again) {
      if (one === undefined) continue
      one.place = 'pending'
      one.accepted.resolve({ seq: event.seq })
    }
    queues = inbox.evolve(queues, event)
  }

  return {
    track(id) {
      const one = tracked.get(id) ?? untold(id)
      tracked.set(id, one)
      return receiptOf(one)
    },
    of(id) {
      const one = tracked.get(id)
      return one && receiptOf(one)
    },
    place(event, ended) {
      if (entering && event.type !== 'user/message') leaveOut()
      switch (event.type) {
        case 'agent/inbox/spliced':
          return splice(event)
        case 'session/end-seed':
          queues = inbox.evolve(queues, event)
          return
        case 'turn/start':
          turn = event.data.turn
          return
        case 'step/start':
          step = event.data.step
          entering = true
          for (const one of tracked.values()) if (one.place === 'claimed') one.place = 'proposed'
          return
        case 'user/message': {
          const one = tracked.get(event.data.id)
          if (one === undefined) return
          one.place = 'entered'
          one.entered.resolve({ kind: 'entered', turn, step, seq: event.seq })
          return
        }
        case 'turn/end':
          if (ended !== undefined) endTurn(ended)
          return
        default:
          return
      }
    },
    fail(error) {
      for (const { accepted, entered, turn: joined } of tracked.values()) {
        for (const one of [accepted, entered, joined]) one.reject(error)
      }
      tracked.clear()
    },
  }
}
