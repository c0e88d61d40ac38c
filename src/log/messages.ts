/** What a conversation is made of. A message gets its id once and travels unchanged: inbox, log, request. */
import type { Json } from './json.ts'

/** Text the model or a user wrote. */
export type TextBlock = { readonly type: 'text'; readonly text: string }
/** What a model said while thinking. */
export type ReasoningBlock = { readonly type: 'reasoning'; readonly text: string }
/** An image, by reference or inline; the adapter decides what it takes. */
export type ImageBlock = { readonly type: 'image'; readonly attachment: Json }
/** The model asks for a tool. `arguments` is its raw string, valid JSON or not. */
export type ToolCallBlock = {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  readonly arguments: string
}
/** One call's answer. Exactly one stands in a tool-result message. */
export type ToolResultBlock = {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly content: readonly ContentBlock[]
  readonly isError?: boolean
}
/** A block of a type this version does not know; kept as it came. */
export type OpaqueBlock = { readonly type: `${string}/${string}`; readonly [key: string]: Json }

export type ContentBlock = TextBlock | ReasoningBlock | ImageBlock | ToolCallBlock | ToolResultBlock | OpaqueBlock

export type UserSource =
  | { readonly kind: 'user' }
  | {
      readonly kind: 'plugin'
      readonly plugin: string
      readonly form?: string
      readonly sections?: readonly { readonly name: string; readonly text: string }[]
    }

/** Opaque state a provider wants back with the message it belongs to (signatures, encrypted reasoning). */
export type ReplayState = { readonly response: Json; readonly blocks?: readonly Json[] }

export type ModelSource = {
  readonly kind: 'model'
  readonly provider: string
  readonly model: string
  readonly replayState?: ReplayState
}
export type ToolSource = { readonly kind: 'tool'; readonly callId: string }

export type UserMessage = {
  readonly id: string
  readonly role: 'user'
  readonly content: readonly ContentBlock[]
  readonly source: UserSource
}
export type AssistantMessage = {
  readonly id: string
  readonly role: 'assistant'
  readonly content: readonly ContentBlock[]
  readonly source: ModelSource
}
export type ToolResultMessage = {
  readonly id: string
  readonly role: 'user'
  readonly content: readonly [ToolResultBlock]
  readonly source: ToolSource
}
export type Message = UserMessage | AssistantMessage | ToolResultMessage

/** Counts of tokens; `inputTokens` excludes what came from a cache. */
export type TokenUsage = {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  readonly reasoningTokens?: number
}

/** Why a request or a turn failed. `code` is stable, `message` is for people; waits in ms. */
export type LlmFailure = {
  readonly message: string
  readonly code: string
  readonly status?: number
  readonly providerRetryAfterMs?: number
  readonly requestId?: string
}

export type FinishReason =
  | { readonly kind: 'stop' | 'tool-calls' | 'max-tokens' }
  | { readonly kind: 'error' | 'aborted'; readonly failure: LlmFailure }

/** One piece of a model's answer. Usage comes before finish, finish is the last. */
export type StreamChunk =
  | { readonly type: 'block-start'; readonly index: number; readonly blockType: string }
  | { readonly type: 'text-delta'; readonly index: number; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly index: number; readonly text: string }
  | {
      readonly type: 'tool-call-delta'
      readonly index: number
      readonly id?: string
      readonly name?: string
      readonly argumentsDelta: string
    }
  | { readonly type: 'block-end'; readonly index: number; readonly block: ContentBlock }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly replayState?: ReplayState }

/** The text of a message, its text blocks joined. */
export const textOf = (message: { readonly content: readonly ContentBlock[] }): string =>
  message.content.map((block) => (block.type === 'text' ? (block as TextBlock).text : '')).join('')
