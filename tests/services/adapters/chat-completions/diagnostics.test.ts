import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WIRE_CHANNEL } from '../../../../src/services/adapters/chat-completions/diagnostics.ts'
import { openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { startAgent } from '../../../kit/agents.ts'
import { ask } from '../../../kit/ask-adapter.ts'
import { DONE, delta, event, type Step, stopped, wireServer } from '../../../kit/wire-server.ts'

let heard: unknown[] = []
const listen = (note: unknown) => heard.push(note)
beforeEach(() => {
  heard = []
  subscribe(WIRE_CHANNEL, listen)
})
afterEach(() => {
  unsubscribe(WIRE_CHANNEL, listen)
})

test.each<[string, readonly Step[]]>([
  ['payload-skipped', [event(': WAITING'), stopped('length'), DONE]],
  ['done-missing', [stopped('length')]],
  ['calls-missing', [stopped('tool_calls'), DONE]],
  ['late-content', [stopped('length'), delta({ content: 'again' }), DONE]],
  ['suspicious-text', [delta({ content: '<tool_call>{' }), stopped('stop'), DONE]],
  ['usage-unreadable', [event({ usage: { tokens: 'many' } }), stopped('length'), DONE]],
  ['error-frame', [event({ error: 'BOOM' })]],
])('%s is told to who listens', async (kind, body) => {
  await using server = await wireServer([{ body }])
  await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))
  expect(heard).toEqual([{ kind, detail: expect.any(String) }])
})

test('a content type that the body contradicts is told to who listens', async () => {
  const body = [stopped('length'), DONE]
  await using server = await wireServer([{ headers: { 'content-type': 'application/json' }, body }])
  await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))
  expect(heard).toEqual([{ kind: 'mislabelled', detail: 'application/json' }])
})

describe('what is told shows', () => {
  const SECRET = 'correct horse battery staple'
  const details = () => heard.map((note) => (note as { readonly detail: string }).detail).join('\n')

  test.each<[string, readonly Step[]]>([
    ['an error', [event({ error: { message: `You said: ${SECRET}` } })]],
    ['a skipped payload', [event([SECRET]), stopped('stop'), DONE]],
    ['markup', [delta({ content: `<tool_call>${SECRET}` }), stopped('stop'), DONE]],
    ['what came late', [delta({ content: 'a' }), stopped('stop'), delta({ content: SECRET }), DONE]],
    ['it beyond the first 200 characters', [event({ error: { message: `${'x'.repeat(160)}${SECRET}` } })]],
  ])('no registered secret of an agent, in %s', async (_, body) => {
    await using server = await wireServer([{ body }])
    const model = openaiCompatible({ baseURL: server.url, model: 'm', retry: { maxRetries: 0 } })
    await using started = await startAgent({ model, secrets: [SECRET] })
    await started.agent.run('go')
    expect(heard).not.toEqual([])
    expect(details()).not.toContain('correct')
  })

  test('no key that the request carries, and nothing of its query', async () => {
    const apiKey = 'apikey-7Q8w7E6r5T4'
    const frame = event({ error: { message: `bad key ${apiKey} at ?key=1a2b3c4d5e6f` } })
    await using server = await wireServer([{ body: [frame] }])
    await ask(openaiCompatible({ baseURL: `${server.url}?key=1a2b3c4d5e6f`, apiKey, model: 'm' }))
    expect(details()).toContain('bad key [secret]')
    expect(details()).not.toContain('1a2b3c4d')
  })

  test('no secret of another agent either, for the channel belongs to all', async () => {
    await using other = await startAgent({ secrets: [SECRET] })
    await using server = await wireServer([{ body: [event({ error: { message: SECRET } })] }])
    await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))
    expect(details()).toContain('[secret]')
    expect(details()).not.toContain('correct')
    await other.agent.whenIdle()
  })

  test.each([
    ['that begins as one of the first', 'hunter', 'hunter-9f8e7d6c5b4a'],
    ['that holds what looks like a credential', 'other', 'user:sk-abcdefgh12345!tail99'],
  ])("nothing of a second agent's secret %s", async (_, first, second) => {
    await using one = await startAgent({ secrets: [first] })
    await using two = await startAgent({ secrets: [second] })
    await using server = await wireServer([{ body: [event({ error: { message: `at ${second} end` } })] }])
    await ask(openaiCompatible({ baseURL: server.url, model: 'm' }))
    expect(details()).toContain('at [secret] end')
    await Promise.all([one, two].map(({ agent }) => agent.whenIdle()))
  })

  test('what is no secret as it is', async () => {
    await using server = await wireServer([{ body: [event({ error: { message: 'too many cooks' } })] }])
    await ask(openaiCompatible({ baseURL: server.url, model: 'm', apiKey: '[secret]' }))
    expect(details()).toContain('too many cooks')
  })
})
