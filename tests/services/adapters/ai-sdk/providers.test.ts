/** Real provider packages against a loopback server, in whole turns of an agent. */
import { describe, expect, test } from 'vitest'
import { verify } from '../../../../src/machines/verify.ts'
import type { AiSdkOptions } from '../../../../src/services/adapters/ai-sdk/options.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import type { ModelAdapter } from '../../../../src/services/llm/adapter.ts'
import { tool } from '../../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../../kit/agents.ts'
import { anthropic, compatible, type Make, openaiChat, openaiResponses } from '../../../kit/ai-sdk-providers.ts'
import { anthropicAnswer, responsesAnswer } from '../../../kit/ai-sdk-wires.ts'
import { answer, type Reply, type WireRequest, wireServer } from '../../../kit/wire-server.ts'

const add = tool({
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
  mode: 'parallel',
  execute: (args) => {
    const { a, b } = args as { a: number; b: number }
    return String(a + b)
  },
})

async function turnOver(
  { make, replies, options = {} }: { make: Make; replies: readonly Reply[]; options?: AiSdkOptions },
  inputs: readonly string[] = ['What is 1 + 2, and 3 + 4?'],
) {
  await using server = await wireServer(replies)
  await using started = await startAgent({ model: aiSdk(make(server.url), options), system: 'Be brief.', tools: [add] })
  const results = []
  for (const input of inputs) results.push(await started.agent.run(input))
  const log = await started.log()
  expect(verify(log)).toMatchObject({ ok: true })
  return { results, log, requests: server.requests }
}

const sums = [
  { id: 'call_1', name: 'add', arguments: '{"a":1,"b":2}' },
  { id: 'call_2', name: 'add', arguments: '{"a":3,"b":4}' },
]

describe('OpenAI-compatible servers', () => {
  test('a turn with tools: what was asked, what was said, and the log of it', async () => {
    const { results, log, requests } = await turnOver({
      make: compatible,
      replies: [
        { body: answer({ reasoning: 'two sums', calls: sums }) },
        {
          body: answer({
            text: '3 and 7.',
            usage: { prompt_tokens: 50, completion_tokens: 6, prompt_tokens_details: { cached_tokens: 40 } },
          }),
        },
      ],
    })
    expect(results[0]).toMatchObject({
      reason: { kind: 'completed' },
      text: '3 and 7.',
      usage: { inputTokens: 10, outputTokens: 6, cacheReadTokens: 40 },
    })
    expect(requests[0]?.body).toMatchObject({
      model: 'm',
      stream: true,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'What is 1 + 2, and 3 + 4?' },
      ],
      tools: [
        { type: 'function', function: { name: 'add', description: 'Adds.', parameters: { required: ['a', 'b'] } } },
      ],
    })
    expect(messagesOf(requests[1]).slice(2)).toEqual([
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'two sums',
        tool_calls: sums.map(({ id, name, arguments: args }) => ({
          id,
          type: 'function',
          function: { name, arguments: args },
        })),
      },
      { role: 'tool', tool_call_id: 'call_1', content: '3' },
      { role: 'tool', tool_call_id: 'call_2', content: '7' },
    ])
    expect(ofType(log, 'tool/result').map(({ data }) => data.message.content[0].content)).toEqual([
      [{ type: 'text', text: '3' }],
      [{ type: 'text', text: '7' }],
    ])
  })

  test('arguments that are no JSON stay sendable, and the model is told', async () => {
    const { results, requests } = await turnOver({
      make: compatible,
      replies: [
        { body: answer({ calls: [{ id: 'call_1', name: 'add', arguments: '{"a":1,' }] }) },
        { body: answer({ text: 'Sorry.' }) },
      ],
    })
    expect(results[0]).toMatchObject({ text: 'Sorry.' })
    const [, , called, told] = messagesOf(requests[1])
    expect(called).toMatchObject({ tool_calls: [{ function: { name: 'add', arguments: '{}' } }] })
    expect(told).toMatchObject({ role: 'tool', content: expect.stringContaining('not valid JSON') })
  })
})

describe('Anthropic', () => {
  const SIGNATURE = 'EqQBCkgIBRABGAIiQL+/=='

  test('thinking goes back with its signature, byte for byte, with the calls it led to', async () => {
    const { results, requests } = await turnOver(
      {
        make: anthropic,
        replies: [
          {
            body: anthropicAnswer(
              [
                { thinking: 'Two sums: 1+2 and 3+4.', signature: SIGNATURE },
                { redacted: 'REDACTED==' },
                { text: 'I add.' },
                { id: 'toolu_1', name: 'add', input: '{"a": 1, "b": 2}' },
                { id: 'toolu_2', name: 'add', input: '{"a": 3, "b": 4}' },
              ],
              { stop: 'tool_use' },
            ),
          },
          { body: anthropicAnswer([{ text: '3 and 7.' }], { usage: { cache_read_input_tokens: 100 } }) },
          { body: anthropicAnswer([{ text: 'Welcome.' }]) },
        ],
        options: {
          providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
        },
      },
      ['What is 1 + 2, and 3 + 4?', 'Thanks.'],
    )
    expect(results.map(({ text }) => text)).toEqual(['3 and 7.', 'Welcome.'])
    expect(results[0]?.usage).toMatchObject({ cacheReadTokens: 100 })
    expect(requests[0]?.body).toMatchObject({ thinking: { type: 'enabled', budget_tokens: 1_024 } })
    const said = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Two sums: 1+2 and 3+4.', signature: SIGNATURE },
        { type: 'redacted_thinking', data: 'REDACTED==' },
        { type: 'text', text: 'I add.' },
        { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1, b: 2 } },
        { type: 'tool_use', id: 'toolu_2', name: 'add', input: { a: 3, b: 4 } },
      ],
    }
    const answered = {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: '3' },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: '7' },
      ],
    }
    expect(messagesOf(requests[1]).slice(1)).toEqual([said, answered])
    expect(messagesOf(requests[2]).slice(1, 3)).toEqual([said, answered])
  })

  test('a search that the provider ran goes back with its result; nothing of it is run here', async () => {
    const result = [
      { type: 'web_search_result', url: 'https://example.org', title: 'T', encrypted_content: 'E==', page_age: null },
    ]
    const { results, log, requests } = await turnOver(
      {
        make: anthropic,
        replies: [
          { body: anthropicAnswer([{ server: { id: 'srvtoolu_1', query: 'pawl', result } }, { text: 'Found.' }]) },
          { body: anthropicAnswer([{ text: 'Welcome.' }]) },
        ],
      },
      ['Search.', 'Thanks.'],
    )
    expect(results.map(({ text }) => text)).toEqual(['Found.', 'Welcome.'])
    expect(ofType(log, 'tool/call')).toEqual([])
    const [message] = ofType(log, 'assistant/message')
    expect(message?.data.message.content.map(({ type }) => type)).toEqual([
      'ai-sdk/tool-call',
      'ai-sdk/tool-result',
      'ai-sdk/source',
      'text',
    ])
    expect(messagesOf(requests[1])[1]).toMatchObject({
      role: 'assistant',
      content: [
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'pawl' } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ encrypted_content: 'E==' }] },
        { type: 'text', text: 'Found.' },
      ],
    })
  })

  test('another model gets the words, and not what was given beside them', async () => {
    await using server = await wireServer([
      { body: anthropicAnswer([{ thinking: 'hm', signature: SIGNATURE }, { text: 'One.' }]) },
      { body: answer({ text: 'Two.' }) },
    ])
    const one = aiSdk(anthropic(server.url))
    const two = aiSdk(compatible(server.url))
    let model: ModelAdapter = one
    await using started = await startAgent({
      model: one,
      models: [two],
      hooks: {
        'agent/request': async (_, next) => ({ ...(await next()), provider: model.provider, model: model.model }),
      },
    })
    await started.agent.run('1')
    model = two
    await started.agent.run('2')
    expect(messagesOf(server.requests[1])).toEqual([
      { role: 'user', content: '1' },
      { role: 'assistant', content: 'One.', reasoning_content: 'hm' },
      { role: 'user', content: '2' },
    ])
    expect(JSON.stringify(server.requests[1]?.body)).not.toContain(SIGNATURE)
  })
})

describe('OpenAI', () => {
  test('the responses API gets its encrypted reasoning and its ids back', async () => {
    const { results, requests } = await turnOver({
      make: openaiResponses,
      replies: [
        {
          body: responsesAnswer([
            { id: 'rs_1', reasoning: 'Two sums.', encrypted: 'gAAAA==' },
            { id: 'fc_1', call: { id: 'call_1', name: 'add', arguments: '{"a":1,"b":2}' } },
          ]),
        },
        { body: responsesAnswer([{ id: 'msg_1', text: '3.' }]) },
      ],
      options: { providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } } },
    })
    expect(results[0]).toMatchObject({
      text: '3.',
      usage: { inputTokens: 20, cacheReadTokens: 40, outputTokens: 16, reasoningTokens: 6 },
    })
    expect(requests[0]?.body).toMatchObject({ store: false, tools: [{ type: 'function', name: 'add' }] })
    expect(requests[1]?.body.input).toMatchObject([
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'input_text' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        encrypted_content: 'gAAAA==',
        summary: [{ type: 'summary_text', text: 'Two sums.' }],
      },
      { type: 'function_call', call_id: 'call_1', name: 'add', arguments: '{"a":1,"b":2}' },
      { type: 'function_call_output', call_id: 'call_1', output: '3' },
    ])
  })

  test('stored reasoning goes back as a reference', async () => {
    const { requests } = await turnOver({
      make: openaiResponses,
      replies: [
        {
          body: responsesAnswer([
            { id: 'rs_1', reasoning: 'Two sums.', encrypted: '' },
            { id: 'fc_1', call: { id: 'call_1', name: 'add', arguments: '{"a":1,"b":2}' } },
          ]),
        },
        { body: responsesAnswer([{ id: 'msg_1', text: '3.' }]) },
      ],
    })
    expect(requests[1]?.body.input).toMatchObject([
      {},
      {},
      { type: 'item_reference', id: 'rs_1' },
      { type: 'function_call', call_id: 'call_1' },
      { type: 'function_call_output', call_id: 'call_1', output: '3' },
    ])
  })

  test('an effort is said by a function of the request', async () => {
    await using server = await wireServer([{ body: responsesAnswer([{ id: 'msg_1', text: 'ok' }]) }])
    const model = aiSdk(openaiResponses(server.url), {
      providerOptions: ({ reasoningEffort }) => ({ openai: { reasoningEffort } }),
    })
    await using started = await startAgent({ model, reasoningEffort: 'high' })
    expect(await started.agent.run('hi')).toMatchObject({ text: 'ok' })
    expect(server.requests[0]?.body).toMatchObject({ reasoning: { effort: 'high' } })
  })

  test('the chat API answers a turn with tools', async () => {
    const { results, requests } = await turnOver({
      make: openaiChat,
      replies: [{ body: answer({ calls: sums }) }, { body: answer({ text: '3 and 7.' }) }],
    })
    expect(results[0]).toMatchObject({ reason: { kind: 'completed' }, text: '3 and 7.' })
    expect(messagesOf(requests[1]).slice(3)).toEqual([
      { role: 'tool', tool_call_id: 'call_1', content: '3' },
      { role: 'tool', tool_call_id: 'call_2', content: '7' },
    ])
  })
})

const messagesOf = (request: WireRequest | undefined): readonly unknown[] => {
  const messages = request?.body.messages
  return Array.isArray(messages) ? messages : []
}
