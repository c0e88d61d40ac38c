import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../src/log/messages.ts'
import type { LlmRequest } from '../../../src/log/requests.ts'
import * as s from '../../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'

const request: LlmRequest = { provider: 'scripted', model: 'scripted', messages: [], sessionId: 's' }

async function play(adapter: ModelAdapter, signal = new AbortController().signal): Promise<StreamChunk[]> {
  const said: StreamChunk[] = []
  for await (const chunk of adapter.stream(request, { signal })) said.push(chunk)
  return said
}

describe('what parts imply', () => {
  test('a string is one text block and a stop', async () => {
    expect(await play(s.scripted(['hello']))).toEqual([
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'text-delta', index: 0, text: 'hello' },
      { type: 'block-end', index: 0, block: { type: 'text', text: 'hello' } },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
  })

  test('a call implies the finish tool-calls, and blocks are numbered as they open', async () => {
    const said = await play(s.scripted([[s.reasoning('hm'), s.text('so'), s.toolCall('now', undefined)]]))
    expect(said.filter((chunk) => chunk.type === 'block-end')).toEqual([
      { type: 'block-end', index: 0, block: { type: 'reasoning', text: 'hm' } },
      { type: 'block-end', index: 1, block: { type: 'text', text: 'so' } },
      { type: 'block-end', index: 2, block: { type: 'tool-call', id: 'call-1', name: 'now', arguments: '{}' } },
    ])
    expect(said.at(-1)).toEqual({ type: 'finish', reason: { kind: 'tool-calls' } })
  })

  test('call ids are new over all attempts of an adapter', async () => {
    const adapter = s.scripted(() => [
      s.toolCall('a', { x: 1 }),
      s.toolCall('b', 'not json', { id: 'mine' }),
      s.toolCall('c', {}),
    ])
    const ids = [...(await play(adapter)), ...(await play(adapter))].flatMap((c) =>
      c.type === 'tool-call-delta' ? [c.id] : [],
    )
    expect(ids).toEqual(['call-1', 'mine', 'call-2', 'call-3', 'mine', 'call-4'])
  })

  test('deltas are cut between code points, never inside one', async () => {
    const deltas = async (part: s.Part) =>
      (await play(s.scripted([part]))).flatMap((c) => (c.type === 'text-delta' ? [c.text] : []))
    expect(await deltas(s.text('a😀b😀', { deltas: 4 }))).toEqual(['a', '😀', 'b', '😀'])
    expect(await deltas(s.text('abcde', { deltas: 2 }))).toEqual(['ab', 'cde'])
    expect(await deltas(s.text('ab', { deltas: 9 }))).toEqual(['a', 'b'])
  })

  test('nothing is said after a finish', async () => {
    const said = await play(s.scripted([[s.finish({ kind: 'max-tokens' }), s.text('late')]]))
    expect(said).toEqual([{ type: 'finish', reason: { kind: 'max-tokens' } }])
  })

  test('chunks are said verbatim, and imply no finish', async () => {
    const only: StreamChunk[] = [{ type: 'text-delta', index: 4, text: 'x' }]
    expect(await play(s.scripted([s.chunks(only)]))).toEqual(only)
  })
})

describe('failures', () => {
  test.each([
    ['RATE_LIMIT', { code: 'RATE_LIMIT' }],
    ['it broke', { code: 'UNKNOWN', message: 'it broke' }],
    [
      { code: 'SERVER', status: 503 },
      { code: 'SERVER', status: 503 },
    ],
  ])('fails(%j)', async (given, expected) => {
    expect(await play(s.scripted([s.fails(given)]))).toMatchObject([
      { type: 'finish', reason: { kind: 'error', failure: expected } },
    ])
  })

  test('a script that has run out says so', async () => {
    const adapter = s.scripted(['only'])
    await play(adapter)
    expect(await play(adapter)).toMatchObject([{ type: 'finish', reason: { failure: { code: 'SCRIPT_EXHAUSTED' } } }])
  })
})

describe('time', () => {
  test('a hang ends with the abort, without a finish', async () => {
    const cancel = new AbortController()
    const stream = s.scripted([[s.text('par'), s.hangs()]]).stream(request, { signal: cancel.signal })
    const said: StreamChunk[] = []
    for await (const chunk of stream) {
      said.push(chunk)
      if (chunk.type === 'block-end') cancel.abort()
    }
    expect(said.at(-1)?.type).toBe('block-end')
  })

  test('an abort ends the answer at once, without a finish', async () => {
    const cancel = new AbortController()
    const said: StreamChunk[] = []
    for await (const chunk of s.scripted([s.text('abc', { deltas: 3 })]).stream(request, { signal: cancel.signal })) {
      said.push(chunk)
      if (chunk.type === 'text-delta') cancel.abort()
    }
    expect(said.map(({ type }) => type)).toEqual(['block-start', 'text-delta'])
  })

  test('a gate says when it is reached and holds the stream until released', async () => {
    const held = s.gate()
    const playing = play(s.scripted([[s.pause(held), s.text('after')]]))
    await held.reached
    held.release()
    expect((await playing).at(-1)).toEqual({ type: 'finish', reason: { kind: 'stop' } })
  })

  test('an aborted gate lets go', async () => {
    const held = s.gate()
    const cancel = new AbortController()
    const playing = play(s.scripted([[s.pause(held), s.text('after')]]), cancel.signal)
    await held.reached
    cancel.abort()
    expect(await playing).toEqual([])
  })
})

test('requests are kept in order, frozen, and attempts are numbered from 0', async () => {
  const adapter = s.scripted((asked, n) => `${asked.sessionId}${n}`, { provider: 'p', model: 'm', contextWindow: 8 })
  await play(adapter)
  expect((await play(adapter))[1]).toMatchObject({ text: 's1' })
  expect(adapter.requests).toEqual([request, request])
  expect(Object.isFrozen(adapter.requests[0]?.messages)).toBe(true)
  expect(adapter).toMatchObject({ provider: 'p', model: 'm' })
  const config = { provider: 'p', model: 'm' }
  expect(await adapter.prepare?.(config, new AbortController().signal)).toEqual({ config, contextWindow: 8 })
})
