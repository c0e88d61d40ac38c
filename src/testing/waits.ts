/** What an agent waits for, and how it goes on when nothing out of the ordinary happens. */
import { actorIdOf, phaseOf } from '../machines/agent.ts'
import type { AgentContext, Call } from '../machines/evolve.ts'
import { isStreaming, isWaiting, type LoopState } from './loop-state.ts'
import type { PathInput } from './path-input.ts'
import { toolOf } from './stimulus.ts'
import { ALL_VERDICTS, authorizations, type HookVerdicts } from './verdicts.ts'

const ofStep = ({ turn, step }: AgentContext): string => `${turn}.${step}`
const ofAttempt = ({ turn, step, attempt }: AgentContext): string => `${turn}.${step}.${attempt}`

/** Names, sorted, of everything that the agent's surroundings have been asked and have yet to answer. */
export const waitsOf = (state: LoopState): readonly string[] => [...waits(state)].sort()

function waits(state: LoopState): readonly string[] {
  const { value, context, asked } = state
  if (value === 'preStep') return [`pre-step ${context.turn}.${context.step + 1}`]
  if (value === 'turnStopping') return [`turn-stopping ${ofStep(context)}`]
  if (isWaiting(state)) return [`retry ${ofAttempt(context)}`]
  if (isStreaming(state)) return [`${typeof asked === 'object' ? 'request-error' : 'model'} ${ofAttempt(context)}`]
  return value === 'toolExec' ? context.calls.flatMap(callWaits) : []
}

function callWaits(call: Call): readonly string[] {
  switch (phaseOf(call)) {
    case 'authorizing':
      return [`pre-execute ${call.callId}`]
    case 'awaiting':
      return [`approval ${call.callId} ${call.run}`]
    case 'executing':
      return [`body ${call.callId} ${call.run}`]
    case 'recovering':
      return [`probe ${call.callId}`]
    default:
      return []
  }
}

/** Ids of the actors that live in this state. */
export function actorsOf(state: LoopState): readonly string[] {
  const { value, context } = state
  if (value === 'preStep') return ['prepareStep']
  if (value === 'turnStopping') return ['stopTurn']
  if (isWaiting(state)) return ['wait']
  if (isStreaming(state)) return ['askModel']
  if (value !== 'toolExec') return []
  return context.calls.filter((call) => phaseOf(call) !== undefined).map(actorIdOf)
}

/** The call whose question nobody can answer any more: it expires before whatever comes next. */
export const overdueCall = ({ context, now }: LoopState): Call | undefined =>
  context.calls.find(({ status, approval }) => status === 'awaiting' && (approval?.expiresAt ?? Infinity) <= now + 1)

/** A retry that a hook asked for is not waited for: it begins before whatever comes next. */
export const isRetryOverdue = (state: LoopState): boolean => isWaiting(state) && state.context.retry?.delayMs === 0

/**
 * The plainest thing that can happen next, of what the hooks can decide; undefined at rest. From any state it leads to
 * rest.
 */
export function plainInput(state: LoopState, verdicts: HookVerdicts = ALL_VERDICTS): PathInput | undefined {
  const { value, context, asked } = state
  const overdue = overdueCall(state)
  if (overdue !== undefined) return { type: 'expired', callId: overdue.callId }
  if (value === 'idle') return undefined
  if (value === 'preStep') return { type: 'prepared', decision: plainest(verdicts['agent/pre-step'], 'enter') }
  if (value === 'turnStopping') return { type: 'stopping', decision: plainest(verdicts['agent/turn-stopping'], 'none') }
  if (isWaiting(state)) return { type: 'waited' }
  if (isStreaming(state)) {
    if (typeof asked === 'string') return { type: 'answered', finish: 'stop', calls: [] }
    const decision = plainest(verdicts['agent/request-error'], 'policy')
    return { type: 'error-handled', ...(decision === 'policy' ? {} : { decision }) }
  }
  for (const call of context.calls) {
    const input = plainAnswer(state, call, verdicts)
    if (input !== undefined) return input
  }
  return undefined
}

const plainest = <T>(verdicts: readonly T[], usual: T): T => (verdicts.includes(usual) ? usual : (verdicts[0] ?? usual))

function judgedPlainly({ context }: LoopState, verdicts: HookVerdicts) {
  const verdict = context.cancel === null ? plainest(verdicts['tools/post-execute'], 'accept') : 'accept'
  return verdict === 'accept' ? {} : { judged: verdict }
}

function plainAnswer(state: LoopState, call: Call, verdicts: HookVerdicts): PathInput | undefined {
  const { callId, run, name } = call
  switch (phaseOf(call)) {
    case 'authorizing':
      return { type: plainest(authorizations(toolOf(state, name), verdicts), 'allowed'), callId }
    case 'awaiting':
      return { type: 'approve', callId, run }
    case 'executing':
      return { type: 'settled', callId, outcome: 'ok', ...judgedPlainly(state, verdicts) }
    case 'recovering':
      return { type: 'probed', callId, answer: 'done' }
    default:
      return undefined
  }
}
