import { describe, expect, test } from 'vitest'
import type { AssistantMessage, Message } from '../../../src/log/messages.ts'
import { createPairing, unpaired } from '../../../src/log/projections/pairing.ts'
import * as k from '../../kit/logs.ts'

const asks = (...ids: readonly string[]): AssistantMessage => ({
  id: `a-${ids}`,
  role: 'assistant',
  content: [
    { type: 'text', text: 'let me see' },
    ...ids.map((id) => ({ type: 'tool-call', id, name: 'look', arguments: '{}' }) as const),
  ],
  source: { kind: 'model', provider: 'p', model: 'm' },
})
const user = k.message('m1')
const result = k.resultMessage

const alone = 'the result of c1 follows no call'
const unfollowed = 'the call c1 is not followed by its result'
const unanswered = 'the call c1 has no result'

const histories: readonly (readonly [string, readonly Message[], string | undefined])[] = [
  ['nothing', [], undefined],
  ['text', [user, asks(), user], undefined],
  ['calls, each answered in its order', [user, asks('c1', 'c2'), result('c1'), result('c2'), user], undefined],
  ['a call at the end', [user, asks('c1')], unanswered],
  ['a call of two at the end', [user, asks('c2', 'c1'), result('c2')], unanswered],
  ['a call before something else', [asks('c1'), user, result('c1')], unfollowed],
  ['a call before another answer', [asks('c1'), asks('c2'), result('c2')], unfollowed],
  ['results in another order', [asks('c1', 'c2'), result('c2'), result('c1')], unfollowed],
  ['a result at the beginning', [result('c1'), user], alone],
  ['a result a second time', [asks('c1'), result('c1'), result('c1')], alone],
]

describe('calls and results', () => {
  test.each(histories)('%s', (_, messages, wrong) => {
    expect(unpaired(messages)).toBe(wrong)
  })

  test('read as a conversation grows, it is the same at every point', () => {
    for (const [, messages] of histories) {
      const pairing = createPairing()
      for (let length = 0; length <= messages.length; length++) {
        const history = messages.slice(0, length)
        expect(pairing.unpaired(history)).toBe(unpaired(history))
      }
    }
  })

  test('read one after the other, histories have nothing to do with each other, whatever was wrong with the last', () => {
    for (const [, before, wrongBefore] of histories) {
      for (const [, messages, wrong] of histories) {
        const pairing = createPairing()
        expect(pairing.unpaired(before)).toBe(wrongBefore)
        expect(pairing.unpaired(messages)).toBe(wrong)
        expect(pairing.unpaired(messages)).toBe(wrong)
      }
    }
  })
})
