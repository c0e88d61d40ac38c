/** The one way an adapter of this wire is made. What tells servers and models apart comes in as data. */
import type { Price } from '../../../log/events.ts'
import type { LlmCallConfig, LlmRequest } from '../../../log/requests.ts'
import type { Clock } from '../../clock.ts'
import { LlmError } from '../../errors.ts'
import type { ModelAdapter, PreparedCall } from '../../llm/adapter.ts'
import type { Dialect } from './dialect.ts'
import { checkDialect } from './dialect-check.ts'
import { checkWireOptions, DEFAULT_MAX_EVENT_LENGTH, endpointOf, limitsOf, type WireOptions } from './options.ts'
import { chatBody } from './serialize.ts'
import { streamCompletion } from './stream.ts'

/** What is known of a model. */
export interface KnownModel {
  /** Tokens. */
  readonly contextWindow?: number
  /** Tokens of output that a request asks for which says nothing. */
  readonly maxTokens?: number
  /** The most tokens of output that a request may ask for. */
  readonly outputCap?: number
  /** The efforts there are. */
  readonly efforts?: readonly string[]
  /** The effort that is asked for by a request that says nothing. */
  readonly effort?: string
}

/** A model on a server. */
export interface Endpoint {
  readonly provider: string
  readonly model: string
  readonly dialect: Dialect
  readonly known?: KnownModel
  /** What it costs, if that is known; asked for every request, as it may depend on where that goes. */
  price?(): Price | undefined
  /** Where a request goes, and with which key: looked up for each. Throws an LlmError where that cannot be said. */
  reach(): { readonly base: string; readonly apiKey?: string }
}

/**
 * The adapter of an endpoint.
 * @throws InvalidOption for an option or a dialect that cannot be.
 */
export function chatCompletions(endpoint: Endpoint, options: WireOptions, clock: Clock): ModelAdapter {
  checkWireOptions(options)
  const { provider, model, known, price } = endpoint
  const dialect = checkDialect(endpoint.dialect)
  const limits = limitsOf(options)
  const maxEventLength = options.maxEventLength ?? DEFAULT_MAX_EVENT_LENGTH
  return {
    provider,
    model,
    ...(options.retry && { retry: options.retry }),
    ...((known || price) && { prepare: async (config: LlmCallConfig) => prepared(config, known ?? {}, price?.()) }),
    stream: (request, { signal }) =>
      streamCompletion(() => callOf(request, { ...endpoint, dialect }), {
        signal,
        limits,
        maxEventLength,
        clock,
        reading: dialect,
      }),
  }
}

function callOf(request: LlmRequest, { dialect, known, reach }: Endpoint) {
  refuseBeyond(request, known ?? {})
  const { base, apiKey } = reach()
  return { endpoint: endpointOf(base), ...(apiKey && { apiKey }), body: chatBody(request, dialect) }
}

/** The config with what it leaves to the adapter, marked as such. */
function prepared(config: LlmCallConfig, known: KnownModel, price: Price | undefined): PreparedCall {
  refuseBeyond(config, known)
  const { effort, maxTokens, contextWindow } = known
  const fillsEffort = config.reasoningEffort === undefined && effort !== undefined
  const fillsTokens = config.maxTokens === undefined && maxTokens !== undefined
  const adapterDefaults = {
    ...(fillsEffort && { reasoningEffort: true as const }),
    ...(fillsTokens && { maxTokens: true as const }),
  }
  return {
    config: { ...config, ...(fillsEffort && { reasoningEffort: effort }), ...(fillsTokens && { maxTokens }) },
    ...((fillsEffort || fillsTokens) && { adapterDefaults }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(price !== undefined && { price }),
  }
}

/** Nothing is sent that the model cannot do, and nothing is made smaller in silence. */
function refuseBeyond({ model, reasoningEffort, maxTokens }: LlmCallConfig, { efforts, outputCap }: KnownModel): void {
  if (reasoningEffort !== undefined && efforts !== undefined && !efforts.includes(reasoningEffort)) {
    throw new LlmError({
      message: `Model "${model}" has no reasoning effort "${reasoningEffort}": use ${efforts.join(', ')}`,
      code: 'UNSUPPORTED_REASONING_EFFORT',
    })
  }
  if (maxTokens !== undefined && outputCap !== undefined && maxTokens > outputCap) {
    throw new LlmError({
      message: `Model "${model}" gives at most ${outputCap} tokens of output, and ${maxTokens} were asked for: ask for fewer, or pass \`maxTokens\` to its adapter if it gives more`,
      code: 'INVALID_REQUEST',
    })
  }
}
