import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WIRE_CHANNEL } from '../../../../src/services/adapters/chat-completions/diagnostics.ts'
import { openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
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
