/** A request to what a model is asked with. */
import type { LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import type { Json } from '../../../../src/log/json.ts'
import type { AssistantMessage, ContentBlock, Message, ReplayState } from '../../../../src/log/messages.ts'
import type { LlmRequest } from '../../../../src/log/requests.ts'
import type { AiSdkOptions } from '../../../../src/services/adapters/ai-sdk/options.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { finish3, mock2, mock3, mock4, text3 } from '../../../kit/ai-sdk-models.ts'
import { ask, failureIn, user } from '../../../kit/ask-adapter.ts'

/** What version 3 is asked with. */
async function asked(over: Partial<LlmRequest> = {}, options: AiSdkOptions = {}): Promise<LanguageModelV3CallOptions> {
  const model = mock3([...text3('ok'), finish3()])
  await ask(aiSdk(model, options), over)
  const [call] = model.doStreamCalls
  if (call === undefined) throw new Error('nothing was asked')
  return call
}
const promptOf = async (...messages: readonly Message[]) => (await asked({ messages })).prompt

const said = (
  content: readonly ContentBlock[],
  {
    replayState,
    provider = 'mock',
    model = 'mock-3',
  }: { replayState?: ReplayState; provider?: string; model?: string } = {},
): AssistantMessage => ({
  id: 'a',
  role: 'assistant',
  content,
  source: { kind: 'model', provider, model, ...(replayState && { replayState }) },
})
const called = (id: string, args = '{}', name = 'look'): ContentBlock => ({
  type: 'tool-call',
  id,
  name,
  arguments: args,
})
const result = (toolCallId: string, content: readonly ContentBlock[], isError?: boolean): Message => ({
  id: `r-${toolCallId}`,
  role: 'user',
  content: [{ type: 'tool-result', toolCallId, content, ...(isError && { isError }) }],
  source: { kind: 'tool', callId: toolCallId },
})
const text = (words: string): ContentBlock => ({ type: 'text', text: words })
const image = (attachment: Json): ContentBlock => ({ type: 'image', attachment })
const shown = (...content: readonly ContentBlock[]): Message => ({
  id: 'u',
  role: 'user',
  content,
  source: { kind: 'user' },
})

describe('settings', () => {
  test('what is not set is absent', async () => {
    const { abortSignal, ...options } = await asked()
    expect(abortSignal).toBeInstanceOf(AbortSignal)
    expect(options).toEqual({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      includeRawChunks: false,
    })
  })

  test('what is set goes by the names of the SDK', async () => {
    const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }]
    const call = await asked({ system: 'Be brief.', maxTokens: 9, temperature: 0.5, stop: ['END'], tools })
    expect(call).toMatchObject({
      prompt: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }],
      maxOutputTokens: 9,
      temperature: 0.5,
      stopSequences: ['END'],
      tools: [
        { type: 'function', name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } },
      ],
    })
  })

  test('options of the provider’s are sent each time, or asked for each time', async () => {
    const fixed = { mock: { a: 1, b: undefined, c: [{ d: null }] } }
    expect((await asked({}, { providerOptions: fixed })).providerOptions).toEqual({ mock: { a: 1, c: [{ d: null }] } })
    const asking: AiSdkOptions = { providerOptions: ({ reasoningEffort }) => ({ mock: { reasoningEffort } }) }
    expect((await asked({ reasoningEffort: 'high' }, asking)).providerOptions).toEqual({
      mock: { reasoningEffort: 'high' },
    })
    expect((await asked({}, { providerOptions: () => undefined })).providerOptions).toBeUndefined()
  })

  test('all of it is the model’s to change: the log’s own is not', async () => {
    const parameters = Object.freeze({ type: 'object', properties: Object.freeze({}) })
    const messages = [said([called('c', '{"a":{"b":[1]}}')]), result('c', [text('x')])]
    const call = await asked({
      tools: [{ name: 'look', description: '', parameters }],
      messages,
      stop: Object.freeze(['E']),
    })
    const frozen = (value: unknown): boolean =>
      typeof value === 'object' &&
      value !== null &&
      !(value instanceof AbortSignal) &&
      (Object.isFrozen(value) || Object.values(value).some(frozen))
    expect(frozen(call)).toBe(false)
  })
})

describe('an effort', () => {
  const effortOf = (adapter: ReturnType<typeof aiSdk>, reasoningEffort: string) =>
    adapter.prepare?.({ provider: 'mock', model: 'm', reasoningEffort }, new AbortController().signal)

  test('version 4 has a word for it', async () => {
    for (const [effort, word] of [
      ['high', 'high'],
      ['off', 'none'],
      ['minimal', 'minimal'],
    ] as const) {
      const { model, calls } = mock4([...text3('ok'), finish3()])
      await ask(aiSdk(model), { reasoningEffort: effort })
      expect(calls[0]?.reasoning).toBe(word)
    }
    const { model, calls } = mock4([...text3('ok'), finish3()])
    await ask(aiSdk(model))
    expect(calls[0]).not.toHaveProperty('reasoning')
  })

  test('one that nothing would carry to the model is refused before anything is sent', async () => {
    const refused = { failure: { code: 'UNSUPPORTED_REASONING_EFFORT' } }
    await expect(effortOf(aiSdk(mock4([]).model), 'utmost')).rejects.toMatchObject(refused)
    await expect(effortOf(aiSdk(mock3([])), 'high')).rejects.toMatchObject(refused)
    await expect(effortOf(aiSdk(mock3([]), { providerOptions: { mock: {} } }), 'high')).rejects.toMatchObject(refused)
    await expect(effortOf(aiSdk(mock3([]), { providerOptions: () => ({}) }), 'high')).resolves.toBeDefined()
    const model = mock3([])
    expect(failureIn(await ask(aiSdk(model), { reasoningEffort: 'high' })).code).toBe('UNSUPPORTED_REASONING_EFFORT')
    expect(model.doStreamCalls).toEqual([])
  })
})

describe('history', () => {
  test('results in a row are one message, under the names of their calls', async () => {
    const prompt = await promptOf(
      user('hi'),
      said([text('I look.'), called('c1', '{"a":1}'), called('c2', '', 'listen')]),
      result('c1', [text('one'), text(' two')]),
      result('c2', [text('deaf')], true),
      result('c3', []),
      user('and?'),
    )
    expect(prompt).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { a: 1 } },
          { type: 'tool-call', toolCallId: 'c2', toolName: 'listen', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'one two' } },
          { type: 'tool-result', toolCallId: 'c2', toolName: 'listen', output: { type: 'error-text', value: 'deaf' } },
          {
            type: 'tool-result',
            toolCallId: 'c3',
            toolName: 'unknown',
            output: { type: 'text', value: '(no output)' },
          },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'and?' }] },
    ])
  })

  test('arguments that cannot be read, or are no object, go back as an empty one', async () => {
    const raw = ['{"a":', '[1]', '"x"', '7', '{"id":9223372036854775807}']
    const [message] = await promptOf(said(raw.map((args, n) => called(`c${n}`, args))))
    expect(message?.content).toEqual(
      raw.map((_, n) => ({ type: 'tool-call', toolCallId: `c${n}`, toolName: 'look', input: {} })),
    )
  })

  test('a key `__proto__` is data', async () => {
    const [message] = await promptOf(said([called('c', '{"__proto__":{"a":1}}')]))
    expect(JSON.stringify(message)).toContain('{"__proto__":{"a":1}}')
  })

  test('what is empty is left out, messages too, unless the provider has put something beside it', async () => {
    const hidden = said([{ type: 'reasoning', text: '' }, text(''), text('x')], {
      replayState: { response: {}, blocks: [{ mock: { redactedData: 'D' } }, null, null] },
    })
    expect(await promptOf(user('hi'), said([text('')]), said([{ type: 'x/y', z: 1 }]), hidden)).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: '', providerOptions: { mock: { redactedData: 'D' } } },
          { type: 'text', text: 'x' },
        ],
      },
    ])
  })

  test('thinking that came to nothing does not go back', async () => {
    const thought = { type: 'reasoning', text: 'hm' } as const
    const blocks = [{ mock: { itemId: 'r' } }, null, { mock: { itemId: 's' } }]
    const [message, ...rest] = await promptOf(
      said([thought, text('So:'), thought], { replayState: { response: {}, blocks } }),
      said([thought]),
    )
    expect(message?.content).toEqual([
      { type: 'reasoning', text: 'hm', providerOptions: { mock: { itemId: 'r' } } },
      { type: 'text', text: 'So:' },
    ])
    expect(rest).toEqual([])
  })
})

describe('what the provider wants back', () => {
  const blocks = [{ type: 'reasoning', text: 'hm' }, called('c1')] as const
  const replayState = { response: {}, blocks: [{ mock: { signature: 'S==' } }, { mock: { thoughtSignature: 'T==' } }] }
  const signed = [
    { type: 'reasoning', text: 'hm', providerOptions: { mock: { signature: 'S==' } } },
    {
      type: 'tool-call',
      toolCallId: 'c1',
      toolName: 'look',
      input: {},
      providerOptions: { mock: { thoughtSignature: 'T==' } },
    },
  ]
  const bare = [
    { type: 'reasoning', text: 'hm' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} },
  ]

  test('goes back on the same blocks, and a call’s with its result', async () => {
    const [assistant, results] = await promptOf(said(blocks, { replayState }), result('c1', [text('x')]))
    expect(assistant?.content).toEqual(signed)
    expect(results?.content).toEqual([
      {
        type: 'tool-result',
        toolCallId: 'c1',
        toolName: 'look',
        output: { type: 'text', value: 'x' },
        providerOptions: { mock: { thoughtSignature: 'T==' } },
      },
    ])
  })

  test('not to another model, not to another provider, and not out of step', async () => {
    for (const message of [
      said(blocks, { replayState, model: 'other' }),
      said(blocks, { replayState, provider: 'other' }),
      said(blocks, { replayState: { ...replayState, blocks: replayState.blocks.slice(1) } }),
      said(blocks, { replayState: { response: {} } }),
      said(blocks, { replayState: { response: {}, blocks: ['odd', null] } }),
    ]) {
      expect((await promptOf(message, result('c1', [text('x')])))[0]?.content).toEqual(bare)
    }
  })

  const foreign: readonly ContentBlock[] = [
    { type: 'ai-sdk/tool-call', toolCallId: 's1', toolName: 'search', input: '{"q":1}' },
    { type: 'ai-sdk/tool-result', toolCallId: 's1', toolName: 'search', result: { hits: 1 } },
    { type: 'ai-sdk/tool-call', toolCallId: 's2', toolName: 'search', input: '{"q":2}' },
    { type: 'ai-sdk/tool-result', toolCallId: 's3', toolName: 'search', result: 'none', isError: true },
    { type: 'ai-sdk/tool-result', toolCallId: 's4', toolName: 'search', result: 'words' },
    { type: 'ai-sdk/file', mediaType: 'image/png', data: 'AQ==' },
    { type: 'ai-sdk/source', sourceType: 'url', id: 's', url: 'https://example.org' },
    { type: 'ai-sdk/reasoning-file', mediaType: 'image/png', data: 'AQ==' },
    { type: 'ai-sdk/custom', kind: 'mock.note' },
  ]
  const back = [
    { type: 'tool-call', toolCallId: 's1', toolName: 'search', input: { q: 1 }, providerExecuted: true },
    { type: 'tool-result', toolCallId: 's1', toolName: 'search', output: { type: 'json', value: { hits: 1 } } },
    { type: 'tool-result', toolCallId: 's3', toolName: 'search', output: { type: 'error-json', value: 'none' } },
    { type: 'tool-result', toolCallId: 's4', toolName: 'search', output: { type: 'text', value: 'words' } },
  ]

  test('what only the provider knows goes back to the model it came from; a call of its own not without a result', async () => {
    const [message] = await promptOf(said(foreign))
    expect(message?.content).toEqual([...back, { type: 'file', mediaType: 'image/png', data: 'AQ==' }])
    expect(await promptOf(said(foreign, { model: 'other' }))).toEqual([])
  })

  test('version 4 takes parts that others have no place for', async () => {
    const { model, calls } = mock4([...text3('ok'), finish3()])
    await ask(aiSdk(model), { messages: [said(foreign, { model: 'mock-4' })] })
    expect(calls[0]?.prompt[0]?.content).toEqual([
      ...back,
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQ==' } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AQ==' } },
      { type: 'custom', kind: 'mock.note' },
    ])
  })
})

describe('images', () => {
  const inline = { data: 'AQ==', mediaType: 'image/png' }
  const url = 'https://images.example/a.png'

  test('inline, in every form of it', async () => {
    const forms = [inline, 'data:image/png;base64,AQ==', { url: 'data:image/png;base64,AQ==' }]
    const [message] = await promptOf(shown(text('look'), ...forms.map(image)))
    const part = { type: 'file', data: 'AQ==', mediaType: 'image/png' }
    expect(message?.content).toEqual([{ type: 'text', text: 'look' }, part, part, part])
  })

  test('by a URL that the model fetches, as each version has it', async () => {
    const four = mock4([...text3('ok'), finish3()])
    await ask(aiSdk(four.model), { messages: [shown(image(url), image({ url, mediaType: 'image/webp' }))] })
    expect(four.calls[0]?.prompt[0]?.content).toEqual([
      { type: 'file', data: { type: 'url', url: new URL(url) }, mediaType: 'image/*' },
      { type: 'file', data: { type: 'url', url: new URL(url) }, mediaType: 'image/webp' },
    ])
    const two = mock2([
      { type: 'finish', finishReason: 'stop', usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
    ])
    const fetching = { ...two.model, supportedUrls: { '*': [/^https:/g] } }
    await ask(aiSdk(fetching), { messages: [shown(image(url), image(url))] })
    expect(two.calls[0]?.prompt[0]?.content).toEqual([
      { type: 'file', data: new URL(url), mediaType: 'image/*' },
      { type: 'file', data: new URL(url), mediaType: 'image/*' },
    ])
  })

  test('one that waits for an answer and cannot be sent is refused; an old one is named', async () => {
    for (const attachment of [url, 'ftp://x/y', 'not a url', { id: 'file-1' }, { data: 'AQ==' }, 7, null]) {
      const model = mock3([])
      expect(failureIn(await ask(aiSdk(model), { messages: [shown(image(attachment))] })).code).toBe(
        'UNSUPPORTED_CONTENT',
      )
      expect(model.doStreamCalls).toEqual([])
      const [old] = await promptOf(shown(image(attachment)), said([text('ok')]), user('go on'))
      expect(old?.content).toEqual([{ type: 'text', text: '[image]' }])
    }
  })

  test('in a tool’s result, as each version has it; an error is text', async () => {
    const seen = [text('seen'), image(inline), image('odd')]
    const messages = [said([called('c1'), called('c2')]), result('c1', seen), result('c2', seen, true)]
    const outputs = (content: unknown) =>
      Array.isArray(content) ? content.map((part: { output: unknown }) => part.output) : []
    const failed = { type: 'error-text', value: 'seen[image][image]' }
    const words = { type: 'text', text: 'seen' }
    const named = { type: 'text', text: '[image]' }
    expect(outputs((await promptOf(...messages))[1]?.content)).toEqual([
      { type: 'content', value: [words, { type: 'image-data', data: 'AQ==', mediaType: 'image/png' }, named] },
      failed,
    ])
    const two = mock2([])
    await ask(aiSdk(two.model), { messages })
    expect(outputs(two.calls[0]?.prompt[1]?.content)).toEqual([
      { type: 'content', value: [words, { type: 'media', data: 'AQ==', mediaType: 'image/png' }, named] },
      failed,
    ])
    const four = mock4([])
    await ask(aiSdk(four.model), { messages })
    expect(outputs(four.calls[0]?.prompt[1]?.content)).toEqual([
      {
        type: 'content',
        value: [words, { type: 'file', data: { type: 'data', data: 'AQ==' }, mediaType: 'image/png' }, named],
      },
      failed,
    ])
  })
})
