/** What waits in the two queues, as the splices tell. */
import type { EventMap, InboxItem, Queue } from '../events.ts'
import type { Projection } from './projection.ts'

export type InboxState = { readonly [Q in Queue]: readonly InboxItem[] }

const NOTHING: readonly InboxItem[] = Object.freeze([])
const EMPTY: InboxState = Object.freeze({ 'next-turn': NOTHING, 'next-step': NOTHING })

export const inbox: Projection<InboxState> = {
  initial: EMPTY,
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
  return stateOf({ ...state, [data.queue]: items })
}

/** A fork inherits the open turn's results, never what waited for its parent. */
function withoutMessages(state: InboxState): InboxState {
  const keep = (queue: Queue) => state[queue].filter((item) => item.kind !== 'message')
  return stateOf({ 'next-turn': keep('next-turn'), 'next-step': keep('next-step') })
}

/** Frozen; every empty inbox is the same one, since most of a thousand agents have one. */
function stateOf(state: InboxState): InboxState {
  if (state['next-turn'].length === 0 && state['next-step'].length === 0) return EMPTY
  for (const items of Object.values(state)) Object.freeze(items)
  return Object.freeze(state)
}
