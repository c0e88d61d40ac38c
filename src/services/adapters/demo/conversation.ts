/** What the demo model knows: the last thing the user said, and every call made since with its result. */
import { type ContentBlock, type Message, textOf } from '../../../log/messages.ts'

/** One call since the question, answered. */
export interface Answered {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** The result's text. */
  readonly text: string
  readonly isError: boolean
}

export interface Conversation {
  /** Empty when the user has said nothing. */
  readonly question: string
  readonly done: readonly Answered[]
  /** How many calls were ever made; the next call's id counts on from here. */
  readonly calls: number
}

/** Reads a request's messages. Runtime context (source `plugin`) is not a question. */
export function readConversation(messages: readonly Message[]): Conversation {
  const asked = messages.findLastIndex((message) => message.source.kind === 'user')
  const question = asked < 0 ? '' : textOf(messages[asked] ?? { content: [] }).trim()
  const since = messages.slice(asked + 1)
  return { question, done: answered(since), calls: messages.reduce((n, m) => n + callsIn(m).length, 0) }
}

function answered(messages: readonly Message[]): readonly Answered[] {
  const results = new Map(messages.flatMap((m) => (m.source.kind === 'tool' ? m.content : [])).flatMap(resultOf))
  return messages.flatMap(callsIn).flatMap((call) => {
    const result = results.get(call.id)
    return result ? [{ name: call.name, args: parsed(call.arguments), ...result }] : []
  })
}

type Call = { readonly id: string; readonly name: string; readonly arguments: string }

const callsIn = (message: Message): readonly Call[] =>
  message.role === 'assistant' ? message.content.flatMap((block) => (isCall(block) ? [block] : [])) : []

const isCall = (block: ContentBlock): block is Extract<ContentBlock, { type: 'tool-call' }> =>
  block.type === 'tool-call'
const isResult = (block: ContentBlock): block is Extract<ContentBlock, { type: 'tool-result' }> =>
  block.type === 'tool-result'

function resultOf(block: ContentBlock): [string, { text: string; isError: boolean }][] {
  if (!isResult(block)) return []
  return [[block.toolCallId, { text: textOf(block), isError: block.isError === true }]]
}

/** The arguments as an object; anything else counts as none. */
function parsed(raw: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(raw)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  } catch {
    // Only JSON.parse can land here: arguments that are no JSON are no arguments.
    return {}
  }
}
