/** What is asked of a model. A request is derived from the log and from nothing else. */
import type { Json } from './json.ts'
import type { Message } from './messages.ts'

export type JsonSchema = { readonly [key: string]: Json }

/** A tool as the model sees it. */
export interface ToolSchema {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** Which model is asked, and how. */
export interface LlmCallConfig {
  readonly provider: string
  readonly model: string
  readonly reasoningEffort?: string
  readonly temperature?: number
  readonly maxTokens?: number
  readonly stop?: readonly string[]
}

/** All of a request but its messages. `system` and `tools` are absent when empty. */
export interface RequestHeader {
  readonly config: LlmCallConfig
  /** Marks the fields the adapter filled in; they are filled in anew for another model. */
  readonly adapterDefaults?: { readonly reasoningEffort?: true; readonly maxTokens?: true }
  readonly system?: string
  readonly tools?: readonly ToolSchema[]
}

/** One request, deep-frozen. */
export interface LlmRequest extends LlmCallConfig {
  readonly messages: readonly Message[]
  readonly system?: string
  readonly tools?: readonly ToolSchema[]
  readonly sessionId: string
}
