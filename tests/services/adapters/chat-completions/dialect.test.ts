/** Each field of a dialect: what a server gets because of it, and what is read because of it. */
import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AssistantMessage, ContentBlock, Message, UserMessage } from '../../../../src/log/messages.ts'
import type { LlmRequest } from '../../../../src/log/requests.ts'
import type { Dialect } from '../../../../src/services/adapters/chat-completions/dialect.ts'
import { chatBody } from '../../../../src/services/adapters/chat-completions/serialize.ts'
import { createTranslation } from '../../../../src/services/adapters/chat-completions/translate.ts'
import { dialects } from '../../../../src/services/adapters/dialects.ts'
import { openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { InvalidOption } from '../../../../src/services/errors.ts'
import { assemblerOf } from '../../../../src/services/llm/assembler.ts'

const text = (said: string): ContentBlock => ({ type: 'text', text: said })
const thought = (said: string): ContentBlock => ({ type: 'reasoning', text: said })
const call = (id: string): ContentBlock => ({ type: 'tool-call', id, name: 'f', arguments: '{}' })
const user = (said: string): UserMessage => ({
  id: `u-${said}`,
  role: 'user',
  content: [text(said)],
  source: { kind: 'user' },
})
const model = (...content: ContentBlock[]): AssistantMessage => ({
  id: 'a',
  role: 'assistant',
  content,
  source: { kind: 'model', provider: 'p', model: 'm' },
})
const result = (toolCallId: string): Message => ({
  id: `r-${toolCallId}`,
  role: 'user',
  content: [{ type: 'tool-result', toolCallId, content: [text('ok')] }],
  source: { kind: 'tool', callId: toolCallId },
})

const body = (messages: readonly Message[], dialect: Dialect, over: Partial<LlmRequest> = {}) =>
  chatBody({ provider: 'p', model: 'm', messages, sessionId: 's', ...over }, dialect)
const wire = (messages: readonly Message[], dialect: Dialect, over: Partial<LlmRequest> = {}) =>
  body(messages, dialect, over).messages as readonly Record<string, unknown>[]

describe('past reasoning', () => {
  /** Two turns of a user, the first one without tools, and a third that is at work. */
  const history = [
    user('1'),
    model(thought('t1'), text('a1')),
    user('2'),
    model(thought('t2'), call('c2')),
    result('c2'),
    model(thought('t3'), text('a3')),
    user('3'),
    model(thought('t4'), text('a4'), call('c4')),
    result('c4'),
    model(thought('t5'), text('a5')),
  ]
  const sentBy = (dialect: Dialect, over: Partial<LlmRequest> = {}) =>
    wire(history, { reasoning: 'reasoning_content', ...dialect }, over).flatMap((message) =>
      message.reasoning_content === undefined ? [] : [message.reasoning_content],
    )

  test.each<[string, Dialect, readonly string[]]>([
    ['never', { reasoning: 'none' }, []],
    ['on all answers', {}, ['t1', 't2', 't3', 't4', 't5']],
    ['on all answers, said so', { reasoningOn: 'all' }, ['t1', 't2', 't3', 't4', 't5']],
    ['in turns with calls', { reasoningOn: 'turns-with-calls' }, ['t2', 't3', 't4', 't5']],
    ['after the last user message', { reasoningOn: 'last-user' }, ['t4', 't5']],
    ['on the calls after it', { reasoningOn: 'last-user-calls' }, ['t4']],
  ])('goes back %s', (_, dialect, expected) => {
    expect(sentBy(dialect)).toEqual(expected)
  })

  test.each(['off', 'none'])('does not go back with a request that turns thinking %s', (reasoningEffort) => {
    expect(sentBy({ reasoningFill: '' }, { reasoningEffort })).toEqual([])
    expect(sentBy({}, { reasoningEffort: 'low' })).toHaveLength(5)
  })

  test('is made up for where it is missed, on the answers that it goes back on and on no others', () => {
    const foreign = [user('1'), model(text('a')), user('2'), model(call('c')), result('c')]
    const fields = { reasoning: 'reasoning', reasoningFill: '' } as const
    expect(wire(foreign, fields).map(({ reasoning }) => reasoning)).toEqual([undefined, '', undefined, '', undefined])
    const late = wire(foreign, { ...fields, reasoningFill: ' ', reasoningOn: 'last-user' })
    expect(late.map(({ reasoning }) => reasoning)).toEqual([undefined, undefined, undefined, ' ', undefined])
  })

  test('before any user has spoken, all answers come after the last one', () => {
    expect(wire([model(thought('t'), text('a'))], { reasoning: 'reasoning', reasoningOn: 'last-user' })).toMatchObject([
      { reasoning: 't' },
    ])
  })
})

describe('content', () => {
  const calls = [user('1'), model(call('c')), result('c')]

  test.each<[Dialect['emptyContent'], object]>([
    [undefined, { content: '' }],
    ['', { content: '' }],
    ['null', { content: null }],
  ])('of calls alone is %j', (emptyContent, expected) => {
    expect(wire(calls, emptyContent === undefined ? {} : { emptyContent })[1]).toMatchObject(expected)
  })

  test('of calls alone may be left out, and words are never', () => {
    expect(wire(calls, { emptyContent: 'absent' })[1]).not.toHaveProperty('content')
    expect(wire([user('1'), model(text('a'), call('c')), result('c')], { emptyContent: 'absent' })[1]).toMatchObject({
      content: 'a',
    })
  })

  test('an answer that only thought is left out, or sent with its thoughts where that is taken', () => {
    const silent = [user('1'), model(thought('hm')), model()]
    expect(wire(silent, { reasoning: 'reasoning_content' })).toHaveLength(1)
    expect(wire(silent, { reasoning: 'reasoning_content', emptyAnswers: true })).toEqual([
      { role: 'user', content: '1' },
      { role: 'assistant', content: '', reasoning_content: 'hm' },
    ])
    expect(wire(silent, { emptyAnswers: true })).toHaveLength(1)
    expect(wire(silent, { reasoning: 'reasoning_content', reasoningFill: '', emptyAnswers: true })).toHaveLength(2)
  })
})

describe('the order of roles', () => {
  const idsOf = (calls: unknown): readonly string[] => JSON.stringify(calls ?? []).match(/(?<="id":")[^"]*/g) ?? []
  const roles = (messages: readonly Message[], dialect: Dialect) =>
    wire(messages, dialect).map(({ role, content }) => `${role} ${content}`)

  test('alternates where it must, and nothing that was said is lost', () => {
    const messages = [user('1'), user('2'), model(text('a')), model(text('b'), call('c')), result('c'), user('3')]
    expect(roles(messages, { mergeUsers: true, mergeAnswers: true, afterResults: 'OK.' })).toEqual([
      'user 1\n\n2',
      'assistant a\n\nb',
      'tool ok',
      'assistant OK.',
      'user 3',
    ])
    expect(roles(messages, {})).toHaveLength(6)
  })

  test('answers in a row keep the calls of the second, and never join one whose results stand between', () => {
    const messages = [user('1'), model(text('a')), model(call('c')), result('c'), model(text('b'))]
    expect(wire(messages, { mergeAnswers: true })).toMatchObject([
      {},
      { role: 'assistant', content: 'a', tool_calls: [{ id: 'c' }] },
      { role: 'tool' },
      { role: 'assistant', content: 'b' },
    ])
  })

  test('answers in a row keep their reasoning and its details, all of it', () => {
    const detailed = (said: string): AssistantMessage => {
      const message = model(thought(`think ${said}`), text(said))
      const replayState = { response: { reasoning_details: [{ text: said }] } }
      return { ...message, source: { ...message.source, replayState } }
    }
    const dialect = { mergeAnswers: true, reasoning: 'reasoning' } as const
    expect(wire([user('1'), detailed('a'), detailed('b'), model(call('c')), result('c')], dialect)[1]).toEqual({
      role: 'assistant',
      content: 'a\n\nb',
      reasoning: 'think a\n\nthink b',
      reasoning_details: [{ text: 'a' }, { text: 'b' }],
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    })
    const nulls = { mergeAnswers: true, emptyContent: 'null' } as const
    expect(wire([user('1'), model(text('a')), model(call('c')), result('c')], nulls)[1]).toMatchObject({ content: 'a' })
  })

  test('holds for whatever was said in whatever order', () => {
    const said = fc.string({ minLength: 1, unit: 'grapheme-ascii' })
    let calls = 0
    const spoken = said.map((words): readonly Message[] => [user(words)])
    const answered = said.map((words): readonly Message[] => [model(text(words))])
    const silent = fc.constant<readonly Message[]>([model(thought('hm'))])
    const called = fc.tuple(said, fc.integer({ min: 1, max: 3 })).map(([words, count]): readonly Message[] => {
      const ids = Array.from({ length: count }, () => `call_${++calls}`)
      return [model(text(words), ...ids.map(call)), ...ids.map(result)]
    })
    const histories = fc.array(fc.oneof(spoken, answered, silent, called), { maxLength: 12 })
    const strict = { ...dialects.mistral, mergeUsers: true, mergeAnswers: true }
    fc.assert(
      fc.property(histories, (parts) => {
        const history = parts.flat()
        const sent = wire(history, strict)
        for (const [at, { role, tool_calls, tool_call_id }] of sent.entries()) {
          const before = sent[at - 1]
          if (role === 'user') expect(['user', 'tool']).not.toContain(before?.role)
          if (role === 'assistant') expect(before?.role).not.toBe('assistant')
          if (role === 'tool') expect(['assistant', 'tool']).toContain(before?.role)
          for (const id of idsOf(tool_calls)) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
          if (tool_call_id !== undefined) {
            const asked = sent.slice(0, at).findLast((message) => message.role === 'assistant')
            expect(JSON.stringify(asked?.tool_calls)).toContain(`"${tool_call_id}"`)
          }
        }
        const words = history.flatMap(({ role, content }) =>
          content.flatMap((block) => (block.type === 'text' ? [{ role, text: block.text }] : [])),
        )
        const of = (role: unknown) => sent.filter((message) => message.role === role).map(({ content }) => content)
        for (const { role, text: one } of words) expect(of(role).join('\n')).toContain(one)
      }),
    )
  })

  test('has the system prompt in the role that the server knows', () => {
    const over = { system: 'be good' }
    expect(wire([user('1')], { system: 'developer' }, over)[0]).toMatchObject({ role: 'developer' })
    expect(wire([user('1')], { system: 'user', mergeUsers: true }, over)).toEqual([
      { role: 'user', content: 'be good\n\n1' },
    ])
  })
})

describe('call ids', () => {
  const digest = (id: string, length: number) => createHash('sha256').update(id).digest('hex').slice(0, length)
  const idsIn = (messages: readonly Message[], dialect: Dialect) =>
    JSON.stringify(wire(messages, dialect)).match(/(?<="(?:tool_call_id|id)":")[^"]+/g) ?? []

  test.each([
    [9, 'call_00_abc'],
    [40, `${'x'.repeat(70)}|${'y'.repeat(12)}`],
    [64, 'x'.repeat(65)],
  ])('of at most %i: a longer one is a digest, the same for call and result', (maxLength, id) => {
    const fit = 'a'.repeat(9)
    const messages = [user('1'), model(call(id), call(fit)), result(id), result(fit)]
    const mapped = digest(id, maxLength)
    expect(idsIn(messages, { callIds: { maxLength } })).toEqual([mapped, fit, mapped, fit])
  })

  test('with a rule, ids must keep it whoever gave them: one that the log made up is of no provider', () => {
    const messages = [user('1'), model(call('call-1')), result('call-1')]
    const mapped = digest('call-1', 9)
    expect(idsIn(messages, dialects.mistral)).toEqual([mapped, mapped])
    expect(mapped).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(idsIn([user('1'), model(call('A1b2C3d4E')), result('A1b2C3d4E')], dialects.mistral)[0]).toBe('A1b2C3d4E')
  })

  test('without one, an id stays with the model that gave it, and not with another of the same provider', () => {
    const odd = 'functions.f:0'
    const messages = [user('1'), model(call(odd)), result(odd)]
    expect(idsIn(messages, {})).toEqual([odd, odd])
    const other = body(messages, {}, { model: 'other' })
    expect(JSON.stringify(other)).not.toContain(odd)
  })
})

describe('the rest of a request', () => {
  test.each<[NonNullable<Dialect['effort']>, object, object]>([
    ['reasoning_effort', { reasoning_effort: 'low' }, { reasoning_effort: 'off' }],
    ['reasoning', { reasoning: { effort: 'low' } }, { reasoning: { enabled: false } }],
    ['thinking', { thinking: { type: 'enabled' }, reasoning_effort: 'low' }, { thinking: { type: 'disabled' } }],
    ['thinking-only', { thinking: { type: 'enabled' } }, { thinking: { type: 'disabled' } }],
    ['enable_thinking', { enable_thinking: true }, { enable_thinking: false }],
    [
      'chat_template_kwargs',
      { chat_template_kwargs: { enable_thinking: true } },
      { chat_template_kwargs: { enable_thinking: false } },
    ],
    ['none', {}, {}],
  ])('an effort as %s', (effort, low, off) => {
    const plain = { model: 'm', messages: [], stream: true, stream_options: { include_usage: true } }
    expect(body([], { effort }, { reasoningEffort: 'low' })).toEqual({ ...plain, ...low })
    expect(body([], { effort }, { reasoningEffort: 'off' })).toEqual({ ...plain, ...off })
    expect(body([], { effort })).toEqual(plain)
  })

  test('parallel calls are spoken of where there are tools', () => {
    const tools = [{ name: 'f', description: '', parameters: {} }]
    expect(body([], { parallelCalls: true }, { tools })).toMatchObject({ parallel_tool_calls: true })
    expect(body([], { parallelCalls: false }, { tools })).toMatchObject({ parallel_tool_calls: false })
    expect(body([], { parallelCalls: true })).not.toHaveProperty('parallel_tool_calls')
    expect(body([], {}, { tools })).not.toHaveProperty('parallel_tool_calls')
  })
})

describe('reading', () => {
  type Choice = Readonly<Record<string, unknown>>
  const read = (dialect: Dialect, ...choices: readonly Choice[]) => {
    const translation = createTranslation(dialect)
    const chunks = choices.flatMap((choice) => translation.take({ choices: [choice] }))
    return assemblerOf([...chunks, ...translation.end()])
  }
  const saying = (delta: object, finish_reason: string | null = null): Choice => ({ index: 0, delta, finish_reason })

  test('reasoning is read under the keys of the dialect, the first with text', () => {
    const deltas = [saying({ thinking: 'a', reasoning: 'b', content: 'x' }, 'stop')]
    expect(read({ reasoningKeys: ['thoughts', 'thinking', 'reasoning'] }, ...deltas).blocks()).toEqual([
      thought('a'),
      text('x'),
    ])
    expect(read({}, ...deltas).blocks()).toEqual([thought('b'), text('x')])
    expect(read({ reasoningKeys: ['thoughts'] }, ...deltas).blocks()).toEqual([text('x')])
  })

  test('content in parts is what its parts say and think', () => {
    const parts = [
      {
        type: 'thinking',
        thinking: [
          { type: 'text', text: 'let ' },
          { type: 'text', text: 'me see' },
        ],
      },
      { type: 'text', text: 'here' },
      { type: 'reference', reference_ids: [1] },
    ]
    expect(read({}, saying({ content: parts }), saying({ content: ' it is' }, 'stop')).blocks()).toEqual([
      thought('let me see'),
      text('here it is'),
    ])
    expect(read({}, saying({ content: [{ type: 'thinking', thinking: 'hm' }, null, 7] }, 'stop')).blocks()).toEqual([
      thought('hm'),
    ])
  })

  test('the first finish closes the content, unless a server says one with every chunk', () => {
    const choices = [saying({ content: 'a' }, 'stop'), saying({ content: 'b' }, 'stop')]
    expect(read({}, ...choices).blocks()).toEqual([text('a')])
    expect(read({ finish: 'last' }, ...choices).blocks()).toEqual([text('ab')])
  })

  test.each([
    ['stop', { kind: 'stop' }],
    ['length', { kind: 'max-tokens' }],
    ['content_filter', { kind: 'error', failure: { code: 'CONTENT_FILTER' } }],
    ['overflow', { kind: 'error', failure: { code: 'CONTEXT_WINDOW_EXCEEDED' } }],
    ['failed', { kind: 'error', failure: { code: 'SERVER', message: 'The provider stopped the answer: fin' } }],
  ] as const)('a word of the server for %s means that', (meaning, expected) => {
    expect(read({ finishWords: { fin: meaning } }, saying({ content: 'a' }, 'fin')).finish).toMatchObject(expected)
  })

  test('a word for calls means calls, a word that nobody knows is a failure of that name', () => {
    const calling = { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{}' } }] }
    const words = { finishWords: { function_call: 'tool_calls' } } as const
    expect(read(words, saying(calling, 'function_call')).finish).toEqual({ kind: 'tool-calls' })
    expect(read(words, saying({ content: 'a' }, 'constructor')).finish).toMatchObject({
      failure: { code: 'CONSTRUCTOR' },
    })
  })
})

describe('a dialect that cannot be', () => {
  test.each<[string, string, object]>([
    ['a field that is none', 'dialect.reasonings', { reasonings: 'reasoning' }],
    ['a field of an object', 'dialect.toString', { toString: 'x' }],
    ['a key that is none', 'dialect.reasoning', { reasoning: 'thinking' }],
    ['keys that are no list', 'dialect.reasoningKeys', { reasoningKeys: 'reasoning' }],
    ['no keys', 'dialect.reasoningKeys', { reasoningKeys: [] }],
    ['other messages', 'dialect.reasoningOn', { reasoningOn: 'always' }],
    ['a filling that is no string', 'dialect.reasoningFill', { reasoningFill: null }],
    ['null as a content', 'dialect.emptyContent', { emptyContent: null }],
    ['no flag', 'dialect.mergeUsers', { mergeUsers: 'yes' }],
    ['no words', 'dialect.afterResults', { afterResults: ' ' }],
    ['another cap', 'dialect.maxTokens', { maxTokens: 'maxTokens' }],
    ['another effort', 'dialect.effort', { effort: 'high' }],
    ['a meaning that is none', 'dialect.finishWords.eos', { finishWords: { eos: 'end' } }],
    ['words as a list', 'dialect.finishWords', { finishWords: ['eos'] }],
    ['ids too short to tell apart', 'dialect.callIds.maxLength', { callIds: { maxLength: 4 } }],
    ['ids longer than a digest', 'dialect.callIds.maxLength', { callIds: { maxLength: 100 } }],
    ['a pattern as a string', 'dialect.callIds.pattern', { callIds: { pattern: '^x$' } }],
    ['a pattern that remembers', 'dialect.callIds.pattern', { callIds: { pattern: /^\w+$/g } }],
    ['a pattern that sticks', 'dialect.callIds.pattern', { callIds: { pattern: /\w+/y } }],
    ['a pattern that no digest fits', 'dialect.callIds', { callIds: { pattern: /^call_/ } }],
    ['a pattern of another length', 'dialect.callIds', { callIds: { maxLength: 8, pattern: /^\w{9}$/ } }],
    ['an id field that is none', 'dialect.callIds.length', { callIds: { length: 9 } }],
  ])('%s is refused when the adapter is made', (_, option, dialect) => {
    const make = () => openaiCompatible({ baseURL: 'http://host', model: 'm', dialect })
    expect(make).toThrow(InvalidOption)
    expect(make).toThrow(expect.objectContaining({ option }))
  })

  test('no dialect at all is refused too, and a field that is undefined is left out', () => {
    const make = (dialect: unknown) => () => {
      const odd: object = { dialect }
      return openaiCompatible({ baseURL: 'http://host', model: 'm', ...odd })
    }
    for (const dialect of [null, 'mistral', 7, []]) expect(make(dialect)).toThrow('"dialect": must be an object')
    expect(make({ reasoning: undefined })).not.toThrow()
  })
})
