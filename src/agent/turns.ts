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
}

export function createTurns(): Turns {
  let open: OpenTurn | undefined
  return {
    place(event) {
      switch (event.type) {
        case 'turn/start':
          open = { turn: event.data.turn, message: undefined, usage: { inputTokens: 0, outputTokens: 0 }, steps: 0 }
          return
        case 'step/start':
          if (open !== undefined) open.steps = event.data.step
          return
        case 'assistant/message':
          if (open === undefined) return
          open.message = event.data.message
          if (event.data.usage !== undefined) open.usage = addUsage(open.usage, event.data.usage)
          return
        case 'turn/end': {
          const ended = open
          open = undefined
          return ended && resultOf(ended, event.data.reason)
        }
        default:
          return
      }
    },
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
