/**
 * The JSON guard. What enters the log is lossless JSON or nothing: a value is read once, copied and frozen, so that
 * what the caller does to it afterwards changes no log.
 */
import { NotJson } from './errors.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Deeper nesting than this is refused; it keeps every later walk of the value off the end of the stack. */
export const MAX_DEPTH = 512

/**
 * A deep-frozen copy of `value`, each property read once. Lone surrogates in strings are kept: JSON escapes them.
 * @throws NotJson with the path, for undefined, bigint, functions, symbols, NaN, infinities, negative zero, cycles,
 * sparse arrays, class instances, accessors that throw, extra or hidden keys, or nesting over 512.
 */
export function toJson(value: unknown, path = '$'): Json {
  const walk: Walk = { path, keys: [], above: [] }
  try {
    return copy(value, walk)
  } catch (error) {
    if (error instanceof NotJson) throw error
    // Only the value's own code can land here: an accessor, or a trap of a proxy.
    throw new NotJson(place(walk), 'reading it throws')
  }
}

/** Where the copying is. The path is only put together when something is wrong: most values are fine. */
interface Walk {
  readonly path: string
  readonly keys: (string | number)[]
  readonly above: object[]
}

const place = ({ path, keys }: Walk): string =>
  path + keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')

const refuse = (walk: Walk, why: string): never => {
  throw new NotJson(place(walk), why)
}

function copy(value: unknown, walk: Walk): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) return refuse(walk, `${value} has no JSON form`)
      if (Object.is(value, -0)) return refuse(walk, 'negative zero would be read back as zero')
      return value
    case 'object':
      return value === null ? null : copyObject(value, walk)
    default:
      return refuse(walk, `${typeof value} has no JSON form`)
  }
}

function copyObject(value: object, walk: Walk): Json {
  if (walk.above.includes(value)) return refuse(walk, 'a cycle')
  if (walk.above.length >= MAX_DEPTH) return refuse(walk, `nested deeper than ${MAX_DEPTH}`)
  walk.above.push(value)
  const result = Array.isArray(value) ? copyArray(value, walk) : copyRecord(value, walk)
  walk.above.pop()
  return result
}

function copyArray(value: readonly unknown[], walk: Walk): Json {
  // Array.prototype is itself an array, in every realm; the prototype of a subclass is not.
  if (!Array.isArray(Object.getPrototypeOf(value))) return refuse(walk, 'an instance of a class, not a plain array')
  const { length } = value
  if (Reflect.ownKeys(value).length !== length + 1) return refuse(walk, 'a sparse array, or one with extra keys')
  const out: Json[] = []
  for (let i = 0; i < length; i++) {
    walk.keys.push(i)
    if (!isEnumerable.call(value, i)) return refuse(walk, 'a hole')
    out.push(copy(value[i], walk))
    walk.keys.pop()
  }
  return Object.freeze(out)
}

function copyRecord(value: object, walk: Walk): Json {
  if (!isPlain(value)) return refuse(walk, 'an instance of a class, not a plain object')
  const keys = Object.keys(value)
  // Two cheap questions: `Reflect.ownKeys` answers both at several times their price, and every chunk is asked.
  if (Object.getOwnPropertyNames(value).length !== keys.length) return refuse(walk, 'a hidden key')
  if (Object.getOwnPropertySymbols(value).length > 0) return refuse(walk, 'a symbol key')
  const out: Record<string, Json> = {}
  for (const key of keys) {
    walk.keys.push(key)
    const item = copy((value as Record<string, unknown>)[key], walk)
    // `__proto__` as a key is data; assignment would set the prototype instead.
    if (key === '__proto__') Object.defineProperty(out, key, { value: item, enumerable: true })
    else out[key] = item
    walk.keys.pop()
  }
  return Object.freeze(out)
}

const isEnumerable = Object.prototype.propertyIsEnumerable

/** No prototype, or the root one, of this realm or of another. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

/**
 * The value itself where it can never be anything else, as with all that a session records; else a frozen copy.
 * @throws NotJson
 */
export const frozenJson = <T>(value: T, path?: string): T => (isFrozenJson(value) ? value : (toJson(value, path) as T))

function isFrozenJson(value: unknown): boolean {
  try {
    return isFrozenValue(value, 0)
  } catch {
    // A trap of a proxy threw: the copy says where.
    return false
  }
}

function isFrozenValue(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    case 'object':
      return value === null || (depth < MAX_DEPTH && Object.isFrozen(value) && isFrozenObject(value, depth + 1))
    default:
      return false
  }
}

function isFrozenObject(value: object, depth: number): boolean {
  const keys = Reflect.ownKeys(value)
  const prototype = Object.getPrototypeOf(value)
  if (Array.isArray(value)) {
    if (prototype !== Array.prototype || keys.length !== value.length + 1) return false
    keys.pop() // The length.
  } else if (prototype !== Object.prototype && prototype !== null) return false
  for (const key of keys) if (!isFrozenItem(value, key, depth)) return false
  return true
}

/** Not so an accessor, frozen or not: it may say something else the next time. Nor what is hidden, such as a `toJSON`. */
function isFrozenItem(object: object, key: string | symbol, depth: number): boolean {
  const item = Object.getOwnPropertyDescriptor(object, key)
  return typeof key === 'string' && item?.enumerable === true && 'value' in item && isFrozenValue(item.value, depth)
}

const recorded = new WeakSet<readonly unknown[]>()

/** Says of a list that a session made every item of it: guarded, frozen, and nobody else's. */
export function markRecorded<T extends readonly unknown[]>(items: T): T {
  recorded.add(items)
  return items
}

/** A session recorded these: a store need not guard against them. */
export const isRecorded = (items: readonly unknown[]): boolean => recorded.has(items)

/** Canonical JSON (keys sorted by code unit, no spaces; the form of RFC 8785 for the values the guard accepts). */
export function canonicalJson(value: Json): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value === null || typeof value !== 'object') return String(value)
  return isArray(value) ? canonicalArray(value) : canonicalRecord(value)
}

// Joined by hand: requests are digested, and a list of parts for each object would be most of the work.

function canonicalArray(items: readonly Json[]): string {
  let text = '['
  for (let i = 0; i < items.length; i++) text += (i === 0 ? '' : ',') + canonicalJson(items[i] as Json)
  return `${text}]`
}

function canonicalRecord(record: { readonly [key: string]: Json }): string {
  const keys = sorted(Object.keys(record))
  let text = '{'
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    text += `${i === 0 ? '' : ','}${quoted(key)}:${canonicalJson(record[key] as Json)}`
  }
  return `${text}}`
}

/** In place, by insertion: most objects have a few keys, nearly in order. */
function sorted(keys: string[]): readonly string[] {
  if (keys.length > 12) return keys.sort()
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string
    let at = i
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string
    keys[at] = key
  }
  return keys
}

/** Most keys are names, which need no escape. */
const quoted = (key: string): string => (NAME.test(key) ? `"${key}"` : JSON.stringify(key))
const NAME = /^[A-Za-z]*$/

const isArray = (value: Json): value is readonly Json[] => Array.isArray(value)

/** Bytes of `text` in UTF-8. */
export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Equal as JSON, whatever the order of keys. */
export const equalJson = (a: Json, b: Json): boolean => a === b || canonicalJson(a) === canonicalJson(b)
