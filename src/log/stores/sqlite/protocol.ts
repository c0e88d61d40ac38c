/** What the main thread and the writer say to each other. */
import type { StoreFailureReason } from '../../errors.ts'
import type { SummaryUpdate } from '../../store.ts'
import type { Batch } from './batch.ts'
import type { Chain } from './checkpoint.ts'

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
  | SettleRequest
  | KeepRequest
  | RestRequest

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

/** Makes what lies before `seq` ready for a checkpoint, a bounded part of it. */
export interface SettleRequest {
  readonly kind: 'settle'
  readonly session: number
  readonly epoch: number
  readonly seq: number
  /** How far that is done; from the last checkpoint on, if not said. */
  readonly chain?: Chain
}

export interface KeepRequest {
  readonly kind: 'keep'
  readonly session: number
  readonly epoch: number
  readonly seq: number
  readonly body: Uint8Array
  /** What settling came to. */
  readonly chain?: Chain
}

/** Puts the small rows at the end of a log together, those that no checkpoint covers. */
export interface RestRequest {
  readonly kind: 'rest'
  readonly session: number
  readonly epoch: number
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
  /** `more`: it takes another request. */
  | { readonly kind: 'settled'; readonly chain: Chain; readonly more: boolean }
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

/** To the writer: first, who the store is and what it holds; last, `close`. */
export type ToWriter =
  | { readonly n: number; readonly request: Request }
  | { readonly standing: SentStanding }
  | { readonly close: true }

/** Who a store is, and the sessions it holds, by epoch. */
export interface SentStanding {
  readonly owner: string | undefined
  readonly held: readonly (readonly [session: number, epoch: number])[]
}

/** From the writer: that it has started, once, then the replies of one group at a time. */
export type FromWriter = 'ready' | readonly { readonly n: number; readonly reply: Reply }[]

/** What the writer is started with. `done` counts the requests it has answered. */
export interface WriterData {
  readonly path: string
  readonly busyTimeoutMs: number
  readonly pragmas: readonly string[]
  readonly done: Int32Array<SharedArrayBuffer>
}
