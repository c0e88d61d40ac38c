/** Tokens spent, over the session and over its last turn. Only answers count: what a failed attempt cost is not told. */
import type { TokenUsage } from '../messages.ts'
import type { Projection } from './projection.ts'

export interface UsageState {
  readonly session: TokenUsage
  readonly turn: TokenUsage
}

const none: TokenUsage = Object.freeze({ inputTokens: 0, outputTokens: 0 })

export const usage: Projection<UsageState> = {
  initial: Object.freeze({ session: none, turn: none }),
  evolve(state, event) {
    if (event.type === 'turn/start') return Object.freeze({ session: state.session, turn: none })
    if (event.type !== 'assistant/message' || event.data.usage === undefined) return state
    const { usage: spent } = event.data
    return Object.freeze({ session: addUsage(state.session, spent), turn: addUsage(state.turn, spent) })
  },
}

/** The sum of two usages; a count that neither has stays absent. */
export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return Object.freeze({
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    ...sum('cacheReadTokens', a, b),
    ...sum('cacheWriteTokens', a, b),
    ...sum('reasoningTokens', a, b),
  })
}

function sum(key: keyof TokenUsage, a: TokenUsage, b: TokenUsage): Partial<TokenUsage> {
  if (a[key] === undefined && b[key] === undefined) return {}
  return { [key]: (a[key] ?? 0) + (b[key] ?? 0) }
}
