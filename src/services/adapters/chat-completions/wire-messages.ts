/** The conversation as the wire has it: system, user, assistant and tool messages, each in its place. */
import type { AssistantMessage, ContentBlock, Message, ToolCallBlock, ToolResultBlock } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { LlmError } from '../../errors.ts'
import { type WireIds, wireIds } from './call-ids.ts'
import type { Dialect } from './dialect.ts'
import { type ReasoningBack, reasoningBack } from './reasoning-back.ts'
import { detailsFor } from './reasoning-details.ts'
import { ordered } from './role-order.ts'
import { isObject, parseJson } from './wire-json.ts'
import type { WireMessage } from './wire-message.ts'

const NO_OUTPUT = '(no output)'
const IMAGE = '[image]'

/** What the messages of one request are written with. */
interface Writing {
  readonly request: LlmRequest
  readonly dialect: Dialect
  readonly ids: WireIds
  readonly reasoning: ReasoningBack
}

/**
 * The messages of one request. An assistant message without text and calls is left out: servers refuse it.
 * @throws LlmError UNSUPPORTED_CONTENT for an image that waits for an answer; older ones become a placeholder.
 */
export function wireMessages(request: LlmRequest, dialect: Dialect): readonly WireMessage[] {
  refuseImages(request.messages)
  const ids = wireIds(request, dialect)
  const writing: Writing = { request, dialect, ids, reasoning: reasoningBack(request, dialect) }
  const history = request.messages.flatMap((message): readonly WireMessage[] =>
    message.role === 'assistant' ? assistantMessage(message, writing) : userMessages(message, ids),
  )
  const system = request.system ? [{ role: dialect.system ?? 'system', content: request.system } as const] : []
  return ordered([...system, ...history], dialect)
}

/** Text first, then each result; a message that only holds results gives no user message. */
function userMessages(message: Message, ids: WireIds): readonly WireMessage[] {
  const results = blocksOf(message)
    .filter(isResult)
    .map(
      (block): WireMessage => ({
        role: 'tool',
        tool_call_id: ids(block.toolCallId),
        content: textIn(block.content) || NO_OUTPUT,
      }),
    )
  const text = textIn(message.content)
  return text === '' && results.length > 0 ? results : [{ role: 'user', content: text }, ...results]
}

function assistantMessage(
  message: AssistantMessage,
  { request, dialect, ids, reasoning }: Writing,
): readonly WireMessage[] {
  const calls = message.content.filter(isCall)
  const content = textIn(message.content)
  const thought = reasoning(message)
  const isEmpty = content === '' && calls.length === 0
  if (isEmpty && !(dialect.emptyAnswers && Object.values(thought).some((text) => text !== ''))) return []
  return [
    {
      role: 'assistant',
      ...wireContent(content, calls.length > 0 ? dialect.emptyContent : ''),
      ...thought,
      ...detailsFor(message, request),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => wireCall(call, ids)) }),
    },
  ]
}

/** A string by default: some servers refuse null beside reasoning. */
function wireContent(content: string, empty: Dialect['emptyContent'] = ''): { readonly content?: string | null } {
  if (content !== '' || empty === '') return { content }
  return empty === 'null' ? { content: null } : {}
}

const wireCall = (call: ToolCallBlock, ids: WireIds) => ({
  id: ids(call.id),
  type: 'function',
  function: { name: wireName(call.name), arguments: wireArguments(call.arguments) },
})

/**
 * The model's own string goes back as it was. One that is no JSON object becomes `{}`: servers that parse past calls
 * would refuse every request from then on, and its result says what was wrong with it.
 */
const wireArguments = (text: string): string => (isObject(parseJson(text)?.value) ? text : '{}')

/** A model may have asked for a tool by a name that no server takes back. */
const wireName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown'

/** The text blocks without a separator; an image is named, other blocks are not for this wire. */
const textIn = (content: readonly ContentBlock[]): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type === 'image' ? IMAGE : '')).join('')

function refuseImages(messages: readonly Message[]): void {
  const answered = messages.findLastIndex((message) => message.role === 'assistant')
  const asked = messages.findLast((message) => message.source.kind === 'user')
  if (asked === undefined || messages.indexOf(asked) < answered) return
  if (!asked.content.some((block) => block.type === 'image')) return
  throw new LlmError({ message: 'This model takes text only, and was sent an image', code: 'UNSUPPORTED_CONTENT' })
}

/** The content as one type of list; a tool result's is a list of one. */
const blocksOf = (message: Message): readonly ContentBlock[] => message.content

const isCall = (block: ContentBlock): block is ToolCallBlock => block.type === 'tool-call'
const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool-result'
