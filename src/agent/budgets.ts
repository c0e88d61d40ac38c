/** The bounds of one agent: fed by its log, and a timer for those on time. */
import type { SessionEvent } from '../log/events.ts'
import { createMeter } from '../log/projections/meter.ts'
import { createRepeats } from '../log/projections/repeats.ts'
import { type Clock, MAX_TIMER_MS } from '../services/clock.ts'
import { createLimits, createRepeatGuard, type Limits, type RepeatGuard } from '../services/limits.ts'
import type { Checked } from './options.ts'

export interface Budgets {
  readonly limits: Limits | undefined
  readonly repeats: RepeatGuard | undefined
  /** Takes each event, loaded or recorded. */
  place(event: SessionEvent): void
  /** After each macrostep: the timer for time is set anew when a turn begins, or something stops or goes on running. */
  arm(running: boolean, turn: number): void
}

export function createBudgets(
  { limits: bounds, repeatedCalls, tools, clock }: Pick<Checked, 'limits' | 'repeatedCalls' | 'tools' | 'clock'>,
  onTimeUp: () => void,
): Budgets {
  const meter = bounds === undefined ? undefined : createMeter()
  const limits = bounds && meter && createLimits(bounds, meter)
  const repeats = repeatedCalls === false ? undefined : createRepeats()
  let armedFor: number | undefined
  const timer = limits && createTimer(limits, clock, onTimeUp)
  return {
    limits,
    repeats: repeats && repeatedCalls ? createRepeatGuard(repeatedCalls, repeats, tools) : undefined,
    place(event) {
      meter?.place(event)
      repeats?.place(event)
    },
    arm(running, turn) {
      const now = running ? turn : undefined
      if (timer === undefined || now === armedFor) return
      armedFor = now
      timer(running)
    },
  }
}

function createTimer(limits: Limits, clock: Clock, onTimeUp: () => void): (running: boolean) => void {
  let timer: unknown
  const arm = (running: boolean): void => {
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
    const left = running ? limits.timeLeft(clock.now()) : undefined
    if (left === undefined) return
    timer = clock.setTimeout(() => (left > MAX_TIMER_MS ? arm(true) : onTimeUp()), Math.min(left, MAX_TIMER_MS))
  }
  return arm
}
