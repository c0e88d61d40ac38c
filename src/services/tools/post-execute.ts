/** The last word on a call: the `tools/post-execute` hook accepts, rewrites or blocks its outcome. */
import type { UserMessage } from '../../log/messages.ts'
import { HookMisuse } from '../errors.ts'
import type { PostExecute } from '../hooks/contract.ts'
import { callHook, reportHookFailure } from '../hooks/failure.ts'
import { toMessage } from '../input.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { CallResult } from '../verdicts.ts'
import type { Materialised, Tool, ToolCallInfo, ToolOutcome } from './contract.ts'
import { failedOutcome, invalidOutput, resultOf, thrownOutcome } from './outcome.ts'

const HOOK = 'tools/post-execute'

export interface Outcome {
  readonly input: CallInput
  readonly info: ToolCallInfo
  readonly tool: Tool | undefined
  readonly parsed: Materialised
  readonly outcome: ToolOutcome
  readonly contexts?: readonly UserMessage[]
}

export interface Final {
  readonly result: CallResult
  readonly contexts: readonly UserMessage[]
}

/** Never throws for the hook: its failure is the call's result. */
export async function finalize(runtime: AgentRuntime, settled: Outcome): Promise<Final> {
  const { input, info, outcome } = settled
  const at = { turn: input.turn, step: input.step }
  const { mask } = runtime
  const contexts = settled.contexts ?? []
  try {
    const payload = { ...info, outcome }
    const decided = await callHook(runtime, HOOK, at, payload, async () => ({ kind: 'accept' as const }))
    const added = (decided.contexts ?? []).map((context) => toMessage(context, runtime.newId(), mask))
    // A blocked call keeps nothing of what its tool added.
    if (decided.kind === 'block') return { result: resultOf(mask, failedOutcome(decided.feedback)), contexts: added }
    const final = await rewritten(runtime, settled, decided)
    return { result: resultOf(mask, final, metaOf(settled, final)), contexts: [...contexts, ...added] }
  } catch (thrown) {
    return { result: resultOf(mask, thrownOutcome(thrown)), contexts }
  }
}

/** Of the value that stands in the end, whoever gave it. */
const metaOf = ({ tool, parsed }: Outcome, final: ToolOutcome) =>
  final.kind === 'ok' && parsed.kind === 'ok' ? tool?.meta?.(parsed.args, final.value) : undefined

async function rewritten(
  runtime: AgentRuntime,
  { input: { turn, step }, tool, outcome }: Outcome,
  { value, content }: Extract<PostExecute, { kind: 'accept' }>,
): Promise<ToolOutcome> {
  if (value === undefined && content === undefined) return outcome
  if (content !== undefined) return outcome.kind === 'ok' ? { ...outcome, content } : outcome
  if (outcome.kind === 'error' || tool === undefined) {
    const misuse = new HookMisuse(HOOK, 'a failed call has no value to replace')
    reportHookFailure(runtime, HOOK, { turn, step }, misuse)
    throw misuse
  }
  const rendered = await tool.render(value)
  return rendered.kind === 'ok' ? rendered : invalidOutput(rendered.message)
}
