/** The last word on a call: the `tools/post-execute` hook accepts, rewrites or blocks its outcome. */
import type { Json } from '../../log/json.ts'
import type { UserMessage } from '../../log/messages.ts'
import { HookMisuse } from '../errors.ts'
import type { PostExecute } from '../hooks/contract.ts'
import { callHook } from '../hooks/failure.ts'
import { toMessage } from '../input.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { CallResult } from '../verdicts.ts'
import { withContext } from './contexts.ts'
import type { Input, Tool, ToolCallInfo, ToolOutcome } from './contract.ts'
import { checkPostExecute } from './hook-answers.ts'
import { failedOutcome, invalidOutput, resultOf, thrownOutcome } from './outcome.ts'

const HOOK = 'tools/post-execute'

export interface Outcome {
  readonly input: CallInput
  readonly info: ToolCallInfo
  readonly tool: Tool | undefined
  readonly outcome: ToolOutcome
  readonly contexts?: readonly UserMessage[]
  readonly meta?: Json | undefined
}

export interface Final {
  readonly result: CallResult
  readonly contexts: readonly UserMessage[]
}

/** Never throws for the hook: its failure is the call's result. */
export async function finalize(runtime: AgentRuntime, settled: Outcome): Promise<Final> {
  const { input, info, outcome, meta } = settled
  const at = { turn: input.turn, step: input.step }
  const { mask } = runtime
  const contexts = settled.contexts ?? []
  try {
    const payload = { ...info, outcome }
    const accept = async () => ({ kind: 'accept' as const })
    const decided = await callHook(runtime, HOOK, at, payload, accept, checkPostExecute)
    // A blocked call keeps nothing of what its tool added.
    const kept = decided.kind === 'block' ? [] : contexts
    const all = (decided.contexts ?? [])
      .map((context) => toMessage(context as Input, runtime.newId(), mask))
      .reduce((list, message) => withContext(runtime, list, message), kept)
    if (decided.kind === 'block') return { result: resultOf(mask, failedOutcome(decided.feedback)), contexts: all }
    const final = await rewritten(settled, decided)
    return { result: resultOf(mask, final, final.kind === 'ok' ? meta : undefined), contexts: all }
  } catch (thrown) {
    return { result: resultOf(mask, thrownOutcome(thrown)), contexts }
  }
}

async function rewritten(
  { tool, outcome }: Outcome,
  { value, content }: Extract<PostExecute, { kind: 'accept' }>,
): Promise<ToolOutcome> {
  if (value === undefined && content === undefined) return outcome
  if (value !== undefined && content !== undefined) throw new HookMisuse(HOOK, 'give a value or content, not both')
  if (content !== undefined) return outcome.kind === 'ok' ? { ...outcome, content } : outcome
  if (outcome.kind === 'error' || tool === undefined) {
    throw new HookMisuse(HOOK, 'a failed call has no value to replace')
  }
  const rendered = await tool.render(value)
  return rendered.kind === 'ok' ? rendered : invalidOutput(rendered.message)
}
