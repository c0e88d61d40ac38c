import { expect, test } from 'vitest'
import { cassette } from '../../../src/services/adapters/cassette.ts'
import { deepseek } from '../../../src/services/adapters/deepseek.ts'
import { systemClock } from '../../../src/services/clock.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { countingIds, ofType, startAgent } from '../../kit/agents.ts'
import { attemptsIn } from '../../kit/relive.ts'
import { answer, delta, refusal, stopped, wireServer } from '../../kit/wire-server.ts'

const REPLIES = [
  refusal(429, { error: { message: 'slow down' } }, { 'retry-after-ms': '1' }),
  { body: [delta({ content: 'half' }), { kind: 'cut' as const }] },
  {
    body: answer({
      reasoning: 'I should look.',
      text: 'Let me see.',
      calls: [
        { id: 'c', name: 'look', arguments: '{"far":true}' },
        { name: 'look', arguments: '{"far":' },
      ],
      usage: { prompt_tokens: 90, completion_tokens: 9, prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 26 },
    }),
  },
  { body: [delta({ content: 'A lake, and mo' }), stopped('length')] },
  refusal(402, { error: { message: 'Insufficient Balance' } }),
  { body: [delta({ reasoning_content: 'And the' }), delta({ content: 'n' }), { kind: 'hang' as const }] },
  { body: answer({ text: 'There.' }) },
]

const look = tool({
  name: 'look',
  description: 'looks',
  parameters: { type: 'object', properties: { far: { type: 'boolean' } } },
  execute: () => 'a lake',
})

async function lived(model: ModelAdapter, newId: () => string) {
  const retry = { backoff: { initialDelayMs: 1, maxDelayMs: 5 } }
  await using started = await startAgent({ model, tools: [look], system: 'be brief', retry, newId })
  const { agent } = started
  await agent.run('What is there?')
  await agent.run('And behind it?')
  const unwatch = agent.on('session/event', (event) => {
    if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') setImmediate(() => agent.cancel())
  })
  await agent.run('Go on')
  unwatch()
  await agent.run('Say it')
  return started.log()
}

test('a session over the wire is played as it came: refusals, cuts, reasoning, calls, usage, a cancel', async () => {
  await using server = await wireServer(REPLIES)
  const env = {}
  const wire = deepseek({ baseURL: server.url, apiKey: 'sk-x', model: 'deepseek-chat' }, { clock: systemClock, env })
  const events = await lived(wire, countingIds('wire'))
  expect(server.requests).toHaveLength(REPLIES.length)
  const model = cassette(events)
  const log = await lived(model, countingIds('played'))
  expect(attemptsIn(log)).toEqual(attemptsIn(events))
  const kinds = ofType(events, 'turn/end').map(({ data }) => data.reason)
  expect(kinds.map(({ kind }) => kind)).toEqual(['max-tokens', 'error', 'aborted', 'completed'])
  expect(ofType(log, 'turn/end').map(({ data }) => data.reason)).toEqual(kinds)
  expect(model.left).toBe(0)
})
