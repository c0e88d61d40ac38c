/**
 * What of an event or a context the chart decides, as one line of text. Two that say the same are the same to a path:
 * places, times, wording, tokens and generated ids are not the chart's to decide.
 */
import {
  type CancelCause,
  type InboxItem,
  isMoving,
  type Recordable,
  type SessionEvent,
  type StepOutcome,
  type TurnEndReason,
} from '../log/events.ts'
import type { LlmFailure } from '../log/messages.ts'
import { type AgentContext, type Call, isMessage } from '../machines/evolve.ts'
import type { AgentSnapshot } from '../machines/fold.ts'

/** What a path tells of: events that move the machine, and messages that enter the conversation. */
export const isTold = (event: SessionEvent): boolean => isMoving(event) || event.type === 'user/message'

/** An event as a line: its type, and what the chart decided. */
export const essenceOf = (event: Recordable | SessionEvent): string => `${event.type} ${JSON.stringify(decided(event))}`

/** A state as lines: its value, and each field of its context that is not as in a new agent. */
export const essenceOfState = ({ value, context }: Pick<AgentSnapshot, 'value' | 'context'>): readonly string[] => [
  `value ${JSON.stringify(value)}`,
  ...Object.entries(contextOf(context)).map(([field, said]) => `${field} ${JSON.stringify(said)}`),
]

function decided(event: Recordable | SessionEvent): unknown {
  switch (event.type) {
    case 'agent/inbox/spliced': {
      const { queue, start, deleteCount, inserted, outcome, wake } = event.data
      return { queue, start, deleteCount, inserted: inserted.map(itemOf), outcome, wake }
    }
    case 'turn/cancel': {
      const { turn, cause, keepInbox } = event.data
      return { turn, cause: causeOf(cause), keepInbox }
    }
    case 'turn/end':
      return { turn: event.data.turn, reason: reasonOf(event.data.reason) }
    case 'step/end': {
      const { turn, step, outcome } = event.data
      return { turn, step, outcome: outcomeOf(outcome) }
    }
    case 'assistant/message': {
      const { turn, step, attempt, finish, calls, interrupted } = event.data
      return { turn, step, attempt, finish: finish.kind, calls: calls.map(planOf), interrupted }
    }
    case 'llm/retry': {
      const { turn, step, attempt, retry, delayMs, failure, mode } = event.data
      return { turn, step, attempt, retry, delayMs, failure: failure.code, mode }
    }
    case 'llm/retry-started': {
      const { turn, step, attempt, retry } = event.data
      return { turn, step, attempt, retry }
    }
    case 'tool/call': {
      const { turn, step, callId, name, arguments: raw } = event.data
      return { turn, step, callId, name, arguments: raw }
    }
    case 'tool/approval-requested': {
      const { turn, step, callId, run, name, purpose, expiresAt } = event.data
      return { turn, step, callId, run, name, purpose, expiresAt }
    }
    case 'tool/approval-resolved': {
      const { turn, step, callId, run, decision } = event.data
      return { turn, step, callId, run, decision }
    }
    case 'tool/dispatch': {
      const { turn, step, callId, run, onCrash } = event.data
      return { turn, step, callId, run, onCrash }
    }
    case 'tool/result': {
      const { turn, step, message, error, concludesTurn } = event.data
      const isError = message.content[0].isError === true
      return { turn, step, callId: message.source.callId, id: message.id, isError, error: codeOf(error), concludesTurn }
    }
    case 'session/resumed': {
      const { recovery, cause, resumes } = event.data
      return { recovery, cause, resumes }
    }
    case 'user/message':
      return { id: event.data.id }
    case 'turn/start': {
      const { turn } = event.data
      const { maxSteps, maxParallelToolCalls } = 'limits' in event.data ? event.data.limits : {}
      return { turn, maxSteps, maxParallelToolCalls }
    }
    case 'step/start': {
      const { turn, step } = event.data
      return { turn, step }
    }
    default:
      return {}
  }
}

const contextOf = (context: AgentContext) => ({
  turn: context.turn,
  step: context.step,
  attempt: context.attempt,
  limits: [context.limits.maxSteps, context.limits.maxParallelToolCalls],
  'next-step': context.inbox['next-step'].map(itemOf),
  'next-turn': context.inbox['next-turn'].map(itemOf),
  claimed: context.claimed.map(({ queue, item }) => [queue, itemOf(item)]),
  calls: context.calls.map(callOf),
  cancel: context.cancel && { cause: causeOf(context.cancel.cause), keepInbox: context.cancel.keepInbox },
  outcome: context.outcome && outcomeOf(context.outcome),
  maxTokens: context.maxTokens,
  interrupted: context.interrupted,
  retry: context.retry && [context.retry.retry, context.retry.at, context.retry.delayMs],
  drain: context.drain,
  latch: context.latch,
  resumes: context.resumes,
  suspended: context.suspended,
})

const itemOf = (item: InboxItem): string =>
  isMessage(item) ? item.message.id : `result of ${item.callId} in turn ${item.turn}`

const planOf = ({ callId, name, mode }: Pick<Call, 'callId' | 'name' | 'mode'>): string => `${mode} ${name} ${callId}`

const callOf = (call: Call) => ({
  plan: planOf(call),
  arguments: call.arguments,
  status: call.status,
  run: call.run,
  onCrash: call.onCrash,
  approval: call.approval && [call.approval.purpose, call.approval.expiresAt],
  concludes: call.concludes,
  recovering: call.recovering,
  synthetic: call.synthetic,
  forked: call.forked,
})

function causeOf(cause: CancelCause): unknown {
  switch (cause.kind) {
    case 'limit':
      return { kind: 'limit', name: cause.limit.name, scope: cause.limit.scope, max: cause.limit.max }
    case 'repeated-call':
      return { kind: 'repeated-call', name: cause.name, count: cause.count }
    default:
      return { kind: cause.kind }
  }
}

function reasonOf(reason: TurnEndReason): unknown {
  switch (reason.kind) {
    case 'error':
      return { kind: 'error', error: failureOf(reason.error) }
    case 'aborted':
      return { kind: 'aborted', cause: causeOf(reason.cause) }
    case 'limit':
    case 'repeated-call':
      return causeOf(reason)
    case 'max-steps':
      return { kind: 'max-steps', maxSteps: reason.maxSteps }
    case 'interrupted':
      return { kind: 'interrupted', cause: reason.cause }
    default:
      // Blocked and stopped by policy: why is the hook's to say.
      return { kind: reason.kind }
  }
}

const outcomeOf = (outcome: StepOutcome): unknown =>
  outcome.kind === 'error' ? { kind: 'error', error: failureOf(outcome.error) } : { kind: outcome.kind }

const failureOf = ({ code }: LlmFailure): string => code

/** The codes of results that the chart gives, and of a body that a cancel found running; others are the tool's own. */
const OURS: ReadonlySet<string> = new Set([
  'ABORTED',
  'ABORTED_BEFORE_DISPATCH',
  'TOOL_NOT_STARTED',
  'TOOL_OUTCOME_UNKNOWN',
  'UNKNOWN',
])

const codeOf = (error: { readonly code: string } | undefined): string | undefined =>
  error !== undefined && OURS.has(error.code) ? error.code : undefined
