/** The conversation as the wire has it: system, user, assistant and tool messages, each in its place. */
import { createHash } from 'node:crypto'
import type { AssistantMessage, ContentBlock, Message, ToolCallBlock, ToolResultBlock } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { LlmError } from '../../errors.ts'
import type { Dialect } from './dialect.ts'
import { detailsFor } from './reasoning-details.ts'
import { isObject, parseJson } from './wire-json.ts'

export type WireMessage =
  | { readonly role: 'system' | 'developer' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly [key: string]: unknown }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

const NO_OUTPUT = '(no output)'
const IMAGE = '[image]'

/**
 * The messages of one request. An assistant message without text and calls is left out: servers refuse it.
 * @throws LlmError UNSUPPORTED_CONTENT for an image that waits for an answer; older ones become a placeholder.
 */
export function wireMessages(request: LlmRequest, dialect: Dialect): readonly WireMessage[] {
  refuseImages(request.messages)
  const ids = wireIds(request, dialect)
  const history = request.messages.flatMap((message): readonly WireMessage[] =>
    message.role === 'assistant' ? assistantMessage(message, { request, dialect, ids }) : userMessages(message, ids),
  )
  const system = request.system ? [{ role: dialect.system ?? 'system', content: request.system } as const] : []
  return [...system, ...(dialect.mergeUsers ? history.reduce(merge, []) : history)]
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

/** `content` is always a string: some servers refuse null beside reasoning. */
function assistantMessage(
  message: AssistantMessage,
  { request, dialect, ids }: { request: LlmRequest; dialect: Dialect; ids: WireIds },
): readonly WireMessage[] {
  const calls = message.content.filter(isCall)
  const content = textIn(message.content)
  if (content === '' && calls.length === 0) return []
  const reasoning = message.content.map((block) => (block.type === 'reasoning' ? block.text : '')).join('')
  const key = dialect.reasoning ?? 'none'
  return [
    {
      role: 'assistant',
      content,
      ...(key !== 'none' && reasoning !== '' && { [key]: reasoning }),
      ...detailsFor(message, request),
      ...(calls.length > 0 && { tool_calls: calls.map((call) => wireCall(call, ids)) }),
    },
  ]
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

type WireIds = (id: string) => string

/** Ids that this provider gave stay; others stay if they fit. The same id is mapped the same way everywhere. */
function wireIds(request: LlmRequest, { callIds = {} }: Dialect): WireIds {
  const { maxLength = 40, pattern = /^[\w-]+$/ } = callIds
  const own = new Set(
    request.messages.flatMap((message) =>
      message.source.kind === 'model' && message.source.provider === request.provider
        ? blocksOf(message)
            .filter(isCall)
            .map((call) => call.id)
        : [],
    ),
  )
  const fits = (id: string) => id.length <= maxLength && new RegExp(pattern.source, pattern.flags).test(id)
  return (id) => (own.has(id) || fits(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, maxLength))
}

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

function merge(before: readonly WireMessage[], message: WireMessage): readonly WireMessage[] {
  const last = before.at(-1)
  if (last?.role !== 'user' || message.role !== 'user') return [...before, message]
  const content = [last.content, message.content].filter((text) => text !== '').join('\n\n')
  return [...before.slice(0, -1), { role: 'user', content }]
}

/** The content as one type of list; a tool result's is a list of one. */
const blocksOf = (message: Message): readonly ContentBlock[] => message.content

const isCall = (block: ContentBlock): block is ToolCallBlock => block.type === 'tool-call'
const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool-result'
