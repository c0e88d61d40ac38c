import { expect, test } from 'vitest'
import type { ContentBlock } from '../../../src/log/messages.ts'
import { createRepeats } from '../../../src/log/projections/repeats.ts'
import * as k from '../../kit/logs.ts'

const call = (id: string, name: string, raw: string): ContentBlock => ({ type: 'tool-call', id, name, arguments: raw })
const source = { kind: 'model', provider: 'p', model: 'm' } as const

/** An answer of `content`, all of whose calls are scheduled, or none. */
const says = (content: readonly ContentBlock[], scheduled = true) =>
  k.answer('', {
    message: { id: 'a1', role: 'assistant', content, source },
    calls: scheduled ? [{ callId: 'c1', name: 'look', mode: 'parallel' }] : [],
  })

const repeatsOf = (...drafts: readonly k.Drafts[]) => {
  const repeats = createRepeats()
  for (const event of k.logOf(...drafts)) repeats.place(event)
  return repeats
}

test('the same call has the same name and arguments, spaces and key order aside', () => {
  const repeats = repeatsOf(k.turnStart())
  expect(repeats.count('look', '{"a":1,"b":2}')).toBe(0)
  repeats.add('look', '{"a":1,"b":2}')
  repeats.add('look', '{ "b": 2, "a": 1 }')
  expect(repeats.count('look', '{"a":1,"b":2}')).toBe(2)
  expect(repeats.count('look', '{"a":1}')).toBe(0)
  expect(repeats.count('find', '{"a":1,"b":2}')).toBe(0)
})

test('however long its arguments are, and however they are written', () => {
  const repeats = createRepeats()
  const args = { lines: [1, 2] }
  // Around the length from which digests are kept, and written shorter and longer than that.
  for (let length = 200; length < 260; length++) {
    const longer = { ...args, path: 'p'.repeat(length) }
    repeats.add('look', JSON.stringify(longer))
    expect(repeats.count('look', JSON.stringify(longer, null, 4))).toBe(1)
    expect(repeats.count('look', JSON.stringify({ ...longer, lines: [1, 3] }))).toBe(0)
  }
})

test('arguments that cannot be read are the same as they are written', () => {
  const repeats = createRepeats()
  repeats.add('look', '{"a":')
  expect(repeats.count('look', '{"a":')).toBe(1)
  expect(repeats.count('look', '{"a": ')).toBe(0)
  expect(repeats.count('look', '{}')).toBe(0)
})

test('every call of an answer counts, and what it says beside them does not', () => {
  const content = [{ type: 'text', text: 'hm' }, call('c1', 'look', '{}'), call('c2', 'look', '{}')] as const
  const repeats = repeatsOf(k.turnStart(), says(content), k.toolCall('c1'), k.result('c1'), says(content))
  expect(repeats.count('look', '{}')).toBe(4)
  repeats.add('look', '{}')
  expect(repeats.count('look', '{}')).toBe(5)
})

test('calls that an answer did not come to make do not count', () => {
  expect(repeatsOf(k.turnStart(), says([call('c1', 'look', '{}')], false)).count('look', '{}')).toBe(0)
})

test('a turn begins with none', () => {
  const one = says([call('c1', 'look', '{}')])
  expect(repeatsOf(k.turnStart(), one, k.turnEnd()).count('look', '{}')).toBe(1)
  expect(repeatsOf(k.turnStart(), one, k.turnEnd(), k.turnStart(2)).count('look', '{}')).toBe(0)
  expect(repeatsOf(k.turnStart(), one, k.turnEnd(), k.turnStart(2), one).count('look', '{}')).toBe(1)
})
