/** The process of one extreme answer: reads it once through the adapter, and says what that took at its peak. */
import { openaiCompatible } from '../../dist/adapters.js'

/**
 * MB are a million bytes.
 * @typedef {object} Taken
 * @property {number} ms
 * @property {number} characters
 * @property {string} end The kind of the finish, or the code of its failure.
 * @property {number} heapMB The largest heap that was seen, garbage and all, above that before the request.
 * @property {number} rssMB How far the memory of the process has grown.
 */

const MB = 1_000_000
const MODEL = 'model-1'
const SAMPLE_MS = 10

process.on('message', async (/** @type {{ baseURL: string }} */ { baseURL }) => process.send?.(await taken(baseURL)))
process.on('disconnect', () => process.exit())

/** @param {string} baseURL @returns {Promise<Taken>} */
async function taken(baseURL) {
  globalThis.gc?.()
  const { heapUsed: before, rss } = process.memoryUsage()
  let peak = before
  const sample = () => {
    peak = Math.max(peak, process.memoryUsage().heapUsed)
  }
  const sampler = setInterval(sample, SAMPLE_MS)
  const begun = performance.now()
  let characters = 0
  let end = 'none'
  const adapter = openaiCompatible({ baseURL, model: MODEL })
  /** @type {import('../../dist/log/messages.js').Message} */
  const message = { id: 'u', role: 'user', content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } }
  const request = { provider: adapter.provider, model: MODEL, messages: [message], sessionId: 's' }
  for await (const chunk of adapter.stream(request, { signal: new AbortController().signal })) {
    if (chunk.type === 'text-delta') characters += chunk.text.length
    if (chunk.type === 'block-end') sample()
    if (chunk.type === 'finish') end = 'failure' in chunk.reason ? chunk.reason.failure.code : chunk.reason.kind
  }
  const ms = performance.now() - begun
  sample()
  clearInterval(sampler)
  const rssMB = (process.resourceUsage().maxRSS * 1_024 - rss) / MB
  return { ms, characters, end, heapMB: (peak - before) / MB, rssMB }
}
