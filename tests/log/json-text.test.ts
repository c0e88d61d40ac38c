import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { endOfString, endOfValue, numberLiterals } from '../../src/log/json-text.ts'

test('numbers are found as they are written, those inside strings and keys are not', () => {
  expect(numberLiterals('{"1":[-0, 1E16,"2",0.10],"a\\"3":{"b":9007199254740993}}')).toEqual([
    '-0',
    '1E16',
    '0.10',
    '9007199254740993',
  ])
})

test('a value ends where it ends, whatever stands in it and behind it', () => {
  const blanks = fc.constantFrom('', ' ', '\n')
  fc.assert(
    fc.property(fc.json(), blanks, fc.constantFrom('', ',1', ']', '}'), (json, blank, rest) => {
      const value = json.trim()
      expect(endOfValue(`[${value}${blank}${rest}`, 1)).toBe(1 + value.length)
    }),
  )
})

test('a text or a list ends with its last mark, though no blank, comma or end follows', () => {
  expect(endOfValue('"a,":1', 0)).toBe(4)
  expect(endOfValue('{"a":[1]}{}', 0)).toBe(9)
  expect(endOfValue('["]"]true', 0)).toBe(5)
})

test('a text that is cut off ends at its end', () => {
  expect(endOfString('"abc\\', 0)).toBe(5)
  expect(endOfValue('{"a":[1', 0)).toBe(7)
})
