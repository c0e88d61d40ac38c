/**
 * Arguments that a server sends as an object instead of a string, kept as they were written. Parsed with the rest of
 * the payload they would lose what numbers lose by being read, before anybody could see it.
 */
import { endOfString, endOfValue } from '../../../log/json-text.ts'

/** The key however it is spelt: JSON may write any letter as an escape, in either case. */
const KEY = [...'arguments'].map((letter) => `(?:${letter}|${escapeOf(letter)})`).join('')
const IS_KEY = new RegExp(`^"${KEY}"$`)

/** Cheap, since every payload is asked: most have no arguments, and those that have, as a string. */
const NOT_A_STRING = new RegExp(`"${KEY}"\\s*:\\s*[^\\s"n]`)

/** A pattern for `\u0061` and the like. */
function escapeOf(letter: string): string {
  const hex = letter.charCodeAt(0).toString(16).padStart(4, '0')
  return `\\\\u${hex.replace(/[a-f]/, (digit) => `[${digit}${digit.toUpperCase()}]`)}`
}

/** `json` with the value of every key `arguments` that is no string, and not null, written as a string of its text. */
export function withRawArguments(json: string): string {
  if (!NOT_A_STRING.test(json)) return json
  const parts: string[] = []
  let from = 0
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at)) {
    const end = endOfString(json, at)
    const value = IS_KEY.test(json.slice(at, end)) ? valueAfter(json, end) : undefined
    at = end
    if (value === undefined) continue
    at = endOfValue(json, value)
    parts.push(json.slice(from, value), JSON.stringify(json.slice(value, at)))
    from = at
  }
  return parts.join('') + json.slice(from)
}

/** Where the value of the key that ends at `end` begins, if it is to be kept as text. */
function valueAfter(json: string, end: number): number | undefined {
  const colon = /\s*:\s*(?=[^\s"n])/y
  colon.lastIndex = end
  return colon.test(json) ? colon.lastIndex : undefined
}
