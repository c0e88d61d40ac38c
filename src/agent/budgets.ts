/** The bounds of one agent: fed by its log, and a timer for those on time. */
import type { SessionEvent } from '../log/events.ts'
import { createMeter, type Meter, type SavedMeter } from '../log/projections/meter.ts'
import { createRepeats, type Repeats, type SavedRepeats } from '../log/projections/repeats.ts'
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
  /** What was counted; null for what nobody counts. */
  saved(): SavedBudgets
  /** Takes it back, before any event; false if something is counted now that was not then, and nothing changed. */
  restore(saved: SavedBudgets): boolean
}

/** Counts as a checkpoint holds them. */
export interface SavedBudgets {
  readonly meter: SavedMeter | null
  readonly repeats: SavedRepeats | null
}

type BudgetOptions = Pick<Checked, 'limits' | 'repeatedCalls' | 'tools' | 'clock'>

export const createBudgets = (options: BudgetOptions, onTimeUp: () => void): Budgets =>
  new AgentBudgets(options, onTimeUp)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentBudgets implements Budgets {
  readonly limits: Limits | undefined
  readonly repeats: RepeatGuard | undefined
  readonly #meter: Meter | undefined
  readonly #counted: Repeats | undefined
  readonly #timer: ((running: boolean) => void) | undefined
  #armedFor: number | undefined

  constructor({ limits: bounds, repeatedCalls, tools, clock }: BudgetOptions, onTimeUp: () => void) {
    this.#meter = bounds === undefined ? undefined : createMeter()
    this.limits = bounds && this.#meter && createLimits(bounds, this.#meter)
    this.#timer = this.limits && createTimer(this.limits, clock, onTimeUp)
    this.#counted = repeatedCalls === false ? undefined : createRepeats()
    this.repeats = this.#counted && repeatedCalls ? createRepeatGuard(repeatedCalls, this.#counted, tools) : undefined
  }

  place(event: SessionEvent): void {
    this.#meter?.place(event)
    this.#counted?.place(event)
  }

  saved(): SavedBudgets {
    return { meter: this.#meter?.saved() ?? null, repeats: this.#counted?.saved() ?? null }
  }

  restore({ meter, repeats }: SavedBudgets): boolean {
    if ((this.#meter !== undefined && meter === null) || (this.#counted !== undefined && repeats === null)) return false
    if (meter !== null) this.#meter?.restore(meter)
    if (repeats !== null) this.#counted?.restore(repeats)
    return true
  }

  arm(running: boolean, turn: number): void {
    const now = running ? turn : undefined
    if (this.#timer === undefined || now === this.#armedFor) return
    this.#armedFor = now
    this.#timer(running)
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
