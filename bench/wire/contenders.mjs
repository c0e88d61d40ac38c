/** Who reads a stream of chat-completions events, and how: each from the bytes of a socket to its own kind of deltas. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createParser } from 'eventsource-parser'
import OpenAI from 'openai'
import { openaiCompatible } from '../../dist/adapters.js'

/**
 * What was read: counted, so that nobody is fast by leaving something out.
 * @typedef {{ deltas: number, characters: number }} Read
 */

const MODEL = 'model-1'
const KEY = 'sk-benchmark'

/** The least there is to do: no limits, no blocks, no contract. @param {string} baseURL */
async function floor(baseURL) {
  const read = { deltas: 0, characters: 0 }
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'hi' }] }),
  })
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') return
      const { content } = JSON.parse(data).choices[0]?.delta ?? {}
      if (typeof content === 'string') count(read, content)
    },
  })
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) parser.feed(decoder.decode(bytes, { stream: true }))
  return read
}

/** @param {string} baseURL */
async function pawl(baseURL) {
  const read = { deltas: 0, characters: 0 }
  const adapter = openaiCompatible({ baseURL, apiKey: KEY, model: MODEL })
  /** @type {import('../../dist/log/messages.js').Message} */
  const message = { id: 'u', role: 'user', content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } }
  const request = { provider: adapter.provider, model: MODEL, messages: [message], sessionId: 's' }
  for await (const chunk of adapter.stream(request, { signal: new AbortController().signal })) {
    if (chunk.type === 'text-delta') count(read, chunk.text)
  }
  return read
}

/** @param {string} baseURL */
async function openai(baseURL) {
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
}

/** @param {string} baseURL */
async function aiSdk(baseURL) {
  const read = { deltas: 0, characters: 0 }
  const model = createOpenAICompatible({ name: 'benchmark', baseURL, apiKey: KEY }).chatModel(MODEL)
  const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] })
  for await (const part of stream) if (part.type === 'text-delta') count(read, part.delta)
  return read
}

/** @param {Read} read @param {string} text */
function count(read, text) {
  read.deltas += 1
  read.characters += text.length
}

/** In the order of the table. @type {Readonly<Record<string, (baseURL: string) => Promise<Read>>>} */
export const contenders = {
  'eventsource-parser + JSON.parse': floor,
  pawl,
  openai,
  '@ai-sdk/openai-compatible': aiSdk,
}
