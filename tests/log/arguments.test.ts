import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseArguments } from '../../src/log/arguments.ts'
import { toJson } from '../../src/log/json.ts'

const argsOf = (raw: string): unknown => {
  const parsed = parseArguments(raw)
  if (parsed.kind !== 'parsed') throw new Error(parsed.message)
  return parsed.args
}

describe('parseArguments', () => {
  test.each(['', ' ', '\n\t '])('[tools-005] %j is an empty object', (raw) => {
    expect(argsOf(raw)).toEqual({})
  })

  test.each(['{bad', '{"a":1', '{"a":1}}', "{'a':1}", 'undefined'])(
    '[tools-003] %s is unparsable, in words that do not depend on the engine',
    (raw) => {
      expect(parseArguments(raw)).toEqual({
        kind: 'unparsable',
        message: 'The arguments are not valid JSON: send one JSON object, with every string quoted and closed.',
      })
    },
  )

  test.each([
    '9223372036854775807',
    '-9223372036854775808',
    '9007199254740993',
    '9007199254740992',
    '9007199254740993.0',
  ])('the integer %s is refused instead of rounded', (integer) => {
    const parsed = parseArguments(`{"a":"x\\"1","list":[1,{"id":${integer}}]}`)
    expect(parsed).toMatchObject({ kind: 'unparsable', message: expect.stringContaining(integer) })
  })

  test.each([
    ['too large for a double', '1e400'],
    ['too large for a double, below zero', '-1e400'],
    ['too small for a double', '1e-400'],
    ['an integer that is written with an exponent', '9007199254740993e0'],
    ['an integer that is written with an exponent and a point', '900719925474099.3E1'],
    ['digits lost before the point', '12345678901234567.89'],
    ['all digits left, but rounded up to another integer', '4503599627370497.5'],
    ['at the first number that has no digits behind its point', '4503599627370496.4'],
    ['an even integer beyond 2^53, which nobody can tell from its neighbour', '9007199254740994.00'],
  ])('what is %s is refused', (_, number) => {
    expect(parseArguments(`{"a":[{"n":${number}}]}`)).toMatchObject({
      kind: 'unparsable',
      message: expect.stringContaining(number),
    })
  })

  test.each([
    ['1E16', 1e16],
    ['1e+23', 1e23],
    ['12.5e1', 125],
    ['0e5', 0],
    ['5e-324', 5e-324],
    ['0.1234567890123456789', 0.12345678901234568],
    ['2.50000000000000000001', 2.5],
    ['0.000', 0],
    ['1.5e20', 1.5e20],
    ['-1.50E+20', -1.5e20],
    ['0.25e20', 2.5e19],
    ['4503599627370495.7', 4503599627370495.5],
  ])('%s is read as the double that it is written for', (number, value) => {
    expect(argsOf(`{"n":${number}}`)).toEqual({ n: value })
  })

  test('a number of more than forty characters is told by its beginning', () => {
    const said = (raw: string) => parseArguments(raw)
    expect(said('9'.repeat(40))).toMatchObject({ message: expect.stringContaining(`The number ${'9'.repeat(40)} in`) })
    expect(said('9'.repeat(41))).toMatchObject({
      message: expect.stringContaining(`The number ${'9'.repeat(40)}... in`),
    })
  })

  test('any double is read back as JSON writes it, unless it is an integer beyond 2^53 in plain digits', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => {
        fc.pre(!Object.is(n, -0) && !(Number.isInteger(n) && !Number.isSafeInteger(n) && Math.abs(n) < 1e21))
        expect(argsOf(JSON.stringify([n]))).toEqual([n])
      }),
    )
  })

  test('safe integers, fractions and exponents pass', () => {
    expect(argsOf('[9007199254740991,-9007199254740991,0.1,1e21,-2.5E-3]')).toEqual([
      9007199254740991, -9007199254740991, 0.1, 1e21, -0.0025,
    ])
  })

  test('digits inside strings and keys are text, whatever is escaped around them', () => {
    const raw = String.raw`{"9223372036854775807":"id \\\" 9223372036854775807 \\","b":"\\"}`
    expect(argsOf(raw)).toEqual(JSON.parse(raw))
  })

  test('negative zero is read as zero, so that what is logged is what was read', () => {
    expect(Object.is((argsOf('{"n":[-0, -0.0]}') as { n: number[] }).n[0], 0)).toBe(true)
  })

  test('__proto__ is a key like any other', () => {
    const args = argsOf('{"__proto__":{"admin":true}}') as object
    expect(Object.keys(args)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(args)).toBe(Object.prototype)
    expect('admin' in args).toBe(false)
  })

  test('arguments cannot be changed between an approval and the body', () => {
    const args = argsOf('{"a":{"b":1}}') as { a: object }
    expect(Object.isFrozen(args) && Object.isFrozen(args.a)).toBe(true)
  })

  test('nesting that would overflow a later walk is refused', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(parseArguments(nested(512)).kind).toBe('parsed')
    expect(parseArguments(nested(100_000))).toMatchObject({ kind: 'unparsable', message: expect.stringMatching(/512/) })
  })

  test('whatever JSON.stringify writes without unsafe integers is read back', () => {
    const unsafe = (value: unknown): boolean =>
      typeof value === 'number'
        ? Number.isInteger(value) && !Number.isSafeInteger(value)
        : typeof value === 'object' && value !== null && Object.values(value).some(unsafe)
    fc.assert(
      fc.property(fc.json(), (raw) => {
        fc.pre(!unsafe(JSON.parse(raw)))
        expect(argsOf(raw)).toEqual(toJson(JSON.parse(raw, (_, item) => (item === 0 ? 0 : item))))
      }),
    )
  })
})
