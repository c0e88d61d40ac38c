/** Answers against their chunks: each stream with the answers that say it, which break no rule, and ones that do not. */
import { describe, expect, test } from 'vitest'
import type { EventMap } from '../../../src/log/events.ts'
import { checkInvariants } from '../../../src/log/invariants.ts'
import type {
  ContentBlock,
  FinishReason,
  ReasoningBlock,
  StreamChunk,
  TextBlock,
  ToolCallBlock,
} from '../../../src/log/messages.ts'
import * as k from '../../kit/logs.ts'

type Answer = EventMap['assistant/message']

const words = (text: string): TextBlock => ({ type: 'text', text })
const thought = (text: string): ReasoningBlock => ({ type: 'reasoning', text })
const call = (id: string, args = '{}', name = 'look'): ToolCallBlock => ({
  type: 'tool-call',
  id,
  name,
  arguments: args,
})

const start = (blockType: string, index = 0): StreamChunk => ({ type: 'block-start', index, blockType })
const says = (text: string, index = 0): StreamChunk => ({ type: 'text-delta', index, text })
const thinks = (text: string, index = 0): StreamChunk => ({ type: 'reasoning-delta', index, text })
const asks = (argumentsDelta: string, more: { id?: string; name?: string; index?: number } = {}): StreamChunk => ({
  type: 'tool-call-delta',
  index: 0,
  argumentsDelta,
  ...more,
})
const end = (block: ContentBlock, index = 0): StreamChunk => ({ type: 'block-end', index, block })
const finish = (kind: 'stop' | 'tool-calls' | 'max-tokens' = 'stop'): StreamChunk => ({
  type: 'finish',
  reason: { kind },
})
const usage = (inputTokens: number): StreamChunk => ({ type: 'usage', usage: { inputTokens, outputTokens: 1 } })
/** A block opened and closed, its words in between. */
const whole = (block: TextBlock | ReasoningBlock | ToolCallBlock, index = 0): readonly StreamChunk[] => {
  const said =
    block.type === 'text'
      ? says(block.text, index)
      : block.type === 'reasoning'
        ? thinks(block.text, index)
        : asks(block.arguments, { id: block.id, name: block.name, index })
  return [start(block.type, index), said, end(block, index)]
}

interface Place {
  readonly turn?: number
  readonly step?: number
  readonly attempt?: number
}
interface Told extends Place {
  readonly more?: Partial<Answer>
  readonly source?: { readonly provider: string; readonly model: string }
  /** What stands between the chunks and the answer. */
  readonly between?: readonly k.Drafts[]
}

const count = (drafts: readonly k.Drafts[]): number =>
  drafts.reduce((sum: number, draft) => sum + (Array.isArray(draft) ? count(draft) : 1), 0)

/** `before`, then an attempt that streams `chunks` and is answered with `content`, citing them. */
function answered(
  before: readonly k.Drafts[],
  chunks: readonly StreamChunk[],
  content: readonly ContentBlock[],
  { more = {}, source = { provider: 'p', model: 'm' }, between = [], turn = 1, step = 1, attempt = 1 }: Told = {},
): readonly k.Drafts[] {
  const at = { turn, step, attempt }
  const first = count(before)
  const last = chunks.at(-1)
  const ended: FinishReason = last?.type === 'finish' ? last.reason : { kind: 'stop' }
  const data: Answer = {
    ...at,
    message: { id: `a${turn}-${step}`, role: 'assistant', content, source: { kind: 'model', ...source } },
    finish: ended,
    calls: content.flatMap((block) =>
      block.type === 'tool-call'
        ? [{ callId: String(block.id), name: String(block.name), mode: 'parallel' as const }]
        : [],
    ),
    ...more,
  }
  return [
    ...before,
    ...chunks.map((chunk) => k.chunk(chunk, at)),
    ...between,
    k.ev('assistant/message', data, { sourceEventSeqs: chunks.map((_, i) => first + i) }),
  ]
}

const found = (drafts: readonly k.Drafts[]) => checkInvariants(k.logOf(...drafts))
/** What is said of an answer, of all that may be wrong with a stream. */
const saidOf = (drafts: readonly k.Drafts[]) =>
  found(drafts).flatMap(({ rule, message }) => (rule === 'ANSWER-SAID' ? [message] : []))
const blocks = (has: number, said: number) => `its ${has} blocks are not the ${said} of its chunks`
const USAGE = 'its usage is not that of its chunks'

interface Case {
  readonly chunks: readonly StreamChunk[]
  readonly content: readonly ContentBlock[]
  readonly not: Readonly<Record<string, readonly ContentBlock[]>>
}

const good: Readonly<Record<string, Case>> = {
  'text in one delta': {
    chunks: [...whole(words('a')), finish()],
    content: [words('a')],
    not: {
      'other words': [words('b')],
      'no words': [],
      'a second block': [words('a'), words('a')],
      thought: [thought('a')],
    },
  },
  'text in three deltas': {
    chunks: [start('text'), says('a'), says('b'), says('c'), end(words('abc')), finish()],
    content: [words('abc')],
    not: { 'the last delta': [words('c')], 'the first': [words('a')], 'a block of each': ['a', 'b', 'c'].map(words) },
  },
  'a thought before text': {
    chunks: [...whole(thought('hm')), ...whole(words('a'), 1), finish()],
    content: [thought('hm'), words('a')],
    not: {
      'the text only': [words('a')],
      'the thought only': [thought('hm')],
      'text before thought': [words('a'), thought('hm')],
      'two texts': [words('hm'), words('a')],
      'a second thought': [thought('hm'), words('a'), thought('hm')],
      'another end': [thought('hm'), words('b')],
      'another beginning': [thought('so'), words('a')],
    },
  },
  'a call whose arguments come in deltas': {
    chunks: [
      start('tool-call'),
      asks('{"a', { id: 'c1', name: 'look' }),
      asks('t":1}'),
      end(call('c1', '{"at":1}')),
      finish('tool-calls'),
    ],
    content: [call('c1', '{"at":1}')],
    not: {
      'another id': [call('c2', '{"at":1}')],
      'another tool': [call('c1', '{"at":1}', 'write')],
      'other arguments': [call('c1', '{"at":2}')],
      'no call': [],
      'words in its place': [words('{"at":1}')],
      'a second call': [call('c1', '{"at":1}'), call('c2')],
    },
  },
  'a call after text': {
    chunks: [...whole(words('a')), ...whole(call('c1'), 1), finish('tool-calls')],
    content: [words('a'), call('c1')],
    not: { 'no call': [words('a')], 'no text': [call('c1')], 'a call for the text': [call('c2'), call('c1')] },
  },
  'a block whose end has other words than its deltas': {
    chunks: [start('text'), says('a'), end(words('z')), finish()],
    content: [words('z')],
    not: { 'the deltas': [words('a')], both: [words('az')] },
  },
  'a call whose end has other arguments than its deltas': {
    chunks: [
      start('tool-call'),
      asks('{"at":1}', { id: 'c1', name: 'look' }),
      end(call('c9', '[]', 'see')),
      finish('tool-calls'),
    ],
    content: [call('c9', '[]', 'see')],
    not: { 'the deltas': [call('c1', '{"at":1}')] },
  },
  'indexes that do not come in order': {
    chunks: [...whole(words('second'), 1), ...whole(thought('first'), 0), finish()],
    content: [words('second'), thought('first')],
    not: { 'by their indexes': [thought('first'), words('second')] },
  },
  'blocks whose deltas are mixed, and closed the other way round': {
    chunks: [
      start('text', 4),
      start('text', 2),
      says('a', 2),
      says('x', 4),
      says('b', 2),
      says('y', 4),
      end(words('ab'), 2),
      end(words('xy'), 4),
      finish(),
    ],
    content: [words('xy'), words('ab')],
    not: { 'by their ends': [words('ab'), words('xy')], 'all in one': [words('axby')] },
  },
  'blank text in an answer that is whole': {
    chunks: [...whole(words(' \n')), ...whole(words('a'), 1), ...whole(thought(''), 2), finish()],
    content: [words(' \n'), words('a'), thought('')],
    not: { 'blanks dropped': [words('a')], 'blanks trimmed': [words(''), words('a'), thought('')] },
  },
  'a block of a type that is not known': {
    chunks: [start('acme/chart'), end({ type: 'acme/chart', text: 'a', points: [1] }), finish()],
    content: [{ type: 'acme/chart', text: 'a', points: [1] }],
    not: { dropped: [], 'its text': [words('a')], 'another chart': [{ type: 'acme/chart', text: 'a', points: [2] }] },
  },
  'nothing but its end': { chunks: [finish()], content: [], not: { words: [words('a')], 'blank words': [words('')] } },
  'text and calls, cut by the token limit': {
    chunks: [...whole(call('c1')), ...whole(words('a'), 1), ...whole(thought(' '), 2), finish('max-tokens')],
    content: [words('a'), thought(' ')],
    not: { 'the call': [call('c1'), words('a'), thought(' ')], 'no blanks': [words('a')], nothing: [] },
  },
  'only a call, cut by the token limit': {
    chunks: [...whole(call('c1')), finish('max-tokens')],
    content: [],
    not: { 'the call': [call('c1')] },
  },
  'calls, though it says that it stopped': {
    chunks: [...whole(call('c1')), finish('stop')],
    content: [call('c1')],
    not: { 'no call': [] },
  },
}

describe.each(Object.entries(good))('an answer of %s', (_, { chunks, content, not }) => {
  test('breaks no rule if it says that', () => {
    expect(found(answered([k.opened()], chunks, content))).toEqual([])
  })
  const said = content.length
  test.each(Object.entries(not))('is not one that has %s', (_, other) => {
    const drafts = answered([k.opened()], chunks, other)
    expect(saidOf(drafts)).toEqual([blocks(other.length, said)])
    expect(found(drafts).at(-1)?.seq).toBe(count(drafts) - 1)
  })
})

/** Streams against the grammar: that is reported of their chunks, and the answer is still what they come to. */
const loose: Readonly<Record<string, Case>> = {
  'text never opened nor closed': {
    chunks: [says('a'), says('b'), finish()],
    content: [words('ab')],
    not: { 'the last delta': [words('b')], thought: [thought('ab')] },
  },
  'a thought never opened nor closed': {
    chunks: [thinks('a'), thinks('b'), finish()],
    content: [thought('ab')],
    not: { 'the last delta': [thought('b')], text: [words('ab')] },
  },
  'a call never opened nor closed': {
    chunks: [asks('[', { id: 'c1', name: 'look' }), asks(']'), finish('tool-calls')],
    content: [call('c1', '[]')],
    not: { 'the last delta': [call('c1', ']')], text: [words('[]')] },
  },
  'a call whose id and name change': {
    chunks: [
      start('tool-call'),
      asks('', { id: 'c0', name: 'see' }),
      asks('{}', { id: 'c1', name: 'look' }),
      asks('', { id: '', name: '' }),
      finish('tool-calls'),
    ],
    content: [call('c1')],
    not: {
      'the first id': [call('c0')],
      'the first name': [call('c1', '{}', 'see')],
      'no name': [call('c1', '{}', '')],
    },
  },
  'a call without a name': {
    chunks: [start('tool-call'), asks('{}', { id: 'c1' }), finish('tool-calls')],
    content: [call('c1', '{}', '')],
    not: { 'a name': [call('c1')] },
  },
  'a call without an id': {
    chunks: [start('tool-call'), asks('{}', { name: 'look' }), finish('tool-calls')],
    content: [call('minted')],
    not: { 'a name': [call('minted', '{}', 'see')] },
  },
  'a block that is only closed': {
    chunks: [end(words('a')), finish()],
    content: [words('a')],
    not: { nothing: [], thought: [thought('a')] },
  },
  'a block closed twice, with a delta in between': {
    chunks: [start('text'), end(words('a')), says('b'), end(words('c')), finish()],
    content: [words('a')],
    not: { 'the second end': [words('c')], 'the delta': [words('b')], 'all of it': [words('abc')] },
  },
  'a block opened twice': {
    chunks: [start('text'), says('a'), start('reasoning'), says('b'), finish()],
    content: [words('ab')],
    not: { 'the second': [words('b')], thought: [thought('ab')], both: [words('a'), words('b')] },
  },
  'text with deltas of other types': {
    chunks: [start('text'), says('a'), thinks('x'), asks('y', { id: 'c1', name: 'look' }), says('b'), finish()],
    content: [words('ab')],
    not: { theirs: [words('axb')], 'all of them': [words('axyb')] },
  },
  'a call with deltas of other types': {
    chunks: [start('tool-call'), asks('[', { id: 'c1', name: 'look' }), says('x'), asks(']'), finish('tool-calls')],
    content: [call('c1', '[]')],
    not: { theirs: [call('c1', '[x]')] },
  },
  'a call left open by the token limit': {
    chunks: [start('text'), says('a'), asks('{', { id: 'c1', name: 'look', index: 1 }), finish('max-tokens')],
    content: [words('a')],
    not: { 'the call': [words('a'), call('c1', '{')] },
  },
}

describe.each(Object.entries(loose))('an answer of a stream out of order: %s', (_, { chunks, content, not }) => {
  test('is what it comes to', () => {
    expect(saidOf(answered([k.opened()], chunks, content))).toEqual([])
  })
  test.each(Object.entries(not))('is not %s', (_, other) => {
    expect(saidOf(answered([k.opened()], chunks, other))).toEqual([blocks(other.length, content.length)])
  })
})

test('a block of a type that is not known comes to nothing without its end', () => {
  const made: ContentBlock = { type: 'acme/map', text: '' }
  expect(saidOf(answered([k.opened()], [start('acme/map'), finish()], [made]))).toEqual([blocks(1, 1)])
})

const aborted: FinishReason = { kind: 'aborted', failure: { message: 'cancelled', code: 'ABORTED' } }
const cutOff: Told = { more: { interrupted: true, finish: aborted }, between: [k.turnCancel()] }

const interrupted: Readonly<Record<string, Case>> = {
  'text still open': {
    chunks: [start('text'), says('a'), says('b')],
    content: [words('ab')],
    not: { 'the last delta': [words('b')], nothing: [], thought: [thought('ab')] },
  },
  'a thought still open': {
    chunks: [...whole(words('a')), start('reasoning', 1), thinks('hm', 1)],
    content: [words('a'), thought('hm')],
    not: { 'no thought': [words('a')], 'only it': [thought('hm')], 'text instead': [words('a'), words('hm')] },
  },
  'blank words': {
    chunks: [...whole(words(' \n')), ...whole(words(' a '), 1), ...whole(thought('\t'), 2), start('text', 3)],
    content: [words(' a ')],
    not: {
      'its blank text': [words(' \n'), words(' a ')],
      'its blank thought': [words(' a '), thought('\t')],
      'its empty block': [words(' a '), words('')],
      'its words trimmed': [words('a')],
    },
  },
  'calls, closed and open': {
    chunks: [...whole(call('c1')), ...whole(words('a'), 1), start('tool-call', 2), asks('{', { id: 'c2', index: 2 })],
    content: [words('a')],
    not: { 'the closed call': [call('c1'), words('a')], 'the open call': [words('a'), call('c2', '{', '')] },
  },
  'blocks of types that are not known, closed and open': {
    chunks: [
      start('acme/chart'),
      end({ type: 'acme/chart', text: 'a' }),
      ...whole(words('b'), 1),
      start('acme/map', 2),
    ],
    content: [words('b')],
    not: {
      'the chart': [{ type: 'acme/chart', text: 'a' }, words('b')],
      'its text': [words('a'), words('b')],
      'an empty block': [words('b'), words('')],
    },
  },
}

describe.each(Object.entries(interrupted))('an answer cut off with %s', (_, { chunks, content, not }) => {
  test('breaks no rule if it has the words', () => {
    expect(found(answered([k.opened()], chunks, content, cutOff))).toEqual([])
  })
  test.each(Object.entries(not))('is not one with %s', (_, other) => {
    expect(saidOf(answered([k.opened()], chunks, other, cutOff))).toEqual([blocks(other.length, content.length)])
  })
})

describe('the usage of an answer', () => {
  const stream = [...whole(words('a')), usage(3), finish()]
  const spent = (inputTokens: number) => ({ more: { usage: { inputTokens, outputTokens: 1 } } })
  const ofText = (chunks: readonly StreamChunk[], told: Told) => answered([k.opened()], chunks, [words('a')], told)

  test('is that of its chunk', () => {
    expect(found(ofText(stream, spent(3)))).toEqual([])
    expect(saidOf(ofText(stream, spent(4)))).toEqual([USAGE])
    expect(saidOf(ofText(stream, {}))).toEqual([USAGE])
  })
  test('is none where no chunk has one', () => {
    const none = [...whole(words('a')), finish()]
    expect(found(ofText(none, {}))).toEqual([])
    expect(saidOf(ofText(none, spent(3)))).toEqual([USAGE])
  })
  test('is that of the last chunk of several', () => {
    const twice = [usage(3), ...whole(words('a')), usage(5), finish()]
    expect(saidOf(ofText(twice, spent(5)))).toEqual([])
    expect(saidOf(ofText(twice, spent(3)))).toEqual([USAGE])
    expect(saidOf(ofText(twice, spent(8)))).toEqual([USAGE])
  })
  test('counts for one that was cut off too', () => {
    const cut = [...whole(words('a')), usage(3)]
    const told = { ...cutOff, more: { ...cutOff.more, ...spent(3).more } }
    expect(found(ofText(cut, told))).toEqual([])
    expect(saidOf(ofText(cut, cutOff))).toEqual([USAGE])
  })
  test('is reported beside its blocks', () => {
    expect(saidOf(answered([k.opened()], stream, [], spent(4)))).toEqual([blocks(0, 1), USAGE])
  })
})

describe('the model of an answer', () => {
  const chunks = [...whole(words('a')), finish()]
  const by = (provider: string, model: string) =>
    answered([k.opened()], chunks, [words('a')], { source: { provider, model } })

  test('is the one that was asked, of the provider that was asked', () => {
    expect(found(by('p', 'm'))).toEqual([])
    expect(saidOf(by('p', 'n'))).toEqual(['it is said to be of p n, and p m was asked'])
    expect(saidOf(by('q', 'm'))).toEqual(['it is said to be of q m, and p m was asked'])
    expect(saidOf(by('q', 'n'))).toEqual(['it is said to be of q n, and p m was asked'])
  })
  test('is looked at though it cites no chunks', () => {
    const source = { kind: 'model', provider: 'p', model: 'n' } as const
    const message = { id: 'a1', role: 'assistant', content: [words('a')], source } as const
    expect(saidOf([k.opened(), k.textChunks('a'), k.answer('', { message })])).toHaveLength(1)
  })
  test('is that of the request, whatever header comes while it answers', () => {
    const late = k.ev('request/header', { header: { config: { provider: 'p', model: 'n' } }, reason: 'change' })
    const told = { between: [late] }
    expect(saidOf(answered([k.opened()], chunks, [words('a')], told))).toEqual([])
    const other = { ...told, source: { provider: 'p', model: 'n' } }
    expect(saidOf(answered([k.opened()], chunks, [words('a')], other))).toHaveLength(1)
  })
  test('is not asked for where no header was ever logged, or nobody is asking', () => {
    expect(saidOf([k.opened().slice(0, 5), k.answer('a')])).toEqual([])
    expect(saidOf([k.opened(), k.textChunks('a'), k.answer('a'), k.answer('a')])).toEqual([])
  })
})

test('an answer that cites no chunks may have been put there by other means', () => {
  expect(found([k.opened(), k.textChunks('a'), k.answer('b')])).toEqual([])
})

describe('an attempt’s answer has its own chunks only', () => {
  const lost = k.textChunks('lost').slice(0, 2)
  const chunks = [...whole(words('a')), finish()]

  test.each<[string, readonly k.Drafts[], Place]>([
    ['another attempt', [k.opened(), lost, k.resumed()], { attempt: 2 }],
    ['another step', [k.opened(), k.asksFor([{ id: 'c1' }]), k.ran('c1'), k.handsOver('c1')], { step: 2 }],
    ['the same step and attempt of another turn', [k.textTurn(), k.opened('m2', 2)], { turn: 2 }],
  ])('after %s', (_, before, at) => {
    expect(found(answered(before, chunks, [words('a')], at))).toEqual([])
    expect(saidOf(answered(before, chunks, [words('losta')], at))).toEqual([blocks(1, 1)])
    expect(saidOf(answered(before, chunks, [words('lost'), words('a')], at))).toEqual([blocks(2, 1)])
  })
  test('and none if it streamed nothing, whatever the attempt before said', () => {
    const before = [k.opened(), lost, k.resumed()]
    expect(saidOf(answered(before, [], [], { attempt: 2 }))).toEqual([])
    expect(saidOf(answered(before, [], [words('lost')], { attempt: 2 }))).toEqual([blocks(1, 0)])
  })
  test('nor the usage of the attempt before', () => {
    const before = [k.opened(), k.textChunks('lost').slice(0, 4), k.resumed()]
    expect(saidOf(answered(before, chunks, [words('a')], { attempt: 2 }))).toEqual([])
    const spent = { usage: { inputTokens: 3, outputTokens: 2 } }
    expect(saidOf(answered(before, chunks, [words('a')], { attempt: 2, more: spent }))).toEqual([USAGE])
  })
})

describe('an id that is none, too long or used is minted anew', () => {
  const stream = (...ids: readonly string[]) => [
    ...ids.flatMap((id, index) => whole(call(id, `[${index}]`), index)),
    finish('tool-calls'),
  ]
  const calls = (...ids: readonly string[]) => ids.map((id, index) => call(id, `[${index}]`))
  const longest = 'x'.repeat(256)
  const first = [k.opened()]
  const second = [k.opened(), k.asksFor([{ id: 'c1' }]), k.ran('c1'), k.handsOver('c1')]

  test.each<[string, readonly k.Drafts[], Place, readonly string[], readonly string[]]>([
    ['none', first, {}, [''], ['minted']],
    ['none, of the last call', first, {}, ['c1', ''], ['c1', 'minted']],
    ['too long', first, {}, [`${longest}x`], ['minted']],
    ['used in this answer', first, {}, ['c1', 'c1'], ['c1', 'minted']],
    ['used in this answer, by one that was minted', first, {}, ['', 'minted'], ['minted', 'other']],
    ['used in a step before', second, { step: 2 }, ['c1'], ['minted']],
  ])('%s', (_, before, at, said, ids) => {
    expect(found(answered(before, stream(...said), calls(...ids), at))).toEqual([])
    const other = calls(...ids).map((block) => ({ ...block, arguments: '{"other":1}' }))
    expect(saidOf(answered(before, stream(...said), other, at))).toEqual([blocks(ids.length, ids.length)])
    const renamed = calls(...ids).map((block) => ({ ...block, name: 'write' }))
    expect(saidOf(answered(before, stream(...said), renamed, at))).toEqual([blocks(ids.length, ids.length)])
    const asText = ids.map(() => words('a'))
    expect(saidOf(answered(before, stream(...said), asText, at))).toEqual([blocks(ids.length, ids.length)])
  })

  test.each<[string, readonly k.Drafts[], Place, readonly string[], readonly string[]]>([
    ['one that is good', first, {}, ['c1'], ['minted']],
    ['the longest there may be', first, {}, [longest], ['minted']],
    ['one that another call of this answer has, later', first, {}, ['c1', 'c1'], ['minted', 'c1']],
    ['one that no step before used', second, { step: 2 }, ['c2'], ['minted']],
  ])('but not %s', (_, before, at, said, ids) => {
    expect(saidOf(answered(before, stream(...said), calls(...ids), at))).toEqual([blocks(ids.length, ids.length)])
  })
  test('nor one that a block of another type has', () => {
    const chart: ContentBlock = { type: 'acme/chart', id: 'c1' }
    const said = [start('acme/chart'), end(chart), ...whole(call('c1'), 1), finish('tool-calls')]
    expect(found(answered(first, said, [chart, call('c1')]))).toEqual([])
    expect(saidOf(answered(first, said, [chart, call('minted')]))).toEqual([blocks(2, 2)])
  })
  test('the longest there may be is kept', () => {
    expect(found(answered(first, stream(longest), calls(longest)))).toEqual([])
  })
})
