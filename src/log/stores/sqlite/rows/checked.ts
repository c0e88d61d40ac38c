/** Values of a row's JSON, checked: what no packer writes is damage, and so are bytes that are no JSON. */
import { isCount } from '../../deltas.ts'

/** A row that cannot be what was written. Whoever knows the file makes a StoreFailure of it. */
export class Damaged extends Error {}

/** @throws Damaged */
export function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Damaged('text that is no JSON', { cause })
  }
}

/** @throws Damaged */
export function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new Damaged('something that is no list')
}

/** An integer from 0. @throws Damaged */
export function count(value: unknown): number {
  if (isCount(value)) return value
  throw new Damaged('something that is no count')
}

/** @throws Damaged */
export function string(value: unknown): string {
  if (typeof value === 'string') return value
  throw new Damaged('something that is no text')
}
