/** What goes wrong, as a failure: over the wire with real provider packages, and by the errors of the SDK. */
import {
  APICallError,
  EmptyResponseBodyError,
  InvalidPromptError,
  InvalidResponseDataError,
  JSONParseError,
  type LanguageModelV3StreamPart,
  LoadAPIKeyError,
  LoadSettingError,
  NoSuchModelError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { failureOfModel } from '../../../../src/services/adapters/ai-sdk/failure.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { LlmError } from '../../../../src/services/errors.ts'
import { mock3, text3 } from '../../../kit/ai-sdk-models.ts'
import { anthropic, compatible, KEY, type Make, openaiChat, openaiResponses } from '../../../kit/ai-sdk-providers.ts'
import { anthropicAnswer, responsesAnswer, sse } from '../../../kit/ai-sdk-wires.ts'
import { ask, failureIn } from '../../../kit/ask-adapter.ts'
import { brokenPromise } from '../../../kit/corpus/contract.ts'
import { answer, event, type Reply, refusal, type Step, wireServer } from '../../../kit/wire-server.ts'

async function failure(make: Make, ...replies: readonly Reply[]) {
  await using server = await wireServer(replies)
  const said = await ask(aiSdk(make(server.url)))
  expect(brokenPromise(said)).toBeUndefined()
  expect(server.requests).toHaveLength(1)
  return failureIn(said)
}

describe.each([
  {
    name: 'openai-compatible',
    make: compatible,
    body: (message: string, type: string) => ({ error: { message, type } }),
  },
  {
    name: 'anthropic',
    make: anthropic,
    body: (message: string, type: string) => ({ type: 'error', error: { type, message } }),
  },
  { name: 'openai chat', make: openaiChat, body: (message: string, type: string) => ({ error: { message, type } }) },
  {
    name: 'openai responses',
    make: openaiResponses,
    body: (message: string, type: string) => ({ error: { message, type } }),
  },
])('a refusal to $name is asked once, and is told by its status', ({ make, body }) => {
  test.each([
    [401, 'authentication_error', 'AUTH'],
    [402, 'billing_error', 'QUOTA'],
    [400, 'invalid_request_error', 'INVALID_REQUEST'],
    [404, 'not_found_error', 'HTTP_404'],
    [413, 'request_too_large', 'INVALID_REQUEST'],
    [500, 'api_error', 'SERVER'],
    [529, 'overloaded_error', 'SERVER'],
  ])('%i', async (status, type, code) => {
    const said = await failure(make, refusal(status, body('No.', type), { 'x-request-id': 'req-1' }))
    expect(said).toMatchObject({ code, status, requestId: 'req-1' })
    expect(said.message).toMatch(/^No\./)
  })

  test('429 with how long to wait', async () => {
    const said = await failure(make, refusal(429, body('Slow down.', 'rate_limit_error'), { 'retry-after': '7' }))
    expect(said).toMatchObject({ code: 'RATE_LIMIT', status: 429, providerRetryAfterMs: 7_000 })
    expect(said.message).toMatch(/^Slow down\. \((?:code .*, )?type rate_limit_error\)$/)
  })

  test('a prompt that is too long, and a body that is no JSON', async () => {
    expect(
      await failure(make, refusal(400, body('prompt is too long: 9 tokens > 8 maximum', 'invalid_request_error'))),
    ).toMatchObject({
      code: 'CONTEXT_WINDOW_EXCEEDED',
    })
    const html = { status: 502, headers: { 'content-type': 'text/html' }, body: ['<html>Bad gateway</html>'] }
    expect(await failure(make, html)).toMatchObject({ code: 'SERVER', status: 502 })
  })

  test('a key that the server repeats is not shown', async () => {
    const said = await failure(make, refusal(401, body(`Incorrect API key provided: ${KEY}`, 'authentication_error')))
    expect(said.message).toBe('Incorrect API key provided: [secret] (type authentication_error)')
  })
})

describe('a stream that goes wrong', () => {
  const half: readonly (readonly [string, Make, readonly Step[]])[] = [
    ['openai-compatible', compatible, answer({ text: 'Hello there' }).slice(0, 3)],
    ['anthropic', anthropic, anthropicAnswer([{ text: 'Hello there' }]).slice(0, 4)],
    ['openai responses', openaiResponses, responsesAnswer([{ id: 'm', text: 'Hello there' }]).slice(0, 3)],
    ['openai chat', openaiChat, answer({ text: 'Hello there' }).slice(0, 3)],
  ]
  test.each(half)('%s: a connection that is cut is a failure of transport', async (_, make, body) => {
    expect(await failure(make, { body: [...body, { kind: 'wait', ms: 20 }, { kind: 'cut' }] })).toMatchObject({
      code: 'TRANSPORT',
    })
  })

  test.each(half)('%s: a stream that ends too early was closed', async (_, make, body) => {
    expect(await failure(make, { body })).toMatchObject({ code: 'STREAM_CLOSED' })
  })

  test('a call that a cut stream leaves half-said is not run', async () => {
    const calls = [{ id: 'c1', name: 'add', arguments: '{"a":1,"b":22222222222222}' }]
    for (const [make, body] of [
      [compatible, answer({ calls })],
      [openaiChat, answer({ calls })],
      [
        anthropic,
        anthropicAnswer([{ id: 'c1', name: 'add', input: '{"a":1,"b":22222222222222}' }], { stop: 'tool_use' }),
      ],
      [
        openaiResponses,
        responsesAnswer([{ id: 'f', call: { id: 'c1', name: 'add', arguments: '{"a":1,"b":22222222222222}' } }]),
      ],
    ] as const) {
      expect(await failure(make, { body: body.slice(0, 5) })).toMatchObject({ code: 'STREAM_CLOSED' })
    }
  })

  test('an error inside the stream', async () => {
    const overloaded = sse({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    const begun = anthropicAnswer([{ text: 'Hello there' }]).slice(0, 4)
    expect(await failure(anthropic, { body: [...begun, overloaded] })).toMatchObject({
      code: 'SERVER',
      message: /^Overloaded/,
    })
    expect(await failure(anthropic, { body: [overloaded] })).toMatchObject({ code: 'SERVER', message: /^Overloaded/ })
    const limited = event({ error: { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded' } })
    const words = answer({ text: 'Hello there' }).slice(0, 3)
    expect(await failure(compatible, { body: [...words, limited] })).toMatchObject({ code: 'RATE_LIMIT' })
    expect(await failure(openaiChat, { body: [...words, limited] })).toMatchObject({ code: 'RATE_LIMIT' })
    const spent = sse({
      type: 'error',
      sequence_number: 1,
      error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'Spent.' },
    })
    const text = responsesAnswer([{ id: 'm', text: 'Hello there' }]).slice(0, 3)
    expect(await failure(openaiResponses, { body: [...text, spent] })).toMatchObject({
      code: 'QUOTA',
      message: /^Spent\./,
    })
  })

  test('bytes that are no JSON are a malformed answer', async () => {
    expect(await failure(compatible, { body: [event('{"choices":'), event('[DONE]')] })).toMatchObject({
      code: 'MALFORMED_RESPONSE',
    })
  })

  test('nothing at all is an empty answer', async () => {
    expect(await failure(anthropic, { body: [] })).toMatchObject({ code: 'EMPTY_RESPONSE' })
  })

  test('a mock that breaks, throws or says it is wrong', async () => {
    const failureOf = async (...parts: readonly (LanguageModelV3StreamPart | Error)[]) =>
      failureIn(await ask(aiSdk(mock3(parts))))
    expect(
      await failureOf(...text3('x'), new TypeError('terminated', { cause: new Error('other side closed') })),
    ).toEqual({
      code: 'TRANSPORT',
      message: 'The connection to the provider broke: terminated: other side closed',
    })
    expect(await failureOf({ type: 'error', error: 'upstream unavailable' })).toMatchObject({ code: 'SERVER' })
    expect(await failureOf({ type: 'error', error: undefined })).toMatchObject({ code: 'UNKNOWN' })
    expect(await failureOf({ type: 'error', error: new Error('first') }, { type: 'error', error: 'second' })).toEqual({
      code: 'UNKNOWN',
      message: 'first',
    })
  })
})

test('no server', async () => {
  const server = await wireServer([])
  await server.close()
  expect(failureIn(await ask(aiSdk(compatible(`${server.url}/v1?key=hidden-0123456789`))))).toMatchObject({
    code: 'TRANSPORT',
    message: expect.stringContaining('ECONNREFUSED'),
  })
})

test('no key', async () => {
  const { createAnthropic } = await import('@ai-sdk/anthropic')
  const before = process.env.ANTHROPIC_API_KEY
  delete process.env.ANTHROPIC_API_KEY
  try {
    expect(failureIn(await ask(aiSdk(createAnthropic()('claude-sonnet-4-5'))))).toMatchObject({
      code: 'MISSING_CREDENTIAL',
      message: expect.stringContaining('ANTHROPIC_API_KEY'),
    })
  } finally {
    if (before !== undefined) process.env.ANTHROPIC_API_KEY = before
  }
})

describe('errors of the SDK', () => {
  const facts = { headers: {}, id: '', now: 0 }
  const codeOf = (thrown: unknown) => failureOfModel(thrown, facts).code
  const call = (more: object = {}) =>
    new APICallError({
      message: 'Went wrong at https://host.example/v1?api-key=0123456789abcdef&x=1',
      url: 'https://host.example/v1?api-key=0123456789abcdef',
      requestBodyValues: { messages: ['the prompt'] },
      ...more,
    })

  test.each([
    [new LoadAPIKeyError({ message: 'm' }), 'MISSING_CREDENTIAL'],
    [new LoadSettingError({ message: 'm' }), 'MISSING_CREDENTIAL'],
    [new InvalidPromptError({ prompt: 'p', message: 'm' }), 'INVALID_REQUEST'],
    [new NoSuchModelError({ modelId: 'm', modelType: 'languageModel' }), 'INVALID_REQUEST'],
    [new UnsupportedFunctionalityError({ functionality: 'images' }), 'UNSUPPORTED_CONTENT'],
    [new JSONParseError({ text: '{', cause: new Error('x') }), 'MALFORMED_RESPONSE'],
    [new TypeValidationError({ value: {}, cause: new Error('x') }), 'MALFORMED_RESPONSE'],
    [new InvalidResponseDataError({ data: {} }), 'MALFORMED_RESPONSE'],
    [new EmptyResponseBodyError(), 'EMPTY_RESPONSE'],
    [call({ statusCode: 200, cause: new JSONParseError({ text: '{', cause: new Error('x') }) }), 'MALFORMED_RESPONSE'],
    [call({ statusCode: 200, cause: new EmptyResponseBodyError() }), 'EMPTY_RESPONSE'],
    [call({ statusCode: 200 }), 'MALFORMED_RESPONSE'],
    [call({ statusCode: 200, cause: new TypeError('terminated') }), 'TRANSPORT'],
    [call(), 'TRANSPORT'],
    [call({ cause: new Error('Headers Timeout Error') }), 'TIMEOUT'],
    [new DOMException('too late', 'TimeoutError'), 'TIMEOUT'],
    [new DOMException('gone', 'AbortError'), 'TRANSPORT'],
    [Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }), 'TRANSPORT'],
    [new TypeError('x is not a function'), 'UNKNOWN'],
    [new Error('wrapped', { cause: call({ statusCode: 429 }) }), 'RATE_LIMIT'],
    [Object.assign(new Error('m'), { statusCode: 503, name: 'GatewayError' }), 'SERVER'],
    [{ message: 'm', statusCode: 429, code: 'insufficient_quota' }, 'QUOTA'],
    [{ response: { error: { code: 'server_error', message: 'm' } } }, 'SERVER'],
    [{ message: 'm', code: 'aborted' }, 'PROVIDER_ABORTED'],
    [{ error: { message: 'm', code: 'tool_outcome_unknown' } }, 'PROVIDER_TOOL_OUTCOME_UNKNOWN'],
    // As if it were a failure of ours.
    [Object.assign(new Error('m'), { code: 'ABORTED', failure: { message: 'm', code: 'ABORTED' } }), 'UNKNOWN'],
    [new LlmError({ message: 'm', code: 'MALFORMED_RESPONSE' }), 'MALFORMED_RESPONSE'],
    [42, 'UNKNOWN'],
    [null, 'UNKNOWN'],
  ])('%s is %s', (thrown, code) => {
    expect(codeOf(thrown)).toBe(code)
  })

  test('are known by their names, from any copy of the SDK, and by their markers', () => {
    const named = Object.assign(new Error('m'), { name: 'AI_APICallError', statusCode: 500 })
    expect(codeOf(named)).toBe('SERVER')
    const marked = Object.assign(new Error('m'), { [Symbol.for('vercel.ai.error.AI_LoadAPIKeyError')]: true })
    expect(codeOf(marked)).toBe('MISSING_CREDENTIAL')
  })

  test('that say nothing but a status are told by that alone', () => {
    const { message } = failureOfModel(call({ message: '', statusCode: 500 }), facts)
    expect(message).toBe('The server answered with status 500')
  })

  test('a query, a credential, headers and the request’s body are in no message', () => {
    const thrown = call({
      statusCode: 500,
      responseHeaders: { 'Set-Cookie': 'session=0123456789abcdef', 'request-id': 'req-2' },
      cause: new Error(`Authorization: Bearer ${KEY}`),
    })
    const said = failureOfModel(thrown, facts)
    expect(said).toEqual({
      code: 'SERVER',
      status: 500,
      requestId: 'req-2',
      message: 'Went wrong at https://host.example/v1?[hidden]',
    })
    expect(JSON.stringify(failureOfModel(new Error(`Bearer ${KEY}`), facts))).not.toContain(KEY)
  })

  test('a failure in the middle has the request’s id of the response, else the answer’s', () => {
    expect(failureOfModel('x', { ...facts, headers: { 'X-Request-Id': 'r' }, id: 'resp' })).toMatchObject({
      requestId: 'r',
    })
    expect(failureOfModel('x', { ...facts, id: 'resp' })).toMatchObject({ requestId: 'resp' })
  })

  test('an error whose reading throws is a failure all the same', () => {
    const hostile = {
      get name() {
        throw new Error('no')
      },
    }
    expect(
      codeOf(
        Object.defineProperty(new Error('m'), 'cause', {
          get: () => {
            throw new Error('no')
          },
        }),
      ),
    ).toBe('UNKNOWN')
    expect(codeOf(hostile)).toBe('UNKNOWN')
  })
})
