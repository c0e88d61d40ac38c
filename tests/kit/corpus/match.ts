/**
 * Whether what came is what a file expects. An object asks for the members it names, a list for exactly its items,
 * null for nothing being there; a few objects are patterns of their own.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../../src/log/json.ts'

type JsonObject = { readonly [key: string]: Json }

/** What differs first, as `path: expected ..., came ...`; undefined if all is as expected. */
export function difference(expected: Json, came: unknown, path = ''): string | undefined {
  if (expected === null) return came === undefined || came === null ? undefined : differs(path, 'nothing', came)
  if (expected === '?') return typeof came === 'string' && came !== '' ? undefined : differs(path, 'some text', came)
  if (typeof expected !== 'object') return isDeepStrictEqual(expected, came) ? undefined : differs(path, expected, came)
  if (isList(expected)) return listDifference(expected, came, path)
  const pattern = PATTERNS.find(({ key }) => Object.hasOwn(expected, key))
  if (pattern !== undefined) return pattern.holds(expected, came) ? undefined : differs(path, expected, came)
  if (typeof came !== 'object' || came === null) return differs(path, expected, came)
  for (const [key, value] of Object.entries(expected)) {
    const found = difference(value, Object.getOwnPropertyDescriptor(came, key)?.value, `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

function listDifference(expected: readonly Json[], came: unknown, path: string): string | undefined {
  if (!Array.isArray(came) || came.length !== expected.length) return differs(path, expected, came)
  for (const [i, item] of expected.entries()) {
    const found = difference(item, came[i], `${path}[${i}]`)
    if (found !== undefined) return found
  }
  return undefined
}

interface Pattern {
  readonly key: string
  holds(expected: JsonObject, came: unknown): boolean
}

const PATTERNS: readonly Pattern[] = [
  {
    key: '$has',
    holds: ({ $has }, came) => typeof came === 'string' && all($has).every((part) => came.includes(part)),
  },
  { key: '$hasNot', holds: ({ $hasNot }, came) => !all($hasNot).some((part) => shown(came).includes(part)) },
  {
    key: '$between',
    holds: ({ $between }, came) => {
      const [from, to] = isList($between) ? $between.map(Number) : []
      return typeof came === 'number' && from !== undefined && to !== undefined && came >= from && came <= to
    },
  },
  {
    key: '$distinct',
    holds: ({ $distinct }, came) =>
      Array.isArray(came) && new Set(came).size === $distinct && came.length === $distinct,
  },
  {
    key: '$matches',
    holds: ({ $matches }, came) => typeof came === 'string' && new RegExp(String($matches)).test(came),
  },
  {
    key: '$each',
    holds: ({ $each }, came) =>
      Array.isArray(came) && came.every((one) => difference($each ?? null, one) === undefined),
  },
  { key: '$repeat', holds: ({ $repeat, of }, came) => typeof of === 'string' && came === of.repeat(Number($repeat)) },
  { key: '$json', holds: ({ $json }, came) => typeof came === 'string' && isDeepStrictEqual(parsed(came), $json) },
  {
    key: '$inOrder',
    holds: ({ $inOrder }, came) => isList($inOrder) && Array.isArray(came) && inOrder($inOrder, came),
  },
]

/** Each expected item matches one that came after the match of the one before. */
function inOrder(expected: readonly Json[], came: readonly unknown[]): boolean {
  let at = -1
  return expected.every((item) => {
    at = came.findIndex((one, i) => i > at && difference(item, one) === undefined)
    return at >= 0
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // JSON.parse throws a SyntaxError and nothing else.
    return undefined
  }
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
const all = (value: Json | undefined): readonly string[] => (isList(value) ? value : [value]).map(String)
const shown = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

const differs = (path: string, expected: unknown, came: unknown): string =>
  `${path || 'all'}: expected ${short(expected)}, came ${short(came)}`
const short = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 1_000)
