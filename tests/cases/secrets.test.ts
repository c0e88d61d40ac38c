/** Secrets reach neither the log, nor the model again, nor an error, nor whoever inspects. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { InspectionEvent } from 'xstate'
import type { AgentOptions } from '../../src/agent.ts'
import { parseArguments } from '../../src/log/arguments.ts'
import { requestDigest } from '../../src/log/digest.ts'
import type { Json } from '../../src/log/json.ts'
import { rebuildRequest } from '../../src/log/rebuild.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import { fails, gate, hangs, pause, reasoning, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption, LlmError } from '../../src/services/errors.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, type StartedAgent, startAgent } from '../kit/agents.ts'

const SECRET = 'tr0ub4dor "&3\\'
const FORMS = [SECRET, JSON.stringify(SECRET).slice(1, -1), encodeURIComponent(SECRET), btoa(SECRET)]

const anything = { type: 'object' } as const
const answers = (name: string, value: unknown) =>
  tool({ name, description: name, parameters: anything, execute: () => value })

/** What the log says, as text: secrets would stand in it as JSON strings, so each is looked for as it is and escaped. */
async function logText({ log }: StartedAgent): Promise<string> {
  return JSON.stringify(await log())
}

function expectNone(shown: string, secrets: readonly string[] = FORMS): void {
  for (const secret of secrets) {
    expect(shown).not.toContain(secret)
    expect(shown).not.toContain(JSON.stringify(secret).slice(1, -1))
  }
}

/** Runs one turn and gives the text of its log. */
async function turn(options: Partial<AgentOptions>, input = 'go'): Promise<string> {
  await using started = await startAgent(options)
  await started.agent.run(input)
  return logText(started)
}

const open: Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})
async function serve(status: number, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end(body))
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

describe('[SEC-05] headers of every kind, in a tool’s output and in its error', () => {
  const headers = {
    Authorization: 'Bearer aaa.bbb.ccc1',
    'PROXY-authorization': 'Basic dXNlcjpwYXNzd29yZA==',
    'x-api-key': 'kkkk-1234-kkkk',
    'Set-Cookie': ['sid=ssss1234', 'b=tttt1234'],
    nested: { deep: [{ Cookie: 'sid=ssss1234', accessToken: 'uuuu1234' }] },
  }
  const secrets = ['aaa.bbb', 'dXNlcjpw', 'kkkk', 'ssss', 'tttt', 'uuuu']
  const lines =
    'authorization: token 0123abcd4567\nProxy-Authorization: Basic dXNlcjpwYXNzd29yZA==\nx-api-key: kkkk-1234-kkkk'

  test('as data', async () => {
    const model = scripted([toolCall('fetch', {}), 'done'])
    expectNone(await turn({ model, tools: [answers('fetch', { headers, ok: true })] }), secrets)
    expect(JSON.stringify(model.requests[1])).toContain('\\"ok\\":true')
    expectNone(JSON.stringify(model.requests), secrets)
  })

  test('as text, and in what is thrown', async () => {
    const throws = tool({
      name: 'throws',
      description: 'x',
      parameters: anything,
      execute: () => {
        throw new Error('refused', { cause: new Error(lines) })
      },
    })
    const model = scripted([[toolCall('fetch', {}), toolCall('throws', {})], 'done'])
    expectNone(await turn({ model, tools: [answers('fetch', lines), throws] }), [...secrets, '0123abcd'])
  })

  test('in a tool’s meta, a plug-in’s note and the model’s own arguments', async () => {
    const given: unknown[] = []
    const call = tool({
      name: 'call',
      description: 'x',
      parameters: anything,
      meta: () => ({ request: { headers } }),
      execute: (args) => {
        given.push(args)
        return 'ok'
      },
    })
    await using started = await startAgent({
      model: scripted([toolCall('call', { url: 'u', headers }), 'ok']),
      tools: [call],
    })
    started.agent.session.note('me/seen', { headers })
    await started.agent.run('go')
    expectNone(await logText(started), secrets)
    expect(given).toMatchObject([{ url: 'u', headers: { Authorization: '[secret]', 'Set-Cookie': ['[secret]'] } }])
  })
})

describe('[SEC-06] a registered value is masked wherever it stands', () => {
  test('beside the key that says what it is', async () => {
    const model = scripted([toolCall('get', {}), 'ok'])
    const value = { password: SECRET, error: `duplicate ${SECRET}`, [SECRET]: 1 }
    const shown = await turn({ model, secrets: [SECRET], tools: [answers('get', value)] })
    expectNone(shown)
    expectNone(JSON.stringify(model.requests))
  })

  test('in what the user, the system text, a schema, the model and hooks say, and in no request', async () => {
    const model = scripted([
      [
        reasoning(`thinks of ${SECRET}`),
        text(`I will send ${SECRET} there`, { deltas: 30 }),
        toolCall('echo', { to: SECRET }),
      ],
      [text(`sent ${btoa(SECRET)}`, { deltas: 9 })],
    ])
    const echo = tool({
      name: 'echo',
      description: `never ${SECRET}`,
      parameters: { type: 'object', properties: { to: { type: 'string', default: SECRET } } },
      execute: (_, context) => {
        context.addContext(`context ${encodeURIComponent(SECRET)}`)
        return `echo ${SECRET}`
      },
    })
    const seen: InspectionEvent[] = []
    await using started = await startAgent({
      model,
      secrets: ['unrelated value', SECRET],
      system: `the key is ${SECRET}`,
      context: [{ name: 'c', text: `now ${SECRET}` }],
      tools: [echo],
      inspect: (event) => seen.push(event),
      hooks: { 'agent/turn-stopping': () => ({ kind: 'stopped-by-policy', policy: 'p', reason: `for ${SECRET}` }) },
    })
    const { agent } = started
    const result = await agent.run(`use ${SECRET}`)
    agent.session.note('me/note', { [SECRET]: [SECRET] })
    const log = await started.log()
    expectNone(JSON.stringify(log))
    expectNone(JSON.stringify([result, agent.session.messages(), agent.actor.getSnapshot().context]))
    expectNone(JSON.stringify(seen.map((event) => ('event' in event ? event.event : ''))))
    expect(model.requests).toHaveLength(2)
    expectNone(JSON.stringify(model.requests))
    expect(ofType(log, 'request/header')).toHaveLength(1)
    expect(
      ofType(log, 'user/message').filter(({ data }) => data.source.kind === 'plugin' && data.source.form),
    ).toHaveLength(1)
    const first = ofType(log, 'assistant/chunk').find(({ data }) => data.request !== undefined && data.step === 2)
    expect(requestDigest(rebuildRequest(log, { turn: 1, step: 2, attempt: 1 }))).toBe(first?.data.request)
  })

  test('in the deltas of an answer that a cancel cut, whose held end is kept', async () => {
    const stop = gate()
    const model = scripted([
      [
        {
          kind: 'chunks',
          chunks: [
            { type: 'block-start', index: 0, blockType: 'text' },
            { type: 'text-delta', index: 0, text: `say ${SECRET} or tr0ub4` },
          ],
        },
        pause(stop),
        hangs(),
      ],
    ])
    await using started = await startAgent({ model, secrets: [SECRET] })
    const running = started.agent.run('go')
    await stop.reached
    await started.agent.cancel()
    expect((await running).reason.kind).toBe('aborted')
    const [answer] = ofType(await started.log(), 'assistant/message')
    expect(answer?.data.message.content).toEqual([{ type: 'text', text: 'say [secret] or tr0ub4' }])
  })

  test('in a denial, a cancel and a rejection', async () => {
    const asked = tool({
      name: 'ask',
      description: 'x',
      parameters: anything,
      needsApproval: true,
      execute: () => 'ok',
    })
    await using started = await startAgent({
      model: scripted([toolCall('ask', {}), hangs()]),
      tools: [asked],
      secrets: [SECRET],
    })
    const { agent } = started
    const running = agent.run('go')
    await agent.whenQuiet()
    const [pending] = agent.approvals()
    await agent.deny(pending?.callId ?? '', {
      digest: pending?.argumentsDigest ?? '',
      reason: `not ${SECRET}`,
      by: SECRET,
    })
    await agent.cancel({ kind: 'hook', reason: SECRET })
    await running
    expectNone(await logText(started))
  })

  test('and the same message sent again is still the same message', async () => {
    await using started = await startAgent({ secrets: [SECRET] })
    const { agent } = started
    const first = agent.followup(`use ${SECRET}`, { requestId: 'r' })
    await first.turn
    expect((await agent.followup(`use ${SECRET}`, { requestId: 'r' }).turn)?.turn).toBe(1)
    await agent.whenIdle()
    expect(agent.session.messages()).toHaveLength(2)
  })

  test('never where the loop finds its way by a name', async () => {
    const model = scripted([toolCall('read_file', {}, { id: 'c-1' }), 'ok'], { provider: 'readers' })
    await using started = await startAgent({ model, tools: [answers('read_file', 'x')], secrets: ['read'] })
    expect((await started.agent.run('read it')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(ofType(log, 'tool/result')[0]?.data.message.source.callId).toBe('c-1')
    expect(ofType(log, 'user/message')[0]?.data.content).toEqual([{ type: 'text', text: '[secret] it' }])
  })

  test('also where masking makes a result too long for the log', async () => {
    const model = scripted([toolCall('get', {}), 'ok'])
    const shown = await turn({ model, tools: [answers('get', 'abcd'.repeat(240_000))], secrets: ['abcd'] })
    expect(shown).toContain('RESULT_TOO_LARGE')
    expectNone(shown, ['abcd'])
  })
})

test('a secret that cannot be is refused by its place', async () => {
  await expect(startAgent({ secrets: ['fine', 'abc'] })).rejects.toThrow(
    expect.objectContaining({
      constructor: InvalidOption,
      option: 'secrets[1]',
      message: expect.not.stringContaining('abc"'),
    }),
  )
})

describe('[SEC-07] a refused request leaves facts in the log, not headers', () => {
  test('of the provider', async () => {
    const apiKey = 'sk-live-0123456789abcdef'
    const body = JSON.stringify({
      error: { message: `Incorrect key ${apiKey}`, code: 'invalid_api_key' },
      request: { headers: { authorization: `Bearer ${apiKey}` } },
    })
    const model = openaiCompatible({ baseURL: await serve(401, body), model: 'm', apiKey })
    await using started = await startAgent({ model })
    const { reason } = await started.agent.run('go')
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'AUTH', status: 401 } })
    const shown = await logText(started)
    expectNone(shown, [apiKey])
    expect(shown.toLowerCase()).not.toContain('authorization')
  })

  test('of an error object that a hook throws', async () => {
    const thrown = Object.assign(new Error('401 from upstream'), {
      config: { headers: { authorization: 'Bearer a1b2c3d4' } },
      response: { data: 'a1b2c3d4' },
    })
    const shown = await turn({
      hooks: {
        'agent/request': () => {
          throw thrown
        },
      },
    })
    expect(shown).toContain('401 from upstream')
    expectNone(shown, ['a1b2c3d4', 'headers'])
  })
})

describe('[SEC-08] a key in the URL is in no text of an error', () => {
  test('of the provider that cannot be reached', async () => {
    const base = await serve(200, '')
    for (const server of open.splice(0)) server.close()
    const model = openaiCompatible({ baseURL: `${base}?key=abcd1234efgh`, model: 'm', retry: { maxRetries: 0 } })
    const shown = await turn({ model })
    expect(shown).toContain('TRANSPORT')
    expectNone(shown, ['abcd1234efgh', '?key'])
  })

  test('of a tool or a hook', async () => {
    const url = 'https://user:p4ssw0rd@api.example/v1?key=abcd1234efgh&q=1'
    const get = tool({
      name: 'get',
      description: 'x',
      parameters: anything,
      execute: () => {
        throw new Error(`GET ${url} failed`)
      },
    })
    const model = scripted([toolCall('get', {}), fails({ code: 'SERVER', message: `POST ${url}: 500` })])
    const shown = await turn({ model, tools: [get], retry: { maxRetries: 0 } })
    expectNone(shown, ['abcd1234efgh', 'p4ssw0rd'])
    expect(shown).toContain('q=1')
  })
})

describe('errors', () => {
  test('of the store say no secret, and neither does what caused them', async () => {
    const inner = memoryStore()
    const store: LogStore = {
      ...inner,
      acquire: async (id, options) => ({
        ...(await inner.acquire(id, options)),
        append: () => Promise.reject(new Error(`connect ${SECRET}`)),
      }),
    }
    await using started = await startAgent({ store, secrets: [SECRET] })
    const error: unknown = await started.agent.run('go').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STORE_FAILURE' })
    const { message, stack, cause } = error as Error
    expectNone(`${message} ${stack} ${String(cause)} ${(cause as Error).stack}`)
  })

  test('of what was handed over say no secret', async () => {
    await using started = await startAgent({ secrets: [SECRET] })
    const { agent } = started
    const thrown = (act: () => unknown): Error => {
      try {
        act()
      } catch (error) {
        return error as Error
      }
      throw new Error('nothing was thrown')
    }
    for (const error of [
      thrown(() => agent.followup([{ type: 'text', [SECRET]: undefined } as never])),
      thrown(() => agent.session.note('me/x', { [SECRET]: undefined })),
    ]) {
      expectNone(`${error.message} ${error.stack}`)
    }
  })

  test('that the model’s side throws keep their code and lose their secret', async () => {
    const failure = { code: 'MISSING_CREDENTIAL', message: `no ${SECRET}` }
    const told: unknown[] = []
    const shown = await turn({
      secrets: [SECRET],
      hooks: {
        'agent/request': () => {
          throw new LlmError(failure)
        },
        'agent/error': ({ error }) => void told.push(error),
      },
    })
    expect(shown).toContain('MISSING_CREDENTIAL')
    expectNone(shown)
    // The process is told the value itself.
    expect(told).toEqual([expect.objectContaining({ failure })])
  })
})

describe('[SEC-10] foreign keys are data', () => {
  const hostile = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":1}'
  const clean = () => expect(({} as { polluted?: number }).polluted).toBeUndefined()

  test('in the model’s arguments, which reach the tool as they are', async () => {
    const given: Json[] = []
    const take = tool({
      name: 'take',
      description: 'x',
      parameters: anything,
      execute: (args) => void given.push(args as Json),
    })
    await turn({ model: scripted([toolCall('take', hostile), 'ok']), tools: [take], secrets: [SECRET] })
    expect(Object.keys(given[0] as object)).toEqual(['__proto__', 'constructor', 'prototype'])
    expect(Object.getPrototypeOf(given[0])).toBe(Object.prototype)
    expect((parseArguments(hostile) as { args?: { polluted?: number } }).args?.polluted).toBeUndefined()
    clean()
  })

  test('in what tools, hooks and plug-ins hand over, masked or not', async () => {
    const value = () => JSON.parse(`{"data":${hostile},"password":"x","list":[${hostile}]}`)
    const get = tool({ name: 'get', description: 'x', parameters: anything, meta: () => value(), execute: value })
    await using started = await startAgent({
      model: scripted([toolCall('get', {}), 'ok']),
      tools: [get],
      hooks: {
        'agent/request': async (_, next) => Object.assign(JSON.parse('{"__proto__":{"polluted":1}}'), await next()),
      },
    })
    const noted = started.agent.session.note('me/x', value()).data as unknown as { data: object; password: string }
    expect(noted.password).toBe('[secret]')
    expect(Object.keys(noted.data)).toEqual(['__proto__', 'constructor', 'prototype'])
    await started.agent.run('go')
    const [result] = ofType(await started.log(), 'tool/result')
    expect(Object.keys((result?.data.meta as { data: object } | undefined)?.data ?? {})).toContain('__proto__')
    clean()
  })

  test('in a provider’s body', async () => {
    const body = `{"id":"1","choices":[{"message":{"content":"hi","__proto__":{"polluted":1}},"finish_reason":"stop"}],"usage":{"__proto__":{"polluted":1},"prompt_tokens":1,"completion_tokens":1},"__proto__":{"polluted":1}}`
    const server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    )
    open.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expectNone(await turn({ model: openaiCompatible({ baseURL, model: 'm' }) }), ['polluted'])
    clean()
  })
})
