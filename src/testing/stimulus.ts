/** From an input of a path to what the chart is sent: the command, or the verdict its actors would give. */
import { argumentsDigest } from '../log/digest.ts'
import type { Limit, PlannedCall, Retry } from '../log/events.ts'
import type { AssistantMessage, ContentBlock, FinishReason, LlmFailure, UserMessage } from '../log/messages.ts'
import { type AgentEvent, actorIdOf, phaseOf } from '../machines/agent.ts'
import { type Call, isMessage } from '../machines/evolve.ts'
import { callOf } from '../machines/tool-records.ts'
import type { Answer, CallPhase, CallResult, OfCall } from '../services/verdicts.ts'
import { InputRefused, isStreaming, isWaiting, type LoopState, settleTime } from './loop-state.ts'
import { type PathTool, TIMES } from './path.ts'
import type { FailingActor, PathCall, PathInput } from './path-input.ts'

/** The time it happens at, if that is not now, and what is sent. */
export interface Stimulus {
  readonly at?: number
  readonly events: readonly AgentEvent[]
}

type Of<T extends PathInput['type']> = Extract<PathInput, { readonly type: T }>
/** Inputs that are nothing but what is sent. */
export type Sent = Exclude<PathInput, { readonly type: 'crash' | 'suspend' | 'fork' | 'speaks' | 'request-fails' }>

/** @throws InputRefused if nothing in this state waits for the input */
export function stimulusOf(state: LoopState, input: Sent): Stimulus {
  const { setup: _, value, now, ...place } = state
  const at = { turn: place.context.turn, step: place.context.step }
  switch (input.type) {
    case 'followup':
    case 'steer':
    case 'inject':
      return sent({ type: `command.${input.type}`, message: pathMessage(input.id) })
    case 'cancel':
      return sent({ type: 'command.cancel', cause: { kind: 'user' }, ...(input.keepInbox ? { keepInbox: true } : {}) })
    case 'remove':
      return sent({ type: 'command.remove', id: input.id })
    case 'clear':
      return sent({ type: 'command.clear' })
    case 'wake':
      return sent({ type: 'command.wake' })
    case 'approve': {
      const { onCrash } = toolOf(state, demandCall(state, input, 'awaiting').name)
      return sent({ type: 'command.approve', callId: input.callId, run: input.run, onCrash })
    }
    case 'deny':
      demandCall(state, input, 'awaiting')
      return sent({ type: 'command.deny', callId: input.callId, run: input.run })
    case 'prepared':
      demand(value === 'preStep', input)
      return sent({
        type: 'verdict.prepared',
        turn: at.turn,
        step: at.step + 1,
        decision: preparedDecision(state, input),
      })
    case 'answered':
      return sent(answered(state, input))
    case 'error-handled':
      return sent(judged(state, input))
    case 'waited': {
      demand(isWaiting(state), input)
      const { retry } = place.context
      const due = (retry?.at ?? now) + (retry?.delayMs ?? 0)
      return { at: Math.max(now, due), events: [{ type: 'verdict.waited', ...at, attempt: place.context.attempt }] }
    }
    case 'allowed':
    case 'denied':
    case 'asked':
      return sent(authorized(state, input))
    case 'settled': {
      const call = demandCall(state, input, 'executing')
      const { result, contexts } = outcomeOf(state, call, input)
      return sent({ type: 'verdict.settled', ...ofCall(call), result, contexts })
    }
    case 'expired': {
      const call = demandCall(state, input, 'awaiting')
      demand(call.approval?.expiresAt !== undefined, input)
      return {
        at: Math.max(now, call.approval?.expiresAt ?? now),
        events: [{ type: 'verdict.expired', ...ofCall(call) }],
      }
    }
    case 'probed': {
      const call = demandCall(state, input, 'recovering')
      const { onCrash } = toolOf(state, call.name)
      const decision =
        input.answer === 'done' ? ({ kind: 'done', result: DONE } as const) : ({ kind: input.answer } as const)
      return sent({ type: 'verdict.recovered', ...ofCall(call), decision, onCrash })
    }
    case 'stopping':
      demand(value === 'turnStopping', input)
      return sent({ type: 'verdict.stopping', ...at, ...stopping(input) })
    case 'settle-timeout': {
      demand(place.cancelledAt !== undefined && value !== 'idle', input)
      return { at: settleTime(state), events: [{ type: 'verdict.settle', turn: at.turn }] }
    }
    case 'actor-fails':
      return sent(actorError(state, input.actor))
  }
}

const sent = (event: AgentEvent): Stimulus => ({ events: [event] })

function demand(holds: boolean, input: PathInput): void {
  if (!holds) throw new InputRefused(`Nothing waits for ${JSON.stringify(input)}`)
}

/** The open call of an input, in the phase that the input is an answer to. */
function demandCall({ context }: LoopState, input: PathInput & { readonly callId: string }, phase: CallPhase): Call {
  const call = callOf(context, input.callId)
  const isRun = !('run' in input) || call?.run === input.run
  if (call === undefined || phaseOf(call) !== phase || !isRun) {
    throw new InputRefused(`Nothing waits for ${JSON.stringify(input)}`)
  }
  return call
}

const ofCall = (call: Call): OfCall => ({
  callId: call.callId,
  run: call.run,
  phase: phaseOf(call) ?? 'authorizing',
})

export function toolOf({ setup }: Pick<LoopState, 'setup'>, name: string): PathTool {
  const tool = setup.tools.find((one) => one.name === name)
  if (tool === undefined) throw new InputRefused(`The path has no tool "${name}"`)
  return tool
}

/** What a user of a path sends: its text is its id. */
export const pathMessage = (id: string): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: id }],
  source: { kind: 'user' },
})

// Before a step, and at the end of a turn

const FAILURE: LlmFailure = { code: 'UNKNOWN', message: 'The path fails here' }

function preparedDecision({ context }: LoopState, { decision, entered }: Of<'prepared'>) {
  switch (decision) {
    case 'enter': {
      const claimed = context.claimed.flatMap(({ item }) => (isMessage(item) ? [item.message] : []))
      const messages = entered?.map(pathMessage) ?? claimed
      return { kind: 'enter', messages } as const
    }
    case 'enter-none':
      return { kind: 'enter', messages: [] } as const
    case 'reject':
      return { kind: 'reject', reason: 'no' } as const
    case 'fail':
      return { kind: 'failed', failure: FAILURE } as const
  }
}

function stopping({ decision }: Of<'stopping'>) {
  if (decision === 'stop') return { reason: { kind: 'stopped-by-policy', policy: 'path' } } as const
  return decision === 'fail' ? { failure: FAILURE } : {}
}

// The model

const ofAttempt = ({ context: { turn, step, attempt } }: LoopState) => ({ turn, step, attempt })

/** What the model of a path says in an answer without calls. */
export const answerText = ({ context: { turn, step, attempt } }: Pick<LoopState, 'context'>): string =>
  `answer ${turn}.${step}.${attempt}`

/** The limit that every path is played under, and what an answer that reaches it costs. */
export const TOKENS = { max: 1_000_000, limited: 2_000_000 } as const

const limit: Limit = { name: 'tokens', scope: 'turn', max: TOKENS.max, spent: TOKENS.limited }

function answerOf(state: LoopState, content: readonly ContentBlock[], finish: FinishReason): Answer {
  const { turn, step, attempt } = ofAttempt(state)
  const message: AssistantMessage = {
    id: `answer-${turn}.${step}.${attempt}`,
    role: 'assistant',
    content,
    source: { kind: 'model', provider: 'path', model: 'path' },
  }
  return { message, finish, chunkSeqs: [] }
}

function answered(state: LoopState, input: Of<'answered'>): AgentEvent {
  demand(isStreaming(state) && typeof state.asked === 'string', input)
  const text: readonly ContentBlock[] =
    input.calls.length === 0 || state.asked === 'spoke' ? [{ type: 'text', text: answerText(state) }] : []
  const blocks = input.calls.map(({ callId, tool }): ContentBlock => {
    return { type: 'tool-call', id: callId, name: tool, arguments: argumentsOf(toolOf(state, tool)) }
  })
  return {
    type: 'verdict.answered',
    ...ofAttempt(state),
    answer: answerOf(state, [...text, ...blocks], { kind: input.finish }),
    calls: input.calls.map((call) => planned(state, call)),
    ...(input.limited ? { bound: { kind: 'limit', limit } } : {}),
  }
}

/** As the model of a path writes them. */
export const argumentsOf = ({ args }: PathTool): string => JSON.stringify(args)

const planned = (state: LoopState, { callId, tool }: PathCall): PlannedCall => ({
  callId,
  name: tool,
  mode: toolOf(state, tool).mode,
})

/** By the policy it is tried again as often as that is allowed; a hook may ask for another attempt at any time. */
function judged(state: LoopState, input: Of<'error-handled'>): AgentEvent {
  const { asked, context, setup } = state
  demand(isStreaming(state) && typeof asked === 'object', input)
  const retryable = typeof asked === 'object' && asked.failed === 'for now'
  const failure: LlmFailure = { code: retryable ? 'SERVER' : 'AUTH', message: 'The path fails here' }
  const stands = (of: LlmFailure): AgentEvent => ({ type: 'verdict.failed', ...ofAttempt(state), failure: of })
  if (input.decision === 'fail') return stands(FAILURE)
  const policyKey = input.decision === 'retry' ? 'hook' : 'path'
  const chain = context.retry?.policyKey === policyKey ? context.retry : null
  const retry = (chain?.retry ?? 0) + 1
  const plan = {
    retryId: chain?.retryId ?? `retry-${policyKey}-${context.turn}.${context.step}`,
    provider: 'path',
    policyKey,
    retry,
    failure,
  }
  const again = (how: Retry): AgentEvent => ({ type: 'verdict.retry', ...ofAttempt(state), retry: how })
  if (input.decision === 'retry') return again({ ...plan, delayMs: 0, mode: 'always' })
  const { maxRetries } = setup
  if (input.decision === 'give-up' || !retryable || retry > maxRetries) return stands(failure)
  return again({ ...plan, delayMs: TIMES.retryDelay, mode: 'normal', maxRetries })
}

/** What an aborted request ends with, by itself. */
export function abortedVerdict(state: LoopState): AgentEvent {
  const finish: FinishReason = { kind: 'aborted', failure: { code: 'ABORTED', message: 'The turn was cancelled' } }
  const spoke = state.asked === 'spoke'
  const partial = spoke && { partial: answerOf(state, [{ type: 'text', text: answerText(state) }], finish) }
  return { type: 'verdict.aborted', ...ofAttempt(state), ...partial }
}

// Calls

function authorized(state: LoopState, input: Of<'allowed' | 'denied' | 'asked'>): AgentEvent {
  const call = demandCall(state, input, 'authorizing')
  const tool = toolOf(state, call.name)
  if (input.type === 'denied') {
    const contexts = (input.added ?? []).map(pathMessage)
    return { type: 'verdict.settled', ...ofCall(call), result: failedResult('Not run: denied: no'), contexts }
  }
  return input.type === 'asked' || tool.needsApproval
    ? { type: 'verdict.ask', ...ofCall(call), ...question(state, call) }
    : { type: 'verdict.authorized', ...ofCall(call), onCrash: tool.onCrash }
}

const question = ({ now }: LoopState, call: Call) => ({
  argumentsDigest: argumentsDigest(call.arguments),
  expiresAt: now + TIMES.approvalExpires,
})

/** What a tool that may run again, or asks before it does, says of a call that a crash cut short. */
export function recoveredVerdict(state: LoopState, call: Call): AgentEvent {
  const { onCrash } = toolOf(state, call.name)
  const decision =
    onCrash === 'ask' ? ({ kind: 'ask', ...question(state, call) } as const) : ({ kind: 'rerun' } as const)
  return { type: 'verdict.recovered', ...ofCall(call), decision, onCrash }
}

const DONE: CallResult = { content: [{ type: 'text', text: 'done' }], isError: false }

const failedResult = (text: string, error?: CallResult['error']): CallResult => ({
  content: [{ type: 'text', text }],
  isError: true,
  ...(error === undefined ? {} : { error }),
})

/** A body that ends well under a cancel may have taken effect all the same: its call is answered as aborted. */
function outcomeOf({ context }: LoopState, { callId }: Call, { outcome, judged, added }: Of<'settled'>) {
  const contexts = (added ?? (outcome === 'adds' ? [`context-${callId}`] : [])).map(pathMessage)
  // A blocked call keeps nothing of what its tool added.
  if (judged === 'block') return { result: failedResult('no'), contexts: [] }
  if (judged === 'fail') return { result: failedResult('Error: The path fails here'), contexts }
  if (outcome === 'error') return { result: failedResult('Error: failed'), contexts }
  if (context.cancel !== null) {
    return { result: failedResult('Cancelled', { name: 'AbortError', code: 'ABORTED' }), contexts }
  }
  return { result: outcome === 'concludes' ? { ...DONE, concludesTurn: true as const } : DONE, contexts }
}

// Actors that throw

function actorError(state: LoopState, actor: FailingActor): AgentEvent {
  const id = typeof actor === 'string' ? actor : actorOfCall(state, actor.callId)
  return { type: `xstate.error.actor.${id}`, error: new Error('The path fails here'), actorId: id }
}

function actorOfCall({ context }: LoopState, callId: string): string {
  const call = callOf(context, callId)
  if (call === undefined || phaseOf(call) === undefined) throw new InputRefused(`Call ${callId} has no actor`)
  return actorIdOf(call)
}
