/** A call's arguments as the model wrote them, read exactly or not at all. */
import type { Json } from './json.ts'
import { MAX_DEPTH } from './json.ts'

/**
 * What the raw arguments say; the empty string says `{}`. Undefined if they are not JSON, nest deeper than 512, or hold
 * a number that would be read as another one (an integer beyond 2^53, an overflow, negative zero).
 */
export function parseArguments(raw: string): Json | undefined {
  if (raw === '') return {}
  try {
    const value = JSON.parse(raw) as Json
    return isExact(value, 0) ? value : undefined
  } catch {
    // JSON.parse throws nothing but a SyntaxError.
    return undefined
  }
}

function isExact(value: Json, depth: number): boolean {
  if (typeof value === 'number') {
    return Number.isFinite(value) && !Object.is(value, -0) && (!Number.isInteger(value) || Number.isSafeInteger(value))
  }
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_DEPTH && Object.values(value).every((item: Json) => isExact(item, depth + 1))
}
