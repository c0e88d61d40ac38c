/** A model server's answers as the loop sees them: statuses, waits, lost connections, silence, cancels. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { LlmFailure, StreamChunk } from '../../src/log/messages.ts'
import { saysOverflow, saysQuota } from '../../src/services/adapters/chat-completions/wording.ts'
import { type DeepseekOptions, deepseek } from '../../src/services/adapters/deepseek.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import { systemClock } from '../../src/services/clock.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import { assemblerOf } from '../../src/services/llm/assembler.ts'
import { ask, failureIn, finishIn, requestTo } from '../kit/ask-adapter.ts'
import { type ManualClock, manualClock } from '../kit/manual-clock.ts'
import { answer, DONE, delta, type Reply, refusal, stopped, wireServer } from '../kit/wire-server.ts'

const KEY = 'sk-very-secret'
const NOW = Date.UTC(2026, 9, 21, 7, 0, 0)
const surroundings = { clock: { ...systemClock, now: () => NOW }, env: {} }

async function told(reply: Reply, options: DeepseekOptions = {}): Promise<StreamChunk[]> {
  await using server = await wireServer([reply])
  return await ask(deepseek({ baseURL: server.url, apiKey: KEY, ...options }, surroundings))
}
const failureOf = async (reply: Reply, options?: DeepseekOptions): Promise<LlmFailure> =>
  failureIn(await told(reply, options))
const statusOf = (status: number, error: unknown, headers?: Record<string, string>) =>
  failureOf(refusal(status, { error }, headers))

afterEach(() => {
  vi.unstubAllGlobals()
})

test('[http-001] one POST with the request, and the answer in chunks', async () => {
  const usage = { prompt_tokens: 4, completion_tokens: 2 }
  await using server = await wireServer([{ body: answer({ text: 'Hello, 世界', usage }) }])
  const chunks = await ask(deepseek({ baseURL: `${server.url}/v1/`, apiKey: KEY }))
  const assembler = assemblerOf(chunks)
  expect(assembler.blocks()).toEqual([{ type: 'text', text: 'Hello, 世界' }])
  expect(assembler.usage).toEqual({ inputTokens: 4, outputTokens: 2 })
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]).toMatchObject({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: { model: 'deepseek-chat', stream: true, messages: [{ role: 'user', content: 'hi' }] },
  })
})

describe('statuses', () => {
  test.each([
    ['[http-002] 401', 401, { message: 'no' }, 'AUTH'],
    ['[http-002] 403', 403, { message: 'no' }, 'AUTH'],
    ['[http-002] 404', 404, { message: 'no' }, 'HTTP_404'],
    ['[http-002] 500', 500, { message: 'no' }, 'SERVER'],
    ['[http-002] 503', 503, { message: 'no' }, 'SERVER'],
    ['[http-003] 413 is no overflow', 413, { message: 'no', code: 'context_length_exceeded' }, 'INVALID_REQUEST'],
    ['[http-004] 400, by code', 400, { message: 'no', code: 'context_length_exceeded' }, 'CONTEXT_WINDOW_EXCEEDED'],
    [
      '[http-004] 400, by words',
      400,
      { message: "This model's maximum context length is 9" },
      'CONTEXT_WINDOW_EXCEEDED',
    ],
    ['[http-004] 400, of something else', 400, { message: 'temperature is above the maximum' }, 'INVALID_REQUEST'],
    ['[http-005] 429 for good', 429, { message: 'no', code: 'insufficient_quota' }, 'QUOTA'],
    ['[http-005] 429 for now', 429, { message: 'Rate limit reached' }, 'RATE_LIMIT'],
    ['402', 402, { message: 'Insufficient Balance' }, 'QUOTA'],
    ['402 that names another cause', 402, { message: 'no', code: 'rate_limit_exceeded' }, 'RATE_LIMIT'],
    ['a redirect', 307, { message: 'no' }, 'HTTP_307'],
  ])('%s', async (_, status, error, code) => {
    const failure = await statusOf(status, error)
    expect(failure).toMatchObject({ code, status })
    expect(failure.message).toContain(error.message)
  })

  test('a redirect is not followed: the conversation goes where it was sent', async () => {
    const first = refusal(307, {}, { location: '/elsewhere' })
    await using server = await wireServer((_, n) => (n === 0 ? first : { status: 500 }))
    expect(failureIn(await ask(deepseek({ baseURL: server.url, apiKey: KEY }))).code).toBe('HTTP_307')
    expect(server.requests).toHaveLength(1)
  })

  test('an empty account comes with plain advice', async () => {
    expect((await statusOf(402, { message: 'Insufficient Balance' })).message).toMatch(/^Insufficient Balance \(top up/)
  })

  test.each<[string, Reply]>([
    ['an error without a message', refusal(500, { error: { type: 'x' } })],
    ['text', { status: 502, headers: { 'content-type': 'text/html' }, body: ['<h1>Bad gateway</h1>'] }],
    ['nothing', { status: 500 }],
  ])('[http-006] a body of %s is told by its status', async (_, reply) => {
    const failure = await failureOf(reply)
    expect(failure).toMatchObject({ code: 'SERVER', status: reply.status })
    expect(failure.message).toContain(`${reply.status}`)
  })

  test.each([
    [{ message: 'plain' }, 'plain'],
    [{ detail: 'said otherwise' }, 'said otherwise'],
    [{ error: 'bare' }, 'bare'],
  ])('the message may stand elsewhere: %j', async (body, message) => {
    expect((await failureOf(refusal(400, body))).message).toBe(message)
  })

  test('[errors-005] what says overflow', () => {
    const words = [
      'context_length_exceeded',
      'input is too long for this model',
      'temperature exceeds maximum allowed value',
    ]
    expect(words.map(saysOverflow)).toEqual([true, true, false])
  })

  test('[errors-006] what says quota', () => {
    const words = ['insufficient_quota', 'out of credits', 'rate limit reached', 'quota resets in one minute']
    expect(words.map(saysQuota)).toEqual([true, true, false, false])
  })
})

describe('waits', () => {
  const waitOf = async (headers: Record<string, string>) =>
    (await statusOf(429, { message: 'no' }, headers)).providerRetryAfterMs

  test('[http-007] seconds and the request id are taken over, and nothing else', async () => {
    expect(
      await statusOf(429, { message: 'slow down' }, { 'retry-after': '2', 'x-request-id': 'req-429', 'x-secret': 's' }),
    ).toEqual({
      message: 'slow down',
      code: 'RATE_LIMIT',
      status: 429,
      providerRetryAfterMs: 2_000,
      requestId: 'req-429',
    })
  })

  test('[http-007] the provider has a header of its own for the id; an empty first one is not replaced', async () => {
    const own = { 'x-deepseek-request-id': 'ds' }
    expect((await statusOf(500, {}, own)).requestId).toBe('ds')
    expect(await statusOf(500, {}, { ...own, 'x-request-id': '' })).not.toHaveProperty('requestId')
  })

  test('[http-008] a date is a wait from now', async () => {
    expect(await waitOf({ 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' })).toBe(28 * 60_000)
  })

  test.each(['0', '9'.repeat(400), 'not-a-date', '-5', '2026', ''])('[http-009] %j asks for no wait', async (value) => {
    const failure = await statusOf(429, { message: 'no' }, { 'retry-after': value })
    if (value === '2026') expect(failure.providerRetryAfterMs).toBe(2_026_000)
    else expect(failure).not.toHaveProperty('providerRetryAfterMs')
  })

  test('[http-009] a date that has passed means now', async () => {
    expect(await waitOf({ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' })).toBe(1)
  })

  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1_500],
    [{ 'x-ratelimit-reset': '6m0s' }, 360_000],
    [{ 'x-ratelimit-reset': `${NOW + 5_000}` }, 5_000],
    [{ 'x-ratelimit-reset': `${NOW / 1_000 + 5}` }, 5_000],
    [{ 'x-ratelimit-reset-tokens': '20ms', 'x-ratelimit-remaining-tokens': '0' }, 20],
    [{ 'x-ratelimit-reset-tokens': '20ms', 'x-ratelimit-remaining-tokens': '7' }, undefined],
  ])('other headers are understood: %j', async (headers, expected) => {
    expect(await waitOf(headers)).toBe(expected)
  })
})

describe('connections', () => {
  test('[http-010] nobody there: the message names the endpoint and the cause', async () => {
    const server = await wireServer([])
    await server.close()
    const failure = failureIn(await ask(deepseek({ baseURL: `${server.url}?token=hush`, apiKey: KEY })))
    expect(failure.code).toBe('TRANSPORT')
    expect(failure.message).toContain(`${server.url}/chat/completions`)
    expect(failure.message).toContain('ECONNREFUSED')
    expect(failure.message).not.toContain('hush')
  })

  test('[http-011] a transport that rejects with a string is told by it', async () => {
    vi.stubGlobal('fetch', () => Promise.reject('cable unplugged'))
    const failure = failureIn(await ask(deepseek({ apiKey: KEY })))
    expect(failure).toMatchObject({ code: 'TRANSPORT', message: expect.stringContaining('cable unplugged') })
  })

  test('[http-012] a connection cut in mid answer fails after what came', async () => {
    const chunks = await told({ body: [delta({ content: 'a' }), { kind: 'cut' }] })
    expect(chunks).toContainEqual({ type: 'text-delta', index: 0, text: 'a' })
    expect(failureIn(chunks).code).toBe('TRANSPORT')
  })

  test('[http-013] a success without a body is an empty answer', async () => {
    expect((await failureOf({ status: 204 })).code).toBe('EMPTY_RESPONSE')
  })

  test('a page instead of a stream is shown in part', async () => {
    const page: Reply = {
      headers: { 'content-type': 'text/html; charset=utf-8' },
      body: [`<h1>Login</h1>${'x'.repeat(900)}`],
    }
    const failure = await failureOf(page)
    expect(failure).toMatchObject({ code: 'MALFORMED_RESPONSE', status: 200 })
    expect(failure.message).toMatch(/text\/html.*<h1>Login/)
    expect(failure.message.length).toBeLessThan(300)
  })

  test('JSON instead of a stream may be an error, an answer after blank lines, or neither', async () => {
    expect(await statusOf(200, { message: 'no', code: 'rate_limit_exceeded' })).toMatchObject({ code: 'RATE_LIMIT' })
    expect((await failureOf(refusal(200, { hello: 1 }))).code).toBe('MALFORMED_RESPONSE')
    const message = {
      role: 'assistant',
      content: 'a',
      tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }],
    }
    const whole = JSON.stringify({ choices: [{ message, finish_reason: 'tool_calls' }] })
    const chunks = await told({ headers: { 'content-type': 'application/json' }, body: [`\n\n\n${whole}`] })
    expect(assemblerOf(chunks).blocks()).toMatchObject([{ text: 'a' }, { id: 'c', name: 'f' }])
  })
})

describe('cancels', () => {
  test('[http-014] before the request nothing is sent and nothing said', async () => {
    await using server = await wireServer([{ body: answer({ text: 'a' }) }])
    expect(await ask(deepseek({ baseURL: server.url, apiKey: KEY }), {}, AbortSignal.abort())).toEqual([])
    expect(server.requests).toEqual([])
  })

  test('[http-014] in mid stream the answer ends without a finish and the connection closes', async () => {
    await using server = await wireServer([
      { body: [delta({ content: 'a' }), delta({ content: 'b' }), { kind: 'hang' }], split: 'packet' },
    ])
    const cancel = new AbortController()
    const adapter = deepseek({ baseURL: server.url, apiKey: KEY })
    const said: StreamChunk[] = []
    for await (const chunk of adapter.stream(requestTo(adapter), { signal: cancel.signal })) {
      said.push(chunk)
      if (chunk.type === 'text-delta') cancel.abort()
    }
    expect(said.map(({ type }) => type)).toEqual(['block-start', 'text-delta'])
    await server.requests[0]?.closed
  })

  test('[llm-009] a consumer that stops closes the connection', async () => {
    await using server = await wireServer([{ body: [delta({ content: 'a' }), { kind: 'hang' }] }])
    const adapter = deepseek({ baseURL: server.url, apiKey: KEY })
    for await (const chunk of adapter.stream(requestTo(adapter), { signal: new AbortController().signal })) {
      if (chunk.type === 'text-delta') break
    }
    await server.requests[0]?.closed
  })
})

describe('silence', () => {
  const hang = { kind: 'hang' } as const

  test.each<[string, Reply, DeepseekOptions, RegExp]>([
    ['before the headers', { delayMs: 60_000 }, { firstByteTimeoutMs: 30 }, /nothing within 30 ms/],
    ['after the headers', { body: [hang] }, { firstByteTimeoutMs: 30 }, /nothing within 30 ms/],
    [
      '[http-015] between events',
      { body: [delta({ content: 'a' }), hang] },
      { idleTimeoutMs: 30 },
      /no event for 30 ms/,
    ],
    ['in all', { body: [delta({ content: 'a' }), hang] }, { totalTimeoutMs: 30 }, /more than 30 ms/],
  ])('%s is a timeout, and the connection closes', async (_, reply, options, message) => {
    await using server = await wireServer([reply])
    const failure = failureIn(await ask(deepseek({ baseURL: server.url, apiKey: KEY, ...options })))
    expect(failure.code).toBe('TIMEOUT')
    expect(failure.message).toMatch(message)
    await server.requests[0]?.closed
  })

  test('[http-016] keep-alives are bytes, but no answer', async () => {
    const pings = Array.from({ length: 400 }, () => [': keep-alive\n\n', { kind: 'wait', ms: 5 } as const]).flat()
    await using server = await wireServer([{ body: [': first\n\n', ...pings, stopped('stop'), DONE] }])
    const options = { baseURL: server.url, apiKey: KEY, firstByteTimeoutMs: 5_000, idleTimeoutMs: 60 }
    const chunks = await ask(deepseek(options, { clock: systemClock, env: {} }))
    expect(failureIn(chunks)).toMatchObject({ code: 'TIMEOUT', message: expect.stringMatching(/no event/) })
  })

  test('[http-017] a consumer may take its time', async () => {
    const clock = manualClock()
    await using server = await wireServer([{ body: answer({ text: 'Hello there' }) }])
    const adapter = deepseek(
      { baseURL: server.url, apiKey: KEY, idleTimeoutMs: 10, totalTimeoutMs: 10 },
      { clock, env: {} },
    )
    const said: StreamChunk[] = []
    for await (const chunk of adapter.stream(requestTo(adapter), { signal: new AbortController().signal })) {
      said.push(chunk)
      expect(clock.pending).toBe(0)
      clock.advance(1_000)
    }
    expect(finishIn(said)).toEqual({ kind: 'stop' })
  })

  test('a timeout is not taken back by a cancel that comes later', async () => {
    const cancel = new AbortController()
    const clock: ManualClock = manualClock()
    await using server = await wireServer([{ body: [delta({ content: 'a' }), hang] }])
    const adapter = deepseek({ baseURL: server.url, apiKey: KEY, idleTimeoutMs: 10 }, { clock, env: {} })
    const stream = adapter.stream(requestTo(adapter), { signal: cancel.signal })[Symbol.asyncIterator]()
    await stream.next()
    await stream.next()
    const last = stream.next()
    await vi.waitFor(() => expect(clock.pending).toBe(1))
    clock.advance(10)
    cancel.abort()
    expect(await last).toMatchObject({ value: { type: 'finish', reason: { failure: { code: 'TIMEOUT' } } } })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })

  test.each([0, -1, Number.NaN, 2 ** 31, Number.POSITIVE_INFINITY])('[http-018] %d is no limit', (ms) => {
    for (const name of ['firstByteTimeoutMs', 'idleTimeoutMs', 'endTimeoutMs', 'totalTimeoutMs']) {
      expect(() => deepseek({ [name]: ms })).toThrow(InvalidOption)
    }
  })
})

describe('keys and addresses', () => {
  test('[http-019] without a key nothing is sent', async () => {
    await using server = await wireServer([])
    const failure = failureIn(await ask(deepseek({ baseURL: server.url }, { clock: systemClock, env: {} })))
    expect(failure).toMatchObject({ code: 'MISSING_CREDENTIAL', message: expect.stringContaining('DEEPSEEK_API_KEY') })
    expect(server.requests).toEqual([])
  })

  test.each([`${KEY}\n`, 'sk-ключ', 'a b'])(
    '[http-020] a key that no header carries is refused, unseen: %j',
    async (apiKey) => {
      const adapters = [deepseek({ apiKey }), openaiCompatible({ baseURL: 'http://127.0.0.1:1', model: 'm', apiKey })]
      for (const adapter of adapters) {
        const failure = failureIn(await ask(adapter))
        expect(failure.code).toBe('INVALID_CREDENTIAL')
        expect(failure.message).not.toContain(apiKey)
      }
    },
  )

  test('a key that the server repeats is hidden', async () => {
    const failure = await statusOf(401, { message: `Wrong key ${KEY}` })
    expect(failure).toEqual({ message: 'Wrong key [hidden]', code: 'AUTH', status: 401 })
  })

  test('[http-021] key and address are looked up anew for each request, once', async () => {
    await using server = await wireServer([{ body: answer({ text: 'a' }) }, { body: answer({ text: 'b' }) }])
    const read: string[] = []
    const env = new Proxy<Record<string, string>>(
      {},
      {
        get: (_, name) => {
          read.push(String(name))
          return name === 'DEEPSEEK_API_KEY' ? `key-${read.length}` : server.url
        },
      },
    )
    const adapter = deepseek({}, { clock: systemClock, env })
    expect(read).toEqual([])
    await ask(adapter)
    await ask(adapter)
    expect(read).toEqual(['DEEPSEEK_BASE_URL', 'DEEPSEEK_API_KEY', 'DEEPSEEK_BASE_URL', 'DEEPSEEK_API_KEY'])
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer key-2', 'Bearer key-4'])
  })

  test('an address with a query keeps it; one with a password, or of another scheme, is refused unseen', async () => {
    await using server = await wireServer([{ body: answer({ text: 'a' }) }])
    await ask(deepseek({ baseURL: `${server.url}/v1?api-version=2`, apiKey: KEY }))
    expect(server.requests[0]?.path).toBe('/v1/chat/completions?api-version=2')
    for (const baseURL of ['http://me:hunter2@host/', 'file:///etc', 'host hunter2']) {
      expect(() => deepseek({ baseURL })).toThrow(InvalidOption)
      expect(() => deepseek({ baseURL })).not.toThrow(/hunter2/)
    }
    const env = { DEEPSEEK_BASE_URL: 'nowhere', DEEPSEEK_API_KEY: KEY }
    expect(failureIn(await ask(deepseek({}, { clock: systemClock, env })))).toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('a server that asks for no key gets none', async () => {
    await using server = await wireServer([{ body: answer({ text: 'a' }) }])
    await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
  })
})

describe('defaults', () => {
  const prepare = (options: DeepseekOptions, over: Record<string, unknown> = {}) => {
    const adapter = deepseek(options)
    const config = { provider: 'deepseek', model: adapter.model, ...over }
    return Promise.resolve(adapter.prepare?.(config, new AbortController().signal))
  }

  test('[http-022] an output cap is filled in, unless one is set; a model may have its own', async () => {
    expect(await prepare({})).toEqual({
      config: { provider: 'deepseek', model: 'deepseek-chat', reasoningEffort: 'high', maxTokens: 256_000 },
      adapterDefaults: { reasoningEffort: true, maxTokens: true },
      contextWindow: 1_000_000,
    })
    expect(await prepare({ baseURL: 'http://host' }, { maxTokens: 9, reasoningEffort: 'low' })).toEqual({
      config: { provider: 'deepseek', model: 'deepseek-chat', reasoningEffort: 'low', maxTokens: 9 },
      contextWindow: 1_000_000,
    })
    expect(await prepare({ model: 'deepseek-reasoner' })).toMatchObject({ config: { maxTokens: 64_000 } })
    expect(openaiCompatible({ baseURL: 'http://host', model: 'm' })).not.toHaveProperty('prepare')
  })

  test('[http-023] [serialize-017] [llm-008] an effort the model lacks is refused before anything is sent', async () => {
    await using server = await wireServer([])
    const lame = { baseURL: server.url, apiKey: KEY, thinking: false }
    expect(failureIn(await ask(deepseek(lame), { reasoningEffort: 'high' })).code).toBe('UNSUPPORTED_REASONING_EFFORT')
    expect(server.requests).toEqual([])
    await expect(prepare(lame, { reasoningEffort: 'max' })).rejects.toMatchObject({
      code: 'UNSUPPORTED_REASONING_EFFORT',
    })
    await expect(prepare({}, { reasoningEffort: 'medium' })).rejects.toMatchObject({
      message: expect.stringMatching(/off, low, high, max/),
    })
    expect(await prepare(lame)).toMatchObject({ config: { reasoningEffort: 'off' } })
  })
})
