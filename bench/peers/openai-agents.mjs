/** OpenAI Agents: a `Runner` with streaming, tracing off; the caller keeps the history it gives back. */
import { Agent, Runner, tool, Usage } from '@openai/agents-core'
import { z } from 'zod'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script }) {
  const answers = answersOf(script)
  const counts = counters()
  let asked = 0

  /** @type {import('@openai/agents-core').Model} */
  const model = {
    getResponse: () => Promise.reject(new Error('It is asked to stream')),
    async *getStreamedResponse({ input }) {
      counts.now.requests += 1
      // A call stands beside its answer's text as an item of its own here; a message elsewhere has both.
      counts.now.history = Array.isArray(input) ? input.filter(({ type }) => type !== 'function_call').length : 1
      const answer = answers(asked++)
      yield { type: 'response_started' }
      for (const delta of answer.deltas) yield { type: 'output_text_delta', delta }
      yield { type: 'response_done', response: responseOf(answer, asked) }
    },
  }
  const look = tool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({ n: z.number() }),
    execute: async () => {
      counts.now.calls += 1
      return RESULT
    },
  })
  const agent = new Agent({ name: 'bench', model, tools: [look] })
  const runner = new Runner({ tracingDisabled: true })

  class Chat {
    /** @type {import('@openai/agents-core').AgentInputItem[]} */
    #history = []

    /** @param {string} prompt */
    async turn(prompt) {
      const input = [...this.#history, /** @type {const} */ ({ type: 'message', role: 'user', content: prompt })]
      const result = await runner.run(agent, input, { stream: true, maxTurns: (script.steps ?? 0) + 1 })
      for await (const event of result) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') counts.now.deltas += 1
      }
      await result.completed
      this.#history = result.history
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

/** @param {import('../harness/script.mjs').Answer} answer @param {number} n */
function responseOf({ deltas, call }, n) {
  const text = { type: /** @type {const} */ ('output_text'), text: deltas.join('') }
  const said = { type: /** @type {const} */ ('message'), role: /** @type {const} */ ('assistant') }
  const status = /** @type {const} */ ('completed')
  const tokens = deltas.length
  return {
    id: `response-${n}`,
    usage: new Usage({ requests: 1, inputTokens: 100, outputTokens: tokens, totalTokens: 100 + tokens }),
    output: [
      { ...said, id: `message-${n}`, status, content: [text] },
      ...(call === undefined ? [] : [{ ...callOf(call), status }]),
    ],
  }
}

/** @param {{ readonly n: number }} call */
const callOf = (call) => ({
  type: /** @type {const} */ ('function_call'),
  callId: `call-${call.n}`,
  name: 'look',
  arguments: JSON.stringify(call),
})
