/** Parts of a model's stream to chunks. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../../src/log/messages.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { assemblerOf } from '../../../../src/services/llm/assembler.ts'
import { finish3, mock2, mock3, mock4, text3, usage3 } from '../../../kit/ai-sdk-models.ts'
import { ask, failureIn, finishIn } from '../../../kit/ask-adapter.ts'
import { brokenPromise } from '../../../kit/corpus/contract.ts'

const look = { name: 'look', description: 'Looks.', parameters: { type: 'object' } }
async function told(...parts: readonly (LanguageModelV3StreamPart | Error)[]): Promise<StreamChunk[]> {
  const said = await ask(aiSdk(mock3(parts)), { tools: [look] })
  expect(brokenPromise(said)).toBeUndefined()
  return said
}
const blocksIn = (chunks: readonly StreamChunk[]) => assemblerOf(chunks).blocks()
const replayOf = (chunks: readonly StreamChunk[]) => assemblerOf(chunks).replayState
const usage = { inputTokens: 7, outputTokens: 5, cacheReadTokens: 2, cacheWriteTokens: 1, reasoningTokens: 2 }
const call = (toolCallId: string, input: string, more: object = {}): LanguageModelV3StreamPart => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'look',
  input,
  ...more,
})

describe('words', () => {
  test('text goes out as it comes, then usage, then the finish', async () => {
    const parts: LanguageModelV3StreamPart[] = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: 'a' },
      { type: 'text-delta', id: 'a', delta: 'Hel' },
      { type: 'text-delta', id: 'a', delta: 'lo' },
      { type: 'text-end', id: 'a' },
      finish3(),
    ]
    expect(await told(...parts)).toEqual([
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'text-delta', index: 0, text: 'Hel' },
      { type: 'text-delta', index: 0, text: 'lo' },
      { type: 'block-end', index: 0, block: { type: 'text', text: 'Hello' } },
      { type: 'usage', usage },
      { type: 'finish', reason: { kind: 'stop' } },
    ])
  })

  test('blocks that are under way at once stay apart, also under the same id', async () => {
    const said = await told(
      { type: 'reasoning-start', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'b' },
      { type: 'reasoning-delta', id: '0', delta: 'r' },
      { type: 'text-delta', id: '0', delta: 'a' },
      { type: 'text-delta', id: '1', delta: 'B' },
      { type: 'reasoning-end', id: '0' },
      { type: 'text-end', id: '1' },
      { type: 'text-end', id: '0' },
      finish3(),
    )
    expect(blocksIn(said)).toEqual([
      { type: 'text', text: 'bB' },
      { type: 'reasoning', text: 'r' },
      { type: 'text', text: 'a' },
    ])
  })

  test('an id that comes again is another block', async () => {
    expect(blocksIn(await told(...text3('one'), ...text3('two'), finish3()))).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ])
  })

  test('a start of what is still open ends it', async () => {
    const [start, delta] = text3('one')
    if (!start || !delta) throw new Error('no text')
    expect(blocksIn(await told(start, delta, ...text3('two'), finish3()))).toEqual([
      { type: 'text', text: 'one' },
      { type: 'text', text: 'two' },
    ])
  })

  test('a block that its provider leaves open ends with the answer, one without a start is one all the same', async () => {
    const said = await told({ type: 'text-delta', id: '9', delta: 'x' }, finish3())
    expect(blocksIn(said)).toEqual([{ type: 'text', text: 'x' }])
    expect(said.map(({ type }) => type)).toEqual(['block-start', 'text-delta', 'block-end', 'usage', 'finish'])
  })

  test('what stays empty is no block', async () => {
    expect(
      blocksIn(await told({ type: 'text-start', id: '0' }, { type: 'text-end', id: '0' }, ...text3('x'), finish3())),
    ).toEqual([{ type: 'text', text: 'x' }])
  })
})

describe('tool calls', () => {
  const input = (id: string, ...pieces: readonly string[]): LanguageModelV3StreamPart[] => [
    { type: 'tool-input-start', id, toolName: 'look' },
    ...pieces.map((delta) => ({ type: 'tool-input-delta' as const, id, delta })),
    { type: 'tool-input-end', id },
  ]

  test('input is streamed, and the call has the last word on it', async () => {
    expect(await told(...input('c1', '{"a"', ':1}'), call('c1', '{"a":2}'), finish3('tool-calls'))).toEqual([
      { type: 'block-start', index: 0, blockType: 'tool-call' },
      { type: 'tool-call-delta', index: 0, id: 'c1', name: 'look', argumentsDelta: '' },
      { type: 'tool-call-delta', index: 0, argumentsDelta: '{"a"' },
      { type: 'tool-call-delta', index: 0, argumentsDelta: ':1}' },
      { type: 'block-end', index: 0, block: { type: 'tool-call', id: 'c1', name: 'look', arguments: '{"a":2}' } },
      { type: 'usage', usage },
      { type: 'finish', reason: { kind: 'tool-calls' } },
    ])
  })

  test('a call without streamed input is one', async () => {
    const said = await told(call('c1', '{"a":1}'), call('c2', ''), finish3('tool-calls'))
    expect(blocksIn(said)).toEqual([
      { type: 'tool-call', id: 'c1', name: 'look', arguments: '{"a":1}' },
      { type: 'tool-call', id: 'c2', name: 'look', arguments: '' },
    ])
  })

  test('digits beyond 2^53 come through as they were sent', async () => {
    const [block] = blocksIn(await told(call('c1', '{"id":9223372036854775807}'), finish3('tool-calls')))
    expect(block).toMatchObject({ arguments: '{"id":9223372036854775807}' })
  })

  test('calls are a fact of the answer, whatever it says it stopped for', async () => {
    expect(finishIn(await told(call('c1', '{}'), finish3('stop')))).toEqual({ kind: 'stop' })
  })

  test('a call that is said twice is one', async () => {
    expect(blocksIn(await told(call('c1', '{}'), call('c1', '{}'), finish3('tool-calls')))).toHaveLength(1)
    const again = [...input('c1', '{}'), call('c1', '{}'), ...input('c1', '{}'), call('c1', '{}')]
    expect(blocksIn(await told(...again, finish3('tool-calls')))).toHaveLength(1)
    expect(blocksIn(await told(call('c1', '{}'), call('c1', '{"a":1}'), finish3('tool-calls')))).toHaveLength(2)
  })

  test('input that is begun twice is one call', async () => {
    const begun: LanguageModelV3StreamPart = { type: 'tool-input-start', id: 'c1', toolName: 'look' }
    expect(blocksIn(await told(begun, begun, call('c1', '{}'), finish3('tool-calls')))).toHaveLength(1)
  })

  test('an answer cut by its length has no calls', async () => {
    const cut = await told(...text3('x'), ...input('c1', '{"a"'), finish3('length'))
    expect(finishIn(cut)).toEqual({ kind: 'max-tokens' })
    expect(blocksIn(cut)).toEqual([{ type: 'text', text: 'x' }])
  })

  test('input that never becomes a call fails the attempt, and runs nothing', async () => {
    const failure = failureIn(await told(...text3('x'), ...input('c1', '{"a":1}'), finish3('tool-calls')))
    expect(failure).toEqual({
      code: 'MALFORMED_RESPONSE',
      message: 'The provider began a call of "look" and never made it',
    })
  })

  test('a tool that is none of the agent’s may yet be the provider’s: its input waits for the call', async () => {
    const said = await told(
      { type: 'tool-input-start', id: 's1', toolName: 'web_search' },
      { type: 'tool-input-delta', id: 's1', delta: '{"q":' },
      { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":1}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: { hits: 1 } },
      ...text3('found'),
      finish3(),
    )
    expect(blocksIn(said)).toEqual([
      { type: 'ai-sdk/tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":1}' },
      { type: 'ai-sdk/tool-result', toolCallId: 's1', toolName: 'web_search', result: { hits: 1 } },
      { type: 'text', text: 'found' },
    ])
    const ours = await told(
      { type: 'tool-input-start', id: 's1', toolName: 'unheard_of' },
      { type: 'tool-input-delta', id: 's1', delta: '{}' },
      { type: 'tool-call', toolCallId: 's1', toolName: 'unheard_of', input: '{}' },
      finish3('tool-calls'),
    )
    expect(blocksIn(ours)).toEqual([{ type: 'tool-call', id: 's1', name: 'unheard_of', arguments: '{}' }])
  })

  test('a provider that runs a tool of the agent’s fails the attempt', async () => {
    const said = told(...input('c1', '{}'), call('c1', '{}', { providerExecuted: true }), finish3())
    expect(failureIn(await said)).toMatchObject({ code: 'MALFORMED_RESPONSE', message: /ran call "c1" itself/ })
  })

  test('an approval that only the provider could take fails the attempt', async () => {
    const said = told({ type: 'tool-approval-request', approvalId: 'a', toolCallId: 's1' }, finish3())
    expect(failureIn(await said)).toMatchObject({ code: 'UNSUPPORTED_CONTENT' })
  })
})

describe('what only the provider knows', () => {
  test('files and sources are kept, bytes as base64, and an answer of them is not empty', async () => {
    const said = await told(
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) },
      { type: 'file', mediaType: 'image/png', data: 'AQID' },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org', title: 'T' },
      finish3(),
    )
    expect(blocksIn(said)).toEqual([
      { type: 'ai-sdk/file', mediaType: 'image/png', data: 'AQID' },
      { type: 'ai-sdk/file', mediaType: 'image/png', data: 'AQID' },
      { type: 'ai-sdk/source', sourceType: 'url', id: 's', url: 'https://example.org', title: 'T' },
    ])
    expect(finishIn(said)).toEqual({ kind: 'stop' })
  })

  test('a preliminary result is none, and what no log can hold is left out', async () => {
    const cyclic: Record<string, never> & { self?: unknown } = {}
    cyclic.self = cyclic
    const said = await told(
      { type: 'tool-result', toolCallId: 's1', toolName: 'w', result: 'half', preliminary: true },
      { type: 'tool-result', toolCallId: 's1', toolName: 'w', result: cyclic },
      ...text3('x'),
      finish3(),
    )
    expect(blocksIn(said)).toEqual([{ type: 'text', text: 'x' }])
  })

  test('version 4: files under a tag, files of reasoning, custom parts and citations', async () => {
    const { model } = mock4([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1]) } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.org/a') } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AQ==' } },
      { type: 'custom', kind: 'mock.note', providerMetadata: { mock: { n: 1 } } },
      { type: 'ping' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'x' },
      {
        type: 'text-end',
        id: '0',
        citations: [{ source: { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org' } }],
      },
      finish3(),
    ])
    const said = await ask(aiSdk(model))
    expect(blocksIn(said)).toEqual([
      { type: 'ai-sdk/file', mediaType: 'image/png', data: 'AQ==' },
      { type: 'ai-sdk/file', mediaType: 'image/png', url: 'https://example.org/a' },
      { type: 'ai-sdk/reasoning-file', mediaType: 'image/png', data: 'AQ==' },
      { type: 'ai-sdk/custom', kind: 'mock.note' },
      { type: 'text', text: 'x' },
      {
        type: 'ai-sdk/citations',
        citations: [{ source: { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org' } }],
      },
    ])
    expect(replayOf(said)?.blocks).toEqual([null, null, null, { mock: { n: 1 } }, null, null])
  })
})

describe('what the provider wants back', () => {
  test('the last metadata of a block stands, in step with the blocks', async () => {
    const said = await told(
      { type: 'response-metadata', id: 'resp-1' },
      { type: 'reasoning-start', id: '0', providerMetadata: { p: { itemId: 'r' } } },
      { type: 'reasoning-delta', id: '0', delta: 'hm' },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { p: { signature: 'S==' } } },
      { type: 'reasoning-end', id: '0' },
      ...text3('x'),
      call('c1', '{}', { providerMetadata: { p: { thoughtSignature: 'T==' } } }),
      finish3('tool-calls', undefined, { providerMetadata: { p: { kept: true } } }),
    )
    expect(replayOf(said)).toEqual({
      response: { id: 'resp-1', providerMetadata: { p: { kept: true } } },
      blocks: [{ p: { signature: 'S==' } }, null, { p: { thoughtSignature: 'T==' } }],
    })
  })

  test('reasoning that is hidden is a block without words', async () => {
    const said = await told(
      { type: 'reasoning-start', id: '0', providerMetadata: { p: { redactedData: 'D==' } } },
      { type: 'reasoning-end', id: '0' },
      ...text3('x'),
      finish3(),
    )
    expect(blocksIn(said)).toEqual([
      { type: 'reasoning', text: '' },
      { type: 'text', text: 'x' },
    ])
    expect(replayOf(said)?.blocks).toEqual([{ p: { redactedData: 'D==' } }, null])
  })

  test('what was given with the beginning of a call stands where the call says nothing', async () => {
    const begun: LanguageModelV3StreamPart = {
      type: 'tool-input-start',
      id: 'c1',
      toolName: 'look',
      providerMetadata: { p: { itemId: 'f' } },
    }
    expect(replayOf(await told(begun, call('c1', '{}'), finish3('tool-calls')))?.blocks).toEqual([
      { p: { itemId: 'f' } },
    ])
    const said = await told(
      begun,
      call('c1', '{}', { providerMetadata: { p: { itemId: 'g' } } }),
      finish3('tool-calls'),
    )
    expect(replayOf(said)?.blocks).toEqual([{ p: { itemId: 'g' } }])
  })

  test('metadata stays in step when a cut answer loses its calls', async () => {
    const said = await told(
      call('c1', '{}', { providerMetadata: { p: { of: 'call' } } }),
      ...text3('x'),
      { type: 'reasoning-start', id: '1', providerMetadata: { p: { of: 'reasoning' } } },
      finish3('length'),
    )
    expect(replayOf(said)?.blocks).toEqual([null, { p: { of: 'reasoning' } }])
  })

  test('an answer with nothing to give back has no replay state; what is too long to keep is left out', async () => {
    expect(
      replayOf(await told(...text3('x'), finish3('stop', 'stop', { providerMetadata: { p: {} } }))),
    ).toBeUndefined()
    const long = { providerMetadata: { p: { logprobs: 'x'.repeat(20_000) } } }
    expect(replayOf(await told(...text3('x'), finish3('stop', 'stop', long)))).toBeUndefined()
  })
})

describe('why it stopped', () => {
  const stoppedFor = async (unified: Parameters<typeof finish3>[0], raw?: string) =>
    finishIn(await told(...text3('x'), { ...finish3(unified), finishReason: { unified: unified ?? 'stop', raw } }))
  const code = async (unified: Parameters<typeof finish3>[0], raw?: string) => {
    const reason = await stoppedFor(unified, raw)
    return reason && 'failure' in reason ? reason.failure.code : reason?.kind
  }

  test('version 3 says it in a word of its own and in the provider’s', async () => {
    expect(await code('stop', 'end_turn')).toBe('stop')
    expect(await code('length', 'max_tokens')).toBe('max-tokens')
    expect(await code('tool-calls', 'tool_use')).toBe('stop')
    expect(await code('content-filter', 'refusal')).toBe('CONTENT_FILTER')
    expect(await code('error', 'MALFORMED_FUNCTION_CALL')).toBe('MALFORMED_FUNCTION_CALL')
    expect(await code('error')).toBe('SERVER')
    expect(await code('other', 'model paused')).toBe('MODEL_PAUSED')
    // A word that is a code of ours is told apart.
    expect(await code('other', 'aborted')).toBe('PROVIDER_ABORTED')
    expect(await code('error', 'Transport')).toBe('PROVIDER_TRANSPORT')
  })

  test('without a word of the provider’s, the stream broke off and the provider closed it', async () => {
    expect(await code('other')).toBe('STREAM_CLOSED')
  })

  test('version 2 says it in one word', async () => {
    const codeOf = async (finishReason: 'stop' | 'length' | 'unknown' | 'other' | 'error') => {
      const { model } = mock2([
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'x' },
        { type: 'text-end', id: '0' },
        { type: 'finish', finishReason, usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } },
      ])
      const reason = finishIn(await ask(aiSdk(model)))
      return reason && 'failure' in reason ? reason.failure.code : reason?.kind
    }
    expect(await codeOf('stop')).toBe('stop')
    expect(await codeOf('length')).toBe('max-tokens')
    expect(await codeOf('unknown')).toBe('STREAM_CLOSED')
    expect(await codeOf('other')).toBe('OTHER')
    expect(await codeOf('error')).toBe('SERVER')
  })

  test('version 4 says when it was interrupted', async () => {
    const finish = { ...finish3(), finishReason: { unified: 'interrupted', raw: undefined } } as const
    expect(failureIn(await ask(aiSdk(mock4([finish]).model)))).toMatchObject({ code: 'STREAM_CLOSED' })
  })

  test('no text and no call is an empty answer, reasoning alone too', async () => {
    expect(failureIn(await told(finish3()))).toMatchObject({ code: 'EMPTY_RESPONSE' })
    const thought = [
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'hm' },
    ] as const
    const said = await told(...thought, finish3())
    expect(failureIn(said)).toMatchObject({ code: 'EMPTY_RESPONSE' })
    expect(said.at(-2)).toEqual({ type: 'usage', usage })
  })

  test('a stream that ends without a finish was closed; one of nothing is empty', async () => {
    expect(failureIn(await told(...text3('x')))).toMatchObject({ code: 'STREAM_CLOSED' })
    expect(failureIn(await told({ type: 'stream-start', warnings: [] }))).toMatchObject({ code: 'EMPTY_RESPONSE' })
  })

  test('nothing comes after a finish', async () => {
    expect((await told(...text3('x'), finish3(), ...text3('y'), finish3())).at(-1)).toEqual({
      type: 'finish',
      reason: { kind: 'stop' },
    })
    expect(
      (await told(...text3('x'), finish3(), ...text3('y'))).filter(({ type }) => type === 'text-delta'),
    ).toHaveLength(1)
  })
})

describe('tokens', () => {
  const spent = async (counts: object, providerMetadata?: object) => {
    const finish = {
      type: 'finish',
      finishReason: 'stop',
      usage: counts,
      ...(providerMetadata && { providerMetadata }),
    }
    // The shape is what is looked at: the parts of this test are those of a version 2.
    const { model } = mock2(JSON.parse(JSON.stringify([{ type: 'text-delta', id: '0', delta: 'x' }, finish])))
    return assemblerOf(await ask(aiSdk(model))).usage
  }

  test('flat counts hold cached tokens in the input, which are taken out', async () => {
    expect(
      await spent({ inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 4, reasoningTokens: 2 }),
    ).toEqual({
      inputTokens: 6,
      outputTokens: 5,
      cacheReadTokens: 4,
      reasoningTokens: 2,
    })
  })

  test('save with providers that count them apart', async () => {
    const counts = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 400 }
    expect(await spent(counts, { anthropic: { cacheCreationInputTokens: 30 } })).toEqual({
      inputTokens: 10,
      outputTokens: 5,
      cacheReadTokens: 400,
      cacheWriteTokens: 30,
    })
  })

  test('nested counts are disjoint, or made so', async () => {
    expect(await spent(usage3)).toEqual(usage)
    expect(await spent({ inputTokens: { total: 10, cacheRead: 4 }, outputTokens: { total: 1 } })).toEqual({
      inputTokens: 6,
      outputTokens: 1,
      cacheReadTokens: 4,
    })
  })

  test('counts that are none are not told', async () => {
    expect(await spent({ inputTokens: {}, outputTokens: {} })).toBeUndefined()
    expect(await spent({})).toBeUndefined()
    expect(await spent({ inputTokens: -1, outputTokens: 1.5 })).toBeUndefined()
  })
})

test('warnings and what is unknown are noted for whoever watches, and change nothing', async () => {
  const notes: unknown[] = []
  const watch = (note: unknown) => void notes.push(note)
  subscribe('pawl:wire', watch)
  try {
    const odd = JSON.parse('[{"type":"hologram"},null,7]')
    const warned = { type: 'stream-start' as const, warnings: [{ type: 'unsupported' as const, feature: 'seed' }] }
    expect(finishIn(await told(warned, ...odd, ...text3('x'), finish3()))).toEqual({ kind: 'stop' })
  } finally {
    unsubscribe('pawl:wire', watch)
  }
  expect(notes).toEqual([
    { kind: 'model-warning', detail: '{"type":"unsupported","feature":"seed"}' },
    { kind: 'payload-skipped', detail: 'a part of type hologram' },
    { kind: 'payload-skipped', detail: 'a part of type ' },
    { kind: 'payload-skipped', detail: 'a part of type ' },
  ])
})
