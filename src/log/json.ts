/**
 * The JSON guard. What enters the log is lossless JSON or nothing: a value is read once, copied and frozen, so that
 * what the caller does to it afterwards changes no log.
 */
import { NotJson } from './errors.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Deeper nesting than this is refused; it keeps every later walk of the value off the end of the stack. */
export const MAX_DEPTH = 512

/**
 * A deep-frozen copy of `value`, each property read once.
 * @throws NotJson with the path, for undefined, bigint, functions, symbols, NaN, infinities, negative zero, cycles,
 * sparse arrays, class instances, accessors that throw, extra or hidden keys, or nesting over 512.
 */
export function toJson(value: unknown, path = '$'): Json {
  return copy(value, path, new Set())
}

function copy(value: unknown, path: string, above: Set<object>): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw new NotJson(path, `${value} has no JSON form`)
      if (Object.is(value, -0)) throw new NotJson(path, 'negative zero would be read back as zero')
      return value
    case 'object':
      return value === null ? null : copyObject(value, path, above)
    default:
      throw new NotJson(path, `${typeof value} has no JSON form`)
  }
}

function copyObject(value: object, path: string, above: Set<object>): Json {
  if (above.has(value)) throw new NotJson(path, 'a cycle')
  if (above.size >= MAX_DEPTH) throw new NotJson(path, `nested deeper than ${MAX_DEPTH}`)
  above.add(value)
  const result = Array.isArray(value) ? copyArray(value, path, above) : copyRecord(value, path, above)
  above.delete(value)
  return result
}

function copyArray(value: readonly unknown[], path: string, above: Set<object>): Json {
  const keys = Reflect.ownKeys(value)
  if (keys.length !== value.length + 1) throw new NotJson(path, 'a sparse array, or one with extra keys')
  const out: Json[] = []
  for (let i = 0; i < value.length; i++) {
    if (!Object.hasOwn(value, i)) throw new NotJson(`${path}[${i}]`, 'a hole')
    out.push(copy(value[i], `${path}[${i}]`, above))
  }
  return Object.freeze(out)
}

function copyRecord(value: object, path: string, above: Set<object>): Json {
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) {
    throw new NotJson(path, `an instance of ${value.constructor?.name || 'a class'}, not a plain object`)
  }
  if (prototype !== null && !Object.hasOwn(prototype, 'hasOwnProperty')) throw new NotJson(path, 'not a plain object')
  const out: Record<string, Json> = {}
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key === 'symbol') throw new NotJson(path, 'a symbol key')
    if (!Object.prototype.propertyIsEnumerable.call(value, key)) throw new NotJson(`${path}.${key}`, 'a hidden key')
    const item = copy((value as Record<string, unknown>)[key], `${path}.${key}`, above)
    // `__proto__` as a key is data; assignment would set the prototype instead.
    if (key === '__proto__') Object.defineProperty(out, key, { value: item, enumerable: true })
    else out[key] = item
  }
  return Object.freeze(out)
}

/** Canonical JSON (keys sorted by code unit, no spaces; the form of RFC 8785 for the values the guard accepts). */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const pairs = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`)
  return `{${pairs.join(',')}}`
}

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value)

/** Bytes of `text` in UTF-8. */
export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Equal as JSON, whatever the order of keys. */
export const equalJson = (a: Json, b: Json): boolean => a === b || canonicalJson(a) === canonicalJson(b)
