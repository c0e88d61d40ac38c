/** Which model answers and how much it can read: the last context logged, null before the first. */
import type { EventMap } from '../events.ts'
import type { Projection } from './projection.ts'

export const requestContext: Projection<EventMap['request/context'] | null> = {
  initial: null,
  evolve: (state, event) => (event.type === 'request/context' ? event.data : state),
}
