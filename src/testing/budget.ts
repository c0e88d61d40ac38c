/** How much may happen on one path: what keeps the search finite. */
import { InvalidOption } from '../services/errors.ts'
import type { PathInput } from './path-input.ts'

/** How often each kind of thing may happen on one path. */
export interface Budget {
  /** Messages after the first; 1. */
  readonly extraMessages: number
  /** 1. */
  readonly cancels: number
  /** Deaths of the process; 1. */
  readonly crashes: number
  /** Clean closes with a turn open; 0. */
  readonly suspends: number
  /** 0. */
  readonly forks: number
  /** Questions that a hook asks of its own accord; 1. What a tool always asks is not counted. */
  readonly approvals: number
  /** Requests that fail and are tried again; 1. */
  readonly retries: number
  /** Hooks that throw, and requests that fail for good; 1. */
  readonly failures: number
  /** Actors of the chart that throw, which only a defect makes them do; 0. */
  readonly defects: number
  /** Messages taken out of the inbox again, and parked ones that are woken; 0. */
  readonly edits: number
  /** Answers that ask for tools; 1. */
  readonly toolSteps: number
  /** All of the above but `toolSteps`, together; 2. */
  readonly extras: number
}

export type Spent = { readonly [K in Exclude<keyof Budget, 'extras'>]: number }

export const NOTHING_SPENT: Spent = {
  extraMessages: 0,
  cancels: 0,
  crashes: 0,
  suspends: 0,
  forks: 0,
  approvals: 0,
  retries: 0,
  failures: 0,
  defects: 0,
  edits: 0,
  toolSteps: 0,
}

const DEFAULTS: Budget = {
  ...NOTHING_SPENT,
  extraMessages: 1,
  cancels: 1,
  crashes: 1,
  approvals: 1,
  retries: 1,
  failures: 1,
  toolSteps: 1,
  extras: 2,
}

/** @throws InvalidOption for what is no whole number of at least 0 */
export function completeBudget(given: Partial<Budget>): Budget {
  const budget: { -readonly [K in keyof Budget]: number } = { ...DEFAULTS }
  for (const name of BUDGETS) {
    const allowed = given[name] ?? DEFAULTS[name]
    if (!Number.isSafeInteger(allowed) || allowed < 0) {
      throw new InvalidOption(name, 'must be a whole number of at least 0')
    }
    budget[name] = allowed
  }
  return budget
}

/** The names of all of them. */
export const BUDGETS = Object.keys(DEFAULTS) as readonly (keyof Budget)[]

/** What an input is charged to; undefined for what happens on any path. */
export function chargeOf(input: PathInput): keyof Spent | undefined {
  switch (input.type) {
    case 'followup':
    case 'steer':
    case 'inject':
      return 'extraMessages'
    case 'cancel':
      return 'cancels'
    case 'crash':
      return 'crashes'
    case 'suspend':
      return 'suspends'
    case 'fork':
      return 'forks'
    case 'asked':
      return 'approvals'
    case 'remove':
    case 'clear':
    case 'wake':
      return 'edits'
    case 'actor-fails':
      return 'defects'
    case 'request-fails':
      return input.retryable ? 'retries' : 'failures'
    case 'prepared':
    case 'error-handled':
    case 'stopping':
      return input.decision === 'fail' ? 'failures' : undefined
    case 'settled':
      return input.judged === 'fail' ? 'failures' : undefined
    case 'answered':
      return input.calls.length > 0 ? 'toolSteps' : undefined
    default:
      return undefined
  }
}

export function charged(spent: Spent, input: PathInput): Spent {
  const to = chargeOf(input)
  return to === undefined ? spent : { ...spent, [to]: spent[to] + 1 }
}

/** Whether one more of these is within the budget. */
export function affords(budget: Budget, spent: Spent, input: PathInput): boolean {
  const to = chargeOf(input)
  if (to === undefined) return true
  if (spent[to] >= budget[to]) return false
  return to === 'toolSteps' || extrasOf(spent) < budget.extras
}

export const extrasOf = ({ toolSteps: _, ...spent }: Spent): number =>
  Object.values(spent).reduce((sum, count) => sum + count, 0)
