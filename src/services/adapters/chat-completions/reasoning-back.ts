/** Past reasoning that a request brings back to the model: under which key, on which of its messages. */
import type { AssistantMessage, Message } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import type { Dialect } from './dialect.ts'

/** The field that an answer sends its reasoning in; none if it sends none. */
export type ReasoningBack = (message: AssistantMessage) => Readonly<Record<string, string>>

/** What the answers of one request send. A request that switches thinking off sends none. */
export function reasoningBack({ messages, reasoningEffort }: LlmRequest, dialect: Dialect): ReasoningBack {
  const { reasoning: key = 'none', reasoningOn = 'all', reasoningFill } = dialect
  if (key === 'none' || isOff(reasoningEffort)) return () => ({})
  const chosen = new Set(CHOICES[reasoningOn](messages).filter(isAnswer))
  return (message) => {
    const text = chosen.has(message) ? textIn(message) || reasoningFill : undefined
    return text === undefined || (text === '' && reasoningFill === undefined) ? {} : { [key]: text }
  }
}

/** True for an effort that means no thinking at all. */
export const isOff = (effort: string | undefined): boolean => effort === 'off' || effort === 'none'

type Choice = (messages: readonly Message[]) => readonly Message[]

/** What a server takes for a turn goes by its messages: from one of a user to the next, whoever put it there. */
const CHOICES: Readonly<Record<NonNullable<Dialect['reasoningOn']>, Choice>> = {
  all: (messages) => messages,
  'turns-with-calls': (messages) =>
    turnsOf(messages)
      .filter((turn) => turn.some(asks))
      .flat(),
  'last-user': (messages) => messages.slice(messages.findLastIndex(speaks) + 1),
  'last-user-calls': (messages) => messages.slice(messages.findLastIndex(speaks) + 1).filter(asks),
}

function turnsOf(messages: readonly Message[]): readonly (readonly Message[])[] {
  const turns: Message[][] = [[]]
  for (const message of messages) {
    if (speaks(message)) turns.push([])
    turns.at(-1)?.push(message)
  }
  return turns
}

/** A message that holds only results is none of a user on the wire. */
const speaks = (message: Message): boolean => message.role === 'user' && message.source.kind !== 'tool'
const isAnswer = (message: Message): message is AssistantMessage => message.role === 'assistant'
const asks = (message: Message): boolean =>
  message.role === 'assistant' && message.content.some((block) => block.type === 'tool-call')

const textIn = ({ content }: AssistantMessage): string =>
  content.map((block) => (block.type === 'reasoning' ? block.text : '')).join('')
