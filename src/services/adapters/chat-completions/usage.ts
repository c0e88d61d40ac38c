/** The wire's token counts to ours. The wire counts cached tokens as prompt tokens; ours are disjoint. */
import type { TokenUsage } from '../../../log/messages.ts'
import { objectIn, type WireObject } from './wire-json.ts'

/** The usage in `wire`, or undefined if it counts neither prompt nor completion. What the wire omits is omitted. */
export function usageOf(wire: WireObject): TokenUsage | undefined {
  const hit = count(wire.prompt_cache_hit_tokens)
  const prompt = count(wire.prompt_tokens) ?? sum(hit, count(wire.prompt_cache_miss_tokens))
  const completion = count(wire.completion_tokens)
  if (prompt === undefined && completion === undefined) return undefined
  const cached = count(objectIn(wire.prompt_tokens_details).cached_tokens) ?? hit
  const reasoning = count(objectIn(wire.completion_tokens_details).reasoning_tokens)
  return {
    inputTokens: Math.max(0, (prompt ?? 0) - (cached ?? 0)),
    outputTokens: completion ?? 0,
    ...(cached !== undefined && { cacheReadTokens: cached }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
  }
}

const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a + b

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
