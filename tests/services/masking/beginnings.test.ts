import fc from 'fast-check'
import { expect, test } from 'vitest'
import { beginningsOf } from '../../../src/services/masking/beginnings.ts'

/** As the patterns are: what begins a word, also after an escape of JSON, or stands anywhere; whole, or cut by the end. */
const leads = /(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))a(?:$|b(?:$|c(?:$|)))|:(?:$|\/(?:$|))/g
const mayBegin = beginningsOf(leads)

const text = fc
  .array(fc.constantFrom('a', 'b', 'c', 'ab', 'abc', '\\', '\\n', '\\na', 'x', ':', '/', ' ', '1', 'é', '\u{1f600}'), {
    maxLength: 8,
  })
  .map((parts) => parts.join(''))

test('what a quick look passes over, the patterns find nothing in', () => {
  fc.assert(
    fc.property(text, text, (before, piece) => {
      leads.lastIndex = before.length
      if (leads.exec(before + piece) === null) return
      expect(mayBegin(before + piece, before.length)).toBe(true)
      expect(mayBegin(piece, 0, before)).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('a piece is looked at as it would be behind what came before it', () => {
  fc.assert(
    fc.property(text, text, (before, piece) => {
      expect(mayBegin(piece, 0, before)).toBe(mayBegin(before + piece, before.length))
    }),
    { numRuns: 2_000 },
  )
})

test('most texts are passed over', () => {
  for (const plain of ['xa', 'a cab', 'b: c', 'ba', '1a', 'no cab']) {
    expect([plain, mayBegin(plain, 0)]).toEqual([plain, false])
  }
})
