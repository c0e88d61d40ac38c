/** A request as a chat-completions body. */
import { describe, expect, test } from 'vitest'
import { deriveMessages } from '../../src/log/derive.ts'
import type { NewEvent, SessionEvent } from '../../src/log/events.ts'
import type { AssistantMessage, ContentBlock, Message, ToolResultMessage, UserMessage } from '../../src/log/messages.ts'
import type { LlmRequest } from '../../src/log/requests.ts'
import type { Dialect } from '../../src/services/adapters/chat-completions/dialect.ts'
import { chatBody } from '../../src/services/adapters/chat-completions/serialize.ts'
import { deepseek } from '../../src/services/adapters/deepseek.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { assemblerOf } from '../../src/services/llm/assembler.ts'
import { ask, failureIn } from '../kit/ask-adapter.ts'
import { answer, delta, wireServer } from '../kit/wire-server.ts'

let ids = 0
const text = (said: string): ContentBlock => ({ type: 'text', text: said })
const call = (id: string, name = 'f', args = '{}'): ContentBlock => ({ type: 'tool-call', id, name, arguments: args })
const user = (...content: ContentBlock[]): UserMessage => ({
  id: `m${++ids}`,
  role: 'user',
  content,
  source: { kind: 'user' },
})
const context = (said: string): UserMessage => ({ ...user(text(said)), source: { kind: 'plugin', plugin: 'p' } })
const model = (...content: ContentBlock[]): AssistantMessage => ({
  id: `m${++ids}`,
  role: 'assistant',
  content,
  source: { kind: 'model', provider: 'elsewhere', model: 'm' },
})
const result = (toolCallId: string, content: readonly ContentBlock[], isError?: true): ToolResultMessage => ({
  id: `m${++ids}`,
  role: 'user',
  content: [{ type: 'tool-result', toolCallId, content, ...(isError && { isError }) }],
  source: { kind: 'tool', callId: toolCallId },
})

const FULL: Dialect = { reasoning: 'reasoning_content', effort: 'thinking' }
const body = (over: Partial<LlmRequest>, dialect: Dialect = FULL) =>
  chatBody({ provider: 'p', model: 'm', messages: [], sessionId: 's', ...over }, dialect)
const wire = (messages: readonly Message[], dialect?: Dialect) => body({ messages }, dialect).messages

/** What `adapter` really sends. */
async function sent(make: (baseURL: string) => ModelAdapter, over: Partial<LlmRequest>): Promise<unknown> {
  await using server = await wireServer([{ body: answer({ text: 'a' }) }])
  await ask(make(server.url), over)
  return server.requests[0]?.body
}

describe('messages', () => {
  test.each<[string, readonly Message[], readonly unknown[]]>([
    ['[serialize-001] text', [user(text('hi'))], [{ role: 'user', content: 'hi' }]],
    ['[serialize-002] texts without a separator', [user(text('a'), text('b'))], [{ role: 'user', content: 'ab' }]],
    [
      '[serialize-004] a result',
      [result('c', [text('x'), text('y')], true)],
      [{ role: 'tool', tool_call_id: 'c', content: 'xy' }],
    ],
    [
      '[serialize-005] a result of nothing',
      [result('c', [])],
      [{ role: 'tool', tool_call_id: 'c', content: '(no output)' }],
    ],
    [
      '[serialize-006] text beside a result comes first',
      [{ ...user(), content: [...result('c', [text('x')]).content, text('t')] }],
      [
        { role: 'user', content: 't' },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    ],
    [
      '[serialize-007] a result is no user message, whatever unknown blocks stand beside it',
      [{ ...user(), content: [{ type: 'x/y' }, ...result('c', [text('x')]).content] }],
      [{ role: 'tool', tool_call_id: 'c', content: 'x' }],
    ],
    ['[serialize-008] a message of no blocks', [user()], [{ role: 'user', content: '' }]],
    [
      '[serialize-009] unknown blocks are skipped',
      [user({ type: 'x/y', k: 1 }, text('a'))],
      [{ role: 'user', content: 'a' }],
    ],
    [
      '[serialize-010] calls, in order, with their own strings; one that no server could parse is an empty object',
      [model(call('a', 'f', '{"id":9223372036854775807}'), call('b', 'g', '{"cut'))],
      [
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{"id":9223372036854775807}' } },
            { id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
      ],
    ],
    [
      '[serialize-011] reasoning goes back beside text',
      [model({ type: 'reasoning', text: 'h' }, { type: 'reasoning', text: 'm' }, text('a'))],
      [{ role: 'assistant', content: 'a', reasoning_content: 'hm' }],
    ],
    [
      '[serialize-012] an answer of reasoning only, or of nothing, is left out',
      [model({ type: 'reasoning', text: 'hm' }), model()],
      [],
    ],
  ])('%s', (_, messages, expected) => {
    expect(wire(messages)).toEqual(expected)
  })

  test('[serialize-003] the system prompt comes first; without one there is none', () => {
    expect(body({ system: 'be good', messages: [user(text('hi'))] }).messages).toEqual([
      { role: 'system', content: 'be good' },
      { role: 'user', content: 'hi' },
    ])
    expect(body({ system: '' }).messages).toEqual([])
  })

  test('a call without arguments or name is still one that servers take back', () => {
    expect(wire([model(call('a', '', ' '), call('b', 'do.it now', ''))])).toMatchObject([
      {
        tool_calls: [
          { function: { name: 'unknown', arguments: '{}' } },
          { function: { name: 'do_it_now', arguments: '{}' } },
        ],
      },
    ])
  })

  test('[llm-011] an image that waits for an answer is refused, an older one is named', () => {
    const image: ContentBlock = { type: 'image', attachment: { url: 'u' } }
    const asked = [user(text('see '), image), model(text('nice')), user(text('and?')), context('now')]
    expect(wire(asked)[0]).toEqual({ role: 'user', content: 'see [image]' })
    expect(wire([user(image), model(call('a')), result('a', [])])[0]).toEqual({ role: 'user', content: '[image]' })
    expect(() => wire([user(text('old')), user(image), context('now')])).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED_CONTENT' }),
    )
  })

  test('[http-024] the refusal of an image reaches no server', async () => {
    await using server = await wireServer([])
    const image = user({ type: 'image', attachment: 'x' })
    const chunks = await ask(deepseek({ baseURL: server.url, apiKey: 'k' }), { messages: [image] })
    expect(failureIn(chunks).code).toBe('UNSUPPORTED_CONTENT')
    expect(server.requests).toEqual([])
  })
})

describe('the rest of the body', () => {
  test('[serialize-013] it streams, and wants usage', () => {
    expect(body({})).toMatchObject({ stream: true, stream_options: { include_usage: true } })
  })

  test('[serialize-014] what is set is sent, what is not is absent', () => {
    expect(body({ temperature: 0, maxTokens: 9, stop: ['x'] })).toMatchObject({
      temperature: 0,
      max_tokens: 9,
      stop: ['x'],
    })
    expect(Object.keys(body({}))).toEqual(['model', 'messages', 'stream', 'stream_options'])
  })

  test('[serialize-015] tools keep their order', () => {
    const tools = ['b', 'a'].map((name) => ({ name, description: `does ${name}`, parameters: { type: 'object' } }))
    expect(body({ tools }).tools).toEqual(tools.map((schema) => ({ type: 'function', function: schema })))
    expect(body({ tools: [] })).not.toHaveProperty('tools')
  })

  test.each([
    ['off', { thinking: { type: 'disabled' } }],
    ['low', { thinking: { type: 'enabled' }, reasoning_effort: 'low' }],
    ['high', { thinking: { type: 'enabled' }, reasoning_effort: 'high' }],
    ['max', { thinking: { type: 'enabled' }, reasoning_effort: 'max' }],
    [undefined, {}],
  ])('[serialize-016] effort %s', (reasoningEffort, expected) => {
    const { thinking, reasoning_effort } = body(reasoningEffort === undefined ? {} : { reasoningEffort })
    expect(JSON.parse(JSON.stringify({ thinking, reasoning_effort }))).toEqual(expected)
  })
})

describe('providers', () => {
  const thoughtful = [user(text('q')), model({ type: 'reasoning', text: 'hm' }, call('a')), result('a', [text('r')])]

  test('reasoning goes back to the models that need it and not to those that refuse it', async () => {
    const ofDeepseek = (name: string) => (baseURL: string) => deepseek({ baseURL, apiKey: 'k', model: name })
    const withReasoning = { messages: [{}, { role: 'assistant', content: '', reasoning_content: 'hm' }, {}] }
    expect(await sent(ofDeepseek('deepseek-chat'), { messages: thoughtful })).toMatchObject(withReasoning)
    expect(JSON.stringify(await sent(ofDeepseek('deepseek-reasoner'), { messages: thoughtful }))).not.toContain('hm')
    const plain = (baseURL: string) => openaiCompatible({ baseURL, model: 'm' })
    expect(JSON.stringify(await sent(plain, { messages: thoughtful }))).not.toContain('hm')
  })

  test('a dialect says it its own way', async () => {
    const dialect: Dialect = {
      reasoning: 'reasoning',
      maxTokens: 'max_completion_tokens',
      system: 'developer',
      streamUsage: false,
    }
    const make = (baseURL: string) => openaiCompatible({ baseURL, model: 'm', dialect })
    const got = await sent(make, { messages: thoughtful, system: 's', maxTokens: 9, reasoningEffort: 'medium' })
    expect(got).toMatchObject({
      messages: [{ role: 'developer', content: 's' }, {}, { reasoning: 'hm' }, {}],
      max_completion_tokens: 9,
      reasoning_effort: 'medium',
    })
    expect(got).not.toHaveProperty('stream_options')
    expect(got).not.toHaveProperty('max_tokens')
    expect(body({ reasoningEffort: 'high' }, { effort: 'none' })).not.toHaveProperty('reasoning_effort')
  })

  test('details of reasoning go back as they came, to the model that gave them and to no other', async () => {
    const details = [
      { type: 'reasoning.encrypted', data: 'zzz' },
      { type: 'reasoning.text', signature: null },
    ]
    const events = [
      ...details.map((one) => delta({ reasoning: 'h', reasoning_details: [one] })),
      ...answer({ text: 'a' }),
    ]
    await using server = await wireServer([{ body: events }])
    const assembled = assemblerOf(await ask(openaiCompatible({ baseURL: server.url, model: 'm' })))
    const { replayState } = assembled
    expect(replayState).toEqual({ response: { reasoning_details: details } })
    const source = { kind: 'model' as const, provider: 'p', model: 'm', ...(replayState && { replayState }) }
    const messages = [{ ...model(...assembled.blocks()), source }]
    expect(wire(messages)).toMatchObject([{ content: 'a', reasoning_content: 'hh', reasoning_details: details }])
    expect(JSON.stringify(body({ messages, model: 'other' }))).not.toContain('zzz')
  })

  test('users in a row are one message where two are refused', () => {
    const twice = [user(text('a')), user(text('b')), model(text('x')), user(text('c'))]
    expect(wire(twice, { mergeUsers: true })).toEqual([
      { role: 'user', content: 'a\n\nb' },
      { role: 'assistant', content: 'x' },
      { role: 'user', content: 'c' },
    ])
    expect(wire(twice)).toHaveLength(4)
  })

  test('a foreign call id that does not fit is mapped, the same for call and result; an own one is kept', () => {
    const long = `${'x'.repeat(70)}|${'y'.repeat(12)}`
    const messages = [model(call(long), call('fits')), result(long, []), result('fits', [])]
    const idsIn = (provider: string, dialect: Dialect) =>
      JSON.stringify(body({ messages, provider }, dialect)).match(/(?<="(?:tool_call_id|id)":")[^"]+/g) ?? []
    const [first, second, third] = idsIn('p', {})
    expect(first).toMatch(/^[0-9a-f]{40}$/)
    expect([second, third]).toEqual(['fits', first])
    expect(idsIn('p', { callIds: { maxLength: 9, pattern: /^[a-z\d]{9}$/i } })[0]).toMatch(/^[0-9a-f]{9}$/)
    expect(idsIn('elsewhere', {})[0]).toBe(long)
    expect(idsIn('p', {})).toEqual(idsIn('p', {}))
  })
})

describe('histories that were cut short stay valid', () => {
  const inStep = { turn: 1, step: 1 }
  const placed = (events: readonly NewEvent[]) =>
    events.map((event, seq) => ({ ...event, seq, time: 0 }) as SessionEvent)
  const said = (message: UserMessage): NewEvent => ({ type: 'user/message', data: message, surfaceOp: 'append' })
  const answered = (message: AssistantMessage): NewEvent => ({
    type: 'assistant/message',
    data: { ...inStep, attempt: 1, message, finish: { kind: 'tool-calls' }, calls: [] },
    surfaceOp: 'append',
  })
  const settled = (message: ToolResultMessage, code: string): NewEvent => ({
    type: 'tool/result',
    data: { ...inStep, message, error: { name: 'f', code } },
    surfaceOp: 'append',
  })

  test.each([
    ['[serialize-020] by a cancel', 'ABORTED_BEFORE_DISPATCH'],
    ['[serialize-021] by a crash', 'TOOL_OUTCOME_UNKNOWN'],
  ])('%s: each call has its result right behind it, in call order', (_, code) => {
    const log = placed([
      said(user(text('go'))),
      answered(model(call('a'), call('b'))),
      settled(result('b', [text('rb')]), code),
      settled(result('a', [text('ra')], true), code),
      said(user(text('next'))),
    ])
    expect(wire(deriveMessages(log))).toMatchObject([
      { role: 'user', content: 'go' },
      { role: 'assistant', tool_calls: [{ id: 'a' }, { id: 'b' }] },
      { role: 'tool', tool_call_id: 'a', content: 'ra' },
      { role: 'tool', tool_call_id: 'b', content: 'rb' },
      { role: 'user', content: 'next' },
    ])
  })
})
