/**
 * What the opening of a log that is not at rest records: whether its turn is carried on or closed. Recovery is
 * bounded: a turn whose every opening finds work cut short, and makes none, is interrupted in the end.
 */
import type { EventMap } from '../log/events.ts'
import { owed } from './evolve.ts'
import { type AgentSnapshot, stateName } from './fold.ts'

/** What opening adds of its own to `session/resumed`. */
export type Resumption = Pick<EventMap['session/resumed'], 'recovery' | 'cause' | 'resumes'>

/** What the configuration says: how a turn is recovered, and how often in a row without progress. */
export interface RecoveryOptions {
  readonly recovery: 'continue' | 'interrupt'
  readonly maxResumes: number
}

type Folded = Pick<AgentSnapshot, 'value' | 'context'>

/** Something was under way that the crash cut short; a wait for a time or for an approval loses nothing. */
function inFlight({ value, context }: Folded): boolean {
  if (context.suspended || value === 'idle') return false
  if (value === 'toolExec') return context.calls.some(({ status }) => status === 'called' || status === 'dispatched')
  return stateName({ value }) !== 'stepRequest.waiting'
}

/** What to record when the log that folds to this snapshot is opened; undefined for one at rest with nothing owed. */
export function resumption(snapshot: Folded, { recovery, maxResumes }: RecoveryOptions): Resumption | undefined {
  const { value, context } = snapshot
  if (value === 'idle' && !owed(context)) return undefined
  const resumes = context.resumes + (inFlight(snapshot) ? 1 : 0)
  return resumes > maxResumes ? { resumes, recovery: 'interrupt', cause: 'recovery-limit' } : { resumes, recovery }
}
