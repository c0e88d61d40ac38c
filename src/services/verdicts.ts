/**
 * What the actors say to the chart. A verdict names what it answers, so that one that comes too late records
 * nothing; it never moves the machine itself.
 */
import type { BoundCause, OnCrash, PlannedCall, Retry, ToolError, TurnEndReason } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type {
  AssistantMessage,
  ContentBlock,
  FinishReason,
  LlmFailure,
  TokenUsage,
  UserMessage,
} from '../log/messages.ts'

export type OfStep = { readonly turn: number; readonly step: number }
export type OfAttempt = OfStep & { readonly attempt: number }
export type CallPhase = 'authorizing' | 'awaiting' | 'executing' | 'recovering'
export type OfCall = { readonly callId: string; readonly run: number; readonly phase: CallPhase }

/** An answer as far as it came: the message, and the seqs of the chunks it was made of. */
export type Answer = {
  readonly message: AssistantMessage
  readonly finish: FinishReason
  readonly usage?: TokenUsage
  readonly chunkSeqs: readonly number[]
}

/** A call's own result, before it is a message. */
export type CallResult = {
  readonly content: readonly ContentBlock[]
  readonly isError: boolean
  readonly error?: ToolError
  readonly meta?: Json
  readonly concludesTurn?: true
}

export type PreparedDecision =
  | { readonly kind: 'enter'; readonly messages: readonly UserMessage[] }
  | { readonly kind: 'reject'; readonly reason?: string }
  | { readonly kind: 'failed'; readonly failure: LlmFailure }

/** What a call that was running at a crash may do now. The chart takes only what the logged `onCrash` allows. */
export type RecoveryDecision =
  | { readonly kind: 'rerun' }
  | { readonly kind: 'ask'; readonly argumentsDigest: string; readonly expiresAt?: number }
  | { readonly kind: 'done'; readonly result: CallResult }
  | { readonly kind: 'not-done' }
  | { readonly kind: 'unknown' }

export type Verdict =
  | ({ readonly type: 'verdict.prepared'; readonly decision: PreparedDecision } & OfStep)
  | ({
      readonly type: 'verdict.answered'
      readonly answer: Answer
      readonly calls: readonly PlannedCall[]
      /** A bound that this answer reached: none of its calls begins. */
      readonly bound?: BoundCause
    } & OfAttempt)
  | ({ readonly type: 'verdict.retry'; readonly retry: Retry } & OfAttempt)
  | ({ readonly type: 'verdict.failed'; readonly failure: LlmFailure } & OfAttempt)
  | ({ readonly type: 'verdict.aborted'; readonly partial?: Answer } & OfAttempt)
  | ({ readonly type: 'verdict.waited' } & OfAttempt)
  | ({ readonly type: 'verdict.authorized'; readonly onCrash: OnCrash } & OfCall)
  | ({ readonly type: 'verdict.ask'; readonly argumentsDigest: string; readonly expiresAt?: number } & OfCall)
  | ({
      readonly type: 'verdict.settled'
      readonly result: CallResult
      /** Messages to add to the conversation after this step's results. */
      readonly contexts: readonly UserMessage[]
    } & OfCall)
  | ({ readonly type: 'verdict.recovered'; readonly decision: RecoveryDecision; readonly onCrash: OnCrash } & OfCall)
  | ({ readonly type: 'verdict.expired' } & OfCall)
  | ({ readonly type: 'verdict.stopping'; readonly reason?: TurnEndReason; readonly failure?: LlmFailure } & OfStep)
  /** `settleTimeoutMs` after a cancel: the state ends with what is there. */
  | { readonly type: 'verdict.settle'; readonly turn: number; readonly partial?: Answer }
