/** What is asked of a model: the header, who may change it, and that the log tells every request again. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { rebuildRequest } from '../../src/log/rebuild.ts'
import type { LlmCallConfig, LlmRequest } from '../../src/log/requests.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption, LlmError } from '../../src/services/errors.ts'
import type { ModelAdapter, PreparedCall } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, typesOf } from '../kit/agents.ts'
import { manualClock } from '../kit/manual-clock.ts'

const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })
const headersIn = (log: readonly SessionEvent[]) => ofType(log, 'request/header').map(({ data }) => data)
const contextsIn = (log: readonly SessionEvent[]) => ofType(log, 'request/context').map(({ data }) => data)
const reasonsIn = (log: readonly SessionEvent[]) => headersIn(log).map(({ reason }) => reason)
const textsOf = (request: LlmRequest | undefined) => request?.messages.map(({ content }) => content)

/** A model that says 'ok' and fills in defaults where the config leaves them open. */
function withDefaults(model: string, defaults: { readonly reasoningEffort?: string; readonly maxTokens?: number }) {
  const base = scripted(() => 'ok', { model })
  const prepare = async (config: LlmCallConfig): Promise<PreparedCall> => {
    const marks = {
      ...(defaults.reasoningEffort && !config.reasoningEffort && { reasoningEffort: true as const }),
      ...(defaults.maxTokens && !config.maxTokens && { maxTokens: true as const }),
    }
    return {
      config: { ...defaults, ...config },
      ...(Object.keys(marks).length > 0 && { adapterDefaults: marks }),
    }
  }
  return { ...base, prepare }
}

describe('the header', () => {
  test('[request-001] is logged before the first request, and not again while it stays the same', async () => {
    const model = scripted([toolCall('look', {}), toolCall('look', {}), 'done'])
    await using started = await startAgent({ model, tools: [look] })
    await started.agent.run('go')
    const log = await started.log()
    expect(reasonsIn(log)).toEqual(['initial'])
    expect(contextsIn(log)).toHaveLength(1)
    expect(model.requests).toHaveLength(3)
    expect(typesOf(log).indexOf('request/header')).toBeLessThan(typesOf(log).indexOf('assistant/chunk*'))
  })

  test('[request-003] is logged again when the system text changes, and the messages go on', async () => {
    let more = ''
    const model = scripted(() => 'ok')
    const system = [
      { name: 'base', text: 'Be brief.' },
      { name: 'more', text: () => more },
    ]
    await using started = await startAgent({ model, system })
    await started.agent.run('one')
    await started.agent.run('two')
    more = 'Be kind.'
    await started.agent.run('three')
    expect(reasonsIn(await started.log())).toEqual(['initial', 'change'])
    expect(model.requests.map(({ system }) => system)).toEqual(['Be brief.', 'Be brief.', 'Be brief.\n\nBe kind.'])
    const [, second, third] = model.requests
    expect(third?.messages.slice(0, second?.messages.length)).toEqual(second?.messages)
  })

  test('[request-010] has no system text where there is none', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model, system: '' })
    await started.agent.run('go')
    expect(model.requests[0]).not.toHaveProperty('system')
    expect(headersIn(await started.log())[0]?.header).not.toHaveProperty('system')
  })

  test('[request-018] is logged by whoever opens the session again, even if it is the same', async () => {
    const store = memoryStore()
    const options = { store, system: 'Be brief.' }
    const before = scripted(['ok'])
    {
      await using started = await startAgent({ ...options, model: before })
      await started.agent.run('one')
    }
    const after = scripted(() => 'ok')
    await using reopened = await startAgent({ ...options, model: after })
    await reopened.agent.run('two')
    await reopened.agent.run('three')
    expect(reasonsIn(await reopened.log())).toEqual(['initial', 'resume'])
    expect(after.requests[0]?.system).toBe('Be brief.')
    expect(after.requests[0]?.messages.slice(0, 1)).toEqual(before.requests[0]?.messages)
    expect(after.requests[0]?.messages).toHaveLength(3)
  })

  test('[request-027] stays when a summary takes the place of what was said', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model })
    await started.agent.run('one')
    const log = await started.log()
    const [start, end] = [ofType(log, 'user/message')[0]?.seq ?? 0, ofType(log, 'assistant/message')[0]?.seq ?? 0]
    started.agent.session.replace({ start, end, message: 'what was said' })
    await started.agent.run('two')
    expect(textsOf(model.requests[1])).toEqual([
      [{ type: 'text', text: 'what was said' }],
      [{ type: 'text', text: 'two' }],
    ])
    expect(headersIn(await started.log())).toHaveLength(1)
  })

  test('[request-032] is the same if all that is in it is, whatever the order of its keys', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model })
    const configs: readonly Partial<LlmCallConfig>[] = [
      { temperature: 0, stop: ['a', 'b'] },
      { stop: ['a', 'b'], temperature: 0 },
      { stop: ['b', 'a'], temperature: 0 },
      { temperature: 0 },
    ]
    started.agent.on('agent/request', ({ turn }) => ({
      ...configs[turn - 1],
      model: 'scripted',
      provider: 'scripted',
    }))
    started.agent.on('system-prompt/assemble', async ({ turn }, next) => (turn === 2 ? { tools: [] } : next()))
    for (const _ of configs) await started.agent.run('go')
    expect(headersIn(await started.log()).map(({ header }) => header.config.stop)).toEqual([
      ['a', 'b'],
      ['b', 'a'],
      undefined,
    ])
  })
})

describe('the hook before a request', () => {
  test('[request-004] may choose another model, which the log says and the request asks', async () => {
    const other = scripted(['ok'], { model: 'other-model' })
    await using started = await startAgent({ models: [other] })
    started.agent.on('agent/request', async (_, next) => ({ ...(await next()), model: 'other-model' }))
    await started.agent.run('go')
    expect(other.requests.map(({ model }) => model)).toEqual(['other-model'])
    expect(headersIn(await started.log())[0]?.header.config.model).toBe('other-model')
  })

  test('[request-005] is shown a frozen proposal; giving it back changes nothing', async () => {
    await using started = await startAgent()
    let threw = 0
    started.agent.on('agent/request', async ({ config }, next) => {
      const proposed = await next()
      for (const frozen of [config, proposed]) {
        expect(() => Object.assign(frozen, { model: 'x' })).toThrow(TypeError)
        threw += 1
      }
      return config
    })
    await started.agent.run('one')
    await started.agent.run('two')
    expect(threw).toBe(4)
    expect(headersIn(await started.log())).toHaveLength(1)
  })

  // Adapters are given when the agent is made; a hook chooses among them.
  test('[request-007] may take the request to any of the models the agent was given', async () => {
    const first = scripted([], { provider: 'first' })
    const second = scripted(['ok'], { provider: 'second', model: 'm' })
    await using started = await startAgent({ model: first, models: [second] })
    started.agent.on('agent/request', () => ({ provider: 'second', model: 'm' }))
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    expect([first.requests.length, second.requests.length]).toEqual([0, 1])
  })

  test('[request-017] is shown what was asked last: a change made once stays', async () => {
    const other = scripted(() => 'ok', { model: 'other' })
    await using started = await startAgent({ models: [other] })
    const proposed: string[] = []
    started.agent.on('agent/request', async ({ turn, config }, next) => {
      proposed.push(config.model)
      return turn === 2 ? { ...config, model: 'other' } : next()
    })
    for (const message of ['one', 'two', 'three']) await started.agent.run(message)
    expect(proposed).toEqual(['scripted', 'scripted', 'other'])
    expect(other.requests).toHaveLength(2)
    expect(reasonsIn(await started.log())).toEqual(['initial', 'change'])
  })

  test('[request-021] may name a model that only a hook around the stream serves', async () => {
    await using started = await startAgent({ model: scripted([]) })
    started.agent.on('agent/request', () => ({ provider: 'nobody', model: 'm' }))
    started.agent.on('llm/stream', async function* () {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      yield { type: 'block-end', index: 0, block: { type: 'text', text: 'served' } }
      yield { type: 'finish', reason: { kind: 'stop' } }
    })
    const { reason, text } = await started.agent.run('go')
    expect({ reason, text }).toEqual({ reason: { kind: 'completed' }, text: 'served' })
    expect(headersIn(await started.log())[0]?.header).toEqual({ config: { provider: 'nobody', model: 'm' } })
  })

  test('a model that nobody serves ends the turn with NO_ADAPTER', async () => {
    await using started = await startAgent()
    started.agent.on('agent/request', () => ({ provider: 'nobody', model: 'm' }))
    expect((await started.agent.run('go')).reason).toMatchObject({ kind: 'error', error: { code: 'NO_ADAPTER' } })
  })
})

describe('what an adapter fills in', () => {
  test('[request-012] is marked in the header as its own, until it is asked for', async () => {
    const model = withDefaults('m', { reasoningEffort: 'high' })
    await using started = await startAgent({ model })
    started.agent.on('agent/request', async ({ turn }, next) => {
      const config = await next()
      return turn === 2 ? { ...config, reasoningEffort: 'max' } : config
    })
    await started.agent.run('one')
    await started.agent.run('two')
    expect(model.requests.map(({ reasoningEffort }) => reasoningEffort)).toEqual(['high', 'max'])
    const headers = headersIn(await started.log())
    expect(headers.map(({ reason }) => reason)).toEqual(['initial', 'change'])
    expect(headers.map(({ header }) => header.adapterDefaults)).toEqual([{ reasoningEffort: true }, undefined])
  })

  test('[request-013] yields to the effort that was asked for before, on the same model only', async () => {
    const store = memoryStore()
    {
      const model = withDefaults('m', { reasoningEffort: 'high' })
      await using started = await startAgent({ store, model, reasoningEffort: 'max' })
      await started.agent.run('one')
    }
    for (const [name, effort] of [
      ['m', 'max'],
      ['replacement', 'high'],
    ] as const) {
      const model = withDefaults(name, { reasoningEffort: 'high' })
      await using reopened = await startAgent({ store, model })
      await reopened.agent.run('again')
      expect(model.requests.map(({ reasoningEffort }) => reasoningEffort)).toEqual([effort])
      expect(reasonsIn(await reopened.log()).at(-1)).toBe('resume')
    }
  })

  test('[request-014] is in the request and in the log', async () => {
    const model = withDefaults('m', { maxTokens: 256_000 })
    await using started = await startAgent({ model })
    await started.agent.run('go')
    expect(model.requests[0]?.maxTokens).toBe(256_000)
    expect(headersIn(await started.log())[0]?.header).toMatchObject({
      config: { maxTokens: 256_000 },
      adapterDefaults: { maxTokens: true },
    })
  })

  test('[request-015] is filled in anew by another model', async () => {
    const large = withDefaults('large', { maxTokens: 256_000 })
    const small = withDefaults('small', { maxTokens: 8_192 })
    await using started = await startAgent({ model: large, models: [small] })
    started.agent.on('agent/request', async ({ turn }, next) => {
      const config = await next()
      return turn === 2 ? { ...config, model: 'small' } : config
    })
    await started.agent.run('one')
    await started.agent.run('two')
    expect(small.requests[0]?.maxTokens).toBe(8_192)
    expect(
      headersIn(await started.log()).map(({ header }) => [header.config.maxTokens, header.adapterDefaults]),
    ).toEqual([
      [256_000, { maxTokens: true }],
      [8_192, { maxTokens: true }],
    ])
  })

  const facts = { code: 'UNSUPPORTED_REASONING_EFFORT', message: 'not that much' }
  test.each([
    ['a failure of its own', new LlmError(facts), facts],
    ['an error', new Error('broken'), { code: 'UNKNOWN', message: 'broken' }],
  ])('[request-020] may be impossible: %s ends the turn before anything is asked', async (_, thrown, error) => {
    const model = { ...scripted([]), prepare: () => Promise.reject(thrown) }
    await using started = await startAgent({ model })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error })
    expect(headersIn(await started.log())).toEqual([])
    expect(model.requests).toEqual([])
  })

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])(
    '[request-028] %d tokens are refused, and no session is made',
    async (maxTokens) => {
      const store = memoryStore()
      await expect(startAgent({ store, maxTokens })).rejects.toThrow(InvalidOption)
      expect(await store.header('session')).toBeUndefined()
      expect(await stored(store, 'session')).toEqual([])
    },
  )
})

describe('the request itself', () => {
  test('[request-008] is frozen all through and names its session; its signal lives', async () => {
    const seen: { request: LlmRequest; signal: AbortSignal }[] = []
    const model: ModelAdapter = {
      provider: 'p',
      model: 'm',
      async *stream(request, { signal }) {
        seen.push({ request, signal })
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      },
    }
    await using started = await startAgent({ model, tools: [look] })
    const turn = started.agent.run('go')
    while (seen.length === 0) await settle(1)
    const [asked] = seen
    const parts = [asked?.request, asked?.request.messages, asked?.request.messages[0]?.content, asked?.request.tools]
    expect(parts.map(Object.isFrozen)).toEqual([true, true, true, true])
    expect(asked?.request.sessionId).toBe(started.agent.id)
    expect(asked?.signal.aborted).toBe(false)
    await started.agent.cancel()
    await turn
    expect(asked?.signal.aborted).toBe(true)
  })

  test('[request-009] cannot be changed on its way: who tries ends the turn', async () => {
    await using started = await startAgent()
    started.agent.on('llm/stream', ({ request }, next) => {
      ;(request.messages as unknown[]).push('more')
      return next()
    })
    const { reason } = await started.agent.run('go')
    expect(reason).toMatchObject({
      kind: 'error',
      error: { message: expect.stringMatching(/not extensible|read only/) },
    })
    expect(ofType(await started.log(), 'assistant/message')).toEqual([])
  })

  test('[request-026] can be derived from the log again, each of them, word for word', async () => {
    const clock = manualClock()
    let rules = 'Be brief.'
    const model = scripted([toolCall('look', {}), 'one', fails('SERVER'), 'two'])
    await using started = await startAgent({
      model,
      clock,
      tools: [look],
      maxTokens: 99,
      system: [{ name: 'rules', text: () => rules }],
    })
    started.agent.on('agent/request', async ({ turn }, next) => {
      const config = await next()
      return turn === 2 ? { ...config, temperature: 0.5, stop: ['END'] } : config
    })
    await started.agent.run('go')
    rules = 'Be kind.'
    const turn = started.agent.run('on')
    await started.agent.whenQuiet()
    clock.advance(10_000)
    await turn
    const log = await started.log()
    const places = [
      { turn: 1, step: 1, attempt: 1 },
      { turn: 1, step: 2, attempt: 1 },
      { turn: 2, step: 1, attempt: 1 },
      { turn: 2, step: 1, attempt: 2 },
    ]
    expect(places.map((at) => rebuildRequest(log, at, { sessionId: 'session' }))).toEqual(model.requests)
    expect(model.requests[3]).toMatchObject({ temperature: 0.5, stop: ['END'], maxTokens: 99, system: 'Be kind.' })
    // What comes after a request is nothing to it.
    const first = ofType(log, 'assistant/chunk')[0]?.seq ?? 0
    const before = log.slice(0, first)
    expect(rebuildRequest(before, places[0] ?? { turn: 1, step: 1, attempt: 1 }, { sessionId: 'session' })).toEqual(
      model.requests[0],
    )
  })
})

describe('the context of a request', () => {
  test('[request-023] is logged once while it stays the same, and is no part of the conversation', async () => {
    const model = scripted(() => 'ok', { contextWindow: 128_000 })
    await using started = await startAgent({ model })
    await started.agent.run('one')
    await started.agent.run('two')
    expect(contextsIn(await started.log())).toEqual([
      { provider: 'scripted', model: 'scripted', contextWindow: 128_000 },
    ])
    expect(started.agent.session.messages()).toHaveLength(4)
  })

  test.each<[string, string, number | undefined]>([
    ['[request-024] changes with the model', 'large', 256_000],
    ['[request-025] says nothing of a window that is not known', 'unknown', undefined],
  ])('%s', async (_, name, contextWindow) => {
    const small = scripted(() => 'ok', { model: 'small', contextWindow: 64_000 })
    const other = scripted(() => 'ok', { model: name, ...(contextWindow && { contextWindow }) })
    await using started = await startAgent({ model: small, models: [other] })
    started.agent.on('agent/request', async ({ turn }, next) => {
      const config = await next()
      return turn === 2 ? { ...config, model: name } : config
    })
    for (const message of ['one', 'two', 'three']) await started.agent.run(message)
    expect(contextsIn(await started.log())).toEqual([
      { provider: 'scripted', model: 'small', contextWindow: 64_000 },
      { provider: 'scripted', model: name, ...(contextWindow && { contextWindow }) },
    ])
  })
})
