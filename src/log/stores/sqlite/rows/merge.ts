/** Many small rows as few large ones, which hold the same events to the letter. */
import { encodeRows, rowBodies } from '../batch.ts'
import type { RowPacker } from './packer.ts'
import { type StoredRow, unpackStored } from './row.ts'

/** A row that is this long, in bytes, is left as it is. */
export const LARGE = 32 * 1024
/** What comes out is closed at so many characters, packed or unpacked. */
const FULL = { packed: 64 * 1024, unpacked: 1024 * 1024 }

const isFull = (row: RowPacker): boolean => row.length >= FULL.packed || row.unpackedLength >= FULL.unpacked

/** The events of neighbouring `rows` in as few as may be. @throws StoreFailure where one of them cannot be read */
export function mergeRows(path: string, rows: readonly StoredRow[]): readonly StoredRow[] {
  const everything = { from: 0, to: Number.MAX_SAFE_INTEGER }
  const events = rows.flatMap((row) => unpackStored(path, row, everything).events)
  const batch = encodeRows(events, isFull)
  const bodies = rowBodies(batch)
  const merged = batch.rows.map(({ first, last, encoding }, i) => ({
    ...{ first, last, encoding },
    body: bodies[i] as Uint8Array,
  }))
  // What was written once is not trusted to be read again: it is read before the old rows go.
  const again = merged.flatMap((row) => unpackStored(path, row, everything).events)
  return areSame(events, again) ? merged : rows
}

/** Equal, the order of keys too. */
function areSame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [keys, others] = [Object.keys(one), Object.keys(other)]
  return (
    keys.length === others.length &&
    keys.every((key, i) => key === others[i] && areSame(Reflect.get(one, key), Reflect.get(other, key)))
  )
}
