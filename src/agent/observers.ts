/** What the agent's observers are told of a batch: events first, then what they mean for the inbox and for errors. */
import type { SessionEvent } from '../log/events.ts'
import { inbox } from '../log/projections/inbox.ts'
import type { HookRegistry } from '../services/hooks/registry.ts'

export interface BatchObserver {
  /** Takes an event of the stored log, telling nobody. */
  load(event: SessionEvent): void
  tell(events: readonly SessionEvent[]): void
  /** The value behind the failure that the open turn may end with. */
  noteError(error: unknown): void
}

type Spliced = Extract<SessionEvent, { type: 'agent/inbox/spliced' }>

export function createBatchObserver(hooks: HookRegistry): BatchObserver {
  let queues = inbox.initial
  let turn = 0
  let step = 0
  let error: { readonly thrown: unknown } | undefined

  const removedBy = ({ data }: Spliced) =>
    queues[data.queue]
      .slice(data.start, data.start + data.deleteCount)
      .flatMap((item) => (item.kind === 'message' ? [item.message] : []))

  const note = (event: SessionEvent): void => {
    if (event.type === 'turn/start') {
      turn = event.data.turn
      step = 0
      error = undefined
    } else if (event.type === 'step/start') step = event.data.step
    queues = inbox.evolve(queues, event)
  }

  const explain = (event: SessionEvent): void => {
    if (event.type === 'agent/inbox/spliced') {
      const { inserted, outcome } = event.data
      const removed = removedBy(event)
      for (const message of removed) {
        if (outcome === 'claimed') hooks.tell('agent/inbox/claimed', { message, turn })
        else hooks.tell('agent/inbox/discarded', { message })
      }
      for (const item of inserted) {
        if (item.kind === 'message') hooks.tell('agent/inbox/inserted', { message: item.message })
      }
    } else if (event.type === 'turn/end' && event.data.reason.kind === 'error') {
      const raw = error === undefined ? event.data.reason.error : error.thrown
      hooks.tell('agent/error', { turn, ...(step > 0 ? { step } : {}), error: raw })
    }
  }

  return {
    load: note,
    tell(events) {
      for (const event of events) hooks.tell('session/event', event)
      for (const event of events) {
        explain(event)
        note(event)
      }
    },
    noteError(thrown) {
      error = { thrown }
    },
  }
}
