import { types } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NotJson } from '../../src/log/errors.ts'
import { canonicalJson, equalJson, frozenJson, type Json, MAX_DEPTH, toJson, utf8Bytes } from '../../src/log/json.ts'

const refusal = (value: unknown): NotJson => {
  try {
    toJson(value)
  } catch (error) {
    if (error instanceof NotJson) return error
    throw error
  }
  throw new Error('it was accepted')
}

const never = (): never => {
  throw new Error('never')
}

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value }
  return value
}

class Point {
  x = 1
}
class List extends Array<number> {}
const cycle: { self?: unknown } = {}
cycle.self = [cycle]
const hidden = Object.defineProperty({ a: 1 }, 'b', { value: 2, enumerable: false })
const hiddenItem = Object.defineProperty([1], 0, { enumerable: false })
const throwing = {
  get a() {
    throw new Error('no')
  },
}
const revoked = Proxy.revocable({}, {})
revoked.revoke()

describe('what would be lost or changed as JSON is refused, and where it stands is said', () => {
  test.each<[string, unknown, string, string?]>([
    ['undefined', undefined, '$', 'undefined has no JSON form'],
    ['an undefined property', { a: { b: undefined } }, '$.a.b'],
    ['an undefined item', [1, undefined], '$[1]'],
    ['a bigint', { a: 1n }, '$.a', 'bigint has no JSON form'],
    ['a function', { a: [() => 1] }, '$.a[0]'],
    ['a symbol', { a: Symbol('s') }, '$.a'],
    ['NaN', [Number.NaN], '$[0]', 'NaN has no JSON form'],
    ['infinity', Number.POSITIVE_INFINITY, '$'],
    ['negative zero', { a: -0 }, '$.a', 'negative zero'],
    ['a Date', { at: new Date(0) }, '$.at'],
    ['a Map', new Map(), '$'],
    ['a boxed number', { a: Object(1) }, '$.a'],
    ['a class instance', [new Point()], '$[0]', 'an instance of a class, not a plain object'],
    ['an instance of a subclass of Array', { a: List.from([1]) }, '$.a', 'an instance of a class, not a plain array'],
    ['an object with a made-up prototype', Object.create({ a: 1 }), '$'],
    ['an object whose prototype has none', Object.create(Object.create(null)), '$'],
    ['an object whose prototype takes after the root', Object.create({ hasOwnProperty: () => true }), '$'],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    ['a sparse array', { a: [1, , 3] }, '$.a', 'a sparse array'],
    ['an array with an extra key', Object.assign([1], { extra: 2 }), '$'],
    ['an array with a hole and an extra key', Object.assign(new Array(1), { extra: 2 }), '$[0]'],
    ['an array with a hidden item', hiddenItem, '$[0]', 'a hole'],
    ['a hidden key', { a: hidden }, '$.a', 'a hidden key'],
    ['a symbol key', { [Symbol('s')]: 1 }, '$', 'a symbol key'],
    ['a cycle', cycle, '$.self[0]', 'a cycle'],
    ['an accessor that throws', { a: throwing }, '$.a.a', 'reading it throws'],
    ['a proxy that throws', { a: revoked.proxy }, '$.a'],
  ])('%s', (_, value, path, why = '') => {
    expect(refusal(value)).toMatchObject({ code: 'NOT_JSON', path })
    expect(refusal(value).message).toContain(`Not JSON at ${path}: ${why}`)
  })

  test('nesting over the limit, however deep', () => {
    expect(refusal(nested(MAX_DEPTH + 1)).message).toContain('deeper than 512')
    expect(refusal(nested(100_000)).message).toContain('deeper than 512')
    expect(toJson(nested(MAX_DEPTH))).toEqual(nested(MAX_DEPTH))
  })

  test('the path starts where the caller says', () => {
    expect(() => toJson({ a: 1n }, 'turn/start: data')).toThrow('Not JSON at turn/start: data.a')
  })
})

describe('the copy', () => {
  test('is equal, and does not change with what was copied', () => {
    const original = { a: [{ b: 1 }], c: null }
    const copy = toJson(original)
    original.a[0]!.b = 2
    expect(copy).toEqual({ a: [{ b: 1 }], c: null })
  })

  test('is frozen all the way down', () => {
    const copy = toJson({ a: [{ b: {} }] }) as { a: [{ b: object }] }
    for (const value of [copy, copy.a, copy.a[0], copy.a[0].b]) expect(Object.isFrozen(value)).toBe(true)
  })

  test('has the value an accessor gave the first time, which is the only time it is asked', () => {
    let asked = 0
    const shifty = {
      get a() {
        asked += 1
        return asked === 1 ? 'first' : undefined
      },
    }
    expect(toJson(shifty)).toEqual({ a: 'first' })
    expect(asked).toBe(1)
  })

  test('reads an array no further than its first length, so a getter cannot make it endless', () => {
    const growing: unknown[] = []
    Object.defineProperty(growing, 0, { get: () => growing.push(1), enumerable: true })
    expect(toJson(growing)).toEqual([2])
  })

  test('keeps a literal __proto__ key as data', () => {
    const copy = toJson(JSON.parse('{"__proto__":{"admin":true},"a":1}')) as Record<string, Json>
    expect(Object.keys(copy)).toEqual(['__proto__', 'a'])
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true},"a":1}')
    expect(canonicalJson(copy)).toBe('{"__proto__":{"admin":true},"a":1}')
  })

  test('takes objects and lists of another realm', () => {
    expect(toJson(runInNewContext('({ a: [{ b: 1 }] })'))).toEqual({ a: [{ b: 1 }] })
    expect(() => toJson(runInNewContext('new Date(0)'))).toThrow(NotJson)
  })

  test('takes null-prototype objects, shared parts and lone surrogates', () => {
    const shared = { a: 1 }
    expect(toJson(Object.assign(Object.create(null), { x: shared, y: shared }))).toEqual({ x: shared, y: shared })
    expect(JSON.parse(JSON.stringify(toJson('\ud800')))).toBe('\ud800')
  })

  test('of any JSON value is that value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        // A parsed negative zero is a value the log would read back as another one.
        const value: Json = JSON.parse(JSON.stringify(JSON.parse(text)))
        expect(JSON.stringify(toJson(value))).toBe(JSON.stringify(value))
      }),
    )
  })
})

describe('what nobody can change any more', () => {
  const frozen = <T>(value: T): T => {
    if (typeof value !== 'object' || value === null) return value
    for (const item of Object.values(value)) frozen(item)
    return Object.freeze(value)
  }

  test('is kept as it is, whatever it is made of', () => {
    const bare = Object.assign(Object.create(null), { a: 1 })
    for (const value of [{}, [], { a: [true, 'x', 1, null], b: { c: [[], {}] } }, bare, nested(MAX_DEPTH)]) {
      expect(frozenJson(frozen(value))).toBe(value)
    }
    for (const value of [true, 'x', 1, null]) expect(frozenJson(value)).toBe(value)
  })

  test('is not what only looks so: a part that may change is copied', () => {
    const part = { b: 1 }
    for (const value of [Object.freeze({ a: part }), Object.freeze([1, part]), { a: 1 }, [1]]) {
      const copy = frozenJson(value)
      expect(copy).toEqual(value)
      expect(copy).not.toBe(value)
      expect(frozenJson(copy)).toBe(copy)
    }
  })

  test('is not what may say something else the next time, frozen or not', () => {
    let read = 0
    const counting = Object.freeze({
      get a() {
        return ++read
      },
    })
    const copy = frozenJson({ deep: counting })
    expect([copy.deep.a, copy.deep.a]).toEqual([1, 1])
    expect(frozenJson(copy)).toBe(copy)
  })

  test.each<[string, object]>([
    ['a key that is hidden', Object.defineProperty({ a: 1 }, 'toJSON', { value: () => 'else' })],
    ['a key that is a symbol', { a: 1, [Symbol('b')]: 1 }],
    ['a list with a key', Object.assign([1], { toJSON: 1 })],
    ['a list of a class', class Else extends Array<number> {}.of(1, 2)],
    ['an accessor that throws', Object.defineProperty({}, 'a', { enumerable: true, get: never })],
    ['a proxy that throws', new Proxy({ a: 1 }, { ownKeys: () => [never()] })],
  ])('%s is refused, frozen or not', (_, value) => {
    expect(() => frozenJson(value)).toThrow(NotJson)
    const isProxy = types.isProxy(value)
    if (!isProxy) expect(() => frozenJson(Object.freeze(value))).toThrow(NotJson)
  })

  test.each<[string, unknown]>([
    ['undefined', { a: undefined }],
    ['negative zero', [-0]],
    ['infinity', [Number.POSITIVE_INFINITY]],
    ['a bigint', 1n],
    ['a class instance', new Point()],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    ['a hole', [1, , 3]],
    ['an inherited key', Object.create({ a: 1 })],
    ['nesting over the limit', nested(MAX_DEPTH + 1)],
  ])('but %s is refused all the same, with its place', (_, value) => {
    expect(() => frozenJson(frozen(value), 'command')).toThrow(NotJson)
    expect(() => frozenJson(frozen(value), 'command')).toThrow('Not JSON at command')
  })
})

describe('canonical JSON', () => {
  test('sorts keys by code unit at every level and has no spaces', () => {
    expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: 'x', é: 1, Z: null, '10': 1, '9': 2 })).toBe(
      '{"10":1,"9":2,"Z":null,"a":"x","b":[{"c":2,"d":1}],"é":1}',
    )
  })

  test('sorts keys beyond the basic plane by code unit, as RFC 8785 does', () => {
    expect(canonicalJson({ '\ufb33': 1, '\u{1f600}': 2 })).toBe('{"\u{1f600}":2,"\ufb33":1}')
  })

  test('writes numbers as JSON does', () => {
    expect(canonicalJson([1e21, 1e-7, 0.1, 100, 5e-324])).toBe('[1e+21,1e-7,0.1,100,5e-324]')
  })

  test('is what a plain writer writes, of any value', () => {
    const plain = (value: Json): string => {
      if (typeof value !== 'object' || value === null) return JSON.stringify(value)
      if (Array.isArray(value)) return `[${value.map(plain).join(',')}]`
      const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
      return `{${pairs.map(([key, item]) => `${JSON.stringify(key)}:${plain(item)}`).join(',')}}`
    }
    const wide = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { minKeys: 10, maxKeys: 20 })
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), wide), (given) => {
        const value = toJson(JSON.parse(JSON.stringify(given)))
        expect(canonicalJson(value)).toBe(plain(value))
      }),
      { numRuns: 300 },
    )
  })

  test('says the same of values that are equal, and another thing of those that are not', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.integer()), fc.integer(), (record, other) => {
        const reversed = Object.fromEntries(Object.entries(record).reverse())
        expect(equalJson(record, reversed)).toBe(true)
        expect(JSON.parse(canonicalJson(record))).toEqual(JSON.parse(JSON.stringify(record)))
        expect(equalJson({ ...record, more: other }, { ...record, more: other + 1 })).toBe(false)
      }),
    )
  })
})

test('bytes are those of UTF-8', () => {
  expect([utf8Bytes('a'), utf8Bytes('é'), utf8Bytes('€'), utf8Bytes('😀')]).toEqual([1, 2, 3, 4])
})
