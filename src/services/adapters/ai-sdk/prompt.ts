/**
 * The conversation as a model of the AI SDK takes it. Ids, names and the order of blocks are the log's; what a
 * provider's own API wants of them (users in a row, ids that fit) is for its package to see to.
 */
import type { ContentBlock, Message } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { LlmError } from '../../errors.ts'
import { isToolCall } from '../../llm/assembler.ts'
import { assistantParts } from './assistant.ts'
import type { Form } from './forms.ts'
import { attachedOf, IMAGE, isImage } from './images.ts'
import type { FilePart, PromptMessage, SupportedUrls, TextPart, Version } from './model.ts'
import { optionsOf } from './replay.ts'
import { type Answering, isResult, resultPart } from './results.ts'

/**
 * The messages of one request. An assistant message of which nothing can be sent is left out; results in a row become
 * one message, as some providers want all answers to a message's calls together.
 * @throws LlmError UNSUPPORTED_CONTENT for an image that waits for an answer and cannot be sent; others are named.
 */
export function promptOf<V extends Version>(
  request: LlmRequest,
  form: Form<V>,
  urls: SupportedUrls,
): PromptMessage<V>[] {
  refuseImages(request.messages, urls)
  const answering = { form, urls, calls: callsIn(request) }
  const history = request.messages.flatMap((message): PromptMessage<V>[] => {
    if (message.role !== 'assistant') return userMessages(message, answering)
    const content = assistantParts(message, request, form)
    return content.length === 0 ? [] : [{ role: 'assistant', content }]
  })
  const system: PromptMessage<V>[] = request.system ? [{ role: 'system', content: request.system }] : []
  return [...system, ...together(history)]
}

/** What was said first, then each result; a message that only holds results gives no user message. */
function userMessages<V extends Version>(message: Message, answering: Answering<V>): PromptMessage<V>[] {
  const blocks = blocksOf(message)
  const parts = blocks.flatMap((block) => userPart(block, answering))
  const results = blocks.filter(isResult).map((block) => resultPart(block, answering))
  return [
    ...(parts.length > 0 ? [{ role: 'user' as const, content: parts }] : []),
    ...(results.length > 0 ? [{ role: 'tool' as const, content: results }] : []),
  ]
}

function userPart<V extends Version>(block: ContentBlock, { form, urls }: Answering<V>): (TextPart | FilePart<V>)[] {
  if (block.type === 'text') return block.text === '' ? [] : [{ type: 'text', text: block.text }]
  if (!isImage(block)) return []
  const attached = attachedOf(block.attachment, urls)
  if (attached === undefined) return [{ type: 'text', text: IMAGE }]
  return [{ type: 'file', data: form.file(attached.data), mediaType: attached.mediaType }]
}

/** By id. A provider may want what it gave with a call back with the call's result as well. */
function callsIn<V extends Version>(request: LlmRequest): Answering<V>['calls'] {
  return new Map(
    request.messages.flatMap((message) => {
      if (message.role !== 'assistant') return []
      const options = optionsOf(message, request)
      return message.content.flatMap((block, place) => {
        if (!isToolCall(block)) return []
        const providerOptions = options(place)
        return [[block.id, { toolName: block.name, ...(providerOptions && { providerOptions }) }] as const]
      })
    }),
  )
}

function together<V extends Version>(history: readonly PromptMessage<V>[]): PromptMessage<V>[] {
  const joined: PromptMessage<V>[] = []
  for (const message of history) {
    const last = joined.at(-1)
    if (last?.role === 'tool' && message.role === 'tool') last.content.push(...message.content)
    else joined.push(message)
  }
  return joined
}

function refuseImages(messages: readonly Message[], urls: SupportedUrls): void {
  const answered = messages.findLastIndex((message) => message.role === 'assistant')
  const asked = messages.findLast((message) => message.source.kind === 'user')
  if (asked === undefined || messages.indexOf(asked) < answered) return
  if (!blocksOf(asked).some((block) => isImage(block) && attachedOf(block.attachment, urls) === undefined)) return
  throw new LlmError({
    message: 'An image cannot be sent to this model: give base64 as `{ data, mediaType }`, or a URL that it fetches',
    code: 'UNSUPPORTED_CONTENT',
  })
}

/** The content as one type of list; a tool result's is a list of one. */
const blocksOf = (message: Message): readonly ContentBlock[] => message.content
