/** A model of the AI SDK. Its provider answers from this file, so that the example runs without a key or a server. */

import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createAgent, tool } from 'pawl'
import { aiSdk } from 'pawl/adapters/ai-sdk'
import { memoryStore } from 'pawl/log'

const provider = createOpenAICompatible({
  name: 'local',
  baseURL: 'http://localhost:11434/v1',
  includeUsage: true,
  fetch: async (_url, init) => answerTo(JSON.parse(String(init?.body))), // leave it out to ask the server
})

const agent = await createAgent({
  // A provider's own options are said under its name, for every request or as a function of each.
  model: aiSdk(provider('qwen3'), { contextWindow: 32_768, providerOptions: { local: { seed: 7 } } }),
  store: memoryStore(),
  tools: [
    tool({
      name: 'temperature',
      description: 'The temperature of a place, in degrees Celsius.',
      parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
      execute: () => '18',
    }),
  ],
})
const { reason, text, usage } = await agent.run('How warm is it in Oslo?')
console.log(`${reason.kind}: ${text} (${usage.inputTokens + usage.outputTokens} tokens)`)
await agent.close()

/** What a server would stream: a call of the tool, then the answer. */
function answerTo({ messages }: { messages: { role: string; content: string }[] }): Response {
  const seen = messages.find(({ role }) => role === 'tool')?.content
  const call = { index: 0, id: 'call-1', function: { name: 'temperature', arguments: '{"place":"Oslo"}' } }
  const delta = seen === undefined ? { tool_calls: [call] } : { content: `It is ${seen} degrees.` }
  const events = [
    { choices: [{ delta, finish_reason: null }] },
    { choices: [{ delta: {}, finish_reason: seen === undefined ? 'tool_calls' : 'stop' }] },
    { choices: [], usage: { prompt_tokens: 40, completion_tokens: 5 } },
  ]
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(`${body}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
}
