/** Where servers of this wire differ in what they take. */

/** Every field has a default that the plainest server takes. */
export interface Dialect {
  /** Under which key past reasoning goes back to the model; 'none' by default. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'none'
  /** The key of the output cap; 'max_tokens' by default. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens'
  /** The role of the system prompt; 'system' by default. */
  readonly system?: 'system' | 'developer'
  /**
   * How an effort is said: as it is under `reasoning_effort` (the default), with `thinking` switched on or off beside
   * it, or not at all.
   */
  readonly effort?: 'reasoning_effort' | 'thinking' | 'none'
  /** Whether usage is asked for by `stream_options`; true by default. */
  readonly streamUsage?: boolean
  /** Call ids of other providers that do not fit are mapped to a digest; 40 of `A-Z a-z 0-9 _ -` fit by default. */
  readonly callIds?: { readonly maxLength?: number; readonly pattern?: RegExp }
  /** Whether user messages in a row are sent as one, their texts parted by a blank line; false by default. */
  readonly mergeUsers?: boolean
}
