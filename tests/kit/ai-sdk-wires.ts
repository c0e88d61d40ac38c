/** Answers in the wire formats of the AI SDK's providers, for the loopback server. */

/** One server-sent event, named by its type. */
export const sse = (payload: { readonly type: string; readonly [key: string]: unknown }): string =>
  `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`

export type AnthropicBlock =
  | { readonly thinking: string; readonly signature: string }
  | { readonly redacted: string }
  | { readonly text: string }
  | { readonly id: string; readonly name: string; readonly input: string }
  | { readonly server: { readonly id: string; readonly query: string; readonly result: unknown } }

/** The steps of a whole answer of Anthropic's messages API. */
export function anthropicAnswer(
  blocks: readonly AnthropicBlock[],
  { stop = 'end_turn', usage = {} }: { readonly stop?: string; readonly usage?: object } = {},
): string[] {
  return [
    sse({
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 12, output_tokens: 1, ...usage },
      },
    }),
    sse({ type: 'ping' }),
    ...numbered(blocks),
    sse({
      type: 'message_delta',
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: 9 },
    }),
    sse({ type: 'message_stop' }),
  ]
}

/** A search takes two blocks: the call and its result. */
function numbered(blocks: readonly AnthropicBlock[]): string[] {
  let index = 0
  return blocks.flatMap((block) => {
    const steps = anthropicBlock(block, index)
    index += 'server' in block ? 2 : 1
    return steps
  })
}

const anthropicResult = (id: string, content: unknown, index: number): string[] => [
  sse({
    type: 'content_block_start',
    index,
    content_block: { type: 'web_search_tool_result', tool_use_id: id, content },
  }),
  sse({ type: 'content_block_stop', index }),
]

function anthropicBlock(block: AnthropicBlock, index: number): string[] {
  const start = (content_block: object) => sse({ type: 'content_block_start', index, content_block })
  const delta = (of: object) => sse({ type: 'content_block_delta', index, delta: of })
  const stop = sse({ type: 'content_block_stop', index })
  if ('thinking' in block) {
    return [
      start({ type: 'thinking', thinking: '', signature: '' }),
      ...pieces(block.thinking).map((thinking) => delta({ type: 'thinking_delta', thinking })),
      delta({ type: 'signature_delta', signature: block.signature }),
      stop,
    ]
  }
  if ('redacted' in block) return [start({ type: 'redacted_thinking', data: block.redacted }), stop]
  if ('text' in block) {
    return [
      start({ type: 'text', text: '' }),
      ...pieces(block.text).map((text) => delta({ type: 'text_delta', text })),
      stop,
    ]
  }
  if ('server' in block) {
    const { id, query, result } = block.server
    return [
      start({ type: 'server_tool_use', id, name: 'web_search', input: {} }),
      delta({ type: 'input_json_delta', partial_json: JSON.stringify({ query }) }),
      stop,
      ...anthropicResult(id, result, index + 1),
    ]
  }
  const { id, name, input } = block
  return [
    start({ type: 'tool_use', id, name, input: {} }),
    ...pieces(input).map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
    stop,
  ]
}

export type ResponsesItem =
  | { readonly reasoning: string; readonly id: string; readonly encrypted: string }
  | { readonly text: string; readonly id: string }
  | { readonly call: { readonly id: string; readonly name: string; readonly arguments: string }; readonly id: string }

/** The steps of a whole answer of OpenAI's responses API. */
export function responsesAnswer(items: readonly ResponsesItem[]): string[] {
  return [
    sse({ type: 'response.created', response: { id: 'resp_1', created_at: 1_700_000_000, model: 'gpt-5' } }),
    ...items.flatMap((item, place) => responsesItem(item, place)),
    sse({
      type: 'response.completed',
      response: {
        usage: {
          input_tokens: 30,
          input_tokens_details: { cached_tokens: 20 },
          output_tokens: 8,
          output_tokens_details: { reasoning_tokens: 3 },
        },
      },
    }),
  ]
}

function responsesItem(item: ResponsesItem, output_index: number): string[] {
  const { id } = item
  const added = (of: object) => sse({ type: 'response.output_item.added', output_index, item: { id, ...of } })
  const done = (of: object) => sse({ type: 'response.output_item.done', output_index, item: { id, ...of } })
  if ('reasoning' in item) {
    const at = { item_id: id, summary_index: 0 }
    return [
      added({ type: 'reasoning' }),
      sse({ type: 'response.reasoning_summary_part.added', ...at }),
      ...pieces(item.reasoning).map((delta) => sse({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
      sse({ type: 'response.reasoning_summary_part.done', ...at }),
      done({ type: 'reasoning', encrypted_content: item.encrypted, summary: [] }),
    ]
  }
  if ('text' in item) {
    return [
      added({ type: 'message' }),
      ...pieces(item.text).map((delta) => sse({ type: 'response.output_text.delta', item_id: id, delta })),
      done({ type: 'message' }),
    ]
  }
  const { id: call_id, name, arguments: args } = item.call
  return [
    added({ type: 'function_call', call_id, name, arguments: '' }),
    ...pieces(args).map((delta) =>
      sse({ type: 'response.function_call_arguments.delta', item_id: id, output_index, delta }),
    ),
    done({ type: 'function_call', call_id, name, arguments: args, status: 'completed' }),
  ]
}

const pieces = (text: string): readonly string[] => text.match(/.{1,7}/gsu) ?? []
