/**
 * A request to the body of a chat-completions call. What the log holds is never changed for it: ids, names and
 * images that a server would refuse are mapped here, the same way every time.
 */
import type { LlmRequest, ToolSchema } from '../../../log/requests.ts'
import type { Dialect } from './dialect.ts'
import { wireEffort } from './effort.ts'
import { wireMessages } from './wire-messages.ts'

export interface ChatBody {
  readonly [key: string]: unknown
  readonly model: string
  readonly messages: readonly unknown[]
  readonly stream: true
}

/**
 * The body of one request; fields that are not set are absent.
 * @throws LlmError UNSUPPORTED_CONTENT for an image in the message to be answered.
 */
export function chatBody(request: LlmRequest, dialect: Dialect): ChatBody {
  const { temperature, maxTokens, stop, tools = [] } = request
  return {
    model: request.model,
    messages: wireMessages(request, dialect),
    stream: true,
    ...((dialect.streamUsage ?? true) && { stream_options: { include_usage: true } }),
    ...wireEffort(request.reasoningEffort, dialect.effort),
    ...(tools.length > 0 && { tools: tools.map(wireTool) }),
    ...(tools.length > 0 && dialect.parallelCalls !== undefined && { parallel_tool_calls: dialect.parallelCalls }),
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { [dialect.maxTokens ?? 'max_tokens']: maxTokens }),
    ...(stop !== undefined && { stop }),
  }
}

const wireTool = ({ name, description, parameters }: ToolSchema) => ({
  type: 'function',
  function: { name, description, parameters },
})
