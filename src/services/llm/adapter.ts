/** The adapter port: one provider's model, translated. */
import type { Price } from '../../log/events.ts'
import type { StreamChunk } from '../../log/messages.ts'
import type { LlmCallConfig, LlmRequest } from '../../log/requests.ts'

export interface Backoff {
  /** ms; 500 by default. */
  readonly initialDelayMs?: number
  /** ms; 10,000 by default. */
  readonly maxDelayMs?: number
  /** 0 to 1; 0.1 by default. */
  readonly jitterRatio?: number
}

export type RetryPolicy =
  | {
      readonly mode?: 'normal'
      readonly maxRetries?: number
      readonly retryableCodes?: readonly string[]
      readonly backoff?: Backoff
    }
  | { readonly mode: 'always'; readonly backoff?: Backoff }

/** What an adapter knows of a call before it is made. */
export interface PreparedCall {
  readonly config: LlmCallConfig
  readonly adapterDefaults?: { readonly reasoningEffort?: true; readonly maxTokens?: true }
  /** Tokens. */
  readonly contextWindow?: number
  /** Currency units per million tokens. */
  readonly price?: Price
}

/**
 * One provider's model, translated.
 *
 * Contract: usage before finish; nothing after finish; a failed request is the last chunk, `finish` with kind
 * 'error'; only an aborted signal ends a stream without one.
 */
export interface ModelAdapter {
  readonly provider: string
  readonly model: string
  readonly retry?: RetryPolicy
  /** Fills in this model's defaults, before anything is sent. Throws an LlmError for what it cannot do. */
  prepare?(config: LlmCallConfig, signal: AbortSignal): Promise<PreparedCall>
  stream(request: LlmRequest, options: { signal: AbortSignal }): AsyncIterable<StreamChunk>
}
