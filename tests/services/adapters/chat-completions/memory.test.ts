/** Answers that are long, and servers that never come to an end: what is kept, and what is scanned, stays in bounds. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test, vi } from 'vitest'
import type { StreamChunk } from '../../../../src/log/messages.ts'
import { createTranslation } from '../../../../src/services/adapters/chat-completions/translate.ts'
import { type OpenaiCompatibleOptions, openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { ask, failureIn, requestTo } from '../../../kit/ask-adapter.ts'
import { floodServer } from '../../../kit/flood-server.ts'
import { readEvents } from '../../../kit/read-events.ts'
import { DONE, delta, event, stopped } from '../../../kit/wire-server.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const MB = 1_000_000

/** MB that live on the heap, once what is not needed has left the stack. */
async function heap(): Promise<number> {
  await new Promise(setImmediate)
  collect()
  return process.memoryUsage().heapUsed / MB
}

/** The chunks of one answer, one at a time; none is kept. */
function asked(url: string, options: Partial<OpenaiCompatibleOptions> = {}): AsyncIterable<StreamChunk> {
  const adapter = openaiCompatible({ baseURL: url, model: 'm', ...options })
  return adapter.stream(requestTo(adapter), { signal: new AbortController().signal })
}

describe('a long answer', () => {
  test('of 12 MB is kept once, until its block ends', async () => {
    const piece = delta({ content: 'x'.repeat(2_000) }).repeat(10)
    await using server = await floodServer({ piece, after: 600, tail: stopped('stop') + DONE })
    const before = await heap()
    let said = 0
    let kept = 0
    for await (const chunk of asked(server.url)) {
      if (chunk.type === 'text-delta') said += chunk.text.length
      if (chunk.type === 'text-delta' && said === 11 * MB) kept = (await heap()) - before
      if (chunk.type === 'block-end' && chunk.block.type === 'text') expect(chunk.block.text).toHaveLength(12 * MB)
    }
    expect(said).toBe(12 * MB)
    expect(kept).toBeGreaterThan(10)
    expect(kept).toBeLessThan(18)
  })

  test('in deltas of eight characters costs no more than its length, whatever it is', async () => {
    const before = await heap()
    const translation = createTranslation()
    const take = (fields: object) => translation.take({ choices: [{ delta: fields }] })
    for (let n = 10_000_000; n < 10_250_000; n++) {
      take({ content: String(n) })
      take({ reasoning_content: String(n) })
      take({ tool_calls: [{ index: 0, function: { arguments: String(n) } }] })
    }
    const kept = (await heap()) - before
    expect(translation.end().slice(0, 3)).toMatchObject([
      { block: { text: expect.stringMatching(/^1000000010000001/) } },
      { block: { text: expect.stringMatching(/^1000000010000001/) } },
      { block: { arguments: expect.stringMatching(/^1000000010000001/) } },
    ])
    expect(kept).toBeLessThan(3 * 2 * 1.4)
  })

  test('has a bound, though the limits on time have none', () => {
    const translation = createTranslation()
    const piece = 'x'.repeat(2 ** 20)
    const endless = () => {
      for (;;) translation.take({ choices: [{ delta: { content: piece } }] })
    }
    expect(endless).toThrow(expect.objectContaining({ code: 'RESPONSE_TOO_LARGE' }))
  })

  test('of calls has a bound, and so have the details of reasoning', () => {
    const calls = createTranslation()
    const endless = () => {
      for (let index = 0; ; index++) calls.take({ choices: [{ delta: { tool_calls: [{ index }] } }] })
    }
    expect(endless).toThrow(expect.objectContaining({ code: 'MALFORMED_RESPONSE' }))
    const details = createTranslation()
    const data = 'x'.repeat(2 ** 20)
    const more = () => {
      for (;;) details.take({ choices: [{ delta: { reasoning_details: [{ data }] } }] })
    }
    expect(more).toThrow(expect.objectContaining({ code: 'RESPONSE_TOO_LARGE' }))
  })
})

describe('a long line', () => {
  /** Characters that searches looked through while a line of `length` came in small packets. */
  function scanned(length: number): number {
    const bytes = new TextEncoder().encode(`data: ${'x'.repeat(length)}\n\n`)
    const packets = Array.from({ length: Math.ceil(bytes.length / 1_460) }, (_, i) =>
      bytes.subarray(i * 1_460, (i + 1) * 1_460),
    )
    let looked = 0
    const indexOf = String.prototype.indexOf
    const spy = vi.spyOn(String.prototype, 'indexOf').mockImplementation(function (this: string, sought, from = 0) {
      const found = indexOf.call(this, sought, from)
      looked += (found < 0 ? this.length : found) - from
      return found
    })
    try {
      expect([...readEvents(packets, { maxEventLength: 2 * length })].map(({ data }) => data.length)).toEqual([length])
    } finally {
      spy.mockRestore()
    }
    return looked
  }

  test('is looked through a few times, not once for each of its packets', () => {
    const once = scanned(500_000)
    expect(once).toBeGreaterThanOrEqual(500_000)
    expect(once).toBeLessThan(4.1 * 500_000)
    expect(scanned(2_000_000)).toBeLessThan(4.1 * once)
  })

  test('without an end is given up at the limit, its characters freed and its connection closed', async () => {
    await using server = await floodServer({ head: 'data: {"x":"', piece: 'x'.repeat(65_536) })
    const before = await heap()
    const chunks = await ask(openaiCompatible({ baseURL: server.url, model: 'm', maxEventLength: 8 * MB }))
    const { code, message } = failureIn(chunks)
    expect([code, message]).toEqual(['RESPONSE_TOO_LARGE', expect.stringContaining('maxEventLength')])
    await server.closed
    expect((await heap()) - before).toBeLessThan(4)
  })

  test.each([
    ['an event of many lines', { piece: `data: ${'x'.repeat(1_000)}\n`.repeat(64) }],
    ['one JSON text', { type: 'application/json', head: '{"choices":[', piece: '{},'.repeat(20_000) }],
    ['blanks before a JSON text', { type: 'application/json', piece: '\n'.repeat(65_536) }],
    ['a comment', { head: ':', piece: 'x'.repeat(65_536) }],
  ])('is not the only thing that has no end: %s', async (_, flood) => {
    await using server = await floodServer(flood)
    const before = await heap()
    const chunks = await ask(openaiCompatible({ baseURL: server.url, model: 'm', maxEventLength: 4 * MB }))
    expect(failureIn(chunks).code).toBe('RESPONSE_TOO_LARGE')
    await server.closed
    expect((await heap()) - before).toBeLessThan(4)
  })

  test('of an error is read to a limit and told', async () => {
    await using server = await floodServer({ type: 'text/html', piece: 'x'.repeat(65_536) })
    expect(failureIn(await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))).code).toBe('MALFORMED_RESPONSE')
    await server.closed
  })
})

describe('a stream without end', () => {
  test.each<[string, string, Partial<OpenaiCompatibleOptions>]>([
    ['comments', ': keep-alive\n\n', { idleTimeoutMs: 200 }],
    ['blank lines', '\n', { idleTimeoutMs: 200 }],
    ['payloads that say nothing', event('null'), { idleTimeoutMs: 200 }],
    ['empty deltas', delta({ content: '' }), { idleTimeoutMs: 200 }],
    ['tiny deltas', delta({ content: 'a' }), { totalTimeoutMs: 300 }],
  ])('of %s ends by its clock, with nothing kept', async (_, piece, options) => {
    await using server = await floodServer({ piece: piece.repeat(Math.ceil(16_384 / piece.length)) })
    const before = await heap()
    let last: StreamChunk | undefined
    for await (const chunk of asked(server.url, options)) last = chunk
    expect(failureIn(last === undefined ? [] : [last])).toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringContaining(Object.keys(options)[0] ?? ''),
    })
    await server.closed
    expect((await heap()) - before).toBeLessThan(8)
  })

  test('of tiny deltas ends when its reader has had enough', async () => {
    await using server = await floodServer({ piece: delta({ content: 'a' }).repeat(100) })
    let deltas = 0
    for await (const chunk of asked(server.url)) {
      if (chunk.type === 'text-delta' && ++deltas === 10_000) break
    }
    await server.closed
    expect(deltas).toBe(10_000)
  })
})

test('arguments that are told apart by a name alone are not parsed anew for each piece', () => {
  const parse = vi.spyOn(JSON, 'parse')
  const translation = createTranslation()
  const call = (args: string) =>
    translation.take({ choices: [{ delta: { tool_calls: [{ function: { name: 'f', arguments: args } }] } }] })
  for (const args of ['{"a":[', '"]}\\"",', '{}', ']}', '{"b":', '2}']) call(args)
  const ended = translation.end().flatMap((chunk) => (chunk.type === 'block-end' ? [chunk.block] : []))
  expect(ended).toMatchObject([{ arguments: '{"a":["]}\\"",{}]}' }, { arguments: '{"b":2}' }])
  expect(parse).not.toHaveBeenCalled()
  parse.mockRestore()
})
