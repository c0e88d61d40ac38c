import { expect, test } from 'vitest'
import { textOf } from '../../src/log/messages.ts'

test('the text of a message is its text blocks, joined, without what it thought, asked for or showed', () => {
  expect(textOf({ content: [] })).toBe('')
  expect(
    textOf({
      content: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'one ' },
        { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' },
        { type: 'text', text: 'two' },
        { type: 'acme/chart', text: 'points' },
      ],
    }),
  ).toBe('one two')
})
