/** A history in the corpus's plain form, as messages. */
import type { AssistantMessage, ContentBlock, Message } from '../../../src/log/messages.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import type { CorpusMessage } from './format.ts'

/** The messages, said by the models the file names or else by `adapter`'s. */
export const messagesOf = (history: readonly CorpusMessage[], adapter: ModelAdapter): readonly Message[] =>
  history.map((message, i) => messageOf(message, `m${i}`, adapter))

function messageOf(message: CorpusMessage, id: string, adapter: ModelAdapter): Message {
  switch (message.role) {
    case 'user':
      return { id, role: 'user', content: [{ type: 'text', text: message.text }], source: { kind: 'user' } }
    case 'assistant':
      return assistant(message, id, adapter)
    case 'tool': {
      const { call: callId, text } = message
      const result = { type: 'tool-result', toolCallId: callId, content: [{ type: 'text', text }] } as const
      return { id, role: 'user', content: [result], source: { kind: 'tool', callId } }
    }
  }
}

type Said = Extract<CorpusMessage, { role: 'assistant' }>

function assistant(
  { text, reasoning, calls = [], provider, model }: Said,
  id: string,
  asked: ModelAdapter,
): AssistantMessage {
  const content: ContentBlock[] = []
  if (reasoning !== undefined) content.push({ type: 'reasoning', text: reasoning })
  if (text !== undefined) content.push({ type: 'text', text })
  content.push(...calls.map((call): ContentBlock => ({ type: 'tool-call', ...call })))
  return {
    id,
    role: 'assistant',
    content,
    source: { kind: 'model', provider: provider ?? asked.provider, model: model ?? asked.model },
  }
}
