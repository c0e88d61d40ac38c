/** What the main thread and the writer say to each other. */
import type { StoreFailureReason } from '../../errors.ts'
import type { SummaryUpdate } from '../../store.ts'
import type { Batch } from './batch.ts'

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
