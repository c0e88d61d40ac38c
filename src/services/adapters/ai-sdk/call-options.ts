/** A request to what a model of the AI SDK is asked with. All of it is the model's to change: the log's is frozen. */
import type { LlmRequest, ToolSchema } from '../../../log/requests.ts'
import type { Form } from './forms.ts'
import { optionsIn, thawedObject } from './json.ts'
import type { CallOptions, FunctionTool, SupportedUrls, Version } from './model.ts'
import type { ProviderOptions } from './options.ts'
import { promptOf } from './prompt.ts'

/** What a call is made with beside the request. */
export interface Surroundings {
  readonly urls: SupportedUrls
  readonly signal: AbortSignal
  readonly providerOptions: ProviderOptions | undefined
}

/**
 * The options of one call; what is not set is absent.
 * @throws LlmError UNSUPPORTED_CONTENT
 */
export function callOptions<V extends Version>(
  request: LlmRequest,
  form: Form<V>,
  { urls, signal, providerOptions }: Surroundings,
): CallOptions<V> {
  const { temperature, maxTokens, stop, tools = [] } = request
  const stated = providerOptions && optionsIn(thawedOptions(providerOptions))
  return {
    prompt: promptOf(request, form, urls),
    abortSignal: signal,
    includeRawChunks: false,
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(stop !== undefined && { stopSequences: [...stop] }),
    ...(tools.length > 0 && { tools: tools.map(functionTool) }),
    ...(stated !== undefined && { providerOptions: stated }),
  }
}

const functionTool = ({ name, description, parameters }: ToolSchema): FunctionTool => ({
  type: 'function',
  name,
  description,
  inputSchema: thawedObject(parameters),
})

const thawedOptions = (options: ProviderOptions) =>
  Object.fromEntries(Object.entries(options).map(([provider, stated]) => [provider, thawedObject(stated)]))
