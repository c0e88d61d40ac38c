/** A view of a log: a fold over its events, pure and total, so that any prefix gives the state of its moment. */
import type { SessionEvent } from '../events.ts'

export interface Projection<S> {
  readonly initial: S
  /** The state after one more event; the same object when the event does not concern it. Never throws. */
  evolve(state: S, event: SessionEvent): S
}

/** The state of a projection after all of `events`. */
export function project<S>(projection: Projection<S>, events: Iterable<SessionEvent>): S {
  let state = projection.initial
  for (const event of events) state = projection.evolve(state, event)
  return state
}
