/**
 * The model that needs no network: a small rule-based reader that looks through files with the tools it is given. It
 * decides from the request alone, so an attempt asked again goes on the same way. It never claims to be more.
 */
import { setImmediate as nextTick, setTimeout as pause } from 'node:timers/promises'
import { utf8Bytes } from '../../log/json.ts'
import type { StreamChunk, TokenUsage } from '../../log/messages.ts'
import type { LlmRequest } from '../../log/requests.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import { readConversation } from './demo/conversation.ts'
import { type Decision, decide } from './demo/plan.ts'

export { DEMO_LABEL } from './demo/answer.ts'

/** Characters a delta carries at most. */
const DELTA = 24

/** An adapter whose model is a set of rules; `deltaMs` paces its stream (ms between deltas, none by default). */
export function demo(options: { readonly deltaMs?: number } = {}): ModelAdapter {
  return {
    provider: 'pawl',
    model: 'demo',
    async *stream(request, { signal }) {
      for (const chunk of chunksOf(request)) {
        await (options.deltaMs ? pause(options.deltaMs) : nextTick())
        if (signal.aborted) return
        yield chunk
      }
    },
  }
}

function* chunksOf(request: LlmRequest): Generator<StreamChunk> {
  const decision = decide(request)
  yield* reasoning(`(rules, not a language model) ${decision.why}`)
  if (decision.kind === 'answer') yield* text(decision.text)
  else yield* calls(decision.calls, readConversation(request.messages).calls)
  yield { type: 'usage', usage: estimate(request, decision) }
  yield { type: 'finish', reason: { kind: decision.kind === 'answer' ? 'stop' : 'tool-calls' } }
}

function* reasoning(said: string): Generator<StreamChunk> {
  yield { type: 'block-start', index: 0, blockType: 'reasoning' }
  for (const delta of deltas(said)) yield { type: 'reasoning-delta', index: 0, text: delta }
  yield { type: 'block-end', index: 0, block: { type: 'reasoning', text: said } }
}

function* text(said: string): Generator<StreamChunk> {
  yield { type: 'block-start', index: 1, blockType: 'text' }
  for (const delta of deltas(said)) yield { type: 'text-delta', index: 1, text: delta }
  yield { type: 'block-end', index: 1, block: { type: 'text', text: said } }
}

/** Ids count on over the whole conversation, so that none comes twice. */
function* calls(planned: Extract<Decision, { kind: 'call' }>['calls'], before: number): Generator<StreamChunk> {
  for (const [at, { name, args }] of planned.entries()) {
    const index = at + 1
    const block = { type: 'tool-call', id: `demo_${before + index}`, name, arguments: JSON.stringify(args) } as const
    yield { type: 'block-start', index, blockType: 'tool-call' }
    yield { type: 'tool-call-delta', index, id: block.id, name, argumentsDelta: block.arguments }
    yield { type: 'block-end', index, block }
  }
}

/** Pieces of at most DELTA characters that end after a space where they can; joined, they are the text. */
export function deltas(said: string): readonly string[] {
  return said.match(new RegExp(`[\\s\\S]{1,${DELTA}}(?<=\\s|$)|[\\s\\S]{1,${DELTA}}`, 'gu')) ?? []
}

/** Four bytes a token: an estimate, for there are no tokens here. */
function estimate(request: LlmRequest, decision: Decision): TokenUsage {
  const { messages, system, tools } = request
  const asked = utf8Bytes(JSON.stringify([system ?? '', tools ?? [], messages]))
  const said = utf8Bytes(JSON.stringify(decision))
  return { inputTokens: Math.ceil(asked / 4), outputTokens: Math.ceil(said / 4) }
}
