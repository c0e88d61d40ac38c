/** pi: its stateful `Agent`, listened to; the transcript is in its state. */
import { Agent } from '@earendil-works/pi-agent-core'
import { createAssistantMessageEventStream } from '@earendil-works/pi-ai'
import { Type } from 'typebox'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

/** @type {import('@earendil-works/pi-ai').Model<'openai-completions'>} */
const model = {
  id: 'fake',
  name: 'fake',
  api: 'openai-completions',
  provider: 'openai',
  baseUrl: '',
  reasoning: false,
  input: ['text'],
  cost: NO_COST,
  contextWindow: 1_000_000,
  maxTokens: 10_000,
}

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script }) {
  const answers = answersOf(script)
  const counts = counters()
  let asked = 0

  /** @type {import('@earendil-works/pi-agent-core').StreamFn} */
  const streamFn = (_model, { messages }) => {
    counts.now.requests += 1
    counts.now.history = messages.length
    return said(answers(asked++))
  }
  /** @type {import('@earendil-works/pi-agent-core').AgentTool} */
  const look = {
    name: 'look',
    label: 'look',
    description: 'Looks.',
    parameters: Type.Object({ n: Type.Number() }),
    execute: async () => {
      counts.now.calls += 1
      return { content: [{ type: 'text', text: RESULT }], details: undefined }
    },
  }

  return {
    keeps: 'nothing',
    async open() {
      asked = 0
      const agent = new Agent({ initialState: { model, tools: [look] }, streamFn })
      agent.subscribe((event) => {
        if (event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta') counts.now.deltas += 1
      })
      return new Chat(agent)
    },
    seen: counts.take,
    end: async () => {},
  }
}

class Chat {
  #agent

  /** @param {Agent} agent */
  constructor(agent) {
    this.#agent = agent
  }

  /** @param {string} prompt */
  turn(prompt) {
    return this.#agent.prompt(prompt)
  }

  async close() {}
}

/** One answer as its providers stream it: one message that grows, beside each event. @param {import('../harness/script.mjs').Answer} answer */
function said({ deltas, call }) {
  const stream = createAssistantMessageEventStream()
  const text = { type: /** @type {const} */ ('text'), text: '' }
  /** @type {import('@earendil-works/pi-ai').AssistantMessage} */
  const partial = {
    role: 'assistant',
    content: [text],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: {
      ...NO_COST,
      input: 100,
      output: deltas.length,
      totalTokens: 100 + deltas.length,
      cost: { ...NO_COST, total: 0 },
    },
    stopReason: call === undefined ? 'stop' : 'toolUse',
    timestamp: Date.now(),
  }
  stream.push({ type: 'start', partial })
  stream.push({ type: 'text_start', contentIndex: 0, partial })
  for (const delta of deltas) {
    text.text += delta
    stream.push({ type: 'text_delta', contentIndex: 0, delta, partial })
  }
  stream.push({ type: 'text_end', contentIndex: 0, content: text.text, partial })
  if (call !== undefined) ask(stream, partial, call)
  stream.push({ type: 'done', reason: call === undefined ? 'stop' : 'toolUse', message: partial })
  return stream
}

/**
 * @param {ReturnType<typeof createAssistantMessageEventStream>} stream
 * @param {import('@earendil-works/pi-ai').AssistantMessage} partial
 * @param {{ readonly n: number }} call
 */
function ask(stream, partial, call) {
  const toolCall = {
    type: /** @type {const} */ ('toolCall'),
    id: `call-${call.n}`,
    name: 'look',
    arguments: { n: call.n },
  }
  partial.content.push(toolCall)
  stream.push({ type: 'toolcall_start', contentIndex: 1, partial })
  stream.push({ type: 'toolcall_delta', contentIndex: 1, delta: JSON.stringify(call), partial })
  stream.push({ type: 'toolcall_end', contentIndex: 1, toolCall, partial })
}
