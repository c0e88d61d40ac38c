/**
 * Actor: one call in one of its phases. Authorizing decides whether the body may run; executing runs it, once its
 * dispatch is durable; awaiting lets an approval expire; recovering says what may be done after a crash.
 */
import { argumentsDigest } from '../log/digest.ts'
import type { UserMessage } from '../log/messages.ts'
import { type Service, serviceActor } from './actor.ts'
import { callHook } from './hooks/failure.ts'
import type { CallInput } from './inputs.ts'
import { patternsOnly } from './masking/mask.ts'
import type { AgentRuntime } from './runtime.ts'
import { callInfo, isPlain, materialise } from './tools/call.ts'
import type { Tool, ToolOutcome } from './tools/contract.ts'
import { execute } from './tools/execute.ts'
import { sayLate } from './tools/late.ts'
import { failedOutcome, invalidArguments, resultOf, thrownOutcome, unknownTool } from './tools/outcome.ts'
import { finalize } from './tools/post-execute.ts'
import { decideRecovery } from './tools/recover.ts'
import type { CallResult, Verdict } from './verdicts.ts'
import { sleep } from './wait.ts'

export const call = serviceActor<CallInput>(
  run,
  (input, _, thrown) =>
    input.phase === 'recovering'
      ? { type: 'verdict.recovered', ...ofCall(input), decision: { kind: 'unknown' }, onCrash: 'unknown' }
      : settled(input, resultOf(patternsOnly, thrownOutcome(thrown))),
  // What was dispatched may settle before the process leaves: its result is worth having.
  (input) => input.phase === 'executing',
)

const ofCall = ({ callId, run, phase }: CallInput) => ({ callId, run, phase })

/** An id is one message for the whole session: a message whose id is taken gets another. */
function distinct({ session, turn, newId }: AgentRuntime, contexts: readonly UserMessage[]): readonly UserMessage[] {
  return contexts.map((message) => {
    const isTaken = session.hasMessageId(message.id) || turn.added.has(message.id)
    const own = isTaken ? Object.freeze({ ...message, id: newId() }) : message
    turn.added.add(own.id)
    return own
  })
}

/** The call's result, and if it was made too often a word to the model about it. */
function settledWith(
  runtime: AgentRuntime,
  input: CallInput,
  result: CallResult,
  added: readonly UserMessage[],
): Verdict {
  const { repeats, newId, turn } = runtime
  const contexts = distinct(runtime, added)
  // A turn that is ending has no step to read it; it would wait there for the next turn, of which it is not true.
  const isOver = turn.signal.aborted || result.concludesTurn === true
  const warning = isOver ? undefined : repeats?.warning(input.name, input.arguments)
  if (warning === undefined) return settled(input, result, contexts)
  const message: UserMessage = {
    id: newId(),
    role: 'user',
    content: [{ type: 'text', text: warning }],
    source: { kind: 'plugin', plugin: 'pawl/repeated-call' },
  }
  return settled(input, result, [...contexts, message])
}

const settled = (input: CallInput, result: CallResult, contexts: readonly UserMessage[] = []): Verdict => ({
  type: 'verdict.settled',
  ...ofCall(input),
  result,
  contexts,
})

function run(service: Service<CallInput>): Promise<Verdict | undefined> {
  switch (service.input.phase) {
    case 'authorizing':
      return authorize(service)
    case 'awaiting':
      return expire(service)
    case 'executing':
      return runBody(service)
    case 'recovering':
      return recover(service)
  }
}

/** The policy hook first, in the model's order of calls; then what the tool itself knows of the call. */
async function authorize({ input, runtime }: Service<CallInput>): Promise<Verdict | undefined> {
  const tool = runtime.tools.get(input.name)
  const parsed = await materialise(tool, input)
  const info = callInfo(runtime, input, parsed.args)
  const at = { turn: input.turn, step: input.step }
  const policy = await callHook(runtime, 'tools/pre-execute', at, info, async () => ({ kind: 'allow' as const }))
  const refuse = async (outcome: ToolOutcome): Promise<Verdict> => {
    const { result, contexts } = await finalize(runtime, { input, info, tool, parsed, outcome })
    return settledWith(runtime, input, result, contexts)
  }
  if (policy.kind === 'deny') return refuse(failedOutcome(`Not run: denied: ${policy.reason}`))
  if (tool === undefined) return refuse(unknownTool(input.name, runtime.tools.keys()))
  if (parsed.kind === 'invalid') return refuse(invalidArguments(parsed.message))
  if (policy.kind === 'ask' || (await tool.needsApproval(parsed.args))) return ask(runtime, input, tool)
  // What the hooks were shown of them may have parts that they can change: the body gets its own then.
  const isShown = runtime.hooks.has('tools/pre-execute') && !isPlain(parsed.args)
  if (tool.parsesForBody && !isShown) runtime.turn.materialised.set(input.callId, parsed)
  return { type: 'verdict.authorized', ...ofCall(input), onCrash: tool.onCrash }
}

const ask = (runtime: AgentRuntime, input: CallInput, tool: Tool): Verdict => ({
  type: 'verdict.ask',
  ...ofCall(input),
  argumentsDigest: argumentsDigest(input.arguments),
  ...expiryOf(runtime, tool),
})

const expiryOf = ({ clock }: AgentRuntime, { approvalExpiresMs }: Tool) =>
  approvalExpiresMs === undefined ? {} : { expiresAt: clock.now() + approvalExpiresMs }

async function expire({ input, runtime, stopped }: Service<CallInput>): Promise<Verdict | undefined> {
  if (input.expiresAt === undefined) return undefined
  await sleep(runtime, Math.max(0, input.expiresAt - runtime.clock.now()), stopped.signal)
  return { type: 'verdict.expired', ...ofCall(input) }
}

/** Nothing in the world happens before `tool/dispatch` is durable. */
async function runBody({ input, runtime, stopped }: Service<CallInput>): Promise<Verdict | undefined> {
  await runtime.session.flush()
  if (stopped.aborted) return undefined
  const tool = runtime.tools.get(input.name)
  const { materialised } = runtime.turn
  const known = materialised.get(input.callId)
  materialised.delete(input.callId)
  const parsed = known ?? (await materialise(tool, input))
  if (stopped.aborted) return undefined
  const info = callInfo(runtime, input, parsed.args)
  const { outcome, contexts, concludes } = await execute(runtime, { input, info, tool, parsed, stopped })
  if (stopped.aborted) return sayLate(runtime, input, resultOf(runtime.mask, outcome))
  const final = await finalize(runtime, { input, info, tool, parsed, outcome, contexts })
  if (stopped.aborted) return sayLate(runtime, input, final.result)
  const result = concludes && !final.result.isError ? { ...final.result, concludesTurn: true as const } : final.result
  return settledWith(runtime, input, result, final.contexts)
}

async function recover({ input, runtime }: Service<CallInput>): Promise<Verdict> {
  const tool = runtime.tools.get(input.name)
  const decision = await decideRecovery(runtime, input, tool)
  return { type: 'verdict.recovered', ...ofCall(input), decision, onCrash: tool?.onCrash ?? 'unknown' }
}
