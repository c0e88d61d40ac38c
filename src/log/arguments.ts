/**
 * A call's raw arguments, parsed once and frozen. What a number would lose by being read is refused rather than
 * rounded: a tool that acts on record 9223372036854775807 must not act on its neighbour.
 */
import { type Json, MAX_DEPTH, toJson } from './json.ts'

export type ParsedArguments =
  | { readonly kind: 'parsed'; readonly args: Json }
  | { readonly kind: 'unparsable'; readonly message: string }

/**
 * Reads the model's raw string. Empty or blank is `{}`, as tools without parameters are called that way. `args` is
 * deep-frozen lossless JSON (`-0` is read as 0, `__proto__` is a key like any other); `message` is for the model.
 * Unparsable: invalid JSON, an integer beyond 2^53, a number too large for a double, nesting over 512.
 */
export function parseArguments(raw: string): ParsedArguments {
  if (raw.trim() === '') return { kind: 'parsed', args: Object.freeze({}) }
  let value: unknown
  try {
    value = JSON.parse(raw)
  } catch {
    // JSON.parse throws nothing but a SyntaxError; its text differs between versions of V8, so it is not passed on.
    return unparsable('The arguments are not valid JSON: send one JSON object, with every string quoted and closed.')
  }
  const numbers = numberLiterals(raw)
  const unsafe = numbers.find(isUnsafe)
  if (unsafe !== undefined) {
    return unparsable(`The number ${shorten(unsafe)} in the arguments cannot be held exactly: send it as a string.`)
  }
  try {
    const args = numbers.some(isNegativeZero) ? JSON.parse(raw, (_, item) => (Object.is(item, -0) ? 0 : item)) : value
    return { kind: 'parsed', args: toJson(args) }
  } catch {
    // Valid JSON with safe numbers: nothing but its depth can be refused, here or on the stack of the reviver.
    return unparsable(`The arguments are nested deeper than ${MAX_DEPTH}: send them flatter.`)
  }
}

const unparsable = (message: string): ParsedArguments => ({ kind: 'unparsable', message })
const shorten = (literal: string): string => (literal.length > 40 ? `${literal.slice(0, 40)}...` : literal)

/** A fraction or an exponent says the sender means a double; plain digits, or `.0` after them, mean that integer. */
function isUnsafe(literal: string): boolean {
  const value = Number(literal)
  return /^-?\d+(\.0+)?$/.test(literal) ? !Number.isSafeInteger(value) : !Number.isFinite(value)
}

const isNegativeZero = (literal: string): boolean => Object.is(Number(literal), -0)

/** `json` is valid, so a quote outside a string opens one, and a digit or a minus outside a string opens a number. */
function numberLiterals(json: string): string[] {
  const literal = /[-\d][-+\d.eE]*/y
  const found: string[] = []
  for (let at = 0; at < json.length; ) {
    if (json.charCodeAt(at) === QUOTE) {
      at = endOfString(json, at)
      continue
    }
    literal.lastIndex = at
    const number = literal.exec(json)?.[0]
    if (number !== undefined) found.push(number)
    at += number?.length ?? 1
  }
  return found
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

function endOfString(json: string, start: number): number {
  let at = start + 1
  while (json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at + 1
}
