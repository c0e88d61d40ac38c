/** How long a server is waited for: three limits, each with its own words, and an abort at any time. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { StreamChunk } from '../../../../src/log/messages.ts'
import { type OpenaiCompatibleOptions, openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { tool } from '../../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../../kit/agents.ts'
import { ask, failureIn, finishIn, requestTo } from '../../../kit/ask-adapter.ts'
import { holdFetch, waitClock } from '../../../kit/held-wire.ts'
import { answer, counted, DONE, delta, event, type Reply, stopped, wireServer } from '../../../kit/wire-server.ts'

const hang = { kind: 'hang' } as const
const json = { 'content-type': 'application/json' }

afterEach(() => {
  vi.unstubAllGlobals()
})

/** A server that takes connections and never says anything. */
async function muteServer() {
  const sockets: Promise<void>[] = []
  const server = createServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.resume()
    sockets.push(once(socket, 'close').then(() => undefined))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  return { url, closed: () => Promise.all(sockets), [Symbol.asyncDispose]: async () => void server.close() }
}

/** Every way to stall: the reply, after how many waits, and which limit is to end it. */
const STALLS: readonly (readonly [string, Reply, number, Limit])[] = [
  ['no headers', { delayMs: 600_000 }, 1, 'firstByteTimeoutMs'],
  ['headers and nothing', { body: [hang] }, 2, 'firstByteTimeoutMs'],
  ['half a page', { headers: { 'content-type': 'text/html' }, body: ['<h1>', hang] }, 3, 'idleTimeoutMs'],
  ['half an answer in one JSON text', { headers: json, body: ['{"choices":', hang] }, 3, 'idleTimeoutMs'],
  ['blanks before a JSON text', { headers: json, body: ['\n\n', hang] }, 3, 'idleTimeoutMs'],
  ['a comment', { body: [': hello\n\n', hang] }, 3, 'idleTimeoutMs'],
  ['half an event', { body: ['data: {"choices"', hang] }, 3, 'idleTimeoutMs'],
  ['one delta', { body: [delta({ content: 'a' }), hang] }, 3, 'idleTimeoutMs'],
]
/** The same of a refusal: the wait is as long, but what the status says is known. */
const REFUSALS: readonly (readonly [string, Reply, number, Limit])[] = [
  ['the headers of a refusal and nothing', { status: 401, body: [hang] }, 2, 'firstByteTimeoutMs'],
  ['half the body of a refusal', { status: 401, body: ['{"error":', hang] }, 3, 'idleTimeoutMs'],
]
type Limit = 'firstByteTimeoutMs' | 'idleTimeoutMs' | 'totalTimeoutMs'

/** What came before, and as what content type. */
interface Before {
  readonly type?: string
  readonly first?: string
}
const JSON_TEXT: Before = { type: 'application/json', first: '{"choices":' }

/** Asks; resolves `stalled` when the `waits`-th wait is under way. */
function asking(url: string, waits: number, options: Partial<OpenaiCompatibleOptions> = {}) {
  const clock = waitClock()
  let begun = 0
  let tell = () => {}
  const stalled = new Promise<void>((resolve) => {
    tell = resolve
  })
  const counting = {
    ...clock,
    setTimeout: (fire: () => void, ms: number) => {
      if (++begun === waits) tell()
      return clock.setTimeout(fire, ms)
    },
  }
  const limits = { firstByteTimeoutMs: 100, idleTimeoutMs: 200, ...options }
  const cancel = new AbortController()
  const adapter = openaiCompatible({ baseURL: url, model: 'm', ...limits }, { clock: counting })
  return { clock, cancel, stalled, done: ask(adapter, {}, cancel.signal) }
}

describe('a server that stalls', () => {
  test.each(STALLS)('after %s is left at the limit and not before, and the connection closes', async (...stall) => {
    const [, reply, waits, limit] = stall
    await using server = await wireServer([reply])
    const { clock, stalled, done } = asking(server.url, waits)
    await stalled
    const ms = limit === 'firstByteTimeoutMs' ? 100 : 200
    clock.advance(ms - 1)
    expect(clock.pending).toBe(1)
    clock.advance(1)
    const { code, message } = failureIn(await done)
    expect(code).toBe('TIMEOUT')
    expect(message).toContain(`${ms} ms (${limit})`)
    await server.requests[0]?.closed
    expect(clock.pending).toBe(0)
  })

  test.each(STALLS)('after %s is left at the total limit, if that is nearer', async (...stall) => {
    const [, reply, waits] = stall
    await using server = await wireServer([reply])
    const { clock, stalled, done } = asking(server.url, waits, { totalTimeoutMs: 70 })
    await stalled
    clock.advance(70)
    expect(failureIn(await done)).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('totalTimeoutMs') })
    await server.requests[0]?.closed
  })

  test.each(REFUSALS)('after %s is left at the limit, and its status stands', async (...stall) => {
    const [, reply, waits, limit] = stall
    await using server = await wireServer([reply])
    const { clock, stalled, done } = asking(server.url, waits)
    await stalled
    clock.advance(limit === 'firstByteTimeoutMs' ? 100 : 200)
    expect(failureIn(await done)).toMatchObject({ code: 'AUTH', status: 401 })
    await server.requests[0]?.closed
    expect(clock.pending).toBe(0)
  })

  test.each([...STALLS, ...REFUSALS])(
    'after %s is left at once on an abort, with no further word',
    async (...stall) => {
      const [, reply, waits] = stall
      await using server = await wireServer([reply])
      const { clock, cancel, stalled, done } = asking(server.url, waits)
      await stalled
      cancel.abort()
      expect(finishIn(await done)).toBeUndefined()
      await server.requests[0]?.closed
      expect(clock.pending).toBe(0)
    },
  )

  test.each([
    ['stays silent', hang],
    ['loses the connection', { kind: 'cut' }],
  ] as const)('after it said why it stopped has answered, also if it %s', async (_, end) => {
    await using server = await wireServer([{ body: [`${delta({ content: 'Done.' })}${stopped('stop')}`, end] }])
    const { clock, stalled, done } = asking(server.url, 3)
    if (end.kind === 'hang') {
      await stalled
      clock.advance(200)
    }
    expect((await done).slice(-2)).toEqual([
      { type: 'block-end', index: 0, block: { type: 'text', text: 'Done.' } },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
    await server.requests[0]?.closed
    expect(clock.pending).toBe(0)
  })

  test('with an error after it said why it stopped has failed', async () => {
    const error = event({ error: { message: 'overloaded', code: 'server_error' } })
    await using server = await wireServer([{ body: [delta({ content: 'Do' }), stopped('stop'), error, DONE] }])
    expect(failureIn(await asking(server.url, 9).done).code).toBe('SERVER')
  })

  test('with a connection and nothing else is left at the limit, or on an abort', async () => {
    await using server = await muteServer()
    const waited = asking(server.url, 1)
    await waited.stalled
    waited.clock.advance(100)
    expect(failureIn(await waited.done).message).toContain('100 ms (firstByteTimeoutMs)')
    const aborted = asking(server.url, 1)
    await aborted.stalled
    aborted.cancel.abort()
    expect(await aborted.done).toEqual([])
    await server.closed()
  })

  test('what the server calls the request is told with the failure', async () => {
    await using server = await wireServer([{ headers: { 'x-request-id': 'req-1' }, body: [hang] }])
    const { clock, stalled, done } = asking(server.url, 2)
    await stalled
    clock.advance(100)
    expect(failureIn(await done)).toMatchObject({ code: 'TIMEOUT', requestId: 'req-1' })
  })
})

describe('the wait for the next piece of the answer', () => {
  /** Sends `packet` 60 ms into a wait of 100, and looks 40 ms later whether that wait is over. */
  async function isBegunAnewBy(
    packet: string,
    { type, first = delta({ content: 'a' }) }: Before = {},
  ): Promise<boolean> {
    const clock = waitClock()
    const body = holdFetch(type)
    const options = { baseURL: 'http://127.0.0.1', model: 'm', idleTimeoutMs: 100 }
    const adapter = openaiCompatible(options, { clock })
    const done = ask(adapter)
    await clock.waiting()
    body.send(first)
    await turned(clock)
    clock.advance(60)
    body.send(packet)
    await turned(clock)
    clock.advance(40)
    const over = clock.pending === 0
    if (!over) {
      clock.advance(59)
      expect(clock.pending).toBe(1)
      clock.advance(1)
    }
    const reason = finishIn(await done)
    // After a finish there is nothing that the limit could take back.
    const failed = reason?.kind === 'error' && reason.failure.message.includes('100 ms (idleTimeoutMs)')
    expect(failed || packet === stopped('stop')).toBe(true)
    return !over
  }

  /** The packet was read, and the next wait has begun. */
  async function turned(clock: ReturnType<typeof waitClock>): Promise<void> {
    await new Promise(setImmediate)
    await clock.waiting()
  }

  test.each([
    ['text', delta({ content: 'a' })],
    ['reasoning', delta({ reasoning_content: 'a' })],
    ['a refusal', delta({ refusal: 'a' })],
    ['a fragment of a call', delta({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '' } }] })],
    ['details of reasoning', delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] })],
    ['a finish', stopped('stop')],
    ['usage', counted({ prompt_tokens: 1, completion_tokens: 1 })],
  ])('begins anew with %s', async (_, packet) => {
    expect(await isBegunAnewBy(packet)).toBe(true)
  })

  test.each([
    ['a comment', ': ping\n\n'],
    ['a bare comment', ':\n'],
    ['blank lines', '\n\n\n'],
    ['half an event', 'data: {"choices"'],
    ['other fields', 'id: 7\nretry: 5\n\n'],
    ['an event without data', 'data:\n\n'],
    ['null', event('null')],
    ['a list', event([])],
    ['a comment made data', event(': WAITING')],
    ['no choices', event({ choices: [] })],
    ['a role', delta({ role: 'assistant' })],
    ['an empty delta', delta({ content: '' })],
    ['null for usage', event({ choices: [], usage: null })],
    ['another choice', event({ choices: [{ index: 1, delta: { content: 'a' } }] })],
  ])('goes on through %s', async (_, packet) => {
    expect(await isBegunAnewBy(packet)).toBe(false)
  })

  test('goes on through the same usage again, and begins anew with another', async () => {
    const told = counted({ prompt_tokens: 1, completion_tokens: 1 })
    expect(await isBegunAnewBy(told, { first: told })).toBe(false)
    expect(await isBegunAnewBy(counted({ prompt_tokens: 1, completion_tokens: 2 }), { first: told })).toBe(true)
  })

  test('of an answer in one JSON text begins anew with any of it but blanks', async () => {
    expect(await isBegunAnewBy('[]', JSON_TEXT)).toBe(true)
    expect(await isBegunAnewBy('\n \n', JSON_TEXT)).toBe(false)
  })
})

test('the total limit counts waiting only, over all of it', async () => {
  const clock = waitClock()
  const body = holdFetch()
  const adapter = openaiCompatible({ baseURL: 'http://127.0.0.1', model: 'm', totalTimeoutMs: 100 }, { clock })
  const stream = adapter.stream(requestTo(adapter), { signal: new AbortController().signal })[Symbol.asyncIterator]()
  const said: StreamChunk[] = []
  /** Waits 33 ms for a delta, then is busy with it for 10 s. */
  const goOn = async () => {
    const next = stream.next()
    await new Promise(setImmediate)
    await clock.waiting()
    clock.advance(33)
    body.send(delta({ content: 'a' }))
    said.push((await next).value)
    // The first delta opens its block.
    if (said.length === 1) said.push((await stream.next()).value)
    expect(clock.pending).toBe(0)
    clock.advance(10_000)
  }
  for (let deltas = 0; deltas < 3; deltas++) await goOn()
  const last = stream.next()
  await clock.waiting()
  clock.advance(1)
  said.push((await last).value)
  expect(said.map(({ type }) => type)).toEqual(['block-start', 'text-delta', 'text-delta', 'text-delta', 'finish'])
  expect(failureIn(said).message).toContain('100 ms of waiting (totalTimeoutMs)')
})

describe('a turn', () => {
  test('ends when its server stalls, and so does its connection', async () => {
    await using server = await wireServer([{ body: [delta({ content: 'a' }), hang] }])
    const model = openaiCompatible({ baseURL: server.url, model: 'm', idleTimeoutMs: 50, retry: NEVER })
    await using started = await startAgent({ model })
    const { reason } = await started.agent.run('hi')
    const error = { code: 'TIMEOUT', message: expect.stringContaining('50 ms (idleTimeoutMs)') }
    expect(reason).toMatchObject({ kind: 'error', error })
    await server.requests[0]?.closed
  })

  test('goes on in seconds where its server stays silent after the finish, and what was spent is an estimate', async () => {
    const call = { index: 0, id: 'c', function: { name: 'look', arguments: '{"at":1}' } }
    const asks = [delta({ tool_calls: [call] }), stopped('tool_calls')]
    await using server = await wireServer((_, n) => ({ body: n === 0 ? [...asks, hang] : answer({ text: 'Seen' }) }))
    const model = openaiCompatible({ baseURL: server.url, model: 'm', endTimeoutMs: 50 })
    await using started = await startAgent({ model, tools: [LOOK], limits: { turn: { tokens: 1_000_000 } } })
    expect(await started.agent.run('hi')).toMatchObject({ reason: { kind: 'completed' }, text: 'Seen', steps: 2 })
    await server.requests[0]?.closed
    const [first] = ofType(await started.log(), 'assistant/message')
    expect(first?.data.finish).toEqual({ kind: 'tool-calls' })
    expect(first?.data).not.toHaveProperty('usage')
  })

  test('that reaches its tokens without having been told them says that they are estimated', async () => {
    const call = { index: 0, id: 'c', function: { name: 'look', arguments: '{"at":1}' } }
    await using server = await wireServer([{ body: [delta({ tool_calls: [call] }), stopped('tool_calls'), hang] }])
    const model = openaiCompatible({ baseURL: server.url, model: 'm', endTimeoutMs: 50 })
    await using started = await startAgent({ model, tools: [LOOK], limits: { turn: { tokens: 1 } } })
    const { reason } = await started.agent.run('hi')
    expect(reason).toMatchObject({ kind: 'limit', limit: { name: 'tokens', estimated: true } })
  })

  test('asks again, and is answered', async () => {
    await using server = await wireServer((_, n) => ({ body: n === 0 ? [hang] : answer({ text: 'Hello' }) }))
    const retry = { maxRetries: 9, backoff: { initialDelayMs: 1 } }
    const model = openaiCompatible({ baseURL: server.url, model: 'm', firstByteTimeoutMs: 300, retry })
    await using started = await startAgent({ model })
    expect((await started.agent.run('hi')).reason).toEqual({ kind: 'completed' })
    expect(server.requests.length).toBeGreaterThan(1)
  })

  test('that is cancelled while its server stalls ends at once, and so does its connection', async () => {
    await using server = await wireServer([{ body: [delta({ content: 'a' }), hang] }])
    const model = openaiCompatible({ baseURL: server.url, model: 'm' })
    await using started = await startAgent({ model })
    const run = started.agent.run('hi')
    await vi.waitFor(async () => expect((await started.log()).some(isDelta)).toBe(true))
    await started.agent.cancel()
    expect((await run).reason).toMatchObject({ kind: 'aborted' })
    await server.requests[0]?.closed
  })
})

const NEVER = { maxRetries: 0 }
const LOOK = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })
const isDelta = (logged: { readonly type: string }): boolean => logged.type === 'assistant/chunk'

test('a body that is done says nothing more, though the connection stays', async () => {
  const clock = waitClock()
  const body = holdFetch()
  const done = ask(openaiCompatible({ baseURL: 'http://127.0.0.1', model: 'm' }, { clock }))
  await clock.waiting()
  body.send(`${stopped('length')}${DONE}`)
  expect(finishIn(await done)).toEqual({ kind: 'max-tokens' })
  expect(clock.pending).toBe(0)
})
