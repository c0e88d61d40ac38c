/**
 * DeepSeek's models over its chat-completions API. The key and the address are looked up anew for every request, and
 * nothing is sent that the model cannot do.
 */
import type { LlmCallConfig, LlmRequest } from '../../log/requests.ts'
import { type Clock, systemClock } from '../clock.ts'
import { LlmError } from '../errors.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import type { Dialect } from './chat-completions/dialect.ts'
import {
  checkWireOptions,
  DEFAULT_MAX_EVENT_LENGTH,
  endpointOf,
  isUsableKey,
  limitsOf,
  problemOfBase,
  type WireOptions,
} from './chat-completions/options.ts'
import { chatBody } from './chat-completions/serialize.ts'
import { type Call, streamCompletion } from './chat-completions/stream.ts'

export interface DeepseekOptions extends WireOptions {
  /** 'deepseek-chat' by default. */
  readonly model?: string
  /** False for a deployment that cannot think: the only effort is then 'off'. True by default. */
  readonly thinking?: boolean
}

/** What an adapter takes from its process; a test gives its own. */
export interface Surroundings {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
}

const PUBLIC_API = 'https://api.deepseek.com'
const EFFORTS: readonly string[] = ['off', 'low', 'high', 'max']

/**
 * A DeepSeek model. The base URL is the option, else DEEPSEEK_BASE_URL, else the public API; the key is the option,
 * else DEEPSEEK_API_KEY.
 * @throws InvalidOption for a limit or a base URL that cannot be.
 */
export function deepseek(
  options: DeepseekOptions = {},
  { clock, env }: Surroundings = { clock: systemClock, env: process.env },
): ModelAdapter {
  checkWireOptions(options)
  const limits = limitsOf(options)
  const maxEventLength = options.maxEventLength ?? DEFAULT_MAX_EVENT_LENGTH
  const thinking = options.thinking ?? true
  return {
    provider: 'deepseek',
    model: options.model ?? 'deepseek-chat',
    ...(options.retry && { retry: options.retry }),
    async prepare(config) {
      checkEffort(config, thinking)
      return { ...withDefaults(config, thinking), contextWindow: factsOf(config.model).contextWindow }
    },
    stream: (request, { signal }) =>
      streamCompletion(() => callOf(request, { ...options, thinking }, env), { signal, limits, maxEventLength, clock }),
  }
}

function callOf(request: LlmRequest, options: DeepseekOptions & { thinking: boolean }, env: Surroundings['env']): Call {
  checkEffort(request, options.thinking)
  const base = options.baseURL ?? (env.DEEPSEEK_BASE_URL || PUBLIC_API)
  const problem = problemOfBase(base)
  if (problem !== undefined) throw new LlmError({ message: `DEEPSEEK_BASE_URL ${problem}`, code: 'INVALID_REQUEST' })
  const apiKey = options.apiKey || env.DEEPSEEK_API_KEY || ''
  if (apiKey === '') throw new LlmError(NO_KEY)
  if (!isUsableKey(apiKey)) throw new LlmError(BAD_KEY)
  return { endpoint: endpointOf(base), apiKey, body: chatBody(request, factsOf(request.model).dialect) }
}

interface ModelFacts {
  /** Tokens. */
  readonly contextWindow: number
  /** Tokens. */
  readonly maxTokens: number
  readonly dialect: Dialect
}

const CURRENT: ModelFacts = {
  contextWindow: 1_000_000,
  maxTokens: 256_000,
  dialect: { reasoning: 'reasoning_content', effort: 'thinking' },
}

/** The first reasoning models refuse a request that brings their reasoning back, or two user messages in a row. */
const FIRST_REASONERS: ModelFacts = {
  contextWindow: 128_000,
  maxTokens: 64_000,
  dialect: { reasoning: 'none', effort: 'thinking', mergeUsers: true },
}

const factsOf = (model: string): ModelFacts => (/^deepseek-(?:reasoner|r1)\b/i.test(model) ? FIRST_REASONERS : CURRENT)

function withDefaults(config: LlmCallConfig, thinking: boolean) {
  const reasoningEffort = config.reasoningEffort ?? (thinking ? 'high' : 'off')
  const maxTokens = config.maxTokens ?? factsOf(config.model).maxTokens
  const adapterDefaults = {
    ...(config.reasoningEffort === undefined && { reasoningEffort: true as const }),
    ...(config.maxTokens === undefined && { maxTokens: true as const }),
  }
  const filled = { ...config, reasoningEffort, maxTokens }
  return Object.keys(adapterDefaults).length > 0 ? { config: filled, adapterDefaults } : { config: filled }
}

function checkEffort({ reasoningEffort, model }: LlmCallConfig, thinking: boolean): void {
  const efforts = thinking ? EFFORTS : ['off']
  if (reasoningEffort === undefined || efforts.includes(reasoningEffort)) return
  throw new LlmError({
    message: `Model "${model}" has no reasoning effort "${reasoningEffort}": use ${efforts.join(', ')}`,
    code: 'UNSUPPORTED_REASONING_EFFORT',
  })
}

const NO_KEY = {
  message: 'No key for DeepSeek: set DEEPSEEK_API_KEY, or pass `apiKey` to deepseek()',
  code: 'MISSING_CREDENTIAL',
}
const BAD_KEY = {
  message: 'The key for DeepSeek has characters that no header can carry: check DEEPSEEK_API_KEY or `apiKey`',
  code: 'INVALID_CREDENTIAL',
}
