import { expect, test } from 'vitest'
import {
  argumentBlock,
  argumentLine,
  clockTime,
  count,
  duration,
  oneLine,
  paletteFor,
  printable,
} from '../../../src/services/terminal/text.ts'

const ESC = '\u001b'

test('what is shown cannot move the cursor, colour the screen, set a title or turn the reading direction', () => {
  expect(printable(`a${ESC}[2Jb${ESC}]0;title\u0007c${ESC}[31md\r\u009be\u202ef`)).toBe('abcdef')
})

test('newlines and tabs stay', () => {
  expect(printable('a\n\tb')).toBe('a\n\tb')
})

test('one line folds white space and marks its cut, by characters and not by halves of them', () => {
  expect(oneLine('  a\n  b  ', 10)).toBe('a b')
  expect(oneLine('😀😀😀😀', 3)).toBe('😀😀…')
})

test('arguments read as key=value, and as they came when they are no object', () => {
  expect(argumentLine('{"path":"README.md","from":3}', 80)).toBe('path=README.md from=3')
  expect(argumentLine('{"path":', 80)).toBe('{"path":')
  expect(argumentLine('[1]', 80)).toBe('[1]')
})

test('arguments somebody must allow hide nothing: control characters are spelled out', () => {
  expect(argumentBlock('{"command":"rm \u202e -rf"}')).toBe('{\n  "command": "rm \\u202e -rf"\n}')
  expect(argumentBlock(`{"broken${ESC}[8m`)).toBe('{"broken\\u001b[8m')
})

test.each([
  [0, '0 ms'],
  [12.4, '12 ms'],
  [-3, '0 ms'],
  [1400, '1.4 s'],
  [185_000, '3 min 5 s'],
  [3_720_000, '1 h 2 min'],
])('%d ms are %s', (ms, text) => {
  expect(duration(ms)).toBe(text)
})

test('one is singular', () => {
  expect([count(1, 'event'), count(0, 'event'), count(1200, 'event')]).toEqual(['1 event', '0 events', '1,200 events'])
})

test('a time of day has its milliseconds', () => {
  expect(clockTime(new Date(2026, 2, 1, 4, 3, 9, 7).getTime())).toBe('04:03:09.007')
})

test('colour is for terminals that want it', () => {
  const painted = (isTTY: boolean, env: Record<string, string>) => paletteFor({ isTTY }, env).red('x') !== 'x'
  expect(painted(true, {})).toBe(true)
  expect(painted(true, { NO_COLOR: '1' })).toBe(false)
  expect(painted(true, { TERM: 'dumb' })).toBe(false)
  expect(painted(false, { CI: 'true', FORCE_COLOR: '' })).toBe(false)
})
