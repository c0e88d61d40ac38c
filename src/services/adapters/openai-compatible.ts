/** Any server that speaks the chat-completions API. Nothing about the model behind it is assumed or filled in. */
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
  type WireOptions,
} from './chat-completions/options.ts'
import { chatBody } from './chat-completions/serialize.ts'
import { streamCompletion } from './chat-completions/stream.ts'

export interface OpenaiCompatibleOptions extends WireOptions {
  readonly baseURL: string
  readonly model: string
  /** Where the server differs from the plainest one. */
  readonly dialect?: Dialect
}

/**
 * A model behind an OpenAI-compatible server. Without a key no authorization is sent.
 * @throws InvalidOption for a limit or a base URL that cannot be.
 */
export function openaiCompatible(
  options: OpenaiCompatibleOptions,
  { clock }: { readonly clock: Clock } = { clock: systemClock },
): ModelAdapter {
  checkWireOptions(options)
  const { apiKey, dialect = {} } = options
  const endpoint = endpointOf(options.baseURL)
  const limits = limitsOf(options)
  const maxEventLength = options.maxEventLength ?? DEFAULT_MAX_EVENT_LENGTH
  return {
    provider: 'openai-compatible',
    model: options.model,
    ...(options.retry && { retry: options.retry }),
    stream: (request, { signal }) =>
      streamCompletion(
        () => {
          if (apiKey && !isUsableKey(apiKey)) throw new LlmError(BAD_KEY)
          return { endpoint, ...(apiKey && { apiKey }), body: chatBody(request, dialect) }
        },
        { signal, limits, maxEventLength, clock },
      ),
  }
}

const BAD_KEY = {
  message: 'The `apiKey` of openaiCompatible() has characters that no header can carry',
  code: 'INVALID_CREDENTIAL',
}
