/** Events of a model's stream to chunks. */
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../src/log/messages.ts'
import { createTranslation } from '../../src/services/adapters/chat-completions/translate.ts'
import { usageOf } from '../../src/services/adapters/chat-completions/usage.ts'
import { deepseek } from '../../src/services/adapters/deepseek.ts'
import { assemblerOf } from '../../src/services/llm/assembler.ts'
import { ask, failureIn, finishIn } from '../kit/ask-adapter.ts'
import { counted, DONE, delta, event, type Step, stopped, wireServer } from '../kit/wire-server.ts'

async function told(...body: readonly Step[]): Promise<StreamChunk[]> {
  await using server = await wireServer([{ body: [...body] }])
  return await ask(deepseek({ baseURL: server.url, apiKey: 'k' }))
}
type Fragment = Readonly<Record<string, unknown>>
const calls = (...tool_calls: readonly Fragment[]) => delta({ tool_calls })
const fn = (name: unknown, args: unknown) => ({ function: { name, arguments: args } })
const callsIn = (chunks: readonly StreamChunk[]) =>
  assemblerOf(chunks)
    .blocks()
    .flatMap((block) => (block.type === 'tool-call' ? [[block.id, block.name, block.arguments]] : []))
const blocksIn = (chunks: readonly StreamChunk[]) => assemblerOf(chunks).blocks()
const text = (said: string) => ({ type: 'text', text: said })
const thought = (said: string) => ({ type: 'reasoning', text: said })

describe('words', () => {
  const hello = () =>
    told(delta({ role: 'assistant' }), delta({ content: 'Hel' }), delta({ content: 'lo' }), stopped('stop'), DONE)

  test('[translate-001] text goes out as it comes, and ends with the stream', async () => {
    expect(await hello()).toEqual([
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'text-delta', index: 0, text: 'Hel' },
      { type: 'text-delta', index: 0, text: 'lo' },
      { type: 'block-end', index: 0, block: text('Hello') },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
  })

  test('[translate-001] a delta is out before the next one is in', async () => {
    const translation = createTranslation()
    const said = translation.take({ choices: [{ delta: { content: 'a' } }] })
    expect(said.at(-1)).toEqual({ type: 'text-delta', index: 0, text: 'a' })
    expect(translation.finished).toBe(false)
  })

  test('[translate-002] the chunks assemble to the message', async () => {
    const assembler = assemblerOf(await hello())
    expect([assembler.blocks(), assembler.finish]).toEqual([[text('Hello')], { kind: 'stop' }])
  })

  test('[translate-003] [translate-004] [translate-006] what is empty, null or missing opens nothing', async () => {
    const chunks = await told(
      delta({ reasoning_content: '', content: null }),
      delta({ content: 'a' }),
      stopped('stop'),
      DONE,
    )
    expect(blocksIn(chunks)).toEqual([text('a')])
  })

  test('[translate-005] reasoning and text are two blocks, numbered and ended as they opened', async () => {
    const thinking = [delta({ reasoning_content: 'a' }), delta({ reasoning_content: 'b' })]
    const chunks = await told(...thinking, delta({ content: 'x' }), stopped('stop'), DONE)
    expect(chunks.slice(-3)).toEqual([
      { type: 'block-end', index: 0, block: thought('ab') },
      { type: 'block-end', index: 1, block: text('x') },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
  })

  test('reasoning by its other name is reasoning, and by both names is said once', async () => {
    const chunks = await told(
      delta({ reasoning: 'a' }),
      delta({ reasoning: 'b', reasoning_content: 'b' }),
      delta({ content: 'x' }),
      DONE,
    )
    expect(blocksIn(chunks)).toEqual([thought('ab'), text('x')])
  })

  test('call markup in text stays text', async () => {
    const chunks = await told(delta({ content: '<tool_call>{"name":"rm"}' }), stopped('stop'), DONE)
    expect(callsIn(chunks)).toEqual([])
    expect(finishIn(chunks)).toEqual({ kind: 'stop' })
  })
})

describe('calls', () => {
  test('[translate-007] fragments repeat what is known of the call, and the end holds all of it', async () => {
    const chunks = await told(
      calls({ index: 0, id: 'c', ...fn('find', '') }),
      calls({ index: 0, ...fn(undefined, '{"q"') }),
      calls({ index: 0, ...fn(undefined, ':1}') }),
      stopped('tool_calls'),
      DONE,
    )
    const fragment = (argumentsDelta: string) => ({
      type: 'tool-call-delta',
      index: 0,
      id: 'c',
      name: 'find',
      argumentsDelta,
    })
    expect(chunks).toEqual([
      { type: 'block-start', index: 0, blockType: 'tool-call' },
      fragment(''),
      fragment('{"q"'),
      fragment(':1}'),
      { type: 'block-end', index: 0, block: { type: 'tool-call', id: 'c', name: 'find', arguments: '{"q":1}' } },
      { type: 'finish', reason: { kind: 'tool-calls' } },
    ])
  })

  test('[translate-008] calls that take turns are told apart by their index', async () => {
    const chunks = await told(
      calls({ index: 1, id: 'b', ...fn('g', '{') }),
      calls({ index: 0, id: 'a', ...fn('f', '[') }),
      calls({ index: 1, ...fn(null, '}') }, { index: 0, ...fn(null, ']') }),
      stopped('tool_calls'),
      DONE,
    )
    expect(callsIn(chunks)).toEqual([
      ['b', 'g', '{}'],
      ['a', 'f', '[]'],
    ])
  })

  test('[translate-009] [translate-010] an id or a name that comes again replaces, and an empty one does not', async () => {
    const again = [
      calls({ index: 0, id: 'a', ...fn('grep', '{') }),
      calls({ index: 0, id: 'a', ...fn('grep', '') }),
      calls({ index: 0, id: '', ...fn('', '}') }),
      calls({ index: 0, id: null, ...fn(null, '') }),
    ]
    expect(callsIn(await told(...again, stopped('tool_calls'), DONE))).toEqual([['a', 'grep', '{}']])
  })

  test('[translate-011] a call that never gets id and name has empty ones', async () => {
    expect(callsIn(await told(calls({ index: 0, ...fn(undefined, '{}') }), stopped('tool_calls'), DONE))).toEqual([
      ['', '', '{}'],
    ])
  })

  test('[translate-012] a fragment may bring only an id, or only a name', async () => {
    const chunks = await told(calls({ index: 0, id: 'c' }), calls({ index: 0, function: { name: 'f' } }), DONE)
    expect(chunks.filter((chunk) => chunk.type === 'tool-call-delta')).toEqual([
      { type: 'tool-call-delta', index: 0, id: 'c', argumentsDelta: '' },
      { type: 'tool-call-delta', index: 0, id: 'c', name: 'f', argumentsDelta: '' },
    ])
  })

  test.each<[string, readonly (readonly Fragment[])[], readonly (readonly string[])[]]>([
    [
      'one call without any index',
      [[{ id: 'a', ...fn('f', '') }], [fn(undefined, '{')], [fn(undefined, '}')]],
      [['a', 'f', '{}']],
    ],
    [
      'two in one list, without index',
      [
        [
          { id: 'a', ...fn('f', '{}') },
          { id: 'b', ...fn('g', '[]') },
        ],
      ],
      [
        ['a', 'f', '{}'],
        ['b', 'g', '[]'],
      ],
    ],
    [
      'two in one list, without index and id, in pieces',
      [
        [fn('f', '{'), fn('f', '[')],
        [fn('', '}'), fn('', ']')],
      ],
      [
        ['', 'f', '{}'],
        ['', 'f', '[]'],
      ],
    ],
    [
      'two one after the other, without index and id',
      [[fn('f', '{}')], [fn('g', '{}')], [fn('g', '{}')]],
      [
        ['', 'f', '{}'],
        ['', 'g', '{}'],
        ['', 'g', '{}'],
      ],
    ],
    [
      'an index at the start only',
      [[{ index: 7, id: 'a', ...fn('f', '') }], [fn(undefined, '{}')]],
      [['a', 'f', '{}']],
    ],
    [
      'two that take turns by id',
      [
        [{ id: 'a', ...fn('f', '{') }],
        [{ id: 'b', ...fn('g', '[') }],
        [{ id: 'a', ...fn('', '}') }],
        [{ id: 'b', ...fn('', ']') }],
      ],
      [
        ['a', 'f', '{}'],
        ['b', 'g', '[]'],
      ],
    ],
    [
      'an id that comes late, without any index',
      [[fn(undefined, '{')], [{ id: 'a', ...fn('f', '}') }]],
      [['a', 'f', '{}']],
    ],
    [
      'a name that comes late',
      [[{ index: 0, id: 'a', ...fn('', '{') }], [{ index: 0, ...fn('f', '}') }]],
      [['a', 'f', '{}']],
    ],
    ['arguments as an object', [[{ index: 0, id: 'a', ...fn('f', { q: 'x' }) }]], [['a', 'f', '{"q":"x"}']]],
    [
      'an empty fragment at the end',
      [[{ index: 0, id: 'a', ...fn('f', '{}') }], [{ index: 0, ...fn('', '') }]],
      [['a', 'f', '{}']],
    ],
  ])('%s', async (_, lists, expected) => {
    const chunks = await told(...lists.map((list) => calls(...list)), stopped('tool_calls'), DONE)
    expect(callsIn(chunks)).toEqual(expected)
    expect(chunks.filter((chunk) => chunk.type === 'block-end')).toHaveLength(expected.length)
  })

  test('big integers in arguments are not rounded', async () => {
    const chunks = await told(calls({ index: 0, id: 'a', ...fn('f', '{"id":9223372036854775807}') }), DONE)
    expect(callsIn(chunks)).toEqual([['a', 'f', '{"id":9223372036854775807}']])
  })
})

describe('usage', () => {
  test('[translate-013] usage after the finish reason comes before the finish', async () => {
    const chunks = await told(
      delta({ content: 'a' }),
      stopped('stop'),
      counted({ prompt_tokens: 3, completion_tokens: 1 }),
      DONE,
    )
    expect(chunks.slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 3, outputTokens: 1 } },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
  })

  test('[translate-014] the last usage is the one', async () => {
    const attached = event({
      choices: [{ delta: { content: 'a' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    })
    const chunks = await told(
      attached,
      counted({ prompt_tokens: 5, completion_tokens: 2 }),
      event({ choices: null, usage: null }),
      DONE,
    )
    expect(chunks.filter((chunk) => chunk.type === 'usage')).toEqual([
      { type: 'usage', usage: { inputTokens: 5, outputTokens: 2 } },
    ])
  })

  test.each([
    [
      '[translate-016] cached tokens are not input tokens',
      {
        prompt_tokens: 283,
        completion_tokens: 69,
        prompt_tokens_details: { cached_tokens: 256 },
        completion_tokens_details: { reasoning_tokens: 24 },
      },
      { inputTokens: 27, outputTokens: 69, cacheReadTokens: 256, reasoningTokens: 24 },
    ],
    [
      '[translate-017] cache hits have another name',
      { prompt_tokens: 10, completion_tokens: 2, prompt_cache_hit_tokens: 8 },
      { inputTokens: 2, outputTokens: 2, cacheReadTokens: 8 },
    ],
    [
      '[translate-018] what is not told is absent',
      { prompt_tokens: 10, completion_tokens: 2 },
      { inputTokens: 10, outputTokens: 2 },
    ],
    [
      '[translate-018] a zero that is told is kept',
      { prompt_tokens: 10, completion_tokens: 2, prompt_cache_hit_tokens: 0 },
      { inputTokens: 10, outputTokens: 2, cacheReadTokens: 0 },
    ],
    ['counts that are none are no usage', { prompt_tokens: 'many', completion_tokens: -1 }, undefined],
  ])('%s', (_, wire, expected) => {
    expect(usageOf(wire)).toEqual(expected)
  })
})

describe('finishes', () => {
  test.each([
    ['[translate-019] stop', ['stop'], { kind: 'stop' }],
    ['[translate-019] length', ['length'], { kind: 'max-tokens' }],
    ['[translate-020] none at all', [], { kind: 'stop' }],
    ['cut off beats complete', ['length', 'stop'], { kind: 'max-tokens' }],
    ['cut off beats complete, later too', ['tool_calls', 'length'], { kind: 'max-tokens' }],
    ['filtered beats both', ['content_filter', 'length'], { kind: 'error', failure: { code: 'CONTENT_FILTER' } }],
    ['a reason of the provider', ['out_of_luck'], { kind: 'error', failure: { code: 'OUT_OF_LUCK' } }],
  ])('%s', async (_, reasons, expected) => {
    const chunks = await told(delta({ content: 'a' }), ...reasons.map((reason) => stopped(reason)), DONE)
    expect(finishIn(chunks)).toMatchObject(expected)
  })

  test('what comes again with a second finish does not count twice', async () => {
    const call = { tool_calls: [{ index: 0, id: 'c', ...fn('f', '{}') }] }
    const chunks = await told(stopped('tool_calls', call), stopped('tool_calls', call), DONE)
    expect(callsIn(chunks)).toEqual([['c', 'f', '{}']])
  })

  test('a call whose answer was cut off is dropped', async () => {
    expect(callsIn(await told(calls({ index: 0, id: 'c', ...fn('f', '{}') }), stopped('length'), DONE))).toEqual([])
  })

  test('[translate-021] a stop without content is an empty answer, after its usage', async () => {
    const chunks = await told(stopped('stop'), counted({ prompt_tokens: 1, completion_tokens: 0 }), DONE)
    expect(chunks.map(({ type }) => type)).toEqual(['usage', 'finish'])
    expect(failureIn(chunks).code).toBe('EMPTY_RESPONSE')
  })

  test('[translate-022] reasoning alone is an empty answer', async () => {
    expect(failureIn(await told(delta({ reasoning_content: 'hm' }), stopped('stop'), DONE)).code).toBe('EMPTY_RESPONSE')
  })

  test('[translate-023] cut off before any content is still cut off', async () => {
    expect(finishIn(await told(stopped('length'), DONE))).toEqual({ kind: 'max-tokens' })
  })

  test('a finish for calls without calls is a stop', async () => {
    expect(finishIn(await told(stopped('tool_calls'), DONE))).toEqual({ kind: 'stop' })
  })
})

describe('oddities', () => {
  test('[translate-024] payloads without choices are passed over', async () => {
    const chunks = await told(
      event({}),
      event({ choices: [] }),
      delta({ content: 'a' }),
      event({ choices: null }),
      stopped('stop'),
      DONE,
    )
    expect(blocksIn(chunks)).toEqual([text('a')])
  })

  test('[translate-025] a payload that is not JSON ends the answer', async () => {
    const chunks = await told(delta({ content: 'a' }), event(`not json ${'x'.repeat(300)}`), DONE)
    expect(failureIn(chunks).code).toBe('MALFORMED_RESPONSE')
    expect(failureIn(chunks).message).not.toContain('x'.repeat(120))
  })

  test('[translate-026] a source that just ends was closed', async () => {
    expect(failureIn(await told(delta({ content: 'a' }))).code).toBe('STREAM_CLOSED')
  })

  test.each([
    [
      { error: { message: 'm', code: 'CONTEXT_LENGTH_EXCEEDED' } },
      'CONTEXT_WINDOW_EXCEEDED',
      'm (code CONTEXT_LENGTH_EXCEEDED)',
    ],
    [{ error: 'BOOM' }, 'SERVER', 'BOOM'],
    [{ error: { message: 'm', code: 429 } }, 'RATE_LIMIT', 'm (code 429)'],
    [
      { error: { message: 'm', code: 'model_missing', type: 't', param: 'p' } },
      'MODEL_MISSING',
      'm (code model_missing, type t, param p)',
    ],
    [{ error: { message: 'm', type: 'insufficient_quota' } }, 'QUOTA', 'm (type insufficient_quota)'],
    [{ object: 'error', message: 'overloaded' }, 'SERVER', 'overloaded'],
  ])('an error inside the stream is the failure: %j', async (payload, code, message) => {
    expect(failureIn(await told(delta({ content: 'a' }), event(payload), DONE))).toMatchObject({ code, message })
  })

  test('an event named error is an error, with and without the space', async () => {
    const chunks = await told('event:error\ndata:{"message":"slow","code":"rate_limit_exceeded"}\n\n', DONE)
    expect(failureIn(chunks)).toMatchObject({ code: 'RATE_LIMIT' })
    expect(failureIn(await told('event: error\ndata: gone\n\n'))).toMatchObject({ code: 'SERVER', message: 'gone' })
  })
})
