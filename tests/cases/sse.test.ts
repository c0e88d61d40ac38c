/** Bytes to events, whatever the network does to them. */
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../src/log/messages.ts'
import type { ServerEvent } from '../../src/services/adapters/chat-completions/sse.ts'
import { deepseek } from '../../src/services/adapters/deepseek.ts'
import { assemblerOf } from '../../src/services/llm/assembler.ts'
import { ask, failureIn, finishIn } from '../kit/ask-adapter.ts'
import { readEvents } from '../kit/read-events.ts'
import { DONE, delta, event, type Reply, type Step, stopped, wireServer } from '../kit/wire-server.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

async function parse(...packets: readonly (string | Uint8Array)[]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = []
  const bytes = packets.map((packet) => (typeof packet === 'string' ? bytesOf(packet) : packet))
  for (const one of readEvents(bytes, { maxEventLength: 1_000_000 })) events.push(one)
  return events
}
const dataOf = async (...packets: readonly (string | Uint8Array)[]) => (await parse(...packets)).map(({ data }) => data)

async function told(body: readonly Step[], reply: Partial<Reply> = {}): Promise<StreamChunk[]> {
  await using server = await wireServer([{ body, ...reply }])
  return await ask(deepseek({ baseURL: server.url, apiKey: 'k' }))
}
const codeOf = async (...body: readonly Step[]) => failureIn(await told(body)).code
const textOf = (chunks: readonly StreamChunk[]) =>
  assemblerOf(chunks)
    .blocks()
    .map((block) => (block.type === 'text' ? block.text : `<${block.type}>`))
    .join('')

describe('framing', () => {
  test('[sse-001] events come in order', async () => {
    expect(await dataOf('data: a\n\ndata: b\n\n')).toEqual(['a', 'b'])
  })

  test('[sse-002] the same events at every cut, and byte by byte', async () => {
    const bytes = bytesOf('data: 北京\r\n\r\ndata: 😀\ndata: é\n\n: ping\n\ndata: [DONE]\n\n')
    const whole = await dataOf(bytes)
    expect(whole).toEqual(['北京', '😀\né', '[DONE]'])
    for (let at = 0; at <= bytes.length; at++) {
      expect(await dataOf(bytes.subarray(0, at), bytes.subarray(at))).toEqual(whole)
    }
    expect(await dataOf(...[...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
  })

  test('[sse-003] a character cut in the middle stays whole over a socket', async () => {
    const chunks = await told([delta({ content: '北😀' }), delta({ content: 'é' }), stopped('stop'), DONE], {
      split: 'inside',
    })
    expect(textOf(chunks)).toBe('北😀é')
  })

  test.each(['\n', '\r\n', '\r'] as const)('[sse-004] lines may end with %j, in any packets', async (eol) => {
    const body = [delta({ content: 'Hel' }), delta({ content: 'lo' }), stopped('stop'), DONE]
    for (const split of ['packet', 'steps', 'bytes', 'inside'] as const) {
      const chunks = await told(body, { eol, split })
      expect(textOf(chunks)).toBe('Hello')
      expect(finishIn(chunks)).toEqual({ kind: 'stop' })
    }
  })

  test('[sse-004] a CRLF in two packets, with an empty one between, is one line end; terminators may be mixed', async () => {
    expect(await dataOf('data: A\r', '', '\ndata: B\r\n\r\n')).toEqual(['A\nB'])
    expect(await dataOf('id: 1\r\ndata: x\n\n')).toEqual(['x'])
  })

  test('[sse-005] one leading BOM is dropped, in pieces too; a later one is data', async () => {
    const rest = bytesOf('data: a\n\ndata: \uFEFFb\n\n')
    expect(await dataOf(Uint8Array.of(0xef, 0xbb, 0xbf), rest)).toEqual(['a', '\uFEFFb'])
    expect(await dataOf(Uint8Array.of(0xef), Uint8Array.of(), Uint8Array.of(0xbb, 0xbf), rest)).toEqual([
      'a',
      '\uFEFFb',
    ])
    expect(await dataOf('\uFEFF\uFEFFdata: lost\n\ndata: a\n\n')).toEqual(['a'])
  })

  test('[sse-006] several data lines are one payload', async () => {
    expect(await dataOf('data: {"a":\ndata: 1}\n\n')).toEqual(['{"a":\n1}'])
  })

  test('[sse-007] one space after the colon is optional, a second one is data', async () => {
    expect(await dataOf('data:{"a":1}\n\n', 'data:  x\n\n')).toEqual(['{"a":1}', ' x'])
  })

  test('[sse-008] comments are no events, and events beside them are not lost', async () => {
    expect(await dataOf(': keep-alive\n\n', ':\n', ': ping\n\ndata: x\n\n', 'id: 7\ndata: y\n\n', ': z\n\n')).toEqual([
      'x',
      'y',
    ])
  })

  test('[sse-009] other fields are ignored, known or not', async () => {
    expect(await parse('id: q\nevent: m\nretry: 5\nwhat: ever\ndata: x\n\n')).toEqual([{ event: 'm', data: 'x' }])
  })

  test('only LF, CR and CRLF end a line', async () => {
    const text = 'a\u2028b\u0085c\u000bd\u000ce'
    expect(await dataOf(`data: ${text}\n\n`)).toEqual([text])
  })
})

describe('ends', () => {
  test('[sse-010] nothing is read after the end', async () => {
    const chunks = await told([delta({ content: 'a' }), stopped('stop'), DONE, delta({ content: 'late' })], {
      split: 'packet',
    })
    expect(textOf(chunks)).toBe('a')
    expect(chunks.filter((chunk) => chunk.type === 'finish')).toHaveLength(1)
  })

  test('[sse-011] a stream that stops after an event was closed, and the event counts', async () => {
    const chunks = await told([delta({ content: 'a' })])
    expect(chunks).toContainEqual({ type: 'text-delta', index: 0, text: 'a' })
    expect(failureIn(chunks).code).toBe('STREAM_CLOSED')
  })

  test('[sse-012] no bytes at all is an empty answer; a comment and no more was closed', async () => {
    expect(await codeOf()).toBe('EMPTY_RESPONSE')
    expect(await codeOf(': ping\n\n')).toBe('STREAM_CLOSED')
  })

  test('[sse-013] an event cut off by the end is not seen', async () => {
    const chunks = await told([delta({ content: 'a' }), 'data: {"choices":[{"delta":{"content":"b"}}]'])
    expect(chunks).not.toContainEqual({ type: 'text-delta', index: 0, text: 'b' })
    expect(failureIn(chunks).code).toBe('STREAM_CLOSED')
  })

  test('[sse-014] an end without its blank line is no end', async () => {
    expect(await codeOf(delta({ content: 'a' }), 'data: [DONE]')).toBe('STREAM_CLOSED')
  })

  test('a finish reason completes the answer, with the end cut off or missing', async () => {
    for (const tail of [[], ['data: [DONE]']]) {
      const chunks = await told([delta({ content: 'a' }), stopped('stop'), ...tail])
      expect(finishIn(chunks)).toEqual({ kind: 'stop' })
    }
  })

  test('arguments cut off by the end are no call', async () => {
    const fragment = { index: 0, id: 'c', function: { name: 'sh', arguments: '{"cmd":"rm -r build' } }
    expect(await codeOf(delta({ tool_calls: [fragment] }))).toBe('STREAM_CLOSED')
  })
})

describe('payloads', () => {
  test('[sse-006] JSON over two data lines is parsed once', async () => {
    const chunks = await told(['data: {"choices":[{"delta":\ndata: {"content":"a"}}]}\n\n', stopped('stop'), DONE])
    expect(textOf(chunks)).toBe('a')
  })

  test('two payloads that lack the blank line between them are two', async () => {
    const line = (text: string) => delta({ content: text }).trim()
    expect(textOf(await told([`${line('a')}\n${line('b')}\n\n`, stopped('stop'), DONE]))).toBe('ab')
  })

  test.each([
    ['a comment made data', ': WAITING'],
    ['null', 'null'],
    ['a number', '0'],
    ['a list', '[]'],
    ['nothing', ''],
  ])('%s in mid stream is skipped', async (_, data) => {
    expect(
      textOf(await told([delta({ content: 'a' }), event(data), delta({ content: 'b' }), stopped('stop'), DONE])),
    ).toBe('ab')
  })

  test('half an event with an error frame in it is malformed, and shown in part', async () => {
    const chunks = await told([`data: {"type":"x",\ndata: {"type":"error","pad":"${'p'.repeat(500)}"}\n\n`, DONE])
    const { code, message } = failureIn(chunks)
    expect(code).toBe('MALFORMED_RESPONSE')
    expect(message).toContain('{"type":"x",')
    expect(message.length).toBeLessThan(200)
  })
})

describe('size', () => {
  test('8 MB on one line in small packets takes linear time', async () => {
    const long = bytesOf(`data: ${'x'.repeat(8_000_000)}\n\n`)
    const packets = Array.from({ length: Math.ceil(long.length / 1_460) }, (_, i) =>
      long.subarray(i * 1_460, (i + 1) * 1_460),
    )
    const lengths: number[] = []
    for (const { data } of readEvents(packets, { maxEventLength: 16_000_000 })) lengths.push(data.length)
    expect(lengths).toEqual([8_000_000])
  })

  test('a line without an end is given up at the limit', async () => {
    await using server = await wireServer([{ body: ['data: ', 'x'.repeat(5_000), { kind: 'hang' }] }])
    const adapter = deepseek({ baseURL: server.url, apiKey: 'k', maxEventLength: 4_000 })
    expect(failureIn(await ask(adapter)).code).toBe('RESPONSE_TOO_LARGE')
    await server.requests[0]?.closed
  })
})
