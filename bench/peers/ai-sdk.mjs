/** AI SDK: `streamText` with tools and a step count, its full stream read, its messages kept by the caller. */
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script }) {
  const answers = answersOf(script)
  const counts = counters()
  let asked = 0

  /** @type {Exclude<Parameters<typeof streamText>[0]['model'], string> & { specificationVersion: 'v3' }} */
  const model = {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'fake',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('It is asked to stream')),
    async doStream({ prompt }) {
      counts.now.requests += 1
      counts.now.history = prompt.length
      const parts = partsOf(answers(asked++))
      const stream = new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part)
          controller.close()
        },
      })
      return { stream }
    },
  }
  const look = tool({
    description: 'Looks.',
    inputSchema: z.object({ n: z.number() }),
    execute: async () => {
      counts.now.calls += 1
      return RESULT
    },
  })

  class Chat {
    /** @type {import('ai').ModelMessage[]} */
    #messages = []

    /** @param {string} prompt */
    async turn(prompt) {
      this.#messages.push({ role: 'user', content: prompt })
      const stopWhen = stepCountIs((script.steps ?? 0) + 1)
      const result = streamText({ model, messages: this.#messages, tools: { look }, stopWhen })
      for await (const part of result.fullStream) {
        if (part.type === 'text-delta') counts.now.deltas += 1
        if (part.type === 'error') throw part.error
      }
      this.#messages.push(...(await result.response).messages)
    }

    async close() {}
  }

  return {
    keeps: 'nothing',
    async open() {
      asked = 0
      return new Chat()
    },
    seen: counts.take,
    end: async () => {},
  }
}

/** @param {import('../harness/script.mjs').Answer} answer @returns {import('@ai-sdk/provider').LanguageModelV3StreamPart[]} */
function partsOf({ deltas, call }) {
  const id = 't'
  const usage = {
    inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: deltas.length, text: deltas.length, reasoning: 0 },
  }
  const finishReason = { unified: call === undefined ? 'stop' : 'tool-calls', raw: undefined }
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id },
    ...deltas.map((delta) => ({ type: /** @type {const} */ ('text-delta'), id, delta })),
    { type: 'text-end', id },
    ...(call === undefined ? [] : [callOf(call)]),
    { type: 'finish', finishReason: /** @type {never} */ (finishReason), usage },
  ]
}

/** @param {{ readonly n: number }} call */
const callOf = (call) => ({
  type: /** @type {const} */ ('tool-call'),
  toolCallId: `call-${call.n}`,
  toolName: 'look',
  input: JSON.stringify(call),
})
