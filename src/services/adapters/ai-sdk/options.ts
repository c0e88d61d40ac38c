/** How a model of the AI SDK is used; checked when its adapter is made, so that a wrong option fails early. */
import type { Price } from '../../../log/events.ts'
import type { Json } from '../../../log/json.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { InvalidOption } from '../../errors.ts'
import type { RetryPolicy } from '../../llm/adapter.ts'
import { checkWireOptions } from '../chat-completions/options.ts'
import { isObject } from '../chat-completions/wire-json.ts'

/** Options that only one provider knows, under its name: `{ openai: { reasoningEffort: 'high' } }`. */
export type ProviderOptions = { readonly [provider: string]: { readonly [key: string]: Json | undefined } }

export interface AiSdkOptions {
  /** The provider's name in the log; the model's own by default, such as 'openai.responses'. */
  readonly provider?: string
  /** The model's name in the log; its own id by default. */
  readonly model?: string
  readonly retry?: RetryPolicy
  /** Tokens. */
  readonly contextWindow?: number
  /** Currency units per million tokens; a cost limit needs it. */
  readonly price?: Price
  /** Sent with every request. A function is asked each time, and may look at the request's `reasoningEffort`. */
  readonly providerOptions?: ProviderOptions | ((request: LlmRequest) => ProviderOptions | undefined)
  /** ms from the request to the beginning of the answer; 60,000 by default. */
  readonly firstByteTimeoutMs?: number
  /** ms from one part of the answer to the next, pings and the like not counted; 300,000 by default. */
  readonly idleTimeoutMs?: number
  /** ms of waiting for one answer in all; none by default. */
  readonly totalTimeoutMs?: number
  /** Characters of one part of the answer that are kept, all that stands beside it included; 16 Mi by default. */
  readonly maxEventLength?: number
}

/** @throws InvalidOption naming what cannot be. */
export function checkOptions(model: unknown, options: AiSdkOptions): void {
  const problem = problemOf(model)
  if (problem !== undefined) throw new InvalidOption('model', `${problem}: pass what a provider gives, ${SUCH_AS}`)
  checkWireOptions(options)
  for (const name of ['provider', 'model'] as const) {
    if (options[name] === '') throw new InvalidOption(name, 'is empty: give a name, or leave it out')
  }
}

const SUCH_AS = "such as openai('gpt-5')"

/** What is wrong with a model, if anything. */
function problemOf(model: unknown): string | undefined {
  if (typeof model === 'string') return 'is an id, which only the AI SDK’s gateway resolves'
  if (!isObject(model) || typeof model.doStream !== 'function') return 'is no language model of the AI SDK'
  const { specificationVersion: version, provider, modelId } = model
  if (version === undefined || version === 'v1') return 'is of the specification v1, which is too old'
  if (version !== 'v2' && version !== 'v3' && version !== 'v4') return `is of the unknown specification "${version}"`
  if (typeof provider !== 'string' || provider === '') return 'names no provider'
  return typeof modelId !== 'string' || modelId === '' ? 'has no id' : undefined
}
