/** Token counts of the AI SDK to ours, which are disjoint: what came from a cache, or went into one, is no input. */
import type { TokenUsage } from '../../../log/messages.ts'
import { isObject, objectIn, type WireObject } from '../chat-completions/wire-json.ts'

/**
 * The usage of a finish part: nested since version 3 of the specification, flat before. Undefined if it counts
 * neither input nor output; what it omits is omitted.
 */
export function usageIn({ usage, providerMetadata }: WireObject): TokenUsage | undefined {
  const counts = objectIn(usage)
  return isObject(counts.inputTokens) || isObject(counts.outputTokens)
    ? nested(objectIn(counts.inputTokens), objectIn(counts.outputTokens))
    : flat(counts, objectIn(providerMetadata))
}

function nested(input: WireObject, output: WireObject): TokenUsage | undefined {
  const cacheRead = count(input.cacheRead)
  const cacheWrite = count(input.cacheWrite)
  const total = count(input.total)
  const fresh = count(input.noCache) ?? (total === undefined ? undefined : total - (cacheRead ?? 0) - (cacheWrite ?? 0))
  return disjoint({ fresh, output: count(output.total), cacheRead, cacheWrite, reasoning: count(output.reasoning) })
}

/** Its input counts cached tokens in, save with providers whose APIs count them apart. */
function flat(counts: WireObject, metadata: WireObject): TokenUsage | undefined {
  const apart = isObject(metadata.anthropic) || isObject(metadata.bedrock)
  const cacheRead = count(counts.cachedInputTokens)
  const input = count(counts.inputTokens)
  return disjoint({
    fresh: input === undefined || apart ? input : input - (cacheRead ?? 0),
    output: count(counts.outputTokens),
    cacheRead,
    cacheWrite: count(objectIn(metadata.anthropic).cacheCreationInputTokens),
    reasoning: count(counts.reasoningTokens),
  })
}

interface Counts {
  readonly fresh: number | undefined
  readonly output: number | undefined
  readonly cacheRead: number | undefined
  readonly cacheWrite: number | undefined
  readonly reasoning: number | undefined
}

function disjoint({ fresh, output, cacheRead, cacheWrite, reasoning }: Counts): TokenUsage | undefined {
  if (fresh === undefined && output === undefined) return undefined
  return {
    inputTokens: Math.max(0, fresh ?? 0),
    outputTokens: output ?? 0,
    ...(cacheRead !== undefined && { cacheReadTokens: cacheRead }),
    ...(cacheWrite !== undefined && { cacheWriteTokens: cacheWrite }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
