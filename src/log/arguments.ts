/**
 * A call's raw arguments, parsed once and frozen. What a number would lose by being read is refused rather than
 * rounded: a tool that acts on record 9223372036854775807 must not act on its neighbour.
 */
import { type Json, MAX_DEPTH, toJson } from './json.ts'
import { numberLiterals } from './json-text.ts'

export type ParsedArguments =
  | { readonly kind: 'parsed'; readonly args: Json }
  | { readonly kind: 'unparsable'; readonly message: string }

/**
 * Reads the model's raw string. Empty or blank is `{}`, as tools without parameters are called that way. `args` is
 * deep-frozen lossless JSON (`-0` is read as 0, `__proto__` is a key like any other); `message` is for the model.
 * Unparsable: invalid JSON, an integer beyond 2^53, any other number that loses digits before its point, or all of
 * them (1e400, 1e-400), nesting over 512. The last digits of a longer fraction are rounded, as every reader does.
 */
export function parseArguments(raw: string): ParsedArguments {
  if (raw.length > SHORT) return parse(raw)
  const known = recent.get(raw)
  if (known !== undefined) return known
  const parsed = Object.freeze(parse(raw))
  if (recent.size >= RECENT) recent.clear()
  recent.set(raw, parsed)
  return parsed
}

/** A call's arguments are read half a dozen times on its way. What was read is frozen, so it may be given again. */
const recent = new Map<string, ParsedArguments>()
const RECENT = 64
/** Characters: longer arguments are read each time, rather than kept. */
const SHORT = 1_024

function parse(raw: string): ParsedArguments {
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

/** From here on a double has no digits behind the point, so whatever it loses stood before it. */
const NO_FRACTION = 2 ** 52

/**
 * Plain digits, or `.0` after them, mean that integer, and beyond 2^53 nobody can say which one was meant. With a
 * fraction or an exponent the number is fine if it would be written with the same digits again.
 */
function isUnsafe(literal: string): boolean {
  const value = Number(literal)
  if (/^-?\d+(\.0+)?$/.test(literal)) return !Number.isSafeInteger(value)
  if (!Number.isFinite(value)) return true
  if (value === 0) return digitsOf(literal) !== ''
  return Math.abs(value) >= NO_FRACTION && digitsOf(literal) !== digitsOf(String(value))
}

const isNegativeZero = (literal: string): boolean => Object.is(Number(literal), -0)

/** The digits that count: without sign, point, exponent, and the zeros around them. */
function digitsOf(literal: string): string {
  const digits = (literal.split(/e/i)[0] ?? '').replace(/\D/g, '')
  let from = 0
  let to = digits.length
  while (digits[from] === '0') from++
  while (to > from && digits[to - 1] === '0') to--
  return digits.slice(from, to)
}
