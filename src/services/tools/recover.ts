/** What may be done with a call whose body was running at a crash: only what the log and the live tool both say. */
import { argumentsDigest } from '../../log/digest.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { RecoveryDecision } from '../verdicts.ts'
import { callInfo, idempotencyKey, materialise } from './call.ts'
import type { Tool } from './contract.ts'
import { invalidOutput, resultOf } from './outcome.ts'

const UNKNOWN: RecoveryDecision = { kind: 'unknown' }

export async function decideRecovery(
  runtime: AgentRuntime,
  input: CallInput,
  tool: Tool | undefined,
): Promise<RecoveryDecision> {
  if (tool === undefined || tool.onCrash !== input.onCrash) return UNKNOWN
  switch (tool.onCrash) {
    case 'rerun':
      return { kind: 'rerun' }
    case 'ask':
      return askAgain(runtime, input, tool)
    case 'probe':
      return probe(runtime, input, tool)
    default:
      return UNKNOWN
  }
}

const askAgain = ({ clock }: AgentRuntime, input: CallInput, { approvalExpiresMs }: Tool): RecoveryDecision => ({
  kind: 'ask',
  argumentsDigest: argumentsDigest(input.arguments),
  ...(approvalExpiresMs === undefined ? {} : { expiresAt: clock.now() + approvalExpiresMs }),
})

/** A probe that throws, or answers nonsense, does not know. */
async function probe(runtime: AgentRuntime, input: CallInput, tool: Tool): Promise<RecoveryDecision> {
  const parsed = await materialise(tool, input)
  const context = {
    ...callInfo(runtime, input, parsed.args),
    run: input.run,
    idempotencyKey: idempotencyKey(runtime, input.callId),
  }
  const answer = await tool.probe?.(context).catch(() => undefined)
  if (answer?.kind === 'not-done') return { kind: 'not-done' }
  if (answer?.kind !== 'done') return UNKNOWN
  const rendered = await tool.render(answer.value)
  const outcome = rendered.kind === 'ok' ? rendered : invalidOutput(rendered.message)
  return { kind: 'done', result: resultOf(runtime.mask, outcome) }
}
