/** What an adapter or a hook gives for a chunk is read once: what it becomes afterwards, or says the next time, is nothing to us. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toJson } from '../../../src/log/json.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { streamChunk } from '../../../src/log/shapes.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { ownChunk } from '../../../src/services/llm/chunk.ts'
import { ofType, startAgent } from '../../kit/agents.ts'

const SECRET = 'correct-horse-battery'
const open: StreamChunk = { type: 'block-start', index: 0, blockType: 'text' }
const stop: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
const end = (text: string): StreamChunk => ({ type: 'block-end', index: 0, block: { type: 'text', text } })

const speaking = (stream: () => AsyncIterable<StreamChunk>): ModelAdapter => ({ provider: 'p', model: 'm', stream })

/** The texts of the log's deltas. */
async function logged(stream: () => AsyncIterable<StreamChunk>, secrets: readonly string[] = []) {
  await using started = await startAgent({ model: speaking(stream), secrets })
  const { text, reason } = await started.agent.run('m')
  const chunks = ofType(await started.log(), 'assistant/chunk').map(({ data }) => data.chunk)
  return { text, reason, log: JSON.stringify(chunks), chunks }
}

/** Says `first` the first time that `key` is read, and the secret ever after. */
function changing<const T extends object>(chunk: T, key: string, first: unknown): T {
  let read = 0
  return Object.defineProperty({ ...chunk }, key, {
    enumerable: true,
    configurable: true,
    get: () => (read++ === 0 ? first : SECRET),
  })
}

describe('a chunk that', () => {
  const cases: readonly [string, () => object][] = [
    ['answers otherwise the next time', () => changing({ type: 'text-delta', index: 0, text: '' }, 'text', 'hi')],
    ['does so, frozen', () => Object.freeze(changing({ type: 'text-delta', index: 0, text: '' }, 'text', 'hi'))],
    [
      'is a proxy',
      () => {
        const read = new Set<PropertyKey>()
        return new Proxy<StreamChunk>(
          { type: 'text-delta', index: 0, text: 'hi' },
          {
            get(target, key) {
              if (key === 'text' && read.has(key)) return SECRET
              read.add(key)
              return Reflect.get(target, key)
            },
          },
        )
      },
    ],
  ]
  test.each(cases)('%s is what it was at first', async (_, make) => {
    const { log, chunks } = await logged(
      async function* () {
        yield open
        yield make() as StreamChunk
        yield end('hi')
        yield stop
      },
      [SECRET],
    )
    expect(chunks[1]).toEqual({ type: 'text-delta', index: 0, text: 'hi' })
    expect(log).not.toContain(SECRET)
  })

  test('hides a secret in a block that changes is masked', async () => {
    const { log } = await logged(
      async function* () {
        yield open
        yield { type: 'block-end', index: 0, block: changing({ type: 'text', text: '' }, 'text', 'fine') }
        yield changing({ type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } }, 'note', 'fine')
        yield stop
      },
      [SECRET],
    )
    expect(log).toContain('fine')
    expect(log).not.toContain(SECRET)
  })

  test('is changed after it was given stays what it was', async () => {
    const { text, chunks } = await logged(async function* () {
      const said = { type: 'text-delta' as const, index: 0, text: '' }
      yield open
      for (const word of ['one ', 'two ', 'three']) {
        said.text = word
        yield said
      }
      said.text = 'gone'
      yield end('one two three')
      yield stop
    })
    expect(text).toBe('one two three')
    expect(chunks.flatMap((chunk) => ('text' in chunk ? [chunk.text] : []))).toEqual(['one ', 'two ', 'three'])
  })

  test('its adapter still has may be used again: nothing of it is frozen', async () => {
    const given: StreamChunk[] = [
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'text-delta', index: 0, text: 'hi' },
      { type: 'block-end', index: 0, block: { type: 'text', text: 'hi' } },
      { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } },
      { type: 'finish', reason: { kind: 'stop' }, replayState: { response: { id: 'r' }, blocks: [{ n: 1 }] } },
    ]
    const { reason } = await logged(async function* () {
      yield* given
    })
    expect(reason).toEqual({ kind: 'completed' })
    const parts = (value: unknown): unknown[] =>
      typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(parts)] : []
    expect(given.flatMap(parts).filter((part) => Object.isFrozen(part))).toEqual([])
  })
})

test('what is none ends the turn by what is wrong with it', async () => {
  for (const none of [null, 7, 'text', {}, { type: 'shout' }, { type: 'text-delta', index: -0, text: 'hi' }]) {
    const { reason } = await logged(async function* () {
      yield open
      yield none as StreamChunk
    })
    expect(reason).toMatchObject({
      kind: 'error',
      error: { code: expect.stringMatching(/^(INVALID_EVENT|NOT_JSON)$/) },
    })
  }
})

test('a delta goes the short way exactly if it would come to the same the long way', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.constantFrom(-0, 0.5, Number.NaN, undefined, null), fc.object())
  const some = fc
    .tuple(
      fc.constantFrom('text-delta', 'reasoning-delta', 'tool-call-delta', 'block-start'),
      fc.oneof({ arbitrary: fc.nat(3), weight: 4 }, { arbitrary: value, weight: 1 }),
      fc.oneof({ arbitrary: fc.string(), weight: 4 }, { arbitrary: value, weight: 1 }),
      fc.option(fc.dictionary(fc.constantFrom('more', '__proto__', 'text'), value, { maxKeys: 1 }), { nil: {} }),
    )
    .map(([type, index, text, more]) => ({ type, index, text, ...more }) as unknown as StreamChunk)
  fc.assert(
    fc.property(some, (given) => {
      expect(outcome(() => ownChunk(given))).toEqual(outcome(() => carefully(given)))
    }),
    { numRuns: 500 },
  )
})

function carefully(given: unknown): unknown {
  const copy = toJson(given)
  if (streamChunk(copy) !== undefined) throw new Error('refused')
  return copy
}

function outcome(act: () => unknown): unknown {
  try {
    return { said: act() }
  } catch {
    return 'refused'
  }
}
