import { expect, test } from 'vitest'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, gate, pause, scripted, text, toolCall, usage } from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, typesOf } from '../kit/agents.ts'

const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })
const spend = (inputTokens: number, outputTokens = 0) => usage({ inputTokens, outputTokens })

test('a turn that reaches its tokens with a call ends by limit: the call is answered and never begins', async () => {
  const model = scripted([
    [toolCall('look', {}), spend(60)],
    [toolCall('look', { again: 1 }), spend(50)],
  ])
  await using started = await startAgent({ model, tools: [look], limits: { turn: { tokens: 100 } } })
  const result = await started.agent.run('go')
  const limit = { name: 'tokens', scope: 'turn', max: 100, spent: 110 }
  expect(result.reason).toEqual({ kind: 'limit', limit })
  const log = await started.log()
  expect(ofType(log, 'tool/dispatch')).toHaveLength(1)
  expect(ofType(log, 'tool/result').map(({ data }) => data.error?.code)).toEqual([undefined, 'ABORTED_BEFORE_DISPATCH'])
  const types = typesOf(log)
  expect(types.indexOf('turn/cancel')).toBe(types.lastIndexOf('assistant/message') - 1)
})

test('an answer without calls that reaches the limit ends the turn by itself: nothing is cancelled', async () => {
  const model = scripted([[text('done'), spend(500)]])
  await using started = await startAgent({ model, limits: { turn: { tokens: 100 } } })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  expect(ofType(await started.log(), 'turn/cancel')).toEqual([])
})

test('a session over its limit asks no model: the message goes back to its queue, and the turn says why', async () => {
  const model = scripted([[text('one'), spend(120)], 'never asked'])
  await using started = await startAgent({ model, limits: { session: { tokens: 100 } } })
  await started.agent.run('first')
  const second = await started.agent.run('second')
  expect(second.reason).toMatchObject({ kind: 'limit', limit: { scope: 'session', spent: 120 } })
  expect(model.requests).toHaveLength(1)
  expect(started.agent.inbox.nextTurn).toMatchObject([{ message: { content: [{ text: 'second' }] } }])
})

test('the log is the meter: a reopened session still knows what was spent', async () => {
  const store = memoryStore()
  const limits = { session: { tokens: 100 } }
  const first = await startAgent({ store, model: scripted([[text('one'), spend(120)]]), limits })
  await first.agent.run('first')
  await first.agent.close()
  await using again = await startAgent({ store, model: scripted([]), limits })
  expect((await again.agent.run('second')).reason).toMatchObject({ kind: 'limit', limit: { spent: 120 } })
})

test('a failed attempt counts, by estimate if it told no usage, and is not tried again over the limit', async () => {
  const long = 'x'.repeat(4_000)
  const model = scripted([[text(long), fails({ code: 'SERVER', message: 'no' })], 'never asked'])
  await using started = await startAgent({ model, limits: { turn: { tokens: 1_000 } } })
  const { reason } = await started.agent.run('go')
  expect(reason).toMatchObject({ kind: 'limit', limit: { name: 'tokens', estimated: true } })
  expect(ofType(await started.log(), 'llm/retry')).toEqual([])
  expect(model.requests).toHaveLength(1)
})

test('time runs while something runs, and not while an approval is waited for', async () => {
  const clock = simulatedClock()
  const held = gate()
  const asks = tool({ name: 'asks', description: 'Asks', parameters: {}, needsApproval: true, execute: () => 'ok' })
  const model = scripted([toolCall('asks', {}), [text('thinking'), pause(held)]])
  const limits = { turn: { timeMs: 1_000 } }
  await using started = await startAgent({ model, clock, limits, tools: [asks] })
  const running = started.agent.run('go')
  await started.agent.whenQuiet()
  clock.increment(60_000)
  const [approval] = started.agent.approvals()
  await started.agent.approve(approval?.callId ?? '', { digest: approval?.argumentsDigest ?? '' })
  await held.reached
  clock.increment(999)
  await settle()
  expect(started.agent.status).toBe('running')
  clock.increment(1)
  expect((await running).reason).toMatchObject({ kind: 'limit', limit: { name: 'time', scope: 'turn', spent: 1_000 } })
  expect(ofType(await started.log(), 'assistant/message').at(-1)?.data.interrupted).toBe(true)
})

/** A model with a price: 1 for a million of input tokens, 2 of output. */
const priced = (model: ModelAdapter): ModelAdapter => ({
  ...model,
  prepare: async (config) => ({ config, price: { input: 1, output: 2 } }),
})

test('cost is counted at the logged price, and a limit on it without a price is refused before anything is spent', async () => {
  const model = scripted([[toolCall('look', {}), spend(400_000, 300_000)]])
  const limits = { turn: { cost: 1 } }
  await using started = await startAgent({ model: priced(model), tools: [look], limits })
  const { reason } = await started.agent.run('go')
  expect(reason).toMatchObject({ kind: 'limit', limit: { name: 'cost', spent: 1 } })
  await expect(startAgent({ model, limits })).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'limits.cost' })
})

test('the same call again and again: the model is warned, then the turn ends, and other calls do not count', async () => {
  const model = scripted((_, n) => toolCall('look', n === 1 ? { other: true } : { a: 1, b: 2 }))
  const repeatedCalls = { warnAfter: 2, stopAfter: 4 }
  await using started = await startAgent({ model, tools: [look], repeatedCalls })
  const result = await started.agent.run('go')
  expect(result.reason).toEqual({ kind: 'repeated-call', name: 'look', count: 4 })
  const log = await started.log()
  const warnings = ofType(log, 'user/message').filter(({ data }) => data.source.kind === 'plugin')
  expect(warnings).toHaveLength(2)
  expect(ofType(log, 'tool/dispatch')).toHaveLength(4)
  expect(ofType(log, 'tool/result')).toHaveLength(5)
})

test('arguments count as the same whatever the order of their keys, and a repeatable tool may repeat itself', async () => {
  const same = ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }']
  const raw = (n: number) => ({ type: 'tool-call', id: `c${n}`, name: 'look', arguments: same[n % 2] ?? '' }) as const
  const model = (): ModelAdapter => {
    let n = 0
    return {
      provider: 'p',
      model: 'm',
      async *stream() {
        yield { type: 'block-start', index: 0, blockType: 'tool-call' }
        yield { type: 'block-end', index: 0, block: raw(n++) }
        yield { type: 'finish', reason: { kind: 'tool-calls' } }
      },
    }
  }
  const bounds = { repeatedCalls: { warnAfter: 2, stopAfter: 3 }, maxSteps: 5 }
  await using strict = await startAgent({ model: model(), tools: [look], ...bounds })
  expect((await strict.agent.run('go')).reason).toEqual({ kind: 'repeated-call', name: 'look', count: 3 })
  const polls = { ...look, repeatable: true }
  await using lax = await startAgent({ model: model(), tools: [polls], ...bounds })
  expect((await lax.agent.run('go')).reason).toEqual({ kind: 'max-steps', maxSteps: 5 })
})
