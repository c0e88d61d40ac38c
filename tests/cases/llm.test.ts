/** What stands between the loop and an adapter. */
import { expect, test } from 'vitest'
import type { LlmCallConfig } from '../../src/log/requests.ts'
import { fails, scripted, text } from '../../src/services/adapters/scripted.ts'
import { LlmError } from '../../src/services/errors.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { ofType, simulatedClock, startAgent } from '../kit/agents.ts'

test('[llm-004] what a hook around the stream throws ends the turn as it is: no chunk says that the model failed', async () => {
  const model = scripted([[text('hello', { deltas: 2 })], 'never'])
  await using started = await startAgent({
    model,
    hooks: {
      async *'llm/stream'(_, next) {
        for await (const chunk of next()) {
          yield chunk
          throw new LlmError({ message: 'not that', code: 'SERVER' })
        }
      },
    },
  })
  const { reason } = await started.agent.run('go')
  expect(reason).toEqual({ kind: 'error', error: { message: 'not that', code: 'SERVER' } })
  const log = await started.log()
  expect(ofType(log, 'assistant/chunk').map(({ data }) => data.chunk.type)).toEqual(['block-start'])
  // A failure of the model with that code would be tried again.
  expect(ofType(log, 'llm/retry')).toEqual([])
  expect(model.requests).toHaveLength(1)
})

test('[llm-005] a model that nobody serves is a finish of its own, the attempt’s only chunk', async () => {
  await using started = await startAgent()
  started.agent.on('agent/request', () => ({ provider: 'nobody', model: 'm' }))
  await started.agent.run('go')
  expect(ofType(await started.log(), 'assistant/chunk').map(({ data }) => data.chunk)).toMatchObject([
    { type: 'finish', reason: { kind: 'error', failure: { code: 'NO_ADAPTER' } } },
  ])
})

// Replaced: nobody holds a prepared call that could be used twice or for something else. Each attempt prepares its own.
test('[llm-007] what an adapter prepares is for one attempt, and is what that attempt sends', async () => {
  const clock = simulatedClock()
  const base = scripted([fails('SERVER'), 'ok'])
  const prepared: LlmCallConfig[] = []
  const model: ModelAdapter & { readonly requests: typeof base.requests } = {
    ...base,
    requests: base.requests,
    prepare: async (config) => {
      prepared.push(config)
      return { config: { ...config, maxTokens: prepared.length } }
    },
  }
  await using started = await startAgent({ model, clock })
  const running = started.agent.run('go')
  await started.agent.whenQuiet()
  clock.increment(10_000)
  expect((await running).text).toBe('ok')
  expect(prepared).toHaveLength(2)
  expect(base.requests.map(({ maxTokens }) => maxTokens)).toEqual([1, 2])
})

// Replaced: an error that reports a failure must not itself fail. Facts that cannot be are left out.
test('[llm-012] an LlmError with facts that cannot be keeps its message and its code alone', async () => {
  const odd = { message: 'busy', code: 'AUTH', status: 42, providerRetryAfterMs: -1 }
  const model: ModelAdapter = {
    provider: 'p',
    model: 'm',
    async *stream() {
      if (odd.status > 0) throw new LlmError(odd)
      yield* []
    },
  }
  await using started = await startAgent({ model })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error: { message: 'busy', code: 'AUTH' } })
})
