/** How chunks become an answer. */
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../src/log/messages.ts'
import { assemble, assemblerOf, interruptedPrefix, MAX_CALLS } from '../../src/services/llm/assembler.ts'

const start = (index: number, blockType: string): StreamChunk => ({ type: 'block-start', index, blockType })
const say = (index: number, text: string): StreamChunk => ({ type: 'text-delta', index, text })
const think = (index: number, text: string): StreamChunk => ({ type: 'reasoning-delta', index, text })
const ask = (index: number, argumentsDelta: string, o: { id?: string; name?: string } = {}): StreamChunk => ({
  type: 'tool-call-delta',
  index,
  argumentsDelta,
  ...o,
})
const done = (kind: 'stop' | 'tool-calls' | 'max-tokens' = 'stop'): StreamChunk => ({
  type: 'finish',
  reason: { kind },
})
const blocks = (...chunks: StreamChunk[]) => assemblerOf(chunks).blocks()
const ids = (used: readonly string[] = []) => {
  let n = 0
  return { newCallId: () => `new-${++n}`, isUsed: (id: string) => used.includes(id) }
}

describe('blocks', () => {
  test('[stream-007] interleaved blocks stand in the order they first appeared', () => {
    expect(
      blocks(
        start(0, 'text'),
        start(1, 'reasoning'),
        say(0, 'a'),
        think(1, 'x'),
        ask(2, '{"q"', { id: 'c', name: 'find' }),
        say(0, 'b'),
        think(1, 'y'),
        ask(2, ':1}'),
      ),
    ).toEqual([
      { type: 'text', text: 'ab' },
      { type: 'reasoning', text: 'xy' },
      { type: 'tool-call', id: 'c', name: 'find', arguments: '{"q":1}' },
    ])
  })

  test('[stream-008] what a block ends with wins over its deltas', () => {
    const end: StreamChunk = { type: 'block-end', index: 0, block: { type: 'text', text: 'final' } }
    expect(blocks(say(0, 'ab'), end)).toEqual([{ type: 'text', text: 'final' }])
  })

  test('[stream-009] deltas need no block-start', () => {
    expect(blocks(say(3, 'a'), think(1, 'b'))).toEqual([
      { type: 'text', text: 'a' },
      { type: 'reasoning', text: 'b' },
    ])
  })

  test('[stream-010] a second block-start changes nothing', () => {
    expect(blocks(start(0, 'text'), say(0, 'a'), start(0, 'text'), say(0, 'b'))).toEqual([{ type: 'text', text: 'ab' }])
  })

  test('[stream-011] deltas and a second end after a block has ended are ignored', () => {
    const block = { type: 'tool-call', id: 'c', name: 'f', arguments: '{}' } as const
    const end: StreamChunk = { type: 'block-end', index: 0, block }
    expect(blocks(end, ask(0, 'junk', { id: 'z' }), { ...end, block: { ...block, id: 'y' } })).toEqual([block])
  })

  test('[stream-012] the last id and the last name that is not empty win', () => {
    expect(blocks(ask(0, '{', { id: 'a', name: 'f' }), ask(0, '}', { id: 'b', name: '' }))).toEqual([
      { type: 'tool-call', id: 'b', name: 'f', arguments: '{}' },
    ])
  })

  test('[stream-013] a block of an unknown type that never ended makes the answer malformed', () => {
    const chunks = [start(0, 'x/audio'), done()]
    expect(assemble(chunks, ids())).toMatchObject({ kind: 'failed', failure: { code: 'MALFORMED_RESPONSE' } })
    expect(() => blocks(...chunks)).toThrow(/x\/audio/)
  })

  test('[stream-014] one that ended passes as it is', () => {
    const block = { type: 'x/audio', url: 'u' } as const
    expect(blocks(start(0, 'x/audio'), { type: 'block-end', index: 0, block })).toEqual([block])
  })

  test('[stream-016] a call that was never named has an empty name', () => {
    expect(blocks(ask(0, '{}', { id: 'c' }))).toEqual([{ type: 'tool-call', id: 'c', name: '', arguments: '{}' }])
  })

  test('[stream-017] reading twice gives the same', () => {
    const assembler = assemblerOf([say(0, 'a'), ask(1, '{}', { id: 'c' }), done()])
    expect(assembler.blocks()).toEqual(assembler.blocks())
    expect(assemble(assembler, ids())).toEqual(assemble(assembler, ids()))
  })
})

describe('call ids', () => {
  test('[stream-015] a call without an id gets a new one', () => {
    expect(assemble([ask(3, '{}', { name: 'f' }), done()], ids())).toMatchObject({
      calls: [{ id: 'new-1', name: 'f' }],
      content: [{ id: 'new-1' }],
    })
  })

  test('an id the session has used, or this answer has, is minted anew', () => {
    const calls = [ask(0, '', { id: 'old' }), ask(1, '', { id: 'a' }), ask(2, '', { id: 'a' }), done('tool-calls')]
    const answer = assemble(calls, ids(['old']))
    expect(answer.kind === 'answered' && answer.calls.map((call) => call.id)).toEqual(['new-1', 'a', 'new-2'])
  })

  test('more calls than an answer may have fail it', () => {
    const calls = (n: number) => [...Array.from({ length: n }, (_, i) => ask(i, '', { id: `c${i}` })), done()]
    expect(assemble(calls(MAX_CALLS), ids()).kind).toBe('answered')
    expect(assemble(calls(MAX_CALLS + 1), ids())).toMatchObject({ failure: { code: 'MALFORMED_RESPONSE' } })
  })
})

describe('ends', () => {
  test('a stream without a finish was closed', () => {
    expect(assemble([say(0, 'a')], ids())).toMatchObject({ kind: 'failed', failure: { code: 'STREAM_CLOSED' } })
  })

  test('the failure of a finish is kept, and so is what was spent', () => {
    const usage = { inputTokens: 1, outputTokens: 2 }
    const failure = { message: 'boom', code: 'SERVER', status: 500 }
    const chunks: StreamChunk[] = [
      { type: 'usage', usage },
      { type: 'finish', reason: { kind: 'error', failure } },
    ]
    expect(assemble(chunks, ids())).toEqual({ kind: 'failed', failure, usage })
  })

  test('an answer cut by max-tokens has no calls, ended or not', () => {
    const end: StreamChunk = {
      type: 'block-end',
      index: 1,
      block: { type: 'tool-call', id: 'c', name: 'f', arguments: '' },
    }
    const answer = assemble([say(0, 'a'), end, ask(2, '{"x'), done('max-tokens')], ids())
    expect(answer).toMatchObject({ kind: 'answered', content: [{ type: 'text', text: 'a' }], calls: [] })
  })
})

describe('replay state', () => {
  const text: StreamChunk = { type: 'block-end', index: 0, block: { type: 'text', text: 'a' } }
  const call = ask(1, '{}', { id: 'c', name: 'f' })
  const finished = (kind: 'stop' | 'max-tokens', blocks?: readonly string[]): StreamChunk => ({
    type: 'finish',
    reason: { kind },
    replayState: { response: { id: 'r' }, ...(blocks && { blocks }) },
  })

  test('[stream-019] loses the entry of a dropped call', () => {
    const assembler = assemblerOf([text, call, finished('max-tokens', ['t', 'c'])])
    expect(assembler.replayState).toEqual({ response: { id: 'r' }, blocks: ['t'] })
  })

  test('[stream-020] goes as a whole if its entries do not match the blocks', () => {
    expect(assemblerOf([text, call, finished('stop', ['t'])]).replayState).toBeUndefined()
  })

  test('[stream-021] without entries it stays as it is', () => {
    expect(assemblerOf([text, call, finished('max-tokens')]).replayState).toEqual({ response: { id: 'r' } })
  })
})

test('an interrupted answer keeps the text and reasoning that can be seen', () => {
  const opaque: StreamChunk = { type: 'block-end', index: 5, block: { type: 'x/audio' } }
  const chunks = [think(0, 'hm'), say(1, ' \n'), start(2, 'text'), say(3, 'par'), ask(4, '{}'), opaque, start(6, 'y/z')]
  expect(interruptedPrefix(assemblerOf(chunks))).toEqual([
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'par' },
  ])
})

test('a long answer in many deltas costs its length once', () => {
  const assembler = assemblerOf(Array.from({ length: 200_000 }, () => say(0, 'word ')))
  expect(assembler.blocks()).toEqual([{ type: 'text', text: 'word '.repeat(200_000) }])
})
