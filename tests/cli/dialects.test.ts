/**
 * The built command line against a server of each dialect: a turn that thinks and calls a tool, and another after it.
 * What the server got is held to the letter, so that a preset which changes shows here.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { verify } from '../../src/machines/verify.ts'
import { type DialectName, dialects } from '../../src/services/adapters/dialects.ts'
import { DONE, delta, type Reply, stopped, type WireRequest, wireServer } from '../kit/wire-server.ts'
import { PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

/** How a server tells its thoughts. */
const TELLS = {
  reasoning_content: (thought: string) => delta({ reasoning_content: thought }),
  reasoning: (thought: string) => delta({ reasoning: thought }),
  both: (thought: string) => delta({ reasoning: thought, reasoning_content: thought }),
  details: (thought: string) =>
    delta({ reasoning: thought, reasoning_details: [{ type: 'reasoning.text', text: thought }] }),
  parts: (thought: string) => delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: thought }] }] }),
} as const

type Fields = Readonly<Record<string, unknown>>

interface Row {
  readonly tells: keyof typeof TELLS
  /** Its word for an answer that is whole; 'stop' by default. */
  readonly end?: string
  /** The id of its call; one that OpenAI would give by default. */
  readonly id?: string
  /** What the call's own message brings back, in its turn and in the next one. */
  readonly call?: Fields
  readonly later?: Fields
  /** What the answer brings back. */
  readonly answer?: Fields
  /** The fields of the body beside messages, model, stream and tools; those of the plainest server by default. */
  readonly body?: Fields
  readonly system?: string
}

const USAGE = { stream_options: { include_usage: true } }
const LOOK = 'look first'
const KNOW = 'now I know'

const back = (key: 'reasoning' | 'reasoning_content'): Pick<Row, 'call' | 'later' | 'answer'> => ({
  call: { [key]: LOOK },
  later: { [key]: LOOK },
  answer: { [key]: KNOW },
})
const detailed = (thought: string) => ({
  reasoning: thought,
  reasoning_details: [{ type: 'reasoning.text', text: thought }],
})

const ROWS: Readonly<Record<DialectName, Row>> = {
  openai: { tells: 'reasoning_content', system: 'developer' },
  deepseek: { tells: 'reasoning_content', ...back('reasoning_content') },
  deepseekV3: { tells: 'reasoning_content', call: { reasoning_content: LOOK } },
  deepseekR1: { tells: 'reasoning_content' },
  mistral: { tells: 'parts', id: 'A1b2C3d4E', body: {} },
  groq: { tells: 'reasoning' },
  openrouter: { tells: 'details', call: detailed(LOOK), later: detailed(LOOK), answer: detailed(KNOW) },
  together: { tells: 'reasoning', end: 'eos' },
  fireworks: { tells: 'reasoning_content', ...back('reasoning_content') },
  vllm: { tells: 'both', ...back('reasoning') },
  llamaCpp: {
    tells: 'reasoning_content',
    ...back('reasoning_content'),
    body: { ...USAGE, parallel_tool_calls: true },
  },
  ollama: { tells: 'reasoning', ...back('reasoning') },
  lmStudio: { tells: 'reasoning_content' },
  xai: { tells: 'reasoning_content' },
  qwen: { tells: 'reasoning_content' },
  moonshot: { tells: 'reasoning_content', ...back('reasoning_content') },
  zhipu: { tells: 'reasoning_content', ...back('reasoning_content'), body: {} },
}

/** What a server of this row answers: a call, an answer to its result, an answer to the second question. */
function replies({ tells, id = 'call_00_abc', end = 'stop' }: Row): readonly Reply[] {
  const tell = TELLS[tells]
  const call = { index: 0, id, type: 'function', function: { name: 'read_file', arguments: '{"path":"README.md"}' } }
  return [
    { body: [tell(LOOK), delta({ tool_calls: [call] }), stopped('tool_calls'), DONE] },
    {
      body: [
        ': keep-alive\n\n',
        '\n\n',
        tell(KNOW),
        delta({ content: 'One-way ' }),
        delta({ content: 'doors.' }),
        stopped(end),
        DONE,
      ],
    },
    { body: [delta({ content: 'Nothing.' }), stopped(end), DONE] },
  ]
}

/** The bodies that the server of this row must get. */
function bodies({ id = 'call_00_abc', call, later, answer, body = USAGE, system = 'system' }: Row): readonly Fields[] {
  const first = [
    { role: system, content: expect.stringMatching(/./) },
    { role: 'user', content: 'what is it?' },
  ]
  const calls = [{ id, type: 'function', function: { name: 'read_file', arguments: '{"path":"README.md"}' } }]
  const called = { role: 'assistant', content: '', tool_calls: calls }
  const result = { role: 'tool', tool_call_id: id, content: expect.stringContaining('One-way doors.') }
  const answered = { role: 'assistant', content: 'One-way doors.', ...answer }
  const rest = { model: 'm', stream: true, tools: expect.any(Array), ...body }
  return [
    { ...rest, messages: first },
    { ...rest, messages: [...first, { ...called, ...call }, result] },
    {
      ...rest,
      messages: [...first, { ...called, ...later }, result, answered, { role: 'user', content: 'and then?' }],
    },
  ]
}

let here: Place
beforeAll(() => {
  here = place({ MISTRAL_API_KEY: 'sk-mistral-secret', OPENAI_API_KEY: 'sk-openai-secret' })
})
afterAll(() => here.remove())

/** What `pawl verify` would say, without a process for each. */
async function verified(session: string) {
  await using store = sqliteStore(here.store)
  const events: SessionEvent[] = []
  for await (const event of store.read(session)) events.push(event)
  return verify(events)
}

const bodiesOf = (requests: readonly WireRequest[]) => requests.map(({ body }) => body)

describe('pawl run --dialect', () => {
  test.each(Object.entries(ROWS))('%s: two turns, to the letter', async (name, row) => {
    await using server = await wireServer(replies(row))
    const to = ['--dialect', name, '--model', 'm', '--base-url', server.url, '--session', name]
    const first = await here.pawl('run', 'what is it?', ...to)
    expect(first).toMatchObject({ code: 0, out: expect.stringMatching(/^.*read_file.*\n(.*\n)*One-way doors\.\n$/) })
    expect(first.err).toContain('completed')
    const second = await here.pawl('run', 'and then?', ...to)
    expect(second).toMatchObject({ code: 0, out: 'Nothing.\n' })
    expect(bodiesOf(server.requests)).toEqual(bodies(row))
    expect(await verified(name)).toMatchObject({ ok: true, turns: 2, state: 'idle' })
  })

  test('every dialect has its row', () => {
    expect(Object.keys(ROWS)).toEqual(Object.keys(dialects))
  })

  test('sends the key of the server that the dialect names, and no other', async () => {
    const sent = async (dialect: string) => {
      await using server = await wireServer(replies({ tells: 'reasoning' }).slice(2))
      await here.pawl('run', 'hello', '--dialect', dialect, '--model', 'm', '--base-url', server.url)
      return server.requests[0]?.headers.authorization
    }
    expect(await sent('mistral')).toBe('Bearer sk-mistral-secret')
    expect(await sent('vllm')).toBe(undefined)
  })

  test('puts words between results and a user message where the server refuses that order', async () => {
    const row: Row = { tells: 'parts', id: 'A1b2C3d4E' }
    const [calling = {}, , answering = {}] = replies(row)
    await using server = await wireServer([calling, answering])
    const to = ['--dialect', 'mistral', '--model', 'm', '--base-url', server.url, '--session', 'bridged']
    expect((await here.pawl('run', 'what is it?', ...to, '--max-steps', '1')).code).toBe(4)
    expect((await here.pawl('run', 'and then?', ...to)).code).toBe(0)
    expect(server.requests[1]?.body.messages).toMatchObject([
      { role: 'system' },
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool' },
      { role: 'assistant', content: 'OK.' },
      { role: 'user', content: 'and then?' },
    ])
  })

  test('a session that is carried on asks the model it asked last', async () => {
    const call = { index: 0, id: 'c', function: { name: 'run_command', arguments: '{"command":"true"}' } }
    const asking = { body: [delta({ tool_calls: [call] }), stopped('tool_calls'), DONE] }
    await using server = await wireServer([asking, ...replies({ tells: 'reasoning' }).slice(2)])
    const reach = ['--dialect', 'ollama', '--base-url', server.url]
    expect((await here.pawl('run', 'hello', ...reach, '--model', 'own', '--session', 'left')).code).toBe(5)
    expect((await here.pawl('approve', 'left', 'c')).code).toBe(0)
    expect(await here.pawl('resume', 'left', ...reach)).toMatchObject({
      code: 0,
      out: expect.stringContaining('Nothing.'),
    })
    expect(server.requests.map(({ body }) => body.model)).toEqual(['own', 'own'])
  })

  test.each([
    [['--dialect', 'mistrel', '--model', 'm'], '--dialect "mistrel" is none of openai, deepseek'],
    [['--dialect', 'vllm', '--model', 'm'], '--dialect vllm needs --base-url'],
    [['--dialect', 'ollama'], '--dialect ollama needs --model'],
  ])('%j is a usage error', async (flags, message) => {
    const { code, out, err } = await here.pawl('run', 'hello', ...flags)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(message)
  })

  test('is explained, with its names', async () => {
    const { out } = await here.pawl('run', '--help')
    expect(out).toContain('--dialect <name>')
    for (const name of Object.keys(dialects)) expect(out.replace(/\s+/g, ' ')).toContain(name)
  })
})

describe('pawl run --model deepseek-flash', () => {
  test('thinks by default, brings all of its thoughts back, and asks for what the model gives', async () => {
    const row: Row = {
      tells: 'reasoning_content',
      ...back('reasoning_content'),
      body: { ...USAGE, thinking: { type: 'enabled' }, reasoning_effort: 'high', max_tokens: 256_000 },
    }
    await using server = await wireServer(replies(row))
    const to = ['--base-url', server.url, '--model', 'deepseek-flash', '--session', 'flash']
    expect((await here.pawl('run', 'what is it?', ...to)).code).toBe(0)
    expect((await here.pawl('run', 'and then?', ...to)).code).toBe(0)
    expect(bodiesOf(server.requests)).toEqual(bodies(row).map((body) => ({ ...body, model: 'deepseek-flash' })))
  })

  test('tries again when the server is out of resources, and says when the balance is spent', async () => {
    const busy = { body: [delta({ content: 'Wait' }), stopped('insufficient_system_resource'), DONE] }
    const broke = { body: ['data: {"error":{"message":"Insufficient Balance","type":"unknown_error"}}\n\n'] }
    await using server = await wireServer([busy, ...replies({ tells: 'reasoning_content' }).slice(2), broke])
    const to = ['--base-url', server.url, '--model', 'deepseek-flash', '--session', 'spent']
    expect(await here.pawl('run', 'hello', ...to)).toMatchObject({ code: 0, out: expect.stringContaining('Nothing.') })
    const { code, err } = await here.pawl('run', 'hello', ...to)
    expect(code).toBe(2)
    expect(err).toContain('error QUOTA: Insufficient Balance')
    expect(server.requests).toHaveLength(3)
  })
})
