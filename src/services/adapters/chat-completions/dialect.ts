/** Where servers of this wire differ in what they send and in what they take: data, so that no code names a server. */

/** What a server's word for why it stopped means. 'failed' may be tried again, 'overflow' is a context that is full. */
export type FinishWord = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'overflow' | 'failed'

/** Every field has a default that the plainest server takes. */
export interface Dialect {
  /** Keys of a delta that hold reasoning; the first with text counts. 'reasoning_content', then 'reasoning' by default. */
  readonly reasoningKeys?: readonly string[]
  /**
   * Which finish reason closes the content: the first (the default; what a server repeats with a later one is not
   * taken twice), or the last, for servers that say one with every chunk.
   */
  readonly finish?: 'first' | 'last'
  /**
   * Words of this server for why it stopped. Others that are unknown are a failure with that word as its code, or with
   * PROVIDER_ before it where it is a code of ours.
   */
  readonly finishWords?: Readonly<Record<string, FinishWord>>

  /** Under which key past reasoning goes back to the model; 'none' by default, and whenever thinking is off. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'none'
  /**
   * On which answers it goes back: 'all' (the default), those of 'turns-with-calls' (between two user messages), those
   * after the 'last-user' message, or of these 'last-user-calls', only the ones that call tools.
   */
  readonly reasoningOn?: 'all' | 'turns-with-calls' | 'last-user' | 'last-user-calls'
  /** What such an answer sends that has no reasoning, for servers that miss it; nothing by default. */
  readonly reasoningFill?: string

  /** The content of an answer that only calls tools: `''` by default, null, or no such key. */
  readonly emptyContent?: '' | 'null' | 'absent'
  /** Whether an answer of nothing but reasoning is sent; false by default, since most refuse it. */
  readonly emptyAnswers?: boolean
  /** Whether user messages in a row are sent as one, their texts parted by a blank line; false by default. */
  readonly mergeUsers?: boolean
  /** The same for answers in a row; false by default. With `mergeUsers`, roles alternate. */
  readonly mergeAnswers?: boolean
  /** The model's words between results and a user message that follows them, where that is refused; none by default. */
  readonly afterResults?: string
  /**
   * Call ids that do not fit are mapped to a digest. By default 40 of `A-Z a-z 0-9 _ -` fit, and so does whatever the
   * provider itself gave; with a rule of its own, nothing else does. A `pattern` has no flag `g` or `y`.
   */
  readonly callIds?: { readonly maxLength?: number; readonly pattern?: RegExp }

  /** The role of the system prompt; 'system' by default. */
  readonly system?: 'system' | 'developer' | 'user'
  /** The key of the output cap; 'max_tokens' by default. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens'
  /**
   * How an effort is said. `reasoning_effort` has the word as it is (the default), `reasoning` an object with it. The
   * others switch thinking on, or off for the effort 'off': `thinking-only` by `thinking: { type }`, `thinking` by that
   * with `reasoning_effort` beside it, `enable_thinking` by that key, `chat_template_kwargs` by the same key in there.
   */
  readonly effort?:
    | 'reasoning_effort'
    | 'reasoning'
    | 'thinking'
    | 'thinking-only'
    | 'enable_thinking'
    | 'chat_template_kwargs'
    | 'none'
  /** Whether usage is asked for by `stream_options`; true by default. */
  readonly streamUsage?: boolean
  /** What `parallel_tool_calls` says, where there are tools; it is not sent by default. */
  readonly parallelCalls?: boolean
}

/** What reading an answer needs of a dialect. */
export type Reading = Pick<Dialect, 'reasoningKeys' | 'finish' | 'finishWords'>
