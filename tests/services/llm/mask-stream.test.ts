/** A secret is found wherever the model's stream cut it, and the answer is the same as if nothing had been cut. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { assemble } from '../../../src/services/llm/assembler.ts'
import { ownChunk } from '../../../src/services/llm/chunk.ts'
import { createStreamMask } from '../../../src/services/llm/mask-stream.ts'
import { createMask } from '../../../src/services/masking/mask.ts'

const SECRETS = ['hunter2', 'q"u\\o\nté', 'abcabcabd', '12345678']
const mask = createMask({ secrets: SECRETS })
const ids = () => ({ newCallId: () => 'new', isUsed: () => false })

type Kind = 'text' | 'reasoning' | 'tool-call'
interface Block {
  readonly kind: Kind
  readonly text: string
}

const words = fc.constantFrom('word ', 'h', 'abc', 'Bearer a1b2c3d4', 'sk-', '\\', '"', 'é', ...SECRETS)
const proseOf = fc.array(words, { maxLength: 6 }).map((parts) => parts.join(''))
const argsOf = fc
  .dictionary(fc.constantFrom('a', 'b', 'password', 'note'), fc.oneof(proseOf, fc.nat(1_000)), { maxKeys: 4 })
  .map((args) => JSON.stringify(args))
const blocks = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom<Kind>('text', 'reasoning'), text: proseOf }),
    fc.record({ kind: fc.constant<Kind>('tool-call'), text: argsOf }),
  ),
  { minLength: 1, maxLength: 3 },
)

function delta({ kind }: Block, index: number, piece: string): StreamChunk {
  if (kind === 'tool-call') return { type: 'tool-call-delta', index, argumentsDelta: piece }
  return { type: `${kind}-delta`, index, text: piece }
}

/** Each block's text cut at the places, the blocks' pieces in turn. */
function streamOf(said: readonly Block[], places: readonly number[], ended: boolean): StreamChunk[] {
  const pieces = said.map((block, index) => {
    const at = [...new Set(places.map((place) => place % (block.text.length + 1)))].sort((a, b) => a - b)
    return [0, ...at].map((from, i) => delta(block, index, block.text.slice(from, at[i])))
  })
  const rounds = Math.max(...pieces.map((list) => list.length))
  const turns = Array.from({ length: rounds }, (_, i) => pieces.flatMap((list) => list.slice(i, i + 1))).flat()
  const starts = said.map(({ kind }, index): StreamChunk => ({ type: 'block-start', index, blockType: kind }))
  const named = said.flatMap(({ kind }, index): StreamChunk[] =>
    kind === 'tool-call' ? [{ type: 'tool-call-delta', index, id: `c${index}`, name: 'f', argumentsDelta: '' }] : [],
  )
  const ends = said.map(
    ({ kind, text }, index): StreamChunk => ({
      type: 'block-end',
      index,
      block: kind === 'tool-call' ? { type: kind, id: `c${index}`, name: 'f', arguments: text } : { type: kind, text },
    }),
  )
  return [...starts, ...named, ...turns, ...(ended ? ends : []), { type: 'finish', reason: { kind: 'stop' } }]
}

const masked = (chunks: readonly StreamChunk[]): StreamChunk[] => {
  const stream = createStreamMask(mask, (name) => name === 'f')
  return [...chunks.flatMap((chunk) => stream.push(chunk)), ...stream.release()]
}

const contentOf = (chunks: readonly StreamChunk[]) => {
  const assembled = assemble(chunks, ids())
  return assembled.kind === 'answered' ? assembled.content : assembled
}

describe('a masked stream', () => {
  const places = fc.array(fc.nat(), { maxLength: 6 })

  test('assembles to the masked answer, ended by its blocks or by its deltas alone, and shows no secret', () => {
    fc.assert(
      fc.property(blocks, places, (said, at) => {
        const whole = contentOf(masked(streamOf(said, [], true)))
        for (const ended of [true, false]) {
          const shown = masked(streamOf(said, at, ended))
          expect(contentOf(shown)).toEqual(whole)
          for (const secret of SECRETS) {
            for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) {
              expect(textsOf(shown).join('')).not.toContain(form)
            }
          }
        }
      }),
      { numRuns: 200 },
    )
  })

  test('leaves arguments JSON, save a number that was registered', () => {
    fc.assert(
      fc.property(argsOf, places, (args, at) => {
        const shown = masked(streamOf([{ kind: 'tool-call', text: args }], at, false))
        expect(() => JSON.parse(textsOf(shown).join(''))).not.toThrow()
      }),
    )
  })
})

const textsOf = (chunks: readonly StreamChunk[]): string[] =>
  chunks.flatMap((chunk) => ('text' in chunk ? [chunk.text] : 'argumentsDelta' in chunk ? [chunk.argumentsDelta] : []))

test('chunks without a secret pass as they came, at once', () => {
  const chunks = streamOf([{ kind: 'text', text: 'nothing to see here, or there' }], [8, 11, 15], false).map(ownChunk)
  const stream = createStreamMask(mask, () => true)
  for (const chunk of chunks.slice(0, -1)) expect(stream.push(chunk)[0]).toBe(chunk)
})

test('what is held is said by the end of its block, by the finish, or when the stream is left', () => {
  const held: StreamChunk = { type: 'text-delta', index: 0, text: 'hunter' }
  const end: StreamChunk = { type: 'block-end', index: 0, block: { type: 'text', text: 'hunter' } }
  const finish: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
  const open = () => {
    const stream = createStreamMask(mask, () => true)
    expect(stream.push(held)).toEqual([])
    return stream
  }
  expect(open().push(end)).toEqual([held, end])
  expect(open().push(finish)).toEqual([held, finish])
  expect(open().release()).toEqual([held])
})

test.each<StreamChunk & object>([
  { type: 'text-delta', index: 0, text: 'hi' },
  { type: 'tool-call-delta', index: 0, id: 'c1', argumentsDelta: '{}' },
  { type: 'block-start', index: 0, blockType: 'text' },
  { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } },
  { type: 'finish', reason: { kind: 'stop' } },
])('what a $type says beside its words is masked too', (chunk) => {
  const more = { ...chunk, note: 'of hunter2', deep: [{ seen: 'hunter2' }] }
  const shown = { ...chunk, note: 'of [secret]', deep: [{ seen: '[secret]' }] }
  expect(createStreamMask(mask, () => true).push(more)).toEqual([shown])
})

test('what is held is counted', () => {
  const stream = createStreamMask(mask, () => true)
  expect(stream.held).toBe(0)
  stream.push({ type: 'text-delta', index: 0, text: 'a word, hunter' })
  stream.push({ type: 'reasoning-delta', index: 1, text: 'abcab' })
  expect(stream.held).toBe('hunter'.length + 'abcab'.length)
  stream.release()
  expect(stream.held).toBe(0)
})

test('an id that holds a secret is left out, and an unknown tool named by one is not', () => {
  const call: StreamChunk = {
    type: 'tool-call-delta',
    index: 0,
    id: 'x-hunter2',
    name: 'hunter2',
    argumentsDelta: '{}',
  }
  expect(createStreamMask(mask, () => false).push(call)).toEqual([{ ...call, id: '', name: '[secret]' }])
  expect(createStreamMask(mask, () => true).push(call)).toEqual([{ ...call, id: '' }])
})

test('a failure says nothing of a secret', () => {
  const failure = { code: 'AUTH', message: 'bad key hunter2', status: 401 }
  const [shown] = createStreamMask(mask, () => false).push({ type: 'finish', reason: { kind: 'error', failure } })
  expect(shown).toMatchObject({ reason: { failure: { code: 'AUTH', message: 'bad key [secret]' } } })
})
