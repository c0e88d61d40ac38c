/** How a request begins and ends: what is no model, limits on waiting, and aborts. */
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../../src/log/messages.ts'
import type { AiSdkModel } from '../../../../src/services/adapters/ai-sdk/model.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { ofType, settle, startAgent } from '../../../kit/agents.ts'
import { finish3, mock2, mock3, mock4, text3 } from '../../../kit/ai-sdk-models.ts'
import { anthropic, compatible, openaiChat, openaiResponses } from '../../../kit/ai-sdk-providers.ts'
import { anthropicAnswer, responsesAnswer } from '../../../kit/ai-sdk-wires.ts'
import { ask, failureIn, requestTo } from '../../../kit/ask-adapter.ts'
import { manualClock } from '../../../kit/manual-clock.ts'
import { answer, wireServer } from '../../../kit/wire-server.ts'

describe('what can be an adapter', () => {
  test.each<readonly [unknown, string]>([
    ['gpt-5', 'is an id, which only the AI SDK’s gateway resolves'],
    [undefined, 'is no language model'],
    [() => {}, 'is no language model'],
    [{ specificationVersion: 'v3', provider: 'p', modelId: 'm', doEmbed() {} }, 'is no language model'],
    [{ specificationVersion: 'v1', provider: 'p', modelId: 'm', doStream() {} }, 'v1, which is too old'],
    [{ provider: 'p', modelId: 'm', doStream() {} }, 'v1, which is too old'],
    [{ specificationVersion: 'v9', provider: 'p', modelId: 'm', doStream() {} }, 'unknown specification "v9"'],
    [{ specificationVersion: 'v3', provider: '', modelId: 'm', doStream() {} }, 'names no provider'],
    [{ specificationVersion: 'v3', provider: 'p', doStream() {} }, 'has no id'],
  ])('not %s', (model, why) => {
    const given = model as AiSdkModel
    expect(() => aiSdk(given)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'model' }))
    expect(() => aiSdk(given)).toThrow(why)
  })

  test('an option that cannot be is named', () => {
    for (const [option, options] of [
      ['idleTimeoutMs', { idleTimeoutMs: 0 }],
      ['firstByteTimeoutMs', { firstByteTimeoutMs: -1 }],
      ['totalTimeoutMs', { totalTimeoutMs: Number.NaN }],
      ['provider', { provider: '' }],
      ['model', { model: '' }],
      ['contextWindow', { contextWindow: 0.5 }],
      ['price.output', { price: { input: 1, output: -1 } }],
    ] as const) {
      expect(() => aiSdk(mock3([]), options)).toThrow(expect.objectContaining({ option }))
    }
  })

  test('it goes by the names of its model, or by those it is given, and states what is known of it', async () => {
    expect(aiSdk(mock3([]))).toMatchObject({ provider: 'mock', model: 'mock-3' })
    const retry = { maxRetries: 5 }
    const price = { input: 1, output: 2 }
    const adapter = aiSdk(mock3([]), { provider: 'p', model: 'm', retry, contextWindow: 9, price })
    expect(adapter).toMatchObject({ provider: 'p', model: 'm', retry })
    const config = { provider: 'p', model: 'm' }
    expect(await adapter.prepare?.(config, new AbortController().signal)).toEqual({ config, contextWindow: 9, price })
  })

  test('a model of every version answers a turn', async () => {
    const flat = {
      type: 'finish',
      finishReason: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    } as const
    const words = [{ type: 'text-delta', id: '0', delta: 'ok' }] as const
    for (const model of [
      mock2([...words, flat]).model,
      mock3([...words, finish3()]),
      mock4([...words, finish3()]).model,
    ]) {
      await using started = await startAgent({ model: aiSdk(model) })
      expect(await started.agent.run('hi')).toMatchObject({ reason: { kind: 'completed' }, text: 'ok' })
    }
  })
})

/** A model that gives what it is told to, when it is told to. */
function slow(supportedUrls: AiSdkModel['supportedUrls'] = {}) {
  const signals: AbortSignal[] = []
  let give: ReadableStreamDefaultController<unknown> | undefined
  let begin: () => void = () => {}
  let cancels = 0
  const stream = new ReadableStream<unknown>({
    start(controller) {
      give = controller
    },
    cancel() {
      cancels += 1
    },
  })
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const model: AiSdkModel = {
    specificationVersion: 'v3',
    provider: 'slow',
    modelId: 'm',
    supportedUrls,
    async doStream({ abortSignal }) {
      signals.push(abortSignal)
      await begun
      return { stream }
    },
  }
  return { model, signals, begin, say: (part: unknown) => give?.enqueue(part), cancels: () => cancels }
}

function listen(model: AiSdkModel, options: Parameters<typeof aiSdk>[1] = {}, signal = new AbortController().signal) {
  const clock = manualClock()
  const adapter = aiSdk(model, options, { clock })
  const said: StreamChunk[] = []
  const all = (async () => {
    for await (const chunk of adapter.stream(requestTo(adapter), { signal })) said.push(chunk)
    return said
  })()
  return { clock, said, all }
}

describe('limits on waiting', () => {
  test('a model that does not begin is left, and told to end', async () => {
    const { model, signals, begin, cancels } = slow()
    const { clock, all } = listen(model)
    await settle()
    clock.advance(59_999)
    await settle()
    expect(signals[0]?.aborted).toBe(false)
    clock.advance(1)
    expect(failureIn(await all)).toEqual({
      code: 'TIMEOUT',
      message: 'The server sent nothing within 60000 ms (firstByteTimeoutMs)',
    })
    expect(signals[0]?.aborted).toBe(true)
    begin()
    await settle()
    expect(cancels()).toBe(1)
  })

  test('so is one that never says which URLs it fetches', async () => {
    const { clock, all } = listen(slow(new Promise(() => {})).model, { firstByteTimeoutMs: 5 })
    await settle()
    clock.advance(5)
    expect(failureIn(await all).code).toBe('TIMEOUT')
  })

  test('pings, raw parts, metadata and empty deltas are no answer', async () => {
    const { model, begin, say, cancels } = slow()
    const { clock, all, said } = listen(model, { idleTimeoutMs: 100 })
    begin()
    say({ type: 'text-delta', id: '0', delta: 'x' })
    await settle()
    expect(said.map(({ type }) => type)).toEqual(['block-start', 'text-delta'])
    const silent = ['ping', 'raw', 'response-metadata', 'stream-start', 'hologram']
    for (const part of [...silent.map((type) => ({ type })), { type: 'text-delta', id: '0', delta: '' }]) {
      clock.advance(15)
      say(part)
      await settle()
    }
    clock.advance(10)
    expect(failureIn(await all)).toEqual({
      code: 'TIMEOUT',
      message: 'The server sent no event for 100 ms (idleTimeoutMs)',
    })
    await settle()
    expect(cancels()).toBe(1)
  })

  test('a part of the answer begins the wait anew, and the limit in all counts every wait', async () => {
    const { model, begin, say } = slow()
    const { clock, all } = listen(model, { idleTimeoutMs: 100, totalTimeoutMs: 250 })
    begin()
    for (let n = 0; n < 3; n++) {
      say({ type: 'text-delta', id: '0', delta: 'x' })
      await settle()
      clock.advance(80)
    }
    clock.advance(10)
    expect(failureIn(await all)).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('250 ms') })
  })

  test('time that the reader takes does not count', async () => {
    const { model, begin, say } = slow()
    const clock = manualClock()
    const adapter = aiSdk(model, { idleTimeoutMs: 100 }, { clock })
    begin()
    const chunks = adapter.stream(requestTo(adapter), { signal: new AbortController().signal })[Symbol.asyncIterator]()
    say({ type: 'text-delta', id: '0', delta: 'x' })
    await chunks.next()
    clock.advance(1_000)
    expect(clock.pending).toBe(0)
    expect(await chunks.next()).toMatchObject({ value: { type: 'text-delta' } })
    await chunks.return?.()
  })

  test.each([
    ['before it answers', 'firstByteTimeoutMs', [], 60_000],
    ['in the middle', 'idleTimeoutMs', answer({ text: 'Hello there' }).slice(0, 4), undefined],
  ] as const)('a server that stalls %s is left, and its connection closed', async (_, limit, body, delayMs) => {
    await using server = await wireServer([
      { body: [...body, { kind: 'hang' }], ...(delayMs !== undefined && { delayMs }) },
    ])
    const said = await ask(aiSdk(compatible(server.url), { [limit]: 50 }))
    expect(failureIn(said)).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining(limit) })
    await server.requests[0]?.closed
  })

  test('endless pings do not keep the limits from being noticed', async () => {
    const model = mock3([])
    model.doStream = async () => ({
      stream: new ReadableStream({ pull: (controller) => controller.enqueue({ type: 'raw', rawValue: 0 }) }),
    })
    expect(failureIn(await ask(aiSdk(model, { idleTimeoutMs: 30 }))).code).toBe('TIMEOUT')
  })
})

describe('an abort', () => {
  test('before anything: nothing is asked', async () => {
    const model = mock3([...text3('x'), finish3()])
    expect(await ask(aiSdk(model), {}, AbortSignal.abort())).toEqual([])
    expect(model.doStreamCalls).toEqual([])
  })

  test.each([
    { type: 'text-delta', id: '0', delta: 'x' },
    { type: 'tool-input-start', id: '0', toolName: 'f' },
  ] as const)('is heard between endless parts of type $type', async (part) => {
    const model = mock3([])
    model.doStream = async () => ({
      stream: new ReadableStream({ pull: (controller) => controller.enqueue(part) }),
    })
    const said = await ask(aiSdk(model), {}, AbortSignal.timeout(30))
    expect(said.some(({ type }) => type === 'finish')).toBe(false)
  })

  test('ends the stream without a finish, whether the model heeds it or not', async () => {
    const heedless = slow()
    const cancel = new AbortController()
    const { all } = listen(heedless.model, {}, cancel.signal)
    await settle()
    cancel.abort()
    expect(await all).toEqual([])
    expect(heedless.signals[0]?.aborted).toBe(true)
    const speaking = slow()
    const later = new AbortController()
    const heard = listen(speaking.model, {}, later.signal)
    speaking.begin()
    speaking.say({ type: 'text-delta', id: '0', delta: 'x' })
    await settle()
    later.abort()
    speaking.say({ type: 'text-delta', id: '0', delta: 'y' })
    expect((await heard.all).map(({ type }) => type)).toEqual(['block-start', 'text-delta'])
    await settle()
    expect(speaking.cancels()).toBe(1)
  })

  test.each([
    ['openai-compatible', compatible, answer({ text: 'Hello there' }).slice(0, 4)],
    ['anthropic', anthropic, anthropicAnswer([{ text: 'Hello there' }]).slice(0, 4)],
    ['openai chat', openaiChat, answer({ text: 'Hello there' }).slice(0, 4)],
    ['openai responses', openaiResponses, responsesAnswer([{ id: 'm', text: 'Hello there' }]).slice(0, 3)],
  ] as const)('%s: reaches the socket at once', async (_, make, body) => {
    await using server = await wireServer([{ body: [...body, { kind: 'hang' }] }])
    await using started = await startAgent({ model: aiSdk(make(server.url)) })
    const turn = started.agent.run('hi')
    const said = new Promise<void>((resolve) => {
      started.agent.on('session/event', (event) => {
        if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') resolve()
      })
    })
    await said
    await started.agent.cancel()
    await server.requests[0]?.closed
    expect(await turn).toMatchObject({ reason: { kind: 'aborted' } })
    const [partial] = ofType(await started.log(), 'assistant/message')
    expect(partial?.data).toMatchObject({ interrupted: true, finish: { kind: 'aborted' } })
  })

  test('a reader that stops reading closes the connection', async () => {
    await using server = await wireServer([
      { body: [...answer({ text: 'Hello there' }).slice(0, 3), { kind: 'hang' }] },
    ])
    const adapter = aiSdk(compatible(server.url))
    for await (const _ of adapter.stream(requestTo(adapter), { signal: new AbortController().signal })) break
    await server.requests[0]?.closed
  })
})

test('a refusal that passes is asked again by the agent, after the wait that the server wants', async () => {
  await using server = await wireServer([
    {
      status: 429,
      headers: { 'content-type': 'application/json', 'retry-after-ms': '1' },
      body: ['{"error":{"message":"Slow down."}}'],
    },
    { body: answer({ text: 'ok' }) },
  ])
  await using started = await startAgent({ model: aiSdk(compatible(server.url)) })
  expect(await started.agent.run('hi')).toMatchObject({ text: 'ok' })
  expect(ofType(await started.log(), 'llm/retry')[0]?.data).toMatchObject({
    failure: { code: 'RATE_LIMIT', providerRetryAfterMs: 1 },
  })
  expect(server.requests).toHaveLength(2)
})
