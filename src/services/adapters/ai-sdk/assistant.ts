/**
 * What the model said, as it goes back to it. Blocks that are the provider's own, and what it gave beside the others,
 * go back only to the model they came from.
 */
import { parseArguments } from '../../../log/arguments.ts'
import type { Json } from '../../../log/json.ts'
import type { AssistantMessage, ContentBlock } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { isToolCall } from '../../llm/assembler.ts'
import type { Form } from './forms.ts'
import { isFields, thawed } from './json.ts'
import type { AssistantPart, OutputOf, PlainJson, PlainOptions, TaggedFile, Version } from './model.ts'
import { isOwn, optionsOf } from './replay.ts'

/** The parts of one message; none if nothing of it can be sent. */
export function assistantParts<V extends Version>(
  message: AssistantMessage,
  request: LlmRequest,
  form: Form<V>,
): AssistantPart<V>[] {
  const optionsAt = optionsOf(message, request)
  const own = isOwn(message, request)
  const answered = own ? answeredIn(request) : NONE
  const parts = message.content.flatMap((block, place): AssistantPart<V>[] => {
    const providerOptions = optionsAt(place)
    const options = providerOptions === undefined ? {} : { providerOptions }
    return wordsOrCall(block, options) ?? (own ? foreign(block, { form, options, answered }) : [])
  })
  // Thinking that came to nothing, as in an answer cut by its length: providers refuse a message that ends with it.
  return parts.slice(0, parts.findLastIndex(({ type }) => type !== 'reasoning') + 1)
}

type Options = { providerOptions?: PlainOptions }

/** Empty words go back only if the provider has put something beside them. */
function wordsOrCall<V extends Version>(block: ContentBlock, options: Options): AssistantPart<V>[] | undefined {
  switch (block.type) {
    case 'text':
    case 'reasoning':
      if (block.text === '' && options.providerOptions === undefined) return []
      return [{ type: block.type === 'text' ? 'text' : 'reasoning', text: block.text, ...options }]
    default:
      if (!isToolCall(block)) return undefined
      return [
        { type: 'tool-call', toolCallId: block.id, toolName: block.name, input: inputOf(block.arguments), ...options },
      ]
  }
}

/**
 * Providers take an object and nothing else. What could not be read, or is none, goes back as an empty one: the result
 * beside it says what was wrong.
 */
function inputOf(raw: string): PlainJson {
  const parsed = parseArguments(raw)
  return parsed.kind === 'parsed' && isFields(parsed.args) ? thawed(parsed.args) : {}
}

type Fields = { readonly [key: string]: Json }

/** A block that only this provider knows, as it gave it; none for what it does not take back, such as sources. */
function foreign<V extends Version>(
  block: ContentBlock,
  { form, options, answered }: { form: Form<V>; options: Options; answered: ReadonlySet<string> },
): AssistantPart<V>[] {
  const fields: Fields = { ...block }
  switch (block.type) {
    case 'ai-sdk/tool-call':
      return answered.has(textOf(fields.toolCallId)) ? [{ ...callOf(fields), ...options }] : []
    case 'ai-sdk/tool-result':
      return [{ ...resultOf(fields), ...options }]
    case 'ai-sdk/file':
      return [{ type: 'file', data: form.file(fileOf(fields)), mediaType: textOf(fields.mediaType), ...options }]
    case 'ai-sdk/reasoning-file': {
      const part = { type: 'reasoning-file', data: fileOf(fields), mediaType: textOf(fields.mediaType) } as const
      return listOf(form.extra(part, options))
    }
    case 'ai-sdk/custom':
      return listOf(form.extra({ type: 'custom', kind: kindOf(fields.kind) }, options))
    default:
      return []
  }
}

const callOf = ({ toolCallId, toolName, input }: Fields) => ({
  type: 'tool-call' as const,
  toolCallId: textOf(toolCallId),
  toolName: textOf(toolName),
  input: inputOf(textOf(input)),
  providerExecuted: true,
})

function resultOf<V extends Version>({ toolCallId, toolName, result = null, isError }: Fields) {
  const output: OutputOf<V> =
    isError === true
      ? { type: 'error-json', value: thawed(result) }
      : typeof result === 'string'
        ? { type: 'text', value: result }
        : { type: 'json', value: thawed(result) }
  return { type: 'tool-result' as const, toolCallId: textOf(toolCallId), toolName: textOf(toolName), output }
}

const fileOf = ({ data, url }: Fields): TaggedFile =>
  typeof url === 'string' && URL.canParse(url)
    ? { type: 'url', url: new URL(url) }
    : { type: 'data', data: textOf(data) }

const kindOf = (kind: Json | undefined): `${string}.${string}` => {
  const [provider = '', ...rest] = textOf(kind).split('.')
  return `${provider}.${rest.join('.')}`
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const listOf = <T>(item: T | undefined): T[] => (item === undefined ? [] : [item])

const NONE: ReadonlySet<string> = new Set()

/** Calls that the provider ran and answered: without its result it would refuse such a call. */
const answeredIn = ({ messages }: LlmRequest): ReadonlySet<string> =>
  new Set(
    messages.flatMap(({ content }) =>
      (content as readonly ContentBlock[]).flatMap((block) =>
        block.type === 'ai-sdk/tool-result' && typeof block.toolCallId === 'string' ? [block.toolCallId] : [],
      ),
    ),
  )
