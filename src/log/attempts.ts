/**
 * Which attempt of which step is asking the model, and with what. One place knows where attempts begin: with the
 * messages entered after `step/start`, with `llm/retry-started`, or with a `session/resumed` that found the step asking.
 */
import type { SessionEvent } from './events.ts'
import type { Message } from './messages.ts'
import type { Surface } from './projections/surface.ts'
import type { RequestHeader } from './requests.ts'

/** Names an attempt; the first of a step is 1. */
export interface AttemptPlace {
  readonly turn: number
  readonly step: number
  readonly attempt: number
}

/** An attempt in progress. `header` is the one its first chunk answers; null while none was ever logged. */
export interface Attempt extends AttemptPlace {
  readonly messages: readonly Message[]
  readonly header: RequestHeader | null
}

export interface AttemptTracker {
  /** Takes the next event, before the surface does. */
  note(event: SessionEvent): void
  /** It is this attempt that is asking. Cheap: it may be asked of every chunk. */
  isAsking(place: AttemptPlace): boolean
  /** The attempt being made after the events so far; null while no model is asked. */
  current(): Attempt | null
}

/** Follows the attempts of a log whose conversation `surface` is being given, event by event, after this tracker. */
export function trackAttempts(surface: Surface): AttemptTracker {
  let at: AttemptPlace | null = null
  // Undefined while messages still enter: they are read from the surface when the last one has.
  let messages: readonly Message[] | undefined
  let header: RequestHeader | null = null
  let asked: RequestHeader | null = null
  let answering = false
  let canceled = false

  const begin = (turn: number, step: number, attempt: number) => {
    at = { turn, step, attempt }
    answering = false
  }
  const startStep = (turn: number, step: number) => {
    begin(turn, step, 1)
    messages = undefined
  }
  const carryOn = (turn: number, step: number, attempt: number) => {
    messages = surface.messages()
    begin(turn, step, attempt)
  }

  return {
    note(event) {
      if (event.type === 'user/message') return
      if (at) messages ??= surface.messages()
      switch (event.type) {
        case 'turn/start':
          canceled = false
          return
        case 'turn/cancel':
          canceled = true
          return
        case 'step/start':
          return startStep(event.data.turn, event.data.step)
        case 'request/header':
          header = event.data.header
          return
        case 'assistant/chunk':
          if (!answering) asked = header
          answering = true
          return
        case 'llm/retry-started':
          return carryOn(event.data.turn, event.data.step, event.data.attempt)
        case 'session/resumed':
          if (at && event.data.recovery === 'continue' && !canceled) carryOn(at.turn, at.step, at.attempt + 1)
          return
        case 'llm/retry':
        case 'assistant/message':
        case 'step/end':
        case 'turn/end':
          at = null
          return
        default:
          return
      }
    },
    isAsking: (place) =>
      at !== null && at.attempt === place.attempt && at.step === place.step && at.turn === place.turn,
    current: () => at && { ...at, messages: messages ?? surface.messages(), header: answering ? asked : header },
  }
}
