/** Bounds on what a turn and a session may spend, read off the log's own meter; and on a call that is made again and again. */
import type { Limit } from '../log/events.ts'
import type { ToolCallBlock } from '../log/messages.ts'
import type { Meter } from '../log/projections/meter.ts'
import { callKey, type Repeats } from '../log/projections/repeats.ts'
import type { Tool } from './tools/contract.ts'

/** Tokens, ms, currency units. */
export interface Bounds {
  readonly tokens?: number
  readonly timeMs?: number
  readonly cost?: number
}

export interface ScopedBounds {
  readonly turn?: Bounds
  readonly session?: Bounds
}

export interface Limits {
  /** The first bound that is reached as of `now` (epoch ms), the turn's before the session's. */
  reached(now: number): Limit | undefined
  /** ms until a bound on time is reached if something runs all the while; undefined without one. */
  timeLeft(now: number): number | undefined
}

const SCOPES = ['turn', 'session'] as const
const MEASURES = [
  { name: 'tokens', bound: 'tokens' },
  { name: 'time', bound: 'timeMs' },
  { name: 'cost', bound: 'cost' },
] as const

export const createLimits = (bounds: ScopedBounds, meter: Meter): Limits => ({
  reached(now) {
    for (const scope of SCOPES) {
      const spent = meter.spent(scope, now)
      for (const { name, bound } of MEASURES) {
        const max = bounds[scope]?.[bound]
        if (max === undefined || spent[bound] < max) continue
        const estimated = spent.estimated && name !== 'time' ? { estimated: true as const } : {}
        return { name, scope, max, spent: spent[bound], ...estimated }
      }
    }
    return undefined
  },
  timeLeft(now) {
    const left = SCOPES.flatMap((scope) => {
      const max = bounds[scope]?.timeMs
      return max === undefined ? [] : [Math.max(0, max - meter.spent(scope, now).timeMs)]
    })
    return left.length === 0 ? undefined : Math.min(...left)
  },
})

/** Counts of the same call in one turn: from `warnAfter` the model is told, at `stopAfter` the turn ends. */
export interface RepeatBounds {
  readonly warnAfter: number
  readonly stopAfter: number
}

export interface RepeatGuard {
  /** The call of an answer, not yet recorded, that would be made too often. */
  stops(calls: readonly ToolCallBlock[]): { readonly name: string; readonly count: number } | undefined
  /** What to tell the model of a call that was made; undefined if nothing. */
  warning(name: string, rawArguments: string): string | undefined
}

export const createRepeatGuard = (
  bounds: RepeatBounds,
  repeats: Repeats,
  tools: ReadonlyMap<string, Tool>,
): RepeatGuard => new TurnRepeatGuard(bounds, repeats, tools)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class TurnRepeatGuard implements RepeatGuard {
  readonly #bounds: RepeatBounds
  readonly #repeats: Repeats
  readonly #tools: ReadonlyMap<string, Tool>

  constructor(bounds: RepeatBounds, repeats: Repeats, tools: ReadonlyMap<string, Tool>) {
    this.#bounds = bounds
    this.#repeats = repeats
    this.#tools = tools
  }

  stops(calls: readonly ToolCallBlock[]): { readonly name: string; readonly count: number } | undefined {
    const here = new Map<string, number>()
    for (const { name, arguments: raw } of calls) {
      if (!this.#counts(name)) continue
      const key = callKey(name, raw)
      const inAnswer = (here.get(key) ?? 0) + 1
      here.set(key, inAnswer)
      const count = this.#repeats.count(name, raw) + inAnswer
      if (count >= this.#bounds.stopAfter) return { name, count }
    }
    return undefined
  }

  warning(name: string, raw: string): string | undefined {
    const count = this.#counts(name) ? this.#repeats.count(name, raw) : 0
    if (count < this.#bounds.warnAfter) return undefined
    return (
      `This turn has now called ${name} ${count} times with the same arguments. ` +
      `Its result will not change by asking again: use what it gave, or try something else. ` +
      `At ${this.#bounds.stopAfter} such calls the turn is ended.`
    )
  }

  #counts(name: string): boolean {
    return this.#tools.get(name)?.repeatable !== true
  }
}
