/** Any server that speaks the chat-completions API. Nothing about the model behind it is assumed or filled in. */
import { type Clock, systemClock } from '../clock.ts'
import { LlmError } from '../errors.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import { chatCompletions } from './chat-completions/adapter.ts'
import type { Dialect } from './chat-completions/dialect.ts'
import { isUsableKey, knownOf, type WireOptions } from './chat-completions/options.ts'

export interface OpenaiCompatibleOptions extends WireOptions {
  readonly baseURL: string
  readonly model: string
  /** Where the server differs from the plainest one: one of `dialects`, or fields of your own. */
  readonly dialect?: Dialect
}

/**
 * A model behind an OpenAI-compatible server. Without a key no authorization is sent.
 * @throws InvalidOption for a limit, a fact, a dialect or a base URL that cannot be.
 */
export function openaiCompatible(
  options: OpenaiCompatibleOptions,
  { clock }: { readonly clock: Clock } = { clock: systemClock },
): ModelAdapter {
  const { apiKey, baseURL, model, price, dialect = {} } = options
  const known = knownOf(options)
  return chatCompletions(
    {
      provider: 'openai-compatible',
      model,
      dialect,
      ...(Object.keys(known).length > 0 && { known }),
      ...(price && { price: () => price }),
      reach: () => {
        if (apiKey && !isUsableKey(apiKey)) throw new LlmError(BAD_KEY)
        return { base: baseURL, ...(apiKey && { apiKey }) }
      },
    },
    options,
    clock,
  )
}

const BAD_KEY = {
  message: 'The `apiKey` of openaiCompatible() has characters that no header can carry',
  code: 'INVALID_CREDENTIAL',
}
