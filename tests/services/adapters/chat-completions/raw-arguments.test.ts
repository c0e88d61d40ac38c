/** Numbers on their way from a server's bytes to a tool: what cannot be held exactly is told to the model. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseWire } from '../../../../src/services/adapters/chat-completions/payload.ts'
import { withRawArguments } from '../../../../src/services/adapters/chat-completions/raw-arguments.ts'
import { openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { scripted, toolCall } from '../../../../src/services/adapters/scripted.ts'
import { tool } from '../../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../../kit/agents.ts'
import { answer, DONE, event, type Reply, stopped, wireServer } from '../../../kit/wire-server.ts'

const payload = (args: string) =>
  `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"act","arguments":${args}}}]}}]}`

/** The arguments of the first call in `payload(args)`. */
const argumentsOf = (args: string) => {
  const text = JSON.stringify(parseWire(payload(args))?.value)
  return JSON.parse(text).choices[0].delta.tool_calls[0].function.arguments
}

describe('arguments as an object', () => {
  test.each([
    '{"id":9223372036854775807}',
    '{ "a" : [1e400, -0, 1E16, 0.1234567890123456789] }',
    '{"arguments":{"id":9007199254740993},"s":"\\"}]"}',
    '[9007199254740993]',
    '9007199254740993',
    '{"__proto__":{"a":1}}',
  ])('%s stay as they were written', (args) => {
    expect(argumentsOf(args)).toBe(args)
  })

  test.each([
    '"argument\\u0073"',
    '"\\u0061rguments"',
    '"argu\\u006Dents"',
    '"argu\\u006de\\u006Ets"',
    '"\\u0061\\u0072\\u0067\\u0075\\u006d\\u0065\\u006e\\u0074\\u0073"',
  ])('under the key spelt %s stay so as well', (key) => {
    expect(JSON.parse(key)).toBe('arguments')
    const parsed = parseWire(`{"a":1, ${key} : {"id":9223372036854775807} ,"b":2}`)
    expect(parsed?.value).toEqual({ a: 1, arguments: '{"id":9223372036854775807}', b: 2 })
  })

  test.each(['"argument\\\\u0073"', '"Argument\\u0073"', '"argument\\u0053"', '"xargument\\u0073"'])(
    'under the key %s, which is another, are no arguments',
    (key) => {
      const json = `{${key}:{"id":1}}`
      expect(withRawArguments(json)).toBe(json)
    },
  )

  test('a string, null, and words that only look like a key are what they were', () => {
    expect(argumentsOf('"{\\"id\\":9223372036854775807}"')).toBe('{"id":9223372036854775807}')
    expect(argumentsOf('null')).toBe(null)
    const words = '{"content":"\\"arguments\\":{\\"a\\":1}","arguments2":{"a":1}}'
    expect(withRawArguments(words)).toBe(words)
  })

  test('any other payload is parsed as it would be', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (before, args) => {
        // A key of that name is text wherever it stands.
        fc.pre(!before.includes('"arguments"'))
        const json = `{"before":${before},"arguments" : ${args}}`
        const parsed = JSON.parse(json)
        const got = parseWire(json)?.value as { before: unknown; arguments: unknown }
        const isText = parsed.arguments === null || typeof parsed.arguments === 'string'
        expect(got.before).toEqual(parsed.before)
        expect(isText ? got.arguments : JSON.parse(String(got.arguments))).toEqual(parsed.arguments)
      }),
    )
  })

  test('a payload that is cut off is no JSON', () => {
    for (let length = 1; length < payload('{"a":[1]}').length; length++) {
      expect(parseWire(payload('{"a":[1]}').slice(0, length))).toBe(undefined)
    }
  })
})

/** Runs one turn in which a server calls `act` with `args` as they stand in the payload. */
async function turnWith(reply: Reply) {
  await using server = await wireServer([reply, { body: answer({ text: 'done' }) }])
  const ran: unknown[] = []
  const act = tool({
    name: 'act',
    description: 'Acts',
    parameters: { type: 'object' },
    execute: (args) => {
      ran.push(args)
      return 'acted'
    },
  })
  await using started = await startAgent({
    model: openaiCompatible({ baseURL: server.url, model: 'm' }),
    tools: [act],
  })
  const { text } = await started.agent.run('go')
  const log = await started.log()
  return { text, ran, log, second: server.requests[1]?.body.messages }
}

const called = (args: string): Reply => ({ body: [event(payload(args)), stopped('tool_calls'), DONE] })
const calledWhole = (args: string): Reply => ({
  headers: { 'content-type': 'application/json' },
  body: [payload(args).replace('"delta"', '"finish_reason":"tool_calls","message"')],
})

describe.each([
  ['in a stream', called],
  ['in one JSON text', calledWhole],
])('a number that cannot be held, %s,', (_, reply) => {
  test.each([
    ['as a string', '"{\\"id\\":9223372036854775807}"', '9223372036854775807'],
    ['as an object', '{"id":9223372036854775807}', '9223372036854775807'],
    ['deep in an object', '{"list":[{"ids":[1,9007199254740993]}]}', '9007199254740993'],
    ['too large for a double', '{"n":1e400}', '1e400'],
    ['written with an exponent', '{"n":9007199254740993e0}', '9007199254740993e0'],
  ])('%s, reaches no tool: the model is told, and its own words go back', async (_, args, number) => {
    const { ran, log, second, text } = await turnWith(reply(args))
    expect(ran).toEqual([])
    expect(ofType(log, 'tool/result').map(({ data }) => data.error?.code)).toEqual(['INVALID_ARGS'])
    expect(JSON.stringify(second)).toContain(`The number ${number} in the arguments cannot be held exactly`)
    expect(second).toMatchObject([
      {},
      { tool_calls: [{ function: { arguments: expect.stringContaining(number) } }] },
      {},
    ])
    expect(text).toBe('done')
  })

  test('is fine as a string of digits', async () => {
    const { ran } = await turnWith(reply('{"id":"9223372036854775807","list":[9007199254740991]}'))
    expect(ran).toEqual([{ id: '9223372036854775807', list: [9007199254740991] }])
  })
})

describe('numbers elsewhere', () => {
  test('a count of tokens beyond 2^53 is no count; the others stand', async () => {
    const usage = '{"prompt_tokens":9007199254740993,"completion_tokens":4}'
    const reply = { body: answer({ text: 'a' }).toSpliced(-1, 0, `data: {"choices":[],"usage":${usage}}\n\n`) }
    const { log } = await turnWith(reply)
    expect(ofType(log, 'assistant/message')[0]?.data.usage).toEqual({ inputTokens: 0, outputTokens: 4 })
  })

  test('a tool that answers with a bigint is told to say it otherwise', async () => {
    const big = tool({
      name: 'big',
      description: 'Counts',
      parameters: { type: 'object' },
      execute: () => ({ n: 2n ** 64n }),
    })
    await using started = await startAgent({ tools: [big], model: scripted([toolCall('big', {}), 'done']) })
    await started.agent.run('go')
    const [result] = ofType(await started.log(), 'tool/result')
    expect(result?.data.error?.code).toBe('INVALID_TOOL_OUTPUT')
    expect(JSON.stringify(result?.data.message)).toContain('bigint')
  })
})
