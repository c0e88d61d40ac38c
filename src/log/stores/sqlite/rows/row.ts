/**
 * A row of the log: a stretch of events as bytes, told apart by their encoding. What is written today is a checksum and
 * the packer's text; the checksum covers the row's place too, so that neither bytes nor seqs change unnoticed.
 */
import { crc32 } from 'node:zlib'
import type { SessionEvent } from '../../../events.ts'
import { plainDelta } from '../../deltas.ts'
import { storeFailure } from '../driver.ts'
import { Damaged, json, list } from './checked.ts'
import { unpackLegacy } from './legacy.ts'
import { type Span, type Unpacked, unpackRow, type Wanted } from './unpacker.ts'

/** `log.encoding` of what is written: events in forms. 1 and 2 are those of 0.1.0. */
export const FORMED = 3

export interface StoredRow extends Span {
  readonly encoding: number
  readonly body: Uint8Array
}

const CHECKSUM_BYTES = 4

/** Bytes of a body with that text. */
export const bodyBytes = (text: string): number => CHECKSUM_BYTES + Buffer.byteLength(text)

/** Writes the body of a row to `into` at `offset`, where there is room for `bodyBytes`. Returns how many there are. */
export function writeBody(text: string, span: Span, into: Buffer, offset: number): number {
  const start = offset + CHECKSUM_BYTES
  const end = start + into.write(text, start)
  into.writeUInt32LE(checksum(into.subarray(start, end), span), offset)
  return end - offset
}

const checksum = (text: Uint8Array, { first, last }: Span): number => crc32(text, crc32(`${first} ${last}`))

/** The wanted events of a row of the database at `path`. @throws StoreFailure 'damaged', or 'newer-schema' */
export function unpackStored(path: string, row: StoredRow, wanted: Wanted): Unpacked {
  const { first, last, encoding } = row
  if (encoding > FORMED) throw storeFailure('newer-schema', path, `events ${first} to ${last} in encoding ${encoding}`)
  try {
    if (encoding === FORMED) return unpackRow(list(json(textOf(row))), row, wanted)
    if (encoding === 1 || encoding === 2) return chosen(unpackLegacy(list(json(utf8(row.body))), row), wanted)
    throw new Damaged(`an encoding of ${encoding}`)
  } catch (error) {
    // A RangeError is nesting deeper than any event's.
    if (!(error instanceof Damaged || error instanceof RangeError)) throw error
    throw storeFailure('damaged', path, `the row of events ${first} to ${last} holds ${error.message}`, error)
  }
}

function textOf(row: StoredRow): string {
  const body = Buffer.from(row.body.buffer, row.body.byteOffset, row.body.byteLength)
  const text = body.subarray(CHECKSUM_BYTES)
  if (body.length < CHECKSUM_BYTES || body.readUInt32LE(0) !== checksum(text, row)) {
    throw new Damaged('other bytes than were written')
  }
  return text.toString()
}

/** Without a checksum, bytes that are no text are at least noticed. */
function utf8(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch (cause) {
    throw new Damaged('bytes that are no text', { cause })
  }
}

function chosen(events: Unpacked['events'], { from, to, deltasFrom = 0 }: Wanted): Unpacked {
  const before = events.filter(({ seq }) => seq < to)
  // A time that goes back must be seen, so nothing is passed over then.
  const inOrder = before.every(({ time }, i) => i === 0 || time >= (before[i - 1]?.time ?? 0))
  const isWanted = (event: SessionEvent): boolean =>
    event.seq >= from && (event.seq >= deltasFrom || !inOrder || plainDelta(event) === undefined)
  const wanted = before.filter(isWanted)
  return { events: wanted, formed: wanted.map(() => false), time: before.at(-1)?.time ?? 0 }
}
