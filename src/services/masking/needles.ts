/**
 * Registered secrets in a text, in each of the forms in which they travel: as they are, escaped as in a JSON string
 * (also twice), percent-encoded, and as base64. One reader a form: it says what stands at a place of the text.
 */
import { Buffer } from 'node:buffer'
import { MARK, type Span } from './spans.ts'

/** What one place of a text stands for, and how many characters that takes; 'cut' if the text ends within. */
type Reader = (text: string, at: number, expected: number) => number | 'cut' | 'other'

/** One form of one secret: what it says, unit by unit. */
interface Needle {
  readonly units: readonly number[]
  readonly read: Reader
  /** The characters that it may begin with. */
  readonly first: ReadonlySet<number>
}

export interface Needles {
  /** False if there are no secrets at all. */
  readonly any: boolean
  /** False if the text holds no secret, and does not end with the beginning of one. */
  suspects(text: string, from?: number): boolean
  /** The spans that hold a secret. */
  find(text: string, from?: number): readonly Span[]
  /** The first place from which the end of the text may be the beginning of a secret; its length if there is none. */
  open(text: string, from?: number): number
}

const BACKSLASH = 0x5c
const PERCENT = 0x25
const PLUS = 0x2b

export function createNeedles(secrets: readonly string[]): Needles {
  const needles = secrets.flatMap(needlesOf)
  const byFirst = new Map<number, Needle[]>()
  for (const needle of needles) {
    for (const code of needle.first) byFirst.set(code, [...(byFirst.get(code) ?? []), needle])
  }
  const low = Uint8Array.from({ length: 128 }, (_, code) => (byFirst.has(code) ? 1 : 0))
  const isFirst = (code: number): boolean => (code < 128 ? low[code] === 1 : byFirst.has(code))
  return {
    any: needles.length > 0,
    suspects(text, from = 0) {
      if (needles.length === 0) return false
      for (let at = from; at < text.length; at++) {
        const code = text.charCodeAt(at)
        if (!isFirst(code)) continue
        if (byFirst.get(code)?.some((needle) => match(needle, text, at) !== 'other')) return true
      }
      return text.charCodeAt(text.length - 1) === BACKSLASH
    },
    find(text, from = 0) {
      const found: Span[] = []
      if (needles.length === 0) return found
      for (let at = from; at < text.length; at++) {
        if (!isFirst(text.charCodeAt(at))) continue
        for (const needle of byFirst.get(text.charCodeAt(at)) ?? []) {
          const end = match(needle, text, at)
          if (typeof end !== 'number') continue
          const start = whole(text, at, from)
          found.push({ from: start, start, end, as: MARK })
        }
      }
      return found
    },
    open(text, from = 0) {
      if (needles.length === 0) return text.length
      for (let at = from; at < text.length; at++) {
        const here = byFirst.get(text.charCodeAt(at))
        if (here?.some((needle) => match(needle, text, at) === 'cut')) return whole(text, at, from)
      }
      return whole(text, text.length, from)
    },
  }
}

/** `at`, or the backslash before it that would else stay behind, half an escape of a JSON string. */
function whole(text: string, at: number, from: number): number {
  let before = at
  while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1
  return (at - before) % 2 === 1 && at > from ? at - 1 : at
}

/** Where the needle that begins at `from` ends. */
function match({ units, read }: Needle, text: string, from: number): number | 'cut' | 'other' {
  let at = from
  for (const unit of units) {
    if (at >= text.length) return 'cut'
    const length = read(text, at, unit)
    if (typeof length !== 'number') return length
    at += length
  }
  return at
}

function needlesOf(secret: string): readonly Needle[] {
  const escaped = JSON.stringify(secret).slice(1, -1)
  const ascii = asciiOnly(escaped)
  const base64 = Buffer.from(secret, 'utf8').toString('base64')
  const urlSafe = base64.replaceAll('+', '-').replaceAll('/', '_')
  const bare = (text: string): string => text.replace(/=+$/, '')
  const escapes = new Set([secret, escaped, ascii])
  const literals = new Set([base64, bare(base64), urlSafe, bare(urlSafe)])
  if (secret.includes('\\')) literals.add(secret)
  return [
    ...[...escapes].map(jsonNeedle),
    ...[...literals].map(literalNeedle),
    ...(encodeURIComponent(toWellFormed(secret)) === secret ? [] : [percentNeedle(secret)]),
  ]
}

/** Lone surrogates have no UTF-8, and so no percent-encoded form of their own. */
const toWellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8')

const asciiOnly = (text: string): string =>
  text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const unitsOf = (text: string): number[] => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))

const literalNeedle = (text: string): Needle => ({
  units: unitsOf(text),
  read: (from, at, expected) => (from.charCodeAt(at) === expected ? 1 : 'other'),
  first: new Set([text.charCodeAt(0)]),
})

const jsonNeedle = (text: string): Needle => ({
  units: unitsOf(text),
  read: readJson,
  first: new Set([text.charCodeAt(0), BACKSLASH]),
})

const SHORT: ReadonlyMap<string, number> = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', '/': '/' }).map(
    ([letter, char]) => [letter, char.charCodeAt(0)],
  ),
)

/** A character of a JSON string: itself, `\n` and the like, or `\u` and four hex digits. */
function readJson(text: string, at: number, expected: number): number | 'cut' | 'other' {
  const code = text.charCodeAt(at)
  if (code !== BACKSLASH) return code === expected ? 1 : 'other'
  const letter = text[at + 1]
  if (letter === undefined) return 'cut'
  if (letter === 'u') return readHex(text, at + 2, { digits: 4, expected, length: 6 })
  return SHORT.get(letter) === expected ? 2 : 'other'
}

const percentNeedle = (secret: string): Needle => ({
  units: [...Buffer.from(secret, 'utf8')],
  read: readPercent,
  first: new Set([secret.charCodeAt(0), PERCENT, ...(secret.startsWith(' ') ? [PLUS] : [])]),
})

/** A byte of a percent-encoded text: an ASCII character, `%` and two hex digits, or the `+` that forms have for a space. */
function readPercent(text: string, at: number, expected: number): number | 'cut' | 'other' {
  const code = text.charCodeAt(at)
  if (code === PERCENT) return readHex(text, at + 1, { digits: 2, expected, length: 3 })
  if (code === PLUS && expected === 0x20) return 1
  return code === expected && code < 0x80 ? 1 : 'other'
}

interface Hex {
  readonly digits: number
  readonly expected: number
  /** Of the whole escape. */
  readonly length: number
}

function readHex(text: string, from: number, { digits, expected, length }: Hex): number | 'cut' | 'other' {
  const shown = text.slice(from, from + digits).toLowerCase()
  const wanted = expected.toString(16).padStart(digits, '0')
  if (shown.length < digits) return wanted.startsWith(shown) ? 'cut' : 'other'
  return shown === wanted ? length : 'other'
}
