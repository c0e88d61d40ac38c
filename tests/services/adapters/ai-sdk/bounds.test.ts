/** Answers without end, of every kind of part: what is kept of them has a bound, also where nothing is said of it. */
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../../src/log/messages.ts'
import { createTranslation } from '../../../../src/services/adapters/ai-sdk/translate.ts'
import { weightOf } from '../../../../src/services/adapters/ai-sdk/weight.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { finish3, mock3, text3 } from '../../../kit/ai-sdk-models.ts'
import { ask, failureIn, finishIn, requestTo } from '../../../kit/ask-adapter.ts'

type Part = Readonly<Record<string, unknown>>

const MOST = 16 * 1024 * 1024
const LONG = 'x'.repeat(2 ** 20)

/** Takes one part after the other until that is refused; a bound that is missing fails after so many. */
function endless(part: (n: number) => Part): void {
  const translation = createTranslation(new Set(['mine']), MOST)
  for (let n = 0; n < 20_000; n++) translation.take(part(n))
}

describe('an answer has at most so many characters', () => {
  test.each<[string, Part]>([
    ['of text', { type: 'text-delta', id: '0', delta: LONG }],
    ['beside empty text', { type: 'text-delta', id: '0', delta: '', providerMetadata: { p: { state: LONG } } }],
    ['beside the end of text', { type: 'text-end', id: '0', providerMetadata: { p: { list: [LONG] } } }],
    ['of a call again and again', { type: 'tool-call', toolCallId: 'c', toolName: 'mine', input: LONG }],
  ])('%s', (_, part) => {
    expect(() => endless(() => part)).toThrow(expect.objectContaining({ code: 'RESPONSE_TOO_LARGE' }))
  })

  test('of the input of a call that nobody is told of yet', () => {
    const input = (n: number): Part =>
      n === 0
        ? { type: 'tool-input-start', id: 'c', toolName: 'theirs' }
        : { type: 'tool-input-delta', id: 'c', delta: LONG }
    expect(() => endless(input)).toThrow(expect.objectContaining({ code: 'RESPONSE_TOO_LARGE' }))
  })
})

describe('an answer has at most so many blocks', () => {
  test.each<[string, (n: number) => Part]>([
    ['of sources', (n) => ({ type: 'source', id: `${n}` })],
    ['of text', (n) => ({ type: 'text-delta', id: `${n}`, delta: 'x' })],
    ['of text that is never said', (n) => ({ type: 'reasoning-start', id: `${n}` })],
    ['of inputs', (n) => ({ type: 'tool-input-start', id: `${n}`, toolName: 'mine' })],
    ['of inputs that nobody is told of', (n) => ({ type: 'tool-input-start', id: `${n}`, toolName: 'theirs' })],
    ['of calls', (n) => ({ type: 'tool-call', toolCallId: `${n}`, toolName: 'mine', input: '{}' })],
  ])('%s', (_, part) => {
    expect(() => endless(part)).toThrow(expect.objectContaining({ code: 'MALFORMED_RESPONSE' }))
  })
})

describe('one part', () => {
  test('has at most as many characters as is said, whatever they stand in', async () => {
    const options = { maxEventLength: 1_000 }
    for (const part of [
      { type: 'text-delta', id: '0', delta: 'x'.repeat(1_000) },
      { type: 'text-delta', id: '0', delta: 'x', providerMetadata: { p: { a: ['x'.repeat(999)] } } },
      { type: 'tool-call', toolCallId: 'c', toolName: 'mine', input: 'x'.repeat(1_000) },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array(1_000) },
      { type: 'source', sourceType: 'url', id: 's', url: 'x', more: Object.fromEntries([['x'.repeat(999), 1]]) },
    ] as const) {
      const parts = JSON.parse('[]')
      parts.push(part, finish3())
      const failure = failureIn(await ask(aiSdk(mock3(parts), options)))
      expect(failure).toMatchObject({ code: 'RESPONSE_TOO_LARGE', message: expect.stringContaining('maxEventLength') })
    }
  })

  test('below that is an answer, and what a finish has beside it is no part of one', async () => {
    const parts = [...text3('x'.repeat(900)), finish3('stop', 'stop', { providerMetadata: { p: { l: LONG } } })]
    expect(finishIn(await ask(aiSdk(mock3(parts), { maxEventLength: 1_000 })))).toEqual({ kind: 'stop' })
  })

  test('of 16 Mi is taken by default, and no longer one', async () => {
    const said = (length: number) => ask(aiSdk(mock3([...text3('x'.repeat(length)), finish3()])))
    expect(finishIn(await said(MOST - 100))).toEqual({ kind: 'stop' })
    expect(failureIn(await said(MOST)).code).toBe('RESPONSE_TOO_LARGE')
  })
})

test('a bound that cannot be is refused', () => {
  for (const maxEventLength of [0, -1, 1.5, Number.NaN]) {
    expect(() => aiSdk(mock3([]), { maxEventLength })).toThrow(expect.objectContaining({ option: 'maxEventLength' }))
  }
})

test('a model that streams without end is told to end once there is too much', async () => {
  const model = mock3([])
  let cancelled = false
  model.doStream = async () => ({
    stream: new ReadableStream({
      pull: (controller) => controller.enqueue({ type: 'text-delta', id: '0', delta: LONG }),
      cancel() {
        cancelled = true
      },
    }),
  })
  const adapter = aiSdk(model)
  let last: StreamChunk | undefined
  for await (const chunk of adapter.stream(requestTo(adapter), { signal: new AbortController().signal })) last = chunk
  expect(failureIn(last === undefined ? [] : [last]).code).toBe('RESPONSE_TOO_LARGE')
  expect(cancelled).toBe(true)
})

test('what is weighed may be of any shape', () => {
  const cyclic: { name: string; self?: unknown } = { name: 'x'.repeat(10) }
  cyclic.self = cyclic
  const hostile = Object.defineProperty({}, 'bad', {
    enumerable: true,
    get() {
      throw new Error('no')
    },
  })
  expect(weightOf(cyclic, 100)).toBe(21)
  expect(weightOf([hostile, null, 1n, () => {}, 'four'], 100)).toBe(15)
})
