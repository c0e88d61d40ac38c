/** What a list of sessions says of one: how many turns, whether one is open, how the last one ended. */
import type { TurnEndReason } from '../events.ts'
import type { Projection } from './projection.ts'

export interface SummaryState {
  /** Turns started; also the number of the last one. */
  readonly turns: number
  readonly open: boolean
  /** Of the last turn that ended; null before the first. */
  readonly lastReason: TurnEndReason['kind'] | null
}

export const summary: Projection<SummaryState> = {
  initial: Object.freeze({ turns: 0, open: false, lastReason: null }),
  evolve(state, event) {
    switch (event.type) {
      case 'turn/start':
        return Object.freeze({ ...state, turns: event.data.turn, open: true })
      case 'turn/end':
        return Object.freeze({ ...state, open: false, lastReason: event.data.reason.kind })
      default:
        return state
    }
  },
}
