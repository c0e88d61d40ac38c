/** Servers that break the rules of HTTP, of JSON, or of discretion. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type OpenaiCompatibleOptions, openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { ask, failureIn, finishIn } from '../../../kit/ask-adapter.ts'
import { DONE, delta, event, type Reply, refusal, type Step, stopped, wireServer } from '../../../kit/wire-server.ts'

/** A server that says exactly this to every request, and closes or resets the connection. */
async function rawServer(reply: string, end: 'close' | 'reset' = 'close') {
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      if (end === 'close') socket.end(reply)
      else socket.write(reply, () => setTimeout(() => socket.resetAndDestroy(), 20))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`
  return { url, [Symbol.asyncDispose]: async () => void server.close() }
}

const at = (baseURL: string, options: Partial<OpenaiCompatibleOptions> = {}) =>
  openaiCompatible({ baseURL, model: 'm', ...options })

describe('a body that says gzip and is none, of which Node never reads an end', () => {
  const reply = 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\ndata: plain\n\n'

  test('is left at the limit', async () => {
    await using server = await rawServer(reply)
    const { code } = failureIn(await ask(at(server.url, { firstByteTimeoutMs: 100, idleTimeoutMs: 100 })))
    // A later Node may see it for what it is.
    expect(['TIMEOUT', 'TRANSPORT']).toContain(code)
  })

  test('is left at an abort', async () => {
    await using server = await rawServer(reply)
    const cancel = new AbortController()
    setTimeout(() => cancel.abort(), 100)
    const reason = finishIn(await ask(at(server.url), {}, cancel.signal))
    expect(reason === undefined || reason.kind === 'error').toBe(true)
  })
})

describe('a body without a content type', () => {
  const head = 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'
  const message = { choices: [{ message: { content: 'a' }, finish_reason: 'stop' }] }
  const broken = { choices: [{ message: { content: 'a' } }], error: { message: 'no', code: 'server_error' } }
  const BEGAN = 'The stream ended before the model said it was done. It began with this: upstream error'

  test.each([
    ['events', `${delta({ content: 'a' })}${stopped('stop')}${DONE}`, { kind: 'stop' }],
    ['a JSON text', JSON.stringify(message), { kind: 'stop' }],
    ['an error as JSON', JSON.stringify(broken), { kind: 'error', failure: { code: 'SERVER' } }],
    ['nothing', '', { kind: 'error', failure: { code: 'EMPTY_RESPONSE' } }],
    ['words', 'upstream error', { kind: 'error', failure: { code: 'STREAM_CLOSED', message: BEGAN } }],
  ])('of %s is read for what it is', async (_, body, finish) => {
    await using server = await rawServer(head + body)
    expect(finishIn(await ask(at(server.url)))).toMatchObject(finish)
  })
})

test.each(['text/plain', 'text/html', 'application/json', 'text/event-stream'])(
  'an empty body of %s is an empty answer',
  async (type) => {
    await using server = await wireServer([{ headers: { 'content-type': type } }])
    expect(failureIn(await ask(at(server.url))).code).toBe('EMPTY_RESPONSE')
  },
)

test('a refusal is what its status says, also when its body breaks', async () => {
  await using server = await rawServer(
    'HTTP/1.1 429 Wait\r\nretry-after: 30\r\ncontent-length: 500\r\n\r\n{"error":',
    'reset',
  )
  expect(failureIn(await ask(at(server.url)))).toMatchObject({
    code: 'RATE_LIMIT',
    status: 429,
    providerRetryAfterMs: 30_000,
  })
})

test('of two waits that are asked for the longer one counts', async () => {
  await using server = await rawServer(
    'HTTP/1.1 429 Wait\r\nretry-after: 3\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n',
  )
  expect(failureIn(await ask(at(server.url)))).toMatchObject({ code: 'RATE_LIMIT', providerRetryAfterMs: 5_000 })
})

describe('JSON that can be read and is nested too deep to be written', () => {
  const DEEP = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`
  const answered = [delta({ content: 'hi' }), stopped('stop')]
  const choice = (fields: string) => event(`{"choices":[{"delta":{${fields}}}]}`)

  test.each<[string, readonly Step[]]>([
    ['among glued payloads', [`data: [${DEEP}]\ndata: 1\n\n`, ...answered, DONE]],
    ['in details of reasoning', [choice(`"reasoning_details":[${DEEP}]`), ...answered, DONE]],
    ['in what comes late', [...answered, choice(`"content":"late","x":${DEEP}`), DONE]],
    ['in usage', [...answered, event(`{"usage":${DEEP}}`), DONE]],
  ])('%s is passed over', async (_, body) => {
    await using server = await wireServer([{ body }])
    expect(finishIn(await ask(at(server.url)))).toEqual({ kind: 'stop' })
  })

  test('in an error leaves the error what it is', async () => {
    await using server = await wireServer([
      { body: [event(`{"error":{"message":"no money","code":402,"x":${DEEP}}}`)] },
    ])
    expect(failureIn(await ask(at(server.url)))).toMatchObject({ code: 'QUOTA', message: 'no money (code 402)' })
  })
})

describe('a key that a server repeats', () => {
  const apiKey = 'apikey-7Q8w7E6r5T4'
  const inQuery = 'query+key/1a2b3c4d5e6='
  const asked = async (reply: Reply) => {
    await using server = await wireServer([reply])
    const said = await ask(at(`${server.url}?v=1&key=${encodeURIComponent(inQuery)}`, { apiKey }))
    return JSON.stringify(said)
  }

  test.each([
    ['in a refusal', refusal(401, { error: { message: `bad key ${apiKey} in ${inQuery}` } })],
    ['as it stood in the query', refusal(401, { error: { message: `see ?key=${encodeURIComponent(inQuery)}` } })],
    ['in its id of the request', refusal(401, {}, { 'x-request-id': inQuery })],
    ['cut off by the end of what is quoted', { status: 502, body: [`${'x'.repeat(100)}${apiKey}`] }],
    ['in an error frame', { body: [event({ error: { message: 'no', code: apiKey, type: inQuery } })] }],
    ['as why it stopped', { body: [delta({ content: 'a' }), stopped(apiKey), DONE] }],
  ])('%s is in no failure', async (_, reply) => {
    const said = (await asked(reply)).toLowerCase().replaceAll('_', '-')
    expect(said).toMatch(/hidden/)
    for (const secret of [apiKey.slice(0, 12), inQuery.slice(0, 9), encodeURIComponent(inQuery).slice(0, 9)]) {
      expect(said).not.toContain(secret.toLowerCase())
    }
  })
})

describe('what a request carries', () => {
  const failed = async (query: string, error: object, options: Partial<OpenaiCompatibleOptions> = {}) => {
    await using server = await wireServer([{ body: [event({ error })] }])
    return failureIn(await ask(at(`${server.url}${query}`, options)))
  }

  test.each([
    ['of which an ordinary code has the name', '?api-version=2024-10-01', 'invalid_api_version', 'INVALID_API_VERSION'],
    ['with a value of nothing but marks', '?v=-----------', 'rate_limit_exceeded', 'RATE_LIMIT'],
  ])('in a query %s, leaves that code as it is', async (_, query, word, code) => {
    expect((await failed(query, { message: 'no', code: word })).code).toBe(code)
  })

  test('as a key of nothing but marks, leaves a code as it is', async () => {
    const error = { message: 'no', code: 'rate_limit_exceeded' }
    expect((await failed('', error, { apiKey: '---------' })).code).toBe('RATE_LIMIT')
  })

  test('as a query that is no more than a value is in no failure', async () => {
    expect((await failed('?1a2b3c4d5e', { message: 'not 1a2b3c4d5e' })).message).toBe('not [hidden]')
  })

  test.each([
    ['a refusal', 400, 'application/json'],
    ['a page', 200, 'text/html'],
    ['JSON that is no answer', 200, 'application/json'],
    ['what is called a stream', 200, 'text/event-stream'],
  ])('as a key is in no failure, also not as it is escaped in %s', async (_, status, type) => {
    const body = ['["1a2b\\/3c4d\\u002b5e6f"]']
    await using server = await wireServer([{ status, headers: { 'content-type': type }, body }])
    const { message } = failureIn(await ask(at(server.url, { apiKey: '1a2b/3c4d+5e6f' })))
    expect(message).toContain('["[secret]"]')
  })

  test('hides all of the longer one of two that begin alike', async () => {
    const error = { message: 'not 1a2b3c4d5e6f7g8h' }
    expect((await failed('?v=1a2b3c4d5e6f7g8h', error, { apiKey: '1a2b3c4d' })).message).toBe('not [hidden]')
  })
})

test.each([
  ['content-filter', 'CONTENT_FILTER'],
  ['\u001b[31m\n', '_31M_'],
  ['完了', '完了'],
])('a server that stops for %j fails with the code %s', async (word, code) => {
  await using server = await wireServer([{ body: [delta({ content: 'a' }), stopped(word), DONE] }])
  expect(failureIn(await ask(at(server.url)))).toMatchObject({ code })
})

describe('a word of the server that is a code of ours', () => {
  const words = ['aborted', 'Aborted', 'tool_outcome_unknown', 'no adapter', 'transport', 'EMPTY_RESPONSE', 'unknown']

  test.each(words)('%s, as why it stopped, is told apart', async (word) => {
    await using server = await wireServer([{ body: [delta({ content: 'a' }), stopped(word), DONE] }])
    const code = `PROVIDER_${word.toUpperCase().replace(' ', '_')}`
    expect(failureIn(await ask(at(server.url)))).toMatchObject({ code, message: expect.stringContaining(word) })
  })

  test.each(words)('%s, as the code of an error, is told apart', async (word) => {
    await using server = await wireServer([{ body: [event({ error: { message: 'no', code: word } }), DONE] }])
    const code = `PROVIDER_${word.toUpperCase().replace(' ', '_')}`
    expect(failureIn(await ask(at(server.url)))).toMatchObject({ code, message: `no (code ${word})` })
  })

  test.each(['timeout', 'transport', 'request_timeout'])(
    '%s after the finish is an error, no lost line',
    async (code) => {
      const error = event({ error: { message: 'no', code } })
      await using server = await wireServer([{ body: [delta({ content: 'a' }), stopped('stop'), error, DONE] }])
      expect(failureIn(await ask(at(server.url))).message).toBe(`no (code ${code})`)
    },
  )
})

describe('a refusal', () => {
  const told = async (error: Readonly<Record<string, unknown>>) => {
    await using server = await wireServer([refusal(400, { error })])
    return failureIn(await ask(at(server.url))).message
  }

  test('keeps code, type and parameter beside its words, as an error in the stream does', async () => {
    const error = { message: 'No', code: 'unsupported_value', type: 'invalid_request_error', param: 'temperature' }
    const message = 'No (code unsupported_value, type invalid_request_error, param temperature)'
    expect(await told(error)).toBe(message)
    await using server = await wireServer([{ body: [event({ error })] }])
    expect(failureIn(await ask(at(server.url))).message).toBe(message)
  })

  test('says nothing twice, and nothing of what is not stated', async () => {
    expect(await told({ message: 'The temperature is wrong', param: 'temperature', code: null })).toBe(
      'The temperature is wrong',
    )
  })

  test('keeps them also behind words without end', async () => {
    const message = await told({ message: 'x'.repeat(20_000), code: 'y'.repeat(20_000), param: 'n' })
    expect(message).toMatch(/^x+ \(code y+, param n\)$/)
    expect(message.length).toBeLessThan(2_000)
  })
})

describe('calls that a server identifies badly', () => {
  const said = async (...fragments: readonly Record<string, unknown>[]) => {
    const body = [...fragments.map((one) => delta({ tool_calls: [one] })), stopped('tool_calls'), DONE]
    await using server = await wireServer([{ body }])
    return await ask(at(server.url))
  }
  const whole = (id: string, args: string) => ({ index: 0, id, function: { name: 'pay', arguments: args } })

  test('are not two because one is told again under a new id', async () => {
    const chunks = await said(whole('a', '{"eur":1}'), whole('b', '{"eur":1}'))
    // Nor are the joined arguments anything that could run.
    const ends = chunks.flatMap((chunk) => (chunk.type === 'block-end' ? [chunk.block] : []))
    expect(ends).toEqual([{ type: 'tool-call', id: 'b', name: 'pay', arguments: '{"eur":1}{"eur":1}' }])
  })

  test('do not say an endless id with every piece', async () => {
    const pieces = Array.from({ length: 100 }, () => ({ index: 0, function: { arguments: ' ' } }))
    const chunks = await said(whole('x'.repeat(100_000), '{}'), ...pieces)
    expect(JSON.stringify(chunks).length).toBeLessThan(150_000)
  })
})
