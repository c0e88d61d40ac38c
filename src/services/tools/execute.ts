/** Runs a tool's body: around it the `tools/execute` hook, its time limit, and what it may say while it works. */
import { PawlError } from '../../log/errors.ts'
import type { UserMessage } from '../../log/messages.ts'
import type { Stopped } from '../actor.ts'
import { callHook } from '../hooks/failure.ts'
import { toMessage } from '../input.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import { idempotencyKey } from './call.ts'
import type { Input, Materialised, Tool, ToolCallInfo, ToolContext, ToolOutcome } from './contract.ts'
import { sayLate } from './late.ts'
import {
  abortedBeforeBody,
  abortedWhileRunning,
  invalidArguments,
  invalidOutput,
  resultOf,
  thrownOutcome,
  timedOut,
  unknownTool,
} from './outcome.ts'

export interface Execution {
  readonly input: CallInput
  readonly info: ToolCallInfo
  readonly tool: Tool | undefined
  readonly parsed: Materialised
  /** The chart no longer waits. */
  readonly stopped: Stopped
}

export interface Executed {
  readonly outcome: ToolOutcome
  /** What the tool added, in order; kept also when it failed. */
  readonly contexts: readonly UserMessage[]
  readonly concludes: boolean
}

/** Never throws for the tool or the hook: what they throw is the call's outcome. */
export async function execute(runtime: AgentRuntime, execution: Execution): Promise<Executed> {
  const said: Said = { contexts: [], concludes: false }
  const at = { turn: execution.input.turn, step: execution.input.step }
  let own: ToolOutcome | undefined
  const core = async (): Promise<ToolOutcome> => {
    own = await runBody(runtime, execution, said)
    return own
  }
  try {
    const given = await callHook(runtime, 'tools/execute', at, execution.info, core)
    return { outcome: given === own ? given : await held(execution.tool, given), ...said }
  } catch (thrown) {
    return { outcome: thrownOutcome(thrown), ...said }
  }
}

type Said = { contexts: UserMessage[]; concludes: boolean }

/** A hook's value is held to the tool's declared output as the tool's own is. */
async function held(tool: Tool | undefined, outcome: ToolOutcome): Promise<ToolOutcome> {
  if (outcome.kind === 'error' || tool === undefined) return outcome
  const rendered = await tool.render(outcome.value)
  return rendered.kind === 'ok' ? outcome : invalidOutput(rendered.message)
}

async function runBody(runtime: AgentRuntime, execution: Execution, said: Said): Promise<ToolOutcome> {
  const { input, tool, parsed, info } = execution
  if (tool === undefined) return unknownTool(input.name, runtime.tools.keys())
  if (parsed.kind === 'invalid') return invalidArguments(parsed.message)
  // Of the turn that the call was made in: a hook that waits may call this when another one is open.
  const { signal } = info
  if (signal.aborted) return abortedBeforeBody
  const own = new AbortController()
  const abort = (): void => own.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const context = contextOf(runtime, input, own.signal, said)
  try {
    const outcome = await inTime(runtime, execution, tool, own, context)
    return signal.aborted && outcome.kind === 'ok' ? abortedWhileRunning : outcome
  } finally {
    // The signal's scope ends with the call: what the tool handed on to others is no longer its own to stop.
    signal.removeEventListener('abort', abort)
    said.contexts = Object.freeze([...said.contexts]) as UserMessage[]
  }
}

/** A body past its time is told to stop and left behind; what it says then is a late result. */
async function inTime(
  runtime: AgentRuntime,
  { input, parsed, stopped }: Execution,
  tool: Tool,
  own: AbortController,
  context: ToolContext,
): Promise<ToolOutcome> {
  const body = bodyOutcome(tool, parsed.args, context)
  const { timeoutMs } = tool
  if (timeoutMs === undefined) return body
  const first = await Promise.race([body, timeUp(runtime, timeoutMs, stopped.signal, body)])
  if (first !== 'late') return first
  own.abort(new DOMException(`The tool did not finish within ${timeoutMs} ms`, 'TimeoutError'))
  void Promise.all([body, whenAborted(stopped.signal)]).then(([outcome]) =>
    sayLate(runtime, input, resultOf(runtime.mask, outcome)),
  )
  return timedOut(timeoutMs)
}

/** No timer outlives the body, or the call that nobody waits for any more: it would keep the process alive. */
function timeUp({ clock }: AgentRuntime, ms: number, stopped: AbortSignal, body: Promise<unknown>): Promise<'late'> {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(() => resolve('late'), ms)
    const clear = (): void => {
      clock.clearTimeout(timer)
      stopped.removeEventListener('abort', clear)
    }
    stopped.addEventListener('abort', clear)
    void body.then(clear)
  })
}

/** The chart stops the call when it is answered: only then is what its tool says late. */
const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Never rejects. */
async function bodyOutcome(tool: Tool, args: unknown, context: ToolContext): Promise<ToolOutcome> {
  try {
    const rendered = await tool.render(await tool.execute(args, context))
    return rendered.kind === 'ok' ? rendered : invalidOutput(rendered.message)
  } catch (thrown) {
    return thrownOutcome(thrown)
  }
}

function contextOf(runtime: AgentRuntime, input: CallInput, signal: AbortSignal, said: Said): ToolContext {
  const message = (from: Input): UserMessage => toMessage(from, runtime.newId(), runtime.mask)
  const { turn: opened } = runtime
  /** @throws PawlError once the turn is over: nothing of it moves the agent any more. */
  const current = (from: Input): UserMessage => {
    if (runtime.turn === opened) return message(from)
    throw new PawlError(`Call "${input.callId}" is of a turn that is over: send through the agent instead`, 'TURN_OVER')
  }
  const { turn, step, callId, run } = input
  return {
    signal,
    sessionId: runtime.session.id,
    turn,
    step,
    callId,
    run,
    idempotencyKey: idempotencyKey(runtime, callId),
    steer: (from) => runtime.steer(current(from)),
    inject: (from) => runtime.inject(current(from)),
    addContext: (from) => {
      said.contexts.push(message(from))
    },
    concludeTurn: () => {
      said.concludes = true
    },
    progress: (text) => runtime.progress(callId, text),
  }
}
