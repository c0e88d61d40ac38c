/** What lives around an agent between two inputs: what must, by the state it is in, and what really does. */
import { isWaiting, type LoopState, settleTime } from '../loop-state.ts'
import { actorsOf, waitsOf } from '../waits.ts'
import type { Life } from './life.ts'

export interface Standing {
  /** Ids of the actors that live, sorted. */
  readonly actors: readonly string[]
  /** Names of what its surroundings have yet to answer, sorted. */
  readonly waits: readonly string[]
  /** When the timers that are set are due, epoch ms, in order. */
  readonly timers: readonly string[]
}

export const standingIn = (state: LoopState): Standing => ({
  actors: [...actorsOf(state)].sort(),
  waits: waitsOf(state),
  timers: timersIn(state).map(String),
})

function timersIn(state: LoopState): readonly number[] {
  const { context, cancelledAt } = state
  const due = context.calls.flatMap(({ status, approval }) =>
    status === 'awaiting' && approval?.expiresAt !== undefined ? [approval.expiresAt] : [],
  )
  if (isWaiting(state) && context.retry !== null) due.push(context.retry.at + context.retry.delayMs)
  if (cancelledAt !== undefined) due.push(settleTime(state))
  return due.sort((a, b) => a - b)
}

export const standingOf = (life: Life): Standing => ({
  actors: Object.keys(life.snapshot().children).sort(),
  waits: waitsFor(life),
  timers: life.clock.due().map(String),
})

function waitsFor({ agent, surroundings, snapshot }: Life): readonly string[] {
  const { value, context } = snapshot()
  return [
    ...surroundings.waiting(),
    ...(isWaiting({ value }) ? [`retry ${context.turn}.${context.step}.${context.attempt}`] : []),
    ...agent.approvals().map(({ callId, run }) => `approval ${callId} ${run}`),
  ].sort()
}
