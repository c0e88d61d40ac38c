/** Who else reads a stream of chat-completions events. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { streamText } from 'ai'
import OpenAI from 'openai'
import { count, KEY, MODEL } from '../wire/contenders.mjs'

/** @type {import('../wire/contenders.mjs').Open} */
const openai = async ({ baseURL }) => ({
  async read() {
    const read = { deltas: 0, characters: 0 }
    const client = new OpenAI({ baseURL, apiKey: KEY, maxRetries: 0 })
    const stream = await client.chat.completions.create({
      model: MODEL,
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
    })
    for await (const { choices } of stream) {
      const content = choices[0]?.delta.content
      if (typeof content === 'string') count(read, content)
    }
    return read
  },
})

/** The provider by itself. @type {import('../wire/contenders.mjs').Open} */
const provider = async ({ baseURL }) => ({
  async read() {
    const read = { deltas: 0, characters: 0 }
    const prompt = [
      { role: /** @type {const} */ ('user'), content: [{ type: /** @type {const} */ ('text'), text: 'hi' }] },
    ]
    const { stream } = await modelAt(baseURL).doStream({ prompt })
    for await (const part of stream) if (part.type === 'text-delta') count(read, part.delta)
    return read
  },
})

/** As its users call it. @type {import('../wire/contenders.mjs').Open} */
const streamed = async ({ baseURL }) => ({
  async read() {
    const read = { deltas: 0, characters: 0 }
    const { fullStream } = streamText({ model: modelAt(baseURL), prompt: 'hi' })
    for await (const part of fullStream) if (part.type === 'text-delta') count(read, part.text)
    return read
  },
})

/** @param {string} baseURL */
const modelAt = (baseURL) => createOpenAICompatible({ name: 'benchmark', baseURL, apiKey: KEY }).chatModel(MODEL)

/** By name. */
export const contenders = { openai, '@ai-sdk/openai-compatible': provider, 'ai, streamText': streamed }
