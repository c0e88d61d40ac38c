/** Runs a tool's body: around it the `tools/execute` hook, its time limit, and what it may say while it works. */
import { PawlError } from '../../log/errors.ts'
import type { Json } from '../../log/json.ts'
import type { UserMessage } from '../../log/messages.ts'
import { callHook } from '../hooks/failure.ts'
import { toMessage } from '../input.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import { idempotencyKey, type Materialised } from './call.ts'
import { withContext } from './contexts.ts'
import type { Input, Tool, ToolCallInfo, ToolContext, ToolOutcome } from './contract.ts'
import { checkOutcome } from './hook-answers.ts'
import {
  abortedBeforeBody,
  abortedWhileRunning,
  invalidArguments,
  invalidOutput,
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
  readonly stopped: AbortSignal
}

export interface Executed {
  readonly outcome: ToolOutcome
  /** What the tool added, in order; kept also when it failed. */
  readonly contexts: readonly UserMessage[]
  readonly concludes: boolean
  readonly meta: Json | undefined
}

/** Never throws for the tool or the hook: what they throw is the call's outcome. */
export async function execute(runtime: AgentRuntime, execution: Execution): Promise<Executed> {
  const said = {
    contexts: [] as readonly UserMessage[],
    concludes: false,
    meta: undefined as Json | undefined,
    over: false,
  }
  const at = { turn: execution.input.turn, step: execution.input.step }
  const body = () => runBody(runtime, execution, said)
  const run = callHook(runtime, 'tools/execute', at, execution.info, body, checkOutcome)
  return { outcome: await run.catch(thrownOutcome), ...said }
}

type Said = { contexts: readonly UserMessage[]; concludes: boolean; meta: Json | undefined; over: boolean }

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
    const outcome = await inTime(runtime, execution, tool, own, context, said)
    return signal.aborted && outcome.kind === 'ok' ? abortedWhileRunning : outcome
  } finally {
    signal.removeEventListener('abort', abort)
    // Its result is on the way: what it adds now would be lost without a word.
    said.over = true
  }
}

/** A body past its time is told to stop and left behind; what it says then is a late result. */
async function inTime(
  runtime: AgentRuntime,
  { input, parsed, stopped }: Execution,
  tool: Tool,
  own: AbortController,
  context: ToolContext,
  said: Said,
): Promise<ToolOutcome> {
  const body = bodyOutcome(tool, parsed.args, context, said)
  const { timeoutMs } = tool
  if (timeoutMs === undefined) return body
  let timer: unknown
  const late = new Promise<'late'>((resolve) => {
    timer = runtime.clock.setTimeout(() => resolve('late'), timeoutMs)
  })
  const first = await Promise.race([body, late])
  runtime.clock.clearTimeout(timer)
  if (first !== 'late') return first
  own.abort(new DOMException(`The tool did not finish within ${timeoutMs} ms`, 'TimeoutError'))
  void body.then((outcome) => {
    if (stopped.aborted || runtime.session.failed.aborted || runtime.closing.aborted) return
    runtime.append({
      type: 'tool/late-result',
      data: { turn: input.turn, step: input.step, callId: input.callId, run: input.run, outcome: lateWords(outcome) },
    })
  })
  return timedOut(timeoutMs)
}

const lateWords = (outcome: ToolOutcome): Json =>
  outcome.kind === 'ok' ? { kind: 'ok', value: outcome.value } : { kind: 'error', text: outcome.text }

async function bodyOutcome(tool: Tool, args: unknown, context: ToolContext, said: Said): Promise<ToolOutcome> {
  try {
    const value = await tool.execute(args, context)
    const rendered = await tool.render(value)
    if (rendered.kind === 'invalid') return invalidOutput(rendered.message)
    said.meta = tool.meta?.(args, value)
    return rendered
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
      if (said.over) throw new PawlError(`Call "${callId}" is over: it adds nothing any more`, 'CALL_OVER')
      said.contexts = withContext(runtime, said.contexts, message(from))
    },
    concludeTurn: () => {
      said.concludes = true
    },
    progress: (text) => runtime.progress(callId, text),
  }
}
