/** Who reads a stream of chat-completions events, and how: each from the bytes of a socket to its own kind of deltas. */
import { join } from 'node:path'
import { createParser } from 'eventsource-parser'
import { openaiCompatible } from '../../dist/adapters.js'
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'
import { isDelta } from '../contenders/pawl.mjs'

/**
 * What was read: counted, so that nobody is fast by leaving something out.
 * @typedef {{ deltas: number, characters: number }} Read
 */

/**
 * @typedef {object} Reader
 * @property {() => Promise<Read>} read What is timed.
 * @property {() => Promise<number>} [logged] The deltas in its log, once it has read; ends it.
 */

/** @typedef {(job: { baseURL: string, folder: string }) => Promise<Reader>} Open */

export const MODEL = 'model-1'
export const KEY = 'sk-benchmark'

/** The least there is to do: no limits, no blocks, no contract. @type {Open} */
const floor = async ({ baseURL }) => ({
  async read() {
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
  },
})

/** The adapter by itself. @type {Open} */
const pawl = async ({ baseURL }) => ({
  async read() {
    const read = { deltas: 0, characters: 0 }
    for await (const chunk of answerOf(baseURL)) if (chunk.type === 'text-delta') count(read, chunk.text)
    return read
  },
})

/** A whole agent, each delta on disk when its turn has ended. @type {Open} */
const logged = async ({ baseURL, folder }) => {
  const model = openaiCompatible({ baseURL, apiKey: KEY, model: MODEL })
  const agent = await createAgent({ model, store: storeIn(folder) })
  return {
    async read() {
      const { text, usage } = await agent.run('hi')
      return { deltas: usage.outputTokens, characters: text.length }
    },
    async logged() {
      let deltas = 0
      for await (const event of agent.session.events()) if (isDelta(event)) deltas += 1
      await agent.close()
      return deltas
    },
  }
}

/** Open as long as the process, which is given one folder. @type {import('../../dist/log.js').LogStore | undefined} */
let store

/** @param {string} folder */
function storeIn(folder) {
  store ??= sqliteStore(join(folder, 'pawl.db'))
  return store
}

/** One answer through the adapter alone, which is as long as the path of `baseURL` says. @param {string} baseURL */
export function answerOf(baseURL) {
  const adapter = openaiCompatible({ baseURL, apiKey: KEY, model: MODEL })
  /** @type {import('../../dist/index.js').Message} */
  const message = { id: 'u', role: 'user', content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } }
  const request = { provider: adapter.provider, model: MODEL, messages: [message], sessionId: 's' }
  return adapter.stream(request, { signal: new AbortController().signal })
}

/** @param {Read} read @param {string} text */
export function count(read, text) {
  read.deltas += 1
  read.characters += text.length
}

/** By name; the others are in peers/wire.mjs. @type {Readonly<Record<string, Open>>} */
const own = { 'eventsource-parser + JSON.parse': floor, pawl, 'pawl, to the SQLite log': logged }

/** In the order of the table. */
export const NAMES = [...Object.keys(own), 'openai', '@ai-sdk/openai-compatible', 'ai, streamText']

/** @param {string} name @returns {Promise<Open>} */
export async function contenderOf(name) {
  const open = own[name] ?? (await import(new URL('../peers/wire.mjs', import.meta.url).href)).contenders[name]
  if (open === undefined) throw new Error(`There is no contender "${name}"`)
  return open
}
