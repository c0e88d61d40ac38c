/** Everything that can happen next on a path, in words of inputs. */
import { phaseOf } from '../machines/agent.ts'
import { type Call, isMessage, pending } from '../machines/evolve.ts'
import type { Budget, Spent } from './budget.ts'
import { type Failing, isStreaming, isWaiting, type LoopState } from './loop-state.ts'
import type { CallOutcome, FailingActor, PathCall, PathInput } from './path-input.ts'
import { toolOf } from './stimulus.ts'
import { authorizations, type HookVerdicts } from './verdicts.ts'
import { actorsOf, isRetryOverdue, overdueCall } from './waits.ts'

/** What a search tries beside the budget: the hooks' verdicts, the tools an answer asks for, and their outcomes. */
export interface Vocabulary {
  readonly verdicts: HookVerdicts
  /** Names of tools, by answer. */
  readonly batches: readonly (readonly string[])[]
  readonly outcomes: readonly CallOutcome[]
}

/** Those that the budget does not afford are among them. */
export function inputsOf(state: LoopState, spent: Spent, budget: Budget, words: Vocabulary): readonly PathInput[] {
  if (state.context.turn === 0) return [{ type: 'followup', id: 'm1' }]
  const overdue = overdueCall(state)
  if (overdue !== undefined) return [{ type: 'expired', callId: overdue.callId }]
  if (isRetryOverdue(state)) return [{ type: 'waited' }]
  const id = `m${spent.extraMessages + 2}`
  return [...surroundings(state, words), ...people(state, id), ...process(state), ...defects(state, budget)]
}

function people(state: LoopState, id: string): readonly PathInput[] {
  const { value, context } = state
  const waiting = [...context.inbox['next-step'], ...context.inbox['next-turn']].filter(isMessage)
  const inputs: PathInput[] = (['followup', 'steer', 'inject'] as const).map((type) => ({ type, id }))
  if (value !== 'idle' && context.cancel === null) {
    inputs.push({ type: 'cancel' }, { type: 'cancel', keepInbox: true })
  } else if (waiting.length > 0) inputs.push({ type: 'cancel' })
  const [first] = waiting
  if (first !== undefined) inputs.push({ type: 'remove', id: first.message.id }, { type: 'clear' })
  if (value === 'idle' && pending(context)) inputs.push({ type: 'wake' })
  return inputs
}

function process({ value, context }: LoopState): readonly PathInput[] {
  const inputs: PathInput[] = [{ type: 'crash', recovery: 'continue' }, { type: 'fork' }]
  if (value === 'idle') return inputs
  inputs.push({ type: 'crash', recovery: 'interrupt' }, { type: 'suspend' })
  if (context.cancel === null) inputs.push({ type: 'crash', recovery: 'continue', cancel: true })
  return inputs
}

function defects(state: LoopState, { defects: allowed }: Budget): readonly PathInput[] {
  if (allowed === 0) return []
  // One that was stopped, and fails all the same.
  if (state.value === 'idle') return [{ type: 'actor-fails', actor: 'stopTurn' }]
  const calls = new Set(state.context.calls.map(({ callId }) => callId))
  return actorsOf(state).map((id) => {
    const callId = [...calls].find((one) => id.startsWith(`tool.${one}.`))
    return { type: 'actor-fails', actor: callId === undefined ? (id as FailingActor) : { callId } }
  })
}

// What the surroundings answer

function surroundings(state: LoopState, words: Vocabulary): readonly PathInput[] {
  const { value, context } = state
  const inputs: PathInput[] = []
  if (value === 'preStep') {
    inputs.push(...words.verdicts['agent/pre-step'].map((decision) => ({ type: 'prepared', decision }) as const))
  }
  if (value === 'turnStopping') {
    inputs.push(...words.verdicts['agent/turn-stopping'].map((decision) => ({ type: 'stopping', decision }) as const))
  }
  if (isWaiting(state)) inputs.push({ type: 'waited' })
  if (isStreaming(state)) inputs.push(...model(state, words))
  if (value === 'toolExec') inputs.push(...context.calls.flatMap((call) => answersTo(state, call, words)))
  if (context.cancel !== null && value !== 'idle') inputs.push({ type: 'settle-timeout' })
  return inputs
}

function model(state: LoopState, { batches, verdicts }: Vocabulary): readonly PathInput[] {
  const { asked, context } = state
  if (typeof asked === 'object') return judgements(asked, verdicts)
  if (context.cancel !== null) return []
  const answers = batches.map(
    (tools) => ({ type: 'answered', finish: 'tool-calls', calls: calls(state, tools) }) as const,
  )
  const [first] = answers
  return [
    { type: 'answered', finish: 'stop', calls: [] },
    { type: 'answered', finish: 'max-tokens', calls: [] },
    ...answers,
    ...(first === undefined ? [] : [{ ...first, limited: true as const }]),
    ...(asked === 'silent' ? [{ type: 'speaks' } as const] : []),
    { type: 'request-fails', retryable: true },
    { type: 'request-fails', retryable: false },
  ]
}

/** A failure that stands by itself need not be given up where the policy may say so. */
function judgements({ failed }: Failing, verdicts: HookVerdicts): readonly PathInput[] {
  const all = verdicts['agent/request-error']
  const isSaidTwice = failed === 'for good' && all.includes('policy')
  return all
    .filter((verdict) => verdict !== 'give-up' || !isSaidTwice)
    .map((verdict) => ({ type: 'error-handled', ...(verdict === 'policy' ? {} : { decision: verdict }) }))
}

const calls = ({ context: { turn, step } }: LoopState, tools: readonly string[]): readonly PathCall[] =>
  tools.map((tool, index) => ({ callId: `c${turn}.${step}.${index + 1}`, tool }))

function answersTo(state: LoopState, call: Call, { verdicts, outcomes }: Vocabulary): readonly PathInput[] {
  const { callId, run } = call
  switch (phaseOf(call)) {
    case 'authorizing':
      return authorizations(toolOf(state, call.name), verdicts).map((type) => ({ type, callId }))
    case 'awaiting':
      return [
        { type: 'approve', callId, run },
        { type: 'deny', callId, run },
        ...(isNextToExpire(state, call) ? [{ type: 'expired', callId } as const] : []),
      ]
    case 'executing':
      return settlements(state, outcomes, verdicts).map((settled) => ({ type: 'settled', callId, ...settled }))
    case 'recovering':
      return (['done', 'not-done', 'unknown'] as const).map((answer) => ({ type: 'probed', callId, answer }))
    default:
      return []
  }
}

type Settlement = Pick<Extract<PathInput, { readonly type: 'settled' }>, 'outcome' | 'judged'>

/** What a hook takes back is tried on the outcome that would have done most; under a cancel the hook has no more say. */
function settlements(
  { context }: LoopState,
  outcomes: readonly CallOutcome[],
  verdicts: HookVerdicts,
): readonly Settlement[] {
  return verdicts['tools/post-execute'].flatMap((verdict): readonly Settlement[] => {
    if (verdict === 'accept') return outcomes.map((outcome) => ({ outcome }))
    const most = verdict === 'block' ? 'adds' : 'concludes'
    return context.cancel === null ? [{ outcome: outcomes.includes(most) ? most : 'ok', judged: verdict }] : []
  })
}

/** Time passes them in order; two that end at the same instant cannot be told apart. */
function isNextToExpire({ context }: LoopState, { callId, approval }: Call): boolean {
  const expiresAt = approval?.expiresAt
  if (expiresAt === undefined) return false
  return context.calls.every((other) => {
    const isOther = other.callId !== callId && other.status === 'awaiting'
    return !isOther || (other.approval?.expiresAt ?? Infinity) > expiresAt
  })
}
