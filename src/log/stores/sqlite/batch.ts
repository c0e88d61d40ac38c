/** Events on their way to the writer: one buffer with the rows of the log end to end, so that one transfer takes them. */
import type { SessionEvent } from '../../events.ts'
import { frozenJson, isRecorded } from '../../json.ts'
import { RowPacker } from './rows/packer.ts'
import { bodyBytes, FORMED, writeBody } from './rows/row.ts'

/** A row is closed once its events are this long, as they will be unpacked: who reads one holds all of it. */
const ROW_LENGTH = 64 * 1024

/** Where a row lies in its batch. */
export interface BatchRow {
  readonly first: number
  readonly last: number
  readonly encoding: number
  readonly bytes: number
}

export interface Batch {
  readonly rows: readonly BatchRow[]
  readonly body: Uint8Array<ArrayBuffer>
}

const NOTHING: Batch = { rows: [], body: new Uint8Array(0) }

/** Encodes `events`, whose seqs run on from `events[0].seq`, into rows of bounded size. @throws NotJson */
export function encodeEvents(events: readonly SessionEvent[]): Batch {
  if (events.length === 0) return NOTHING
  // Recorded events were guarded and frozen; others are guarded here. What is no JSON must not be changed to some.
  const safe = isRecorded(events) ? events : events.map((event) => frozenJson(event, `event ${event.seq}`))
  return encodeRows(safe, ({ unpackedLength }) => unpackedLength >= ROW_LENGTH)
}

/** The same for events that are JSON; `isFull` tells when a row is closed. */
export function encodeRows(events: readonly SessionEvent[], isFull: (row: RowPacker) => boolean): Batch {
  const packed = packedRows(events, isFull).map((row) => ({ row, text: row.end() }))
  const body = Buffer.allocUnsafeSlow(packed.reduce((sum, { text }) => sum + bodyBytes(text), 0))
  let offset = 0
  const rows = packed.map(({ row, text }): BatchRow => {
    const { first, last } = row
    const bytes = writeBody(text, row, body, offset)
    offset += bytes
    return { first, last, encoding: FORMED, bytes }
  })
  return { rows, body: new Uint8Array(body.buffer, body.byteOffset, body.byteLength) }
}

function packedRows(events: readonly SessionEvent[], isFull: (row: RowPacker) => boolean): readonly RowPacker[] {
  const rows: RowPacker[] = []
  let open: RowPacker | undefined
  for (const event of events) {
    // By what is in it already: an event larger than a row ends it, and starts none of its own.
    if (open === undefined || isFull(open)) {
      open = new RowPacker(event.seq)
      rows.push(open)
    }
    open.add(event)
  }
  return rows
}

/** The bytes of each row of `batch`. */
export function rowBodies({ rows, body }: Batch): readonly Uint8Array[] {
  let offset = 0
  return rows.map(({ bytes }) => {
    const from = offset
    offset += bytes
    return body.subarray(from, offset)
  })
}
