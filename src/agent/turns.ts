/** What became of turns: folded from durable events, so that a result is never told before it is on disk. */
import type { SessionEvent, TurnEndReason } from '../log/events.ts'
import { type AssistantMessage, type TokenUsage, textOf } from '../log/messages.ts'
import { addUsage } from '../log/projections/usage.ts'

/** How a turn ended. `text` and `message` are its last answer, `usage` its tokens, `steps` how many it opened. */
export interface TurnResult {
  readonly turn: number
  readonly reason: TurnEndReason
  readonly text: string
  readonly message?: AssistantMessage
  readonly usage: TokenUsage
  readonly steps: number
}

interface OpenTurn {
  readonly turn: number
  message: AssistantMessage | undefined
  usage: TokenUsage
  steps: number
}

export interface Turns {
  /** Takes the next durable event; gives the result if it ended a turn. */
  place(event: SessionEvent): TurnResult | undefined
  /** The open turn. */
  saved(): SavedTurn | null
  /** Takes it back, before any event. */
  restore(saved: SavedTurn | null): void
}

/** An open turn as a checkpoint holds it. */
export interface SavedTurn {
  readonly turn: number
  readonly message: AssistantMessage | null
  readonly usage: TokenUsage
  readonly steps: number
}

export const createTurns = (): Turns => new DurableTurns()

/** A class, because an agent has one of each and a thousand agents share their methods. */
class DurableTurns implements Turns {
  #open: OpenTurn | undefined

  saved(): SavedTurn | null {
    return this.#open === undefined ? null : { ...this.#open, message: this.#open.message ?? null }
  }

  restore(saved: SavedTurn | null): void {
    this.#open = saved === null ? undefined : { ...saved, message: saved.message ?? undefined }
  }

  place(event: SessionEvent): TurnResult | undefined {
    switch (event.type) {
      case 'turn/start':
        this.#open = { turn: event.data.turn, message: undefined, usage: { inputTokens: 0, outputTokens: 0 }, steps: 0 }
        return
      case 'step/start':
        if (this.#open !== undefined) this.#open.steps = event.data.step
        return
      case 'assistant/message':
        if (this.#open === undefined) return
        this.#open.message = event.data.message
        if (event.data.usage !== undefined) this.#open.usage = addUsage(this.#open.usage, event.data.usage)
        return
      case 'turn/end': {
        const ended = this.#open
        this.#open = undefined
        return ended && resultOf(ended, event.data.reason)
      }
      default:
        return
    }
  }
}

const resultOf = ({ turn, message, usage, steps }: OpenTurn, reason: TurnEndReason): TurnResult => ({
  turn,
  reason,
  text: message === undefined ? '' : textOf(message),
  ...(message === undefined ? {} : { message }),
  usage,
  steps,
})
