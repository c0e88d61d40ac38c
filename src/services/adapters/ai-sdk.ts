/**
 * Any language model of the AI SDK as an adapter. The provider's package speaks to the server; what it says comes out
 * under this project's contract: one finish, failures with our codes, limits on waiting, and an abort that is obeyed.
 */
import type { LlmRequest } from '../../log/requests.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import { callOptions } from './ai-sdk/call-options.ts'
import { checkEffort, reasoningOf } from './ai-sdk/effort.ts'
import { v2, v3, v4 } from './ai-sdk/forms.ts'
import type { AiSdkModel, PartStream } from './ai-sdk/model.ts'
import { type AiSdkOptions, checkOptions } from './ai-sdk/options.ts'
import { streamParts } from './ai-sdk/stream.ts'
import { DEFAULT_MAX_EVENT_LENGTH, limitsOf } from './chat-completions/options.ts'

/**
 * A model of the AI SDK (of its specification v2, v3 or v4) as an adapter.
 * @throws InvalidOption for what is no such model (`model`), and for a limit or a name that cannot be.
 */
export function aiSdk(
  model: AiSdkModel,
  options: AiSdkOptions = {},
  { clock }: { readonly clock: Clock } = { clock: systemClock },
): ModelAdapter {
  checkOptions(model, options)
  const { contextWindow, price, maxEventLength = DEFAULT_MAX_EVENT_LENGTH } = options
  const limits = limitsOf(options)
  return {
    provider: options.provider ?? model.provider,
    model: options.model ?? model.modelId,
    ...(options.retry && { retry: options.retry }),
    async prepare(config) {
      checkEffort(config, model, options)
      return { config, ...(contextWindow !== undefined && { contextWindow }), ...(price && { price }) }
    },
    stream(request, { signal }) {
      const tools = new Set(request.tools?.map(({ name }) => name))
      return streamParts((transport) => asked(model, request, { options, transport }), {
        signal,
        limits,
        clock,
        maxEventLength,
        tools,
      })
    },
  }
}

async function asked(
  model: AiSdkModel,
  request: LlmRequest,
  { options, transport }: { readonly options: AiSdkOptions; readonly transport: AbortSignal },
): Promise<PartStream> {
  checkEffort(request, model, options)
  const { providerOptions: stated } = options
  const providerOptions = typeof stated === 'function' ? stated(request) : stated
  const surroundings = { urls: (await model.supportedUrls) ?? {}, signal: transport, providerOptions }
  switch (model.specificationVersion) {
    case 'v2':
      return model.doStream(callOptions(request, v2, surroundings))
    case 'v3':
      return model.doStream(callOptions(request, v3, surroundings))
    case 'v4': {
      const reasoning = reasoningOf(request.reasoningEffort)
      return model.doStream({ ...callOptions(request, v4, surroundings), ...(reasoning && { reasoning }) })
    }
  }
}
