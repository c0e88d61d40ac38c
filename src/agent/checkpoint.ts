/**
 * What an agent folds of its log beside the session's own folds, as a checkpoint holds it: the chart's state, and all
 * that its parts count. What belongs to the process, such as receipts that somebody waits for, is no part of it.
 */
import type { SessionEvent } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type { InboxState } from '../log/projections/inbox.ts'
import { type AgentSnapshot, type ChartState, restoreState } from '../machines/fold.ts'
import type { SavedApprovals } from './approvals.ts'
import type { SavedBudgets } from './budgets.ts'
import { chartHash, VERSION } from './chart-hash.ts'
import type { SavedTurn } from './turns.ts'

/** A checkpoint by other code, or of another chart, is passed over. */
export const MAKER = `${VERSION} ${chartHash}`

export interface SavedAgent {
  readonly state: ChartState
  /** The turn and step that were the last to begin. */
  readonly at: { readonly turn: number; readonly step: number }
  readonly lastEvent: SessionEvent | null
  readonly lastReason: string | null
  readonly contextStands: boolean
  readonly approvals: SavedApprovals
  readonly budgets: SavedBudgets
  readonly openTurn: SavedTurn | null
}

export const savedAgent = ({ state, ...rest }: SavedAgent): Json =>
  ({ state: { value: state.value, context: state.context }, ...rest }) as unknown as Json

export interface RestoredAgent extends SavedAgent {
  readonly snapshot: AgentSnapshot
  readonly queues: InboxState
}

/** What was saved, or undefined for anything else. */
export function restoredAgent(saved: unknown): RestoredAgent | undefined {
  if (!isSaved(saved)) return undefined
  try {
    const snapshot = restoreState(saved.state)
    return { ...saved, snapshot, queues: saved.state.context.inbox }
  } catch {
    return undefined // The chart has no such state.
  }
}

/** Its maker is this very code, so it is enough that nothing is missing. */
function isSaved(saved: unknown): saved is SavedAgent {
  if (!isObject(saved) || !isObject(saved.state) || !isObject(saved.state.context)) return false
  const { context } = saved.state
  return (
    isObject(context.inbox) &&
    isObject(saved.at) &&
    Array.isArray(saved.approvals) &&
    isObject(saved.budgets) &&
    PLAIN.every((key) => key in saved)
  )
}

const PLAIN = ['lastEvent', 'lastReason', 'contextStands', 'openTurn'] as const

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
