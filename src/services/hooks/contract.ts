/** The hooks a user may give. A waterfall wraps a core and calls `next()` at most once; an observer's throw changes nothing. */
import type { SessionEvent, TurnEndReason } from '../../log/events.ts'
import type { Json } from '../../log/json.ts'
import type { ContentBlock, LlmFailure, StreamChunk, UserMessage } from '../../log/messages.ts'
import type { LlmCallConfig, LlmRequest, ToolSchema } from '../../log/requests.ts'
import type { RetryPolicy } from '../llm/adapter.ts'
import type { Input, ToolCallInfo, ToolOutcome } from '../tools/contract.ts'

/** Runs the rest of a waterfall. A second call throws HookMisuse. */
export type Next<R> = () => Promise<R>

export type PreStep =
  | { readonly kind: 'enter'; readonly messages: readonly UserMessage[] }
  | { readonly kind: 'reject'; readonly reason?: string }

export type PreExecute =
  | { readonly kind: 'allow' }
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'ask'; readonly reason?: string }

export type PostExecute =
  | {
      readonly kind: 'accept'
      readonly value?: Json
      readonly content?: readonly ContentBlock[]
      readonly contexts?: readonly Input[]
    }
  | { readonly kind: 'block'; readonly feedback: string; readonly contexts?: readonly Input[] }

/** The system text and the tools of a request. */
export interface Prompt {
  readonly system?: string
  readonly tools: readonly ToolSchema[]
}

export type AgentStatus = 'idle' | 'running' | 'waiting' | 'failed' | 'closed'

type OrPromise<T> = T | Promise<T>
type InTurn = { readonly turn: number; readonly signal: AbortSignal }
type InStep = InTurn & { readonly step: number }

export interface Hooks {
  /** Decides what enters the step: the claimed messages are proposed by `next()`, with the runtime context last. */
  'agent/pre-step'(
    payload: InStep & {
      readonly messages: readonly UserMessage[]
      readonly prompt: Prompt
      readonly context?: UserMessage
    },
    next: Next<PreStep>,
  ): OrPromise<PreStep>
  'agent/request'(
    payload: InStep & { readonly attempt: number; readonly config: LlmCallConfig },
    next: Next<LlmCallConfig>,
  ): OrPromise<LlmCallConfig>
  'llm/stream'(
    payload: { readonly request: LlmRequest; readonly signal: AbortSignal },
    next: () => AsyncIterable<StreamChunk>,
  ): AsyncIterable<StreamChunk>
  'agent/request-error'(
    payload: InStep & {
      readonly attempt: number
      readonly provider: string
      readonly failure: LlmFailure
      readonly retryPolicy?: RetryPolicy
    },
    next: Next<{ kind: 'retry' } | undefined>,
  ): OrPromise<{ kind: 'retry' } | undefined>
  'agent/turn-stopping'(payload: InTurn & { readonly reason: TurnEndReason }): OrPromise<void | TurnEndReason>
  'system-prompt/assemble'(payload: InStep, next: Next<Prompt>): OrPromise<Prompt>
  'tools/pre-execute'(payload: ToolCallInfo, next: Next<PreExecute>): OrPromise<PreExecute>
  'tools/execute'(payload: ToolCallInfo, next: Next<ToolOutcome>): OrPromise<ToolOutcome>
  'tools/post-execute'(
    payload: ToolCallInfo & { readonly outcome: ToolOutcome },
    next: Next<PostExecute>,
  ): OrPromise<PostExecute>
  'agent/status'(status: AgentStatus): void
  'agent/error'(payload: { readonly turn: number; readonly step?: number; readonly error: unknown }): void
  /** Each event once, right after the macrostep that recorded it and before it is durable. */
  'session/event'(event: SessionEvent): void
  'agent/inbox/inserted'(payload: { readonly message: UserMessage }): void
  'agent/inbox/claimed'(payload: { readonly message: UserMessage; readonly turn: number }): void
  'agent/inbox/discarded'(payload: { readonly message: UserMessage }): void
}
