/**
 * Where each message of the inbox stands, folded from the log: pending, claimed, entered, dropped or canceled. It is
 * what makes sending the same message twice harmless, also over a crash.
 */
import type { InboxItem, KnownEvent, Queue, SessionEvent } from '../events.ts'
import type { UserMessage } from '../messages.ts'
import { inbox } from '../projections/inbox.ts'

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
}

export function createStandings(): Standings {
  const records = new Map<string, MessageRecord>()
  // Claimed for the open turn and not in a step yet, or left out by the open step.
  const claimed = new Set<string>()
  let queues = inbox.initial
  let turn = 0
  let step = 0

  const settle = (id: string, standing: MessageStanding): void => {
    const record = records.get(id)
    if (record !== undefined) records.set(id, { ...record, standing })
  }
  const remove = (items: readonly InboxItem[], standing: MessageStanding): void => {
    for (const item of items) {
      if (item.kind !== 'message') continue
      if (standing.kind === 'claimed') claimed.add(item.message.id)
      settle(item.message.id, standing)
    }
  }
  const insert = (items: readonly InboxItem[], queue: Queue, seq: number): void => {
    for (const item of items) {
      if (item.kind !== 'message') continue
      const { message } = item
      claimed.delete(message.id)
      const first = records.get(message.id)?.seq ?? seq
      records.set(message.id, { message, seq: first, standing: { kind: 'pending', queue, seq } })
    }
  }
  const splice = ({ seq, data }: KnownEvent<'agent/inbox/spliced'>): void => {
    const removed = queues[data.queue].slice(data.start, data.start + data.deleteCount)
    remove(removed, data.outcome === 'claimed' ? { kind: 'claimed', turn, seq } : { kind: 'canceled', seq })
    // After the removal: a replaced message, or one put back by an interrupt, is pending again.
    insert(data.inserted, data.queue, seq)
  }
  const enter = (id: string, seq: number): void => {
    const standing = { kind: 'entered', turn, step, seq } as const
    if (claimed.delete(id)) settle(id, standing)
    else if (!records.has(id)) records.set(id, { seq, standing })
  }
  const dropClaimed = (reason?: string): void => {
    for (const id of claimed) settle(id, { kind: 'dropped', turn, ...(reason === undefined ? {} : { reason }) })
  }
  const note = (event: SessionEvent): void => {
    switch (event.type) {
      case 'agent/inbox/spliced':
        splice(event)
        break
      case 'turn/start':
        turn = event.data.turn
        step = 0
        break
      case 'step/start':
        step = event.data.step
        // What the step takes in follows in the same batch; what it leaves out stays dropped.
        dropClaimed()
        break
      case 'user/message':
        enter(event.data.id, event.seq)
        break
      case 'step/end':
        claimed.clear()
        break
      case 'turn/end':
        dropClaimed(event.data.reason.kind === 'blocked' ? event.data.reason.reason : undefined)
        claimed.clear()
        break
      case 'session/end-seed':
        for (const items of Object.values(queues)) remove(items, { kind: 'canceled', seq: event.seq })
        break
    }
  }

  return {
    get: (id) => records.get(id),
    place(event) {
      note(event)
      queues = inbox.evolve(queues, event)
    },
  }
}
