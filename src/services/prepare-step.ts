/** Actor: decides what enters the next step. Nothing it does is logged but its decision. */
import type { UserMessage } from '../log/messages.ts'
import { type Service, serviceActor } from './actor.ts'
import { HookMisuse } from './errors.ts'
import type { PreStep } from './hooks/contract.ts'
import { callHook, reportHookFailure } from './hooks/failure.ts'
import { inWords } from './hooks/words.ts'
import { toMessage } from './input.ts'
import type { PrepareStepInput } from './inputs.ts'
import { assemblePrompt } from './llm/prompt.ts'
import { proposeContext } from './llm/runtime-context.ts'
import type { AgentRuntime } from './runtime.ts'
import type { PreparedDecision, Verdict } from './verdicts.ts'

const HOOK = 'agent/pre-step'

export const prepareStep = serviceActor<PrepareStepInput>(run, (input, failure) =>
  prepared(input, { kind: 'failed', failure }),
)

const prepared = ({ turn, step }: PrepareStepInput, decision: PreparedDecision): Verdict => ({
  type: 'verdict.prepared',
  turn,
  step,
  decision,
})

async function run({ input, runtime, stopped }: Service<PrepareStepInput>): Promise<Verdict> {
  const { turn, step, messages } = input
  const { turn: open } = runtime
  const { signal } = open
  // A cancel may have come first, or while somebody was waited for: nothing more is begun then.
  signal.throwIfAborted()
  const limit = runtime.limits?.reached(runtime.clock.now())
  if (limit !== undefined) {
    // What was claimed goes back to its queue: the cancel keeps the inbox.
    runtime.stopFor({ kind: 'limit', limit })
    return prepared(input, { kind: 'reject' })
  }
  const prompt = await assemblePrompt(runtime, turn, step)
  signal.throwIfAborted()
  open.prompt = { step, prompt }
  const context = await proposeContext(runtime)
  signal.throwIfAborted()
  const payload = { turn, step, messages, prompt, signal, ...(context === undefined ? {} : { context }) }
  const proposal: PreStep = {
    kind: 'enter',
    messages: context === undefined ? messages : Object.freeze([...messages, context]),
  }
  const decided = await callHook(runtime, HOOK, { turn, step }, payload, async () => proposal)
  try {
    return prepared(input, checked(runtime, decided, proposal.messages))
  } catch (thrown) {
    if (!stopped.aborted) reportHookFailure(runtime, HOOK, { turn, step }, thrown)
    throw thrown
  }
}

/** A decision is data from outside: only what the log takes enters it. */
function checked(runtime: AgentRuntime, decided: PreStep, proposed: readonly UserMessage[]): PreparedDecision {
  switch (decided?.kind) {
    case 'reject':
      return { kind: 'reject', ...(decided.reason === undefined ? {} : { reason: inWords(decided.reason) }) }
    case 'enter': {
      const messages = decided.messages.map((message) => toMessage(message, message.id, runtime.mask))
      checkIds(runtime, messages, proposed)
      return { kind: 'enter', messages }
    }
    default:
      throw new HookMisuse(HOOK, 'it must give { kind: "enter", messages } or { kind: "reject", reason? }')
  }
}

/** An id is one message for the whole session: what was proposed keeps its own, what is added needs a new one. */
function checkIds({ session }: AgentRuntime, messages: readonly UserMessage[], proposed: readonly UserMessage[]): void {
  const ids = new Set(messages.map(({ id }) => id))
  if (ids.size < messages.length) throw new HookMisuse(HOOK, 'two of the messages have the same id')
  for (const { id } of proposed) ids.delete(id)
  for (const id of ids) {
    if (session.hasMessageId(id)) throw new HookMisuse(HOOK, `the message id "${id}" is already used in this session`)
  }
}
