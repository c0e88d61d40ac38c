/**
 * DeepSeek's models over its chat-completions API: where they are, and what is known of each. The key and the address
 * are looked up anew for every request.
 */
import { type Clock, systemClock } from '../clock.ts'
import { LlmError } from '../errors.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import { chatCompletions } from './chat-completions/adapter.ts'
import { isUsableKey, knownOf, problemOfBase, type WireOptions } from './chat-completions/options.ts'
import { servers } from './dialects.ts'
import { deepseekFamily } from './model-facts.ts'

export interface DeepseekOptions extends WireOptions {
  /** 'deepseek-chat' by default; the public API answers newer names, 'deepseek-flash' among them. */
  readonly model?: string
  /** False for a deployment that cannot think: the only effort is then 'off'. True by default. */
  readonly thinking?: boolean
}

/** What an adapter takes from its process; a test gives its own. */
export interface Surroundings {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The model that is asked where none is named. */
export const DEFAULT_MODEL = 'deepseek-chat'
const PUBLIC_API = servers.deepseek.baseURL

const THINKING = { efforts: ['off', 'low', 'high', 'max'], effort: 'high' }
const NOT_THINKING = { efforts: ['off'], effort: 'off' }

/**
 * A DeepSeek model. The base URL is the option, else DEEPSEEK_BASE_URL, else the public API; the key is the option,
 * else DEEPSEEK_API_KEY. Context, output cap and dialect go by the model's name; its price is known at the public API.
 * @throws InvalidOption for a limit, a fact or a base URL that cannot be.
 */
export function deepseek(
  options: DeepseekOptions = {},
  { clock, env }: Surroundings = { clock: systemClock, env: process.env },
): ModelAdapter {
  const { model = DEFAULT_MODEL, thinking = true } = options
  const family = deepseekFamily(model)
  const base = () => options.baseURL ?? (env.DEEPSEEK_BASE_URL || PUBLIC_API)
  const { price, ...facts } = family.facts
  return chatCompletions(
    {
      provider: 'deepseek',
      model,
      dialect: family.dialect,
      known: { ...facts, ...knownOf(options), ...(thinking ? THINKING : NOT_THINKING) },
      price: () => options.price ?? (isPublic(base()) ? price : undefined),
      reach: () => ({ base: checkedBase(base()), apiKey: checkedKey(options.apiKey || env.DEEPSEEK_API_KEY || '') }),
    },
    options,
    clock,
  )
}

/** Another server may ask any price. */
const isPublic = (base: string): boolean => URL.canParse(base) && new URL(base).host === new URL(PUBLIC_API).host

function checkedBase(base: string): string {
  const problem = problemOfBase(base)
  if (problem !== undefined) throw new LlmError({ message: `DEEPSEEK_BASE_URL ${problem}`, code: 'INVALID_REQUEST' })
  return base
}

function checkedKey(key: string): string {
  if (key === '') throw new LlmError(NO_KEY)
  if (!isUsableKey(key)) throw new LlmError(BAD_KEY)
  return key
}

const NO_KEY = {
  message: 'No key for DeepSeek: set DEEPSEEK_API_KEY, or pass `apiKey` to deepseek()',
  code: 'MISSING_CREDENTIAL',
}
const BAD_KEY = {
  message: 'The key for DeepSeek has characters that no header can carry: check DEEPSEEK_API_KEY or `apiKey`',
  code: 'INVALID_CREDENTIAL',
}
