/** What the agent's observers are told of a batch: events first, then what they mean for the inbox and for errors. */
import type { SessionEvent } from '../log/events.ts'
import { type InboxState, inbox } from '../log/projections/inbox.ts'
import type { HookRegistry } from '../services/hooks/registry.ts'

export interface BatchObserver {
  /** Takes an event of the stored log, telling nobody. */
  load(event: SessionEvent): void
  /** Where the log that a checkpoint covers left off; before any event. */
  restore(at: { readonly turn: number; readonly step: number; readonly queues: InboxState }): void
  tell(events: readonly SessionEvent[]): void
  /** The value behind the failure that the open turn may end with. */
  noteError(error: unknown): void
}

type Spliced = Extract<SessionEvent, { type: 'agent/inbox/spliced' }>

export const createBatchObserver = (hooks: HookRegistry): BatchObserver => new HookTeller(hooks)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class HookTeller implements BatchObserver {
  readonly #hooks: HookRegistry
  #queues = inbox.initial
  #turn = 0
  #step = 0
  #error: { readonly thrown: unknown } | undefined

  constructor(hooks: HookRegistry) {
    this.#hooks = hooks
  }

  load(event: SessionEvent): void {
    if (event.type === 'turn/start') {
      this.#turn = event.data.turn
      this.#step = 0
      this.#error = undefined
    } else if (event.type === 'step/start') this.#step = event.data.step
    this.#queues = inbox.evolve(this.#queues, event)
  }

  restore({ turn, step, queues }: Parameters<BatchObserver['restore']>[0]): void {
    this.#turn = turn
    this.#step = step
    this.#queues = queues
  }

  tell(events: readonly SessionEvent[]): void {
    if (this.#hooks.has('session/event')) for (const event of events) this.#hooks.tell('session/event', event)
    for (const event of events) {
      if (event.type === 'assistant/chunk') continue
      this.#explain(event)
      this.load(event)
    }
  }

  noteError(thrown: unknown): void {
    this.#error = { thrown }
  }

  #explain(event: SessionEvent): void {
    if (event.type === 'agent/inbox/spliced') this.#explainSplice(event)
    if (event.type !== 'turn/end' || event.data.reason.kind !== 'error') return
    const raw = this.#error === undefined ? event.data.reason.error : this.#error.thrown
    this.#hooks.tell('agent/error', { turn: this.#turn, ...(this.#step > 0 ? { step: this.#step } : {}), error: raw })
  }

  #explainSplice({ data }: Spliced): void {
    for (const item of this.#queues[data.queue].slice(data.start, data.start + data.deleteCount)) {
      if (item.kind !== 'message') continue
      const { message } = item
      if (data.outcome === 'claimed') this.#hooks.tell('agent/inbox/claimed', { message, turn: this.#turn })
      else this.#hooks.tell('agent/inbox/discarded', { message })
    }
    for (const item of data.inserted) {
      if (item.kind === 'message') this.#hooks.tell('agent/inbox/inserted', { message: item.message })
    }
  }
}
