/** What is known of a model, what the options make of it, and how a limit on cost takes it. */
import { describe, expect, test } from 'vitest'
import type { LlmCallConfig } from '../../../src/log/requests.ts'
import { type DeepseekOptions, deepseek } from '../../../src/services/adapters/deepseek.ts'
import { deepseekFamily } from '../../../src/services/adapters/model-facts.ts'
import { type OpenaiCompatibleOptions, openaiCompatible } from '../../../src/services/adapters/openai-compatible.ts'
import { systemClock } from '../../../src/services/clock.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { ofType, startAgent } from '../../kit/agents.ts'
import { ask, failureIn } from '../../kit/ask-adapter.ts'
import { answer, wireServer } from '../../kit/wire-server.ts'

const prepare = async (adapter: ModelAdapter, over: Partial<LlmCallConfig> = {}) => {
  const { provider, model } = adapter
  return await adapter.prepare?.({ provider, model, ...over }, new AbortController().signal)
}
const known = (options: DeepseekOptions, env: Record<string, string> = {}) =>
  prepare(deepseek({ model: 'deepseek-flash', ...options }, { clock: systemClock, env }))
const compatible = (options: Partial<OpenaiCompatibleOptions>) =>
  openaiCompatible({ baseURL: 'http://host', model: 'm', ...options })

describe('models of DeepSeek', () => {
  test.each([
    ['deepseek-flash', 1_000_000, 256_000, { input: 0.3, output: 1.2, cacheRead: 0.006 }],
    ['deepseek-v4-flash', 1_000_000, 256_000, { input: 0.3, output: 1.2, cacheRead: 0.006 }],
    ['deepseek-v4-pro', 1_000_000, 256_000, { input: 1.32, output: 3.96, cacheRead: 0.044 }],
    ['deepseek-next', 1_000_000, 256_000, undefined],
    ['deepseek-chat', 1_000_000, 256_000, undefined],
    ['deepseek-v3.2', 128_000, 64_000, undefined],
    ['deepseek-reasoner', 128_000, 64_000, undefined],
    ['deepseek-ai/DeepSeek-R1-0528', 128_000, 64_000, undefined],
  ])('%s', async (model, contextWindow, maxTokens, price) => {
    expect(await known({ model })).toEqual({
      config: { provider: 'deepseek', model, reasoningEffort: 'high', maxTokens },
      adapterDefaults: { reasoningEffort: true, maxTokens: true },
      contextWindow,
      ...(price && { price }),
    })
  })

  test('a family is chosen by the whole of its name', () => {
    const dialectOf = (model: string) => deepseekFamily(model).dialect
    expect(dialectOf('deepseek-r1')).toMatchObject({ mergeUsers: true })
    expect(dialectOf('deepseek-r10').reasoning).toBe('reasoning_content')
    expect(dialectOf('my-deepseek-r1').reasoning).toBe('reasoning_content')
    expect(dialectOf('DeepSeek-V3.2').reasoningOn).toBe('last-user')
  })

  test('the price is the one of the public API, wherever the environment leads', async () => {
    const elsewhere = 'http://127.0.0.1:1'
    expect(await known({}, {})).toHaveProperty('price')
    expect(await known({ baseURL: 'https://api.deepseek.com/v1' }, {})).toHaveProperty('price')
    expect(await known({ baseURL: elsewhere }, {})).not.toHaveProperty('price')
    expect(await known({}, { DEEPSEEK_BASE_URL: elsewhere })).not.toHaveProperty('price')
    expect(await known({}, { DEEPSEEK_BASE_URL: 'nonsense' })).not.toHaveProperty('price')
  })

  test('all of it can be said otherwise', async () => {
    const price = { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 3 }
    expect(await known({ contextWindow: 9, maxTokens: 5, price, thinking: false, baseURL: 'http://host' })).toEqual({
      config: { provider: 'deepseek', model: 'deepseek-flash', reasoningEffort: 'off', maxTokens: 5 },
      adapterDefaults: { reasoningEffort: true, maxTokens: true },
      contextWindow: 9,
      price,
    })
  })
})

describe('models of other servers', () => {
  test('nothing is known of them but what is given, and nothing is filled in', async () => {
    expect(compatible({})).not.toHaveProperty('prepare')
    const config = { provider: 'openai-compatible', model: 'm' }
    expect(await prepare(compatible({ contextWindow: 8_000 }))).toEqual({ config, contextWindow: 8_000 })
    expect(await prepare(compatible({ price: { input: 0, output: 0 } }))).toEqual({
      config,
      price: { input: 0, output: 0 },
    })
    expect(await prepare(compatible({ maxTokens: 7 }))).toEqual({
      config: { ...config, maxTokens: 7 },
      adapterDefaults: { maxTokens: true },
    })
  })

  test.each<[string, object]>([
    ['contextWindow', { contextWindow: 0 }],
    ['contextWindow', { contextWindow: 1.5 }],
    ['maxTokens', { maxTokens: -1 }],
    ['maxTokens', { maxTokens: Number.NaN }],
    ['maxTokens', { maxTokens: '9' }],
    ['price.output', { price: { input: 1 } }],
    ['price.input', { price: { output: 1 } }],
    ['price.input', { price: { input: -1, output: 1 } }],
    ['price.output', { price: { input: 1, output: Number.POSITIVE_INFINITY } }],
    ['price.cacheRead', { price: { input: 1, output: 1, cacheRead: Number.NaN } }],
    ['price.cached', { price: { input: 1, output: 1, cached: 1 } }],
  ])('%s that cannot be is refused: %j', (option, options) => {
    expect(() => compatible(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }))
    expect(() => deepseek(options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }))
  })
})

describe('a request for more output than the model gives', () => {
  const most = { apiKey: 'k', model: 'deepseek-reasoner' }

  test('is refused before it is sent, with the cap in words, and never made smaller', async () => {
    const refused = { code: 'INVALID_REQUEST', message: expect.stringContaining('at most 64000 tokens') }
    await expect(prepare(deepseek(most), { maxTokens: 64_001 })).rejects.toMatchObject(refused)
    await using server = await wireServer([])
    const adapter = deepseek({ ...most, baseURL: server.url })
    expect(failureIn(await ask(adapter, { maxTokens: 64_001 }))).toMatchObject(refused)
    expect(server.requests).toEqual([])
  })

  test('goes through at the cap, and beyond it where the options say that there is more', async () => {
    await using server = await wireServer([{ body: answer({ text: 'a' }) }, { body: answer({ text: 'a' }) }])
    const { url: baseURL } = server
    await ask(deepseek({ ...most, baseURL }), { maxTokens: 64_000 })
    await ask(deepseek({ ...most, baseURL, maxTokens: 70_000 }), { maxTokens: 70_000 })
    await ask(compatible({ baseURL }), { maxTokens: 1_000_000_000 })
    expect(server.requests.map(({ body }) => body.max_tokens)).toEqual([64_000, 70_000, 1_000_000_000])
  })

  test('ends the turn of an agent with that failure, once', async () => {
    await using server = await wireServer([])
    await using started = await startAgent({ model: compatible({ baseURL: server.url, maxTokens: 10 }), maxTokens: 11 })
    const { reason } = await started.agent.run('go')
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'INVALID_REQUEST' } })
    expect(ofType(await started.log(), 'llm/retry')).toEqual([])
  })
})

describe('a limit on cost', () => {
  const usage = { prompt_tokens: 1_000_000, completion_tokens: 100_000, prompt_cache_hit_tokens: 500_000 }
  const price = { input: 2, output: 10, cacheRead: 0.2 }

  test('counts tokens at the price that was given: over it, the turn ends', async () => {
    const call = [{ id: 'c', name: 'none', arguments: '{}' }]
    const reply = { body: answer({ calls: call, usage }) }
    await using server = await wireServer([reply, reply])
    // A request costs 1 for what was read, 0.1 for what was cached, 1 for what was said.
    const model = compatible({ baseURL: server.url, price })
    await using started = await startAgent({ model, limits: { turn: { cost: 4.1 } } })
    const { reason } = await started.agent.run('go')
    expect(reason).toMatchObject({ kind: 'limit' })
    expect(server.requests).toHaveLength(2)
  })

  test('needs a price: of a model without one it is refused', async () => {
    const limits = { turn: { cost: 1 } }
    await expect(startAgent({ model: compatible({}), limits })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(startAgent({ model: deepseek({ baseURL: 'http://host' }), limits })).rejects.toMatchObject({
      message: expect.stringContaining('states no price'),
    })
    await using _ = await startAgent({ model: deepseek({ baseURL: 'http://host', price }), limits })
  })
})
