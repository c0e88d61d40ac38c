/** What comes from outside (a model, a hook, a tool, a caller) may be any value: it is an outcome, never the agent's end. */
import { expect, test } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import type { StreamChunk } from '../../src/log/messages.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { chunks, fails, hangs, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { LlmError } from '../../src/services/errors.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import type { PreparedCall } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent } from '../kit/agents.ts'

const KIB = 1024
const long = (kib: number) => 'x'.repeat(kib * KIB)

/** A value that the types forbid. */
const wrong = <T>(value: unknown): T => value as T

const echo = (ran: string[] = []) =>
  tool({
    name: 'echo',
    description: 'Says it back.',
    parameters: { type: 'object' },
    execute: () => {
      ran.push('ran')
      return 'said'
    },
  })

/** One turn in which the model calls `echo` once; how the call was answered. */
async function answerOf(hooks: Partial<Hooks>) {
  const ran: string[] = []
  const model = scripted([toolCall('echo', {}), 'done'])
  await using started = await startAgent({ model, tools: [echo(ran)], hooks })
  const { reason } = await started.agent.run('go')
  const [result] = ofType(await started.log(), 'tool/result')
  return { reason, result: result?.data, ran: ran.length }
}

async function endOf(options: Partial<AgentOptions>) {
  await using started = await startAgent(options)
  return (await started.agent.run('go')).reason
}

const NONSENSE: readonly [string, unknown][] = [
  ['nothing', undefined],
  ['null', null],
  ['a number', 5],
  ['an empty object', {}],
  ['a kind of its own', { kind: 'Deny', reason: 'no' }],
]

test.each(NONSENSE)('a tools/pre-execute hook that gives %s runs no tool', async (_, given) => {
  const { ran, result, reason } = await answerOf({ 'tools/pre-execute': () => wrong(given) })
  expect(ran).toBe(0)
  expect(result?.error?.code).toBe('HOOK_MISUSE')
  expect(reason.kind).toBe('completed')
})

test.each([
  ...NONSENSE,
  ['no content', { kind: 'ok', value: 1 }],
  ['content that is no blocks', { kind: 'ok', value: 1, content: [{ type: 'text', text: 5 }] }],
  ['an error without text', { kind: 'error' }],
  ['an error without a code', { kind: 'error', text: 'x', error: { name: 'X', code: '' } }],
])('a tools/execute hook that gives %s fails its call', async (_, given) => {
  const { result, reason } = await answerOf({ 'tools/execute': () => wrong(given) })
  expect(result?.error?.code).toBe('HOOK_MISUSE')
  expect(reason.kind).toBe('completed')
})

test.each([
  ...NONSENSE,
  ['a block without feedback', { kind: 'block' }],
  ['content that is no blocks', { kind: 'accept', content: [{ type: 'text', text: 5 }] }],
])('a tools/post-execute hook that gives %s fails its call', async (_, given) => {
  const { result, reason } = await answerOf({ 'tools/post-execute': () => wrong(given) })
  expect(result?.error?.code).toBe('HOOK_MISUSE')
  expect(reason.kind).toBe('completed')
})

test('the words of a hook are kept to what the log takes', async () => {
  expect(await endOf({ hooks: { 'agent/pre-step': () => ({ kind: 'reject', reason: long(2048) }) } })).toMatchObject({
    kind: 'blocked',
  })
  const policy = { kind: 'stopped-by-policy', policy: long(2048), reason: long(2048) } as const
  expect(await endOf({ hooks: { 'agent/turn-stopping': () => policy } })).toMatchObject({ kind: 'stopped-by-policy' })
})

test('a failure with a message too long for the log keeps its code and the beginning of its words', async () => {
  const failing = { provider: 'p', model: 'm', async *stream() {} }
  const prepare = async () => {
    throw new LlmError({ code: 'TOO_WORDY', message: long(2048) })
  }
  expect(await endOf({ model: { ...failing, prepare } })).toMatchObject({ error: { code: 'TOO_WORDY' } })
  const retry = { maxRetries: 1, backoff: { initialDelayMs: 1, maxDelayMs: 1 } }
  const model = scripted([fails({ code: 'SERVER', message: 'x'.repeat(KIB * KIB - 300) }), 'ok'])
  expect(await endOf({ model, retry })).toEqual({ kind: 'completed' })
})

test('a hook cannot put a message into the conversation twice', async () => {
  await using started = await startAgent({
    hooks: {
      'agent/pre-step': async ({ turn, messages }, next) => {
        const first = started.agent.session.messages()[0]
        await next()
        return wrong({ kind: 'enter', messages: turn === 1 ? messages : [...messages, first] })
      },
    },
  })
  await started.agent.run('one')
  expect((await started.agent.run('two')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
})

const finished = { type: 'finish', reason: { kind: 'stop' } } as const
const block = (index: number, words: string): readonly StreamChunk[] => [
  { type: 'block-start', index, blockType: 'text' },
  { type: 'block-end', index, block: { type: 'text', text: words } },
]

test.each([
  ['text', [...block(0, long(700)), ...block(1, long(700)), finished]],
  [
    'usage',
    [
      ...block(0, long(300)),
      wrong<StreamChunk>({ type: 'usage', usage: { inputTokens: 1, outputTokens: 1, junk: long(900) } }),
      finished,
    ],
  ],
  [
    'finish',
    [...block(0, long(300)), wrong<StreamChunk>({ type: 'finish', reason: { kind: 'stop', junk: long(900) } })],
  ],
] satisfies [string, readonly StreamChunk[]][])(
  'an answer whose %s is too large is a failed attempt',
  async (_, said) => {
    const reason = await endOf({ model: scripted([chunks(said)]) })
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'RESPONSE_TOO_LARGE' } })
  },
)

test('an answer that would never end is cut off at what the log takes', async () => {
  let said = 0
  const model = {
    provider: 'p',
    model: 'm',
    async *stream(): AsyncGenerator<StreamChunk> {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      while (said < 1_000) {
        said += 1
        yield { type: 'text-delta', index: 0, text: ' '.repeat(16 * KIB) }
      }
      yield finished
    },
  }
  expect(await endOf({ model })).toMatchObject({ error: { code: 'RESPONSE_TOO_LARGE' } })
  expect(said).toBeLessThan(70)
})

test('a tool whose name is too long to schedule is a failed attempt', async () => {
  const reason = await endOf({ model: scripted([toolCall(long(600), {})]) })
  expect(reason).toMatchObject({ error: { code: 'RESPONSE_TOO_LARGE' } })
})

test('names that together are too long for an answer are a failed attempt', async () => {
  const calls = Array.from({ length: 100 }, (_, index): StreamChunk[] => [
    { type: 'block-start', index, blockType: 'tool-call' },
    { type: 'tool-call-delta', index, id: `c${index}`, name: 'n'.repeat(20 * KIB), argumentsDelta: '{}' },
  ])
  const reason = await endOf({ model: scripted([chunks([...calls.flat(), finished])]) })
  expect(reason).toMatchObject({ error: { code: 'RESPONSE_TOO_LARGE' } })
})

test.each([
  ['the name of an error', { kind: 'error', text: 'x', error: { name: long(2048), code: 'C' } }],
  ['what stands beside a text', { kind: 'ok', value: 1, content: [{ type: 'text', text: 'x', more: long(2048) }] }],
])('a result whose size is all in %s is cut', async (_, given) => {
  const { result, reason } = await answerOf({ 'tools/execute': () => wrong(given) })
  expect(result?.error?.code).toBe('RESULT_TOO_LARGE')
  expect(reason).toEqual({ kind: 'completed' })
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['no config', {}],
  ['a config without a provider', { config: {} }],
  ['a model that is none', { config: { provider: 'p', model: 7 } }],
  ['a bound that is none', { config: { provider: 'p', model: 'm', maxTokens: 'many' } }],
  ['what is no JSON', { config: { provider: 'p', model: 'm', at: new Date(0) } }],
  ['a window that is none', { config: { provider: 'p', model: 'm' }, contextWindow: 'wide' }],
  ['a price that is none', { config: { provider: 'p', model: 'm' }, price: { input: 'much' } }],
])('an adapter that prepares %s fails its step, and the session opens again', async (_, prepared) => {
  const store = memoryStore()
  const model = { ...scripted(['ok']), prepare: async () => wrong<PreparedCall>(prepared) }
  const reason = await endOf({ model, store })
  if (prepared !== undefined) expect(reason).toMatchObject({ kind: 'error' })
  expect(await endOf({ store })).toEqual({ kind: 'completed' })
})

test('ids that are none are refused where they are asked for', async () => {
  let ids = 0
  const newId = () => (ids++ < 1 ? `id-${ids}` : wrong<string>(ids))
  await using started = await startAgent({ newId })
  const { reason } = await started.agent.run('go')
  expect(reason).toMatchObject({ kind: 'error', error: { code: 'INVALID_OPTION' } })
})

test('a call id too long for every event of its call is minted anew', async () => {
  await using started = await startAgent({
    model: scripted([toolCall('echo', {}, { id: long(400) }), 'done']),
    tools: [echo()],
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  expect(ofType(await started.log(), 'tool/call')[0]?.data.callId).toMatch(/^call-/)
})

test('what a model says is kept as it was logged, whatever the adapter does to it afterwards', async () => {
  const said = { type: 'text' as const, text: 'as said' }
  const model = {
    provider: 'p',
    model: 'm',
    async *stream(): AsyncGenerator<StreamChunk> {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      yield { type: 'block-end', index: 0, block: said }
      said.text = 'changed'
      yield finished
    },
  }
  await using started = await startAgent({ model })
  expect((await started.agent.run('go')).text).toBe('as said')
})

test('what was seen of an answer is kept when its stream throws at the cancel', async () => {
  const hooks: Partial<Hooks> = {
    'llm/stream': async function* ({ signal }, next) {
      for await (const chunk of next()) {
        yield chunk
        if (chunk.type !== 'block-end') continue
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      }
    },
  }
  await using started = await startAgent({ model: scripted([[text('seen'), hangs()]]), hooks })
  const receipt = started.agent.followup('go')
  await settle()
  await started.agent.cancel()
  expect(await receipt.turn).toMatchObject({ reason: { kind: 'aborted' }, text: 'seen' })
})

test('a message that fits no event of the log is refused, however close it comes', async () => {
  await using started = await startAgent()
  for (const bytes of [1023.7 * KIB, KIB * KIB - 300, 3 * KIB * KIB]) {
    expect(() => started.agent.followup('x'.repeat(bytes))).toThrow(expect.objectContaining({ code: 'TOO_LARGE' }))
  }
  expect(started.agent.status).toBe('idle')
})

test('messages that are put back keep their order, also where they fill several events', async () => {
  await using started = await startAgent({
    hooks: {
      'agent/pre-step': ({ signal }, next) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve(next()))),
    },
  })
  const sent = ['a', 'b', 'c'].map((word) => started.agent.inject(word.repeat(700 * KIB)).id)
  started.agent.followup('go')
  await settle()
  await started.agent.cancel({ kind: 'user' }, { keepInbox: true })
  expect(started.agent.inbox.nextStep.map((item) => item.kind === 'message' && item.message.id)).toEqual(sent)
})
