/** Whatever an adapter's stream does, it ends, with one finish unless it was aborted, and leaves nothing behind. */
import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import type { StreamChunk } from '../../../src/log/messages.ts'
import type { LlmRequest } from '../../../src/log/requests.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { type AfterChunk, contained, drain, drainContained } from '../../../src/services/llm/stream.ts'

const hi: StreamChunk = { type: 'text-delta', index: 0, text: 'hi' }
const stop: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
const request: LlmRequest = { provider: 'p', model: 'm', messages: [], sessionId: 's' }

/** Types decide nothing here: an adapter may be JavaScript. */
const adapterOf = (stream: (signal: AbortSignal) => unknown): ModelAdapter => ({
  provider: 'p',
  model: 'm',
  stream: (_, { signal }) => stream(signal) as AsyncIterable<StreamChunk>,
})

const iterable = (iterator: object): unknown => ({ [Symbol.asyncIterator]: () => iterator })
const results = (...list: unknown[]) => {
  let at = 0
  return { next: () => list[at++] }
}
const given = (value: unknown) => ({ done: false, value })
const ended = { done: true, value: undefined }
const throws = (message: string): never => {
  throw new Error(message)
}

/** One door of two: what `take` is given, each chunk as `text`, `stop` or the code it failed with. */
type Door = (adapter: ModelAdapter, signal: AbortSignal, take: (chunk: StreamChunk) => AfterChunk) => Promise<unknown>
const DOORS: Readonly<Record<string, Door>> = {
  'chunk by chunk': (adapter, signal, take) => drainContained(adapter, request, { signal, take }),
  'through hooks': (adapter, signal, take) => drain(() => contained(adapter, request, signal), signal, take),
}

function nameOf(chunk: StreamChunk): string {
  if (chunk.type !== 'finish') return chunk.type === 'text-delta' ? chunk.text : chunk.type
  const { reason } = chunk
  return reason.kind === 'error' ? `${reason.failure.code}: ${reason.failure.message}` : reason.kind
}

async function said(door: Door, adapter: ModelAdapter, signal = new AbortController().signal): Promise<string[]> {
  const names: string[] = []
  await door(adapter, signal, (chunk) => {
    names.push(nameOf(chunk))
    return chunk.type === 'finish' ? 'over' : undefined
  })
  expect(getEventListeners(signal, 'abort')).toEqual([])
  return names
}

const CLOSED = 'STREAM_CLOSED: The stream ended before the model said it was done'

/** What each says in the end. */
const STREAMS: readonly (readonly [string, () => unknown, readonly unknown[]])[] = [
  ['throws before it is one', () => throws('no'), ['UNKNOWN: no']],
  ['is none', () => undefined, [expect.stringContaining('UNKNOWN')]],
  ['cannot be opened', () => ({ [Symbol.asyncIterator]: () => throws('shut') }), ['UNKNOWN: shut']],
  ['throws when first asked', () => iterable({ next: () => throws('at once') }), ['UNKNOWN: at once']],
  ['rejects when first asked', () => iterable({ next: () => Promise.reject(new Error('gone')) }), ['UNKNOWN: gone']],
  [
    'throws after a chunk',
    () => {
      let asked = 0
      return iterable({ next: () => (asked++ === 0 ? Promise.resolve(given(hi)) : throws('later')) })
    },
    ['hi', 'UNKNOWN: later'],
  ],
  ['gives results and no promises', () => iterable(results(given(hi), given(stop))), ['hi', 'stop']],
  [
    'gives promises of its own kind',
    () => {
      const inner = results(given(hi), given(stop))
      const answer = (resolve: (result: unknown) => void) => resolve(inner.next())
      return iterable({ next: () => Object.fromEntries([['then', answer]]) })
    },
    ['hi', 'stop'],
  ],
  ['gives a result that is none', () => iterable(results(7)), [expect.stringContaining('UNKNOWN')]],
  [
    'gives a result that cannot be read',
    () =>
      iterable({
        next: () => ({
          done: false,
          get value() {
            return throws('sealed')
          },
        }),
      }),
    ['UNKNOWN: sealed'],
  ],
  ['ends without a finish', () => iterable(results(given(hi), ended)), ['hi', CLOSED]],
  ['ends at once', () => iterable(results(ended)), [CLOSED]],
  ['goes on after its finish', () => iterable(results(given(stop), given(hi), given(stop))), ['stop']],
  ['is a list', () => [hi, stop], ['hi', 'stop']],
  ['is a list of promises', () => [Promise.resolve(hi), Promise.resolve(stop)], ['hi', 'stop']],
  [
    'is a plain generator that throws',
    function* () {
      yield hi
      throws('half way')
    },
    ['hi', 'UNKNOWN: half way'],
  ],
  ['cannot be told to end', () => iterable(results(given(hi), given(stop))), ['hi', 'stop']],
  ['throws when told to end', () => iterable({ ...results(given(stop)), return: () => throws('not now') }), ['stop']],
  [
    'rejects when told to end',
    () => iterable({ ...results(given(stop)), return: () => Promise.reject(new Error('not now')) }),
    ['stop'],
  ],
  [
    'answers with nothing when told to end',
    () => iterable({ ...results(given(stop)), return: () => undefined }),
    ['stop'],
  ],
]

describe.each(Object.entries(DOORS))('taken %s', (_, door) => {
  test.each(STREAMS)('a stream that %s says this', async (_, stream, expected) => {
    expect(await said(door, adapterOf(stream))).toEqual(expected)
  })

  test('without an adapter the failure says what to do', async () => {
    const names: string[] = []
    const { signal } = new AbortController()
    const take = (chunk: StreamChunk): AfterChunk => {
      names.push(nameOf(chunk))
      return 'over'
    }
    if (door === DOORS['chunk by chunk']) await drainContained(undefined, request, { signal, take })
    else await drain(() => contained(undefined, request, signal), signal, take)
    expect(names).toEqual(['NO_ADAPTER: No adapter for provider "p" and model "m": pass it in `models`'])
  })

  test('an abort ends a stream that does not heed it, which is told to end once', async () => {
    const leaving = new AbortController()
    const told = vi.fn(() => new Promise(() => {}))
    let asked = 0
    const stream = () =>
      iterable({ next: () => (asked++ === 0 ? Promise.resolve(given(hi)) : new Promise(() => {})), return: told })
    const names = said(door, adapterOf(stream), leaving.signal)
    await vi.waitUntil(() => asked === 2)
    leaving.abort()
    expect(await names).toEqual(['hi'])
    if (door === DOORS['chunk by chunk']) expect(told).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['ends', (resolve: (result: unknown) => void) => resolve(ended)],
    ['speaks on', (resolve: (result: unknown) => void) => resolve(given(hi))],
    ['throws', (_: unknown, reject: (thrown: unknown) => void) => reject(new Error('aborted'))],
  ])('a stream that %s at the abort says nothing any more', async (_, answer) => {
    const leaving = new AbortController()
    const stream = (signal: AbortSignal) =>
      iterable({
        next: () => new Promise((resolve, reject) => signal.addEventListener('abort', () => answer(resolve, reject))),
      })
    const names: string[] = []
    const ending = door(adapterOf(stream), leaving.signal, (chunk) => {
      names.push(nameOf(chunk))
      return undefined
    })
    await Promise.resolve()
    leaving.abort()
    await ending
    await new Promise((resolve) => setImmediate(resolve))
    expect(names).toEqual([])
  })

  test('a stream is not opened once the signal is aborted', async () => {
    const opened = vi.fn(() => [hi, stop])
    expect(await said(door, adapterOf(opened), AbortSignal.abort())).toEqual([])
    expect(opened).not.toHaveBeenCalled()
  })

  test('what takes the chunks may throw, and is not taken for the stream', async () => {
    const told = vi.fn(async () => ended)
    const stream = () => iterable({ ...results(given(hi), given(stop)), return: told })
    const { signal } = new AbortController()
    await expect(door(adapterOf(stream), signal, () => throws('full'))).rejects.toThrow('full')
    await expect(door(adapterOf(stream), signal, () => Promise.reject(new Error('never')))).rejects.toThrow('never')
    expect(told).toHaveBeenCalledTimes(2)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('the next chunk is asked for once there is room, and not before', async () => {
    const room: (() => void)[] = []
    let asked = 0
    const stream = () => iterable({ next: async () => (asked++ < 3 ? given(hi) : given(stop)) })
    const { signal } = new AbortController()
    const ending = door(adapterOf(stream), signal, (chunk) =>
      chunk.type === 'finish' ? 'over' : new Promise<void>((resolve) => room.push(resolve)),
    )
    for (let chunks = 1; chunks <= 3; chunks++) {
      await new Promise((resolve) => setImmediate(resolve))
      expect(asked).toBe(chunks)
      room.pop()?.()
    }
    await ending
    expect(asked).toBe(4)
  })
})

test('a stream that came to its end by itself is not told to end', async () => {
  const told = vi.fn()
  const stream = () => iterable({ ...results(given(hi), ended), return: told })
  await said(DOORS['chunk by chunk'] as Door, adapterOf(stream))
  expect(told).not.toHaveBeenCalled()
})
