/** Asks an adapter one thing and collects what it says. */
import type { FinishReason, LlmFailure, Message, StreamChunk } from '../../src/log/messages.ts'
import type { LlmRequest } from '../../src/log/requests.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { assemblerOf } from '../../src/services/llm/assembler.ts'

/** A user's message of text. */
export const user = (text: string): Message => ({
  id: `u-${text}`,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

/** A request with one message, changed by `over`. */
export const requestTo = (adapter: ModelAdapter, over: Partial<LlmRequest> = {}): LlmRequest => ({
  provider: adapter.provider,
  model: adapter.model,
  messages: [user('hi')],
  sessionId: 's',
  ...over,
})

/** All chunks of one answer. */
export async function ask(
  adapter: ModelAdapter,
  over: Partial<LlmRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<StreamChunk[]> {
  const said: StreamChunk[] = []
  for await (const chunk of adapter.stream(requestTo(adapter, over), { signal })) said.push(chunk)
  return said
}

/** The last finish of `chunks`. */
export const finishIn = (chunks: readonly StreamChunk[]): FinishReason | undefined => assemblerOf(chunks).finish

/** The failure that ended `chunks`; throws if none did. */
export function failureIn(chunks: readonly StreamChunk[]): LlmFailure {
  const reason = finishIn(chunks)
  if (reason?.kind !== 'error') throw new Error(`The answer did not fail: ${JSON.stringify(reason)}`)
  return reason.failure
}
