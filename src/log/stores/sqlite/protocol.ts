/**
 * What the main thread and the writer say to each other, and how events travel: a batch is one buffer of UTF-8 with the
 * rows of the log end to end.
 */
import type { StoreFailureReason } from '../../errors.ts'
import type { SessionEvent } from '../../events.ts'
import type { SummaryUpdate } from '../../store.ts'
import { frozenJson, isRecorded } from '../../json.ts'
import { FormedRow } from './codec.ts'

/** A row is closed once its events are this long. */
const ROW_LENGTH = 64 * 1024

/** Where a row lies in its batch. */
export interface BatchRow {
  readonly first: number
  readonly last: number
  readonly encoding: number
  readonly bytes: number
}

/** Events on their way into the log. */
export interface Batch {
  readonly rows: readonly BatchRow[]
  readonly body: Uint8Array<ArrayBuffer>
}

export type Request =
  | {
      readonly kind: 'acquire'
      readonly name: string
      readonly header?: string
      readonly createdAt: number
      readonly steal: boolean
    }
  | AppendRequest
  | { readonly kind: 'release'; readonly session: number; readonly epoch: number }
  | { readonly kind: 'post'; readonly name: string; readonly id: string; readonly command: string }
  | { readonly kind: 'delete'; readonly name: string }

export interface AppendRequest {
  readonly kind: 'append'
  readonly session: number
  readonly epoch: number
  readonly expectedSeq: number
  readonly batch: Batch
  readonly takes: readonly { readonly id: string; readonly outcome: string }[]
  /** Of the last event, epoch ms. */
  readonly time?: number
  readonly summary?: SummaryUpdate
}

export type Reply =
  | {
      readonly kind: 'acquired'
      readonly session: number
      readonly epoch: number
      readonly head: number
      readonly header: string
      readonly owner: string
    }
  | { readonly kind: 'posted'; readonly session: number }
  | { readonly kind: 'done' }
  | { readonly kind: 'busy'; readonly owner: string }
  | { readonly kind: 'not-found' }
  | { readonly kind: 'fenced' }
  | { readonly kind: 'conflict'; readonly actual: number }
  | FailedReply

/** `doubtful`: nobody could look whether it was committed before the failure. */
export interface FailedReply {
  readonly kind: 'failed'
  readonly reason: StoreFailureReason
  readonly message: string
  readonly doubtful?: true
}

/** To the writer; `close` is the last thing it is told. */
export type ToWriter = { readonly n: number; readonly request: Request } | { readonly close: true }

/** From the writer: the replies of one group. */
export type FromWriter = readonly { readonly n: number; readonly reply: Reply }[]

/** What the writer is started with. `done` counts the requests it has answered. */
export interface WriterData {
  readonly path: string
  readonly busyTimeoutMs: number
  readonly pragmas: readonly string[]
  readonly done: Int32Array<SharedArrayBuffer>
}

const NOTHING: Batch = { rows: [], body: new Uint8Array(0) }

/** Encodes `events`, whose seqs run on from `events[0].seq`, into rows of bounded size. @throws NotJson */
export function encodeEvents(events: readonly SessionEvent[]): Batch {
  if (events.length === 0) return NOTHING
  const texts = rowTexts(events).map((row) => ({ row, text: row.end() }))
  const body = Buffer.allocUnsafeSlow(texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0))
  let offset = 0
  const rows = texts.map(({ row: { first, last, encoding }, text }): BatchRow => {
    const bytes = body.write(text, offset)
    offset += bytes
    return { first, last, encoding, bytes }
  })
  return { rows, body: new Uint8Array(body.buffer, body.byteOffset, body.byteLength) }
}

function rowTexts(events: readonly SessionEvent[]): readonly FormedRow[] {
  const rows: FormedRow[] = []
  let open: FormedRow | undefined
  // Recorded events were guarded and frozen; others are guarded here. What is no JSON must not be changed to some.
  const safe = isRecorded(events) ? events : events.map((event) => frozenJson(event, `event ${event.seq}`))
  for (const event of safe) {
    // By what is in it already: an event larger than a row ends it, and starts none of its own.
    if (open === undefined || open.length >= ROW_LENGTH) {
      open = new FormedRow(event.seq)
      rows.push(open)
    }
    open.add(event)
  }
  return rows
}

/** The bytes of each row of `batch`. */
export function rowBodies(batch: Batch): readonly Uint8Array[] {
  let offset = 0
  return batch.rows.map(({ bytes }) => {
    const body = batch.body.subarray(offset, offset + bytes)
    offset += bytes
    return body
  })
}
