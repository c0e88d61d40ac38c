/** What the chart's state means to the outside. */
import type { SummaryUpdate } from '../log/store.ts'
import { owed } from '../machines/evolve.ts'
import type { ChartState } from '../machines/fold.ts'

type Running = 'idle' | 'running' | 'waiting'

/** Waiting is only for the outside: every call that is under way wants an approval, or a retry wants its time. */
export function statusOf({ value, context }: ChartState): Running {
  if (value === 'idle') return 'idle'
  if (context.cancel !== null) return 'running'
  if (typeof value !== 'string') return value.stepRequest === 'waiting' ? 'waiting' : 'running'
  return value === 'toolExec' && waitsForApproval(context) ? 'waiting' : 'running'
}

/** A fork's questions are its parent's: opening it answers them. */
const waitsForApproval = ({ calls }: ChartState['context']): boolean =>
  calls.some(({ status }) => status === 'awaiting') &&
  calls.every(
    ({ status, forked }) => status === 'settled' || status === 'planned' || (status === 'awaiting' && !forked),
  )

/** ms until what it waits for is due; undefined where it waits for nobody but people, or for nothing. */
export function leftToWait(reached: ChartState, now: number): number | undefined {
  if (statusOf(reached) !== 'waiting') return undefined
  const { retry, calls } = reached.context
  // Never more than all of it, also when the clock was set back.
  if (typeof reached.value !== 'string')
    return retry === null ? 0 : within(retry.at + retry.delayMs - now, retry.delayMs)
  const expiries = calls.flatMap(({ approval }) => approval?.expiresAt ?? [])
  return expiries.length === 0 ? undefined : Math.max(0, Math.min(...expiries) - now)
}

const within = (ms: number, most: number): number => Math.min(most, Math.max(0, ms))

/** What a list of sessions shows without reading logs; `lastReason` is the caller's to add. */
export function summaryOf(reached: ChartState): SummaryUpdate {
  const { value, context } = reached
  const state = statusOf(reached)
  const base = { turns: context.turn, state, owed: state === 'running' || owed(context) }
  if (state !== 'waiting') return base
  if (typeof value !== 'string') {
    const wakeAt = context.retry === null ? {} : { wakeAt: context.retry.at + context.retry.delayMs }
    return { ...base, waitingFor: 'retry', ...wakeAt }
  }
  const expiries = context.calls.flatMap(({ approval }) => approval?.expiresAt ?? [])
  return { ...base, waitingFor: 'approval', ...(expiries.length > 0 ? { wakeAt: Math.min(...expiries) } : {}) }
}
