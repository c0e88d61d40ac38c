/** LangGraph: its prebuilt agent with a checkpointer, the stream of messages read. */
import { join } from 'node:path'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk } from '@langchain/core/messages'
import { ChatGenerationChunk } from '@langchain/core/outputs'
import { tool } from '@langchain/core/tools'
import { MemorySaver } from '@langchain/langgraph'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { z } from 'zod'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

const KEEPS = {
  memory: 'nothing',
  sqlite: 'a checkpoint a node, no deltas; as it comes: not synced, written behind',
  'sqlite-full': 'a checkpoint a node, no deltas; synced, before it goes on',
}

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script, store, folder }) {
  const counts = counters()
  const model = new Fake(answersOf(script), counts)
  const look = tool(
    async () => {
      counts.now.calls += 1
      return RESULT
    },
    { name: 'look', description: 'Looks.', schema: z.object({ n: z.number() }) },
  )
  const saver = store === 'memory' ? new MemorySaver() : SqliteSaver.fromConnString(join(folder, 'langgraph.db'))
  if (saver instanceof SqliteSaver && store === 'sqlite-full') saver.db.pragma('synchronous = FULL')
  const graph = createReactAgent({ llm: model, tools: [look], checkpointSaver: saver })
  const durability = store === 'sqlite-full' ? /** @type {const} */ ('sync') : undefined
  const recursionLimit = 2 * (script.steps ?? 0) + 10

  class Chat {
    #id

    /** @param {string} id */
    constructor(id) {
      this.#id = id
    }

    /** @param {string} prompt */
    async turn(prompt) {
      const config = { configurable: { thread_id: this.#id }, recursionLimit, ...(durability && { durability }) }
      const input = { messages: [{ role: 'user', content: prompt }] }
      for await (const [message] of await graph.stream(input, { ...config, streamMode: 'messages' })) {
        if (message instanceof AIMessageChunk && message.content !== '') counts.now.deltas += 1
      }
    }

    async close() {}
  }

  return {
    keeps: KEEPS[store],
    async open(id) {
      model.asked = 0
      return new Chat(id)
    },
    seen: counts.take,
    async end() {
      if (saver instanceof SqliteSaver) saver.db.close()
    },
  }
}

class Fake extends BaseChatModel {
  asked = 0
  #answers
  #counts

  /** @param {import('../harness/script.mjs').Answers} answers @param {ReturnType<typeof counters>} counts */
  constructor(answers, counts) {
    super({})
    this.#answers = answers
    this.#counts = counts
  }

  _llmType() {
    return 'fake'
  }

  /** @override */
  bindTools() {
    return this
  }

  /** @override @returns {Promise<never>} */
  async _generate() {
    throw new Error('It is asked to stream')
  }

  /**
   * @override
   * @param {import('@langchain/core/messages').BaseMessage[]} messages
   * @param {this['ParsedCallOptions']} _options
   * @param {import('@langchain/core/callbacks/manager').CallbackManagerForLLMRun} [manager]
   */
  async *_streamResponseChunks(messages, _options, manager) {
    this.#counts.now.requests += 1
    this.#counts.now.history = messages.length
    const { deltas, call } = this.#answers(this.asked++)
    const id = `message-${this.asked}-${messages.length}`
    for (const text of deltas) {
      const chunk = new ChatGenerationChunk({ message: new AIMessageChunk({ content: text, id }), text })
      yield chunk
      await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk })
    }
    if (call === undefined) return
    const asking = { id: `call-${call.n}`, name: 'look', args: JSON.stringify(call), index: 0 }
    const message = new AIMessageChunk({ content: '', id, tool_call_chunks: [{ ...asking, type: 'tool_call_chunk' }] })
    yield new ChatGenerationChunk({ message, text: '' })
  }
}
