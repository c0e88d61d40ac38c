/** What waits in the two queues, as the splices tell. */
import type { EventMap, InboxItem, Queue } from '../events.ts'
import type { Projection } from './projection.ts'

export type InboxState = { readonly [Q in Queue]: readonly InboxItem[] }

export const inbox: Projection<InboxState> = {
  initial: Object.freeze({ 'next-turn': Object.freeze([]), 'next-step': Object.freeze([]) }),
  evolve(state, event) {
    switch (event.type) {
      case 'agent/inbox/spliced':
        return splice(state, event.data)
      case 'session/end-seed':
        return withoutMessages(state)
      default:
        return state
    }
  },
}

function splice(state: InboxState, data: EventMap['agent/inbox/spliced']): InboxState {
  const items = state[data.queue].toSpliced(data.start, data.deleteCount, ...data.inserted)
  return Object.freeze({ ...state, [data.queue]: Object.freeze(items) })
}

/** A fork inherits the open turn's results, never what waited for its parent. */
function withoutMessages(state: InboxState): InboxState {
  const keep = (queue: Queue) => Object.freeze(state[queue].filter((item) => item.kind !== 'message'))
  return Object.freeze({ 'next-turn': keep('next-turn'), 'next-step': keep('next-step') })
}
