/**
 * What is recorded while tools run. A call that is answered without its own result is answered by its run: 0, its
 * body never began; 1 or more, nobody knows.
 */
import type { KnownEvent, OnCrash, Recordable } from '../log/events.ts'
import type { LlmFailure } from '../log/messages.ts'
import type { CallResult, RecoveryDecision, Verdict } from '../services/verdicts.ts'
import type { AgentCommand } from './commands.ts'
import type { AgentContext, Call } from './evolve.ts'
import { endStep, enqueue, followedBy } from './records.ts'

type Events = readonly Recordable[]
type Of<U, T> = Extract<U, { readonly type: T }>

export const callOf = (context: AgentContext, callId: string): Call | undefined =>
  context.calls.find((call) => call.callId === callId)

export const isOpen = (call: Call): boolean => call.status !== 'settled'

const isUnderWay = (call: Call): boolean => isOpen(call) && call.status !== 'planned'

const inCall = ({ turn, step }: AgentContext, { callId }: Call) => ({ turn, step, callId })

// Results

/** The result of a call, as the message the model will read. Its id follows from the call's: each has exactly one. */
const result = (context: AgentContext, call: Call, { content, isError, ...more }: CallResult): Recordable => ({
  type: 'tool/result',
  data: {
    turn: context.turn,
    step: context.step,
    message: {
      id: `result-${call.callId}`,
      role: 'user',
      source: { kind: 'tool', callId: call.callId },
      content: [{ type: 'tool-result', toolCallId: call.callId, content, ...(isError ? { isError } : {}) }],
    },
    ...more,
  },
  surfaceOp: 'append',
})

const failed = (text: string, error?: CallResult['error']): CallResult => ({
  content: [{ type: 'text', text }],
  isError: true,
  ...(error === undefined ? {} : { error }),
})

const ABORTED = failed('Not run: the turn was cancelled before this call began.', {
  name: 'AbortError',
  code: 'ABORTED_BEFORE_DISPATCH',
})
const NOT_STARTED = failed('Not run: the process stopped before this call began. It may be called again.', {
  name: 'ToolNotStartedError',
  code: 'TOOL_NOT_STARTED',
})
const EXPIRED = failed('Not run: nobody approved this call in time.')
const denied = (reason?: string) => failed(`Not run: denied${reason === undefined ? '.' : `: ${reason}`}`)

const outcomeUnknown = (call: Call): CallResult =>
  failed(
    `Outcome unknown: this call began (run ${call.run}) and its result was never seen. It may have taken effect, ` +
      'wholly or in part. Verify before calling it again, unless repeating it does no harm.',
    { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' },
  )

/** The rule of run: what is said of a call that has no result of its own. */
const withoutResult = (context: AgentContext, call: Call, neverBegan: CallResult): Recordable =>
  result(context, call, call.run > 0 ? outcomeUnknown(call) : neverBegan)

// Scheduling

const schedule = (context: AgentContext, call: Call): Recordable => ({
  type: 'tool/call',
  data: { ...inCall(context, call), name: call.name, arguments: call.arguments },
})

/** Which planned calls may begin now: in the model's order, an exclusive one alone, the others up to the cap. */
function startable({ calls, limits }: AgentContext): readonly Call[] {
  const underWay = calls.filter(isUnderWay)
  if (underWay.some((call) => call.mode === 'exclusive')) return []
  const starts: Call[] = []
  for (const call of calls) {
    if (call.status !== 'planned') continue
    const busy = underWay.length + starts.length
    if (busy >= limits.maxParallelToolCalls) break
    if (call.mode === 'exclusive') {
      if (busy === 0) starts.push(call)
      break
    }
    starts.push(call)
  }
  return starts
}

/** What follows from the calls as they stand: more of them begin, or the step is over. */
export function proceed(context: AgentContext): Events {
  if (context.cancel !== null) return proceedCancelled(context)
  if (context.calls.some(isOpen)) return startable(context).map((call) => schedule(context, call))
  if (context.calls.some((call) => call.concludes)) return [endStep(context, { kind: 'concluded' })]
  return [...oweResults(context), endStep(context, { kind: 'tool-calls' })]
}

/** Under a cancel nothing begins; what was dispatched may settle, the rest is answered at once. */
function proceedCancelled(context: AgentContext): Events {
  const rest = context.calls.filter((call) => isOpen(call) && call.status !== 'dispatched')
  const answers = rest.flatMap((call) => answerAborted(context, call))
  return context.calls.some((call) => call.status === 'dispatched')
    ? answers
    : [...answers, endStep(context, { kind: 'aborted' })]
}

const answerAborted = (context: AgentContext, call: Call): Events => [
  ...(call.status === 'planned' ? [schedule(context, call)] : []),
  withoutResult(context, call, ABORTED),
]

/** The model is owed the results: they wait in next-step, so that the turn goes on. */
function oweResults(context: AgentContext): Events {
  if (context.step >= context.limits.maxSteps) return []
  const waiting = new Set(
    context.inbox['next-step'].map((item) => (item.kind === 'tool-result' ? item.callId : undefined)),
  )
  const items = context.calls
    .filter(({ callId }) => !waiting.has(callId))
    .map(({ callId }) => ({ kind: 'tool-result', turn: context.turn, callId }) as const)
  return items.length > 0 ? [enqueue(context, 'next-step', items)] : []
}

// Verdicts and commands about one call

const dispatch = (context: AgentContext, call: Call, onCrash: OnCrash): Recordable => ({
  type: 'tool/dispatch',
  data: { ...inCall(context, call), run: call.run + 1, onCrash },
})

const withOpenCall = (context: AgentContext, callId: string, record: (call: Call) => Events): Events => {
  const call = callOf(context, callId)
  return call !== undefined && isOpen(call) ? record(call) : []
}

export const authorize = (context: AgentContext, verdict: Of<Verdict, 'verdict.authorized'>): Events =>
  withOpenCall(context, verdict.callId, (call) => [dispatch(context, call, verdict.onCrash)])

const question = (
  context: AgentContext,
  call: Call,
  purpose: 'run' | 'rerun',
  { argumentsDigest, expiresAt }: { readonly argumentsDigest: string; readonly expiresAt?: number },
): Recordable => ({
  type: 'tool/approval-requested',
  data: {
    ...inCall(context, call),
    run: call.run,
    name: call.name,
    argumentsDigest,
    purpose,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  },
})

export const ask = (context: AgentContext, verdict: Of<Verdict, 'verdict.ask'>): Events =>
  withOpenCall(context, verdict.callId, (call) => [question(context, call, 'run', verdict)])

/** Durable the moment the tool settled; its contexts come after it, one splice each. */
function settleWith(
  context: AgentContext,
  call: Call,
  outcome: CallResult,
  contexts: Of<Verdict, 'verdict.settled'>['contexts'] = [],
): Events {
  const answered = followedBy(context, [result(context, call, outcome)], () => [])
  const withContexts = contexts.reduce<Events>(
    (events, message) =>
      followedBy(context, events, (after) => [enqueue(after, 'next-step', [{ kind: 'message', message }])]),
    answered,
  )
  return followedBy(context, withContexts, proceed)
}

export const settle = (context: AgentContext, verdict: Of<Verdict, 'verdict.settled'>): Events =>
  withOpenCall(context, verdict.callId, (call) => settleWith(context, call, verdict.result, verdict.contexts))

const answerQuestion = (
  context: AgentContext,
  call: Call,
  answer: { readonly decision: 'approved' | 'denied' | 'expired'; readonly reason?: string; readonly by?: string },
): Recordable => ({
  type: 'tool/approval-resolved',
  data: { ...inCall(context, call), run: call.run, ...answer },
})

const given = <K extends string>(key: K, value: string | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: string }

export const approve = (context: AgentContext, command: Of<AgentCommand, 'command.approve'>): Events =>
  withOpenCall(context, command.callId, (call) => [
    answerQuestion(context, call, { decision: 'approved', ...given('by', command.by) }),
    dispatch(context, call, command.onCrash),
  ])

export const deny = (context: AgentContext, command: Of<AgentCommand, 'command.deny'>): Events =>
  withOpenCall(context, command.callId, (call) => {
    const decision = { decision: 'denied', ...given('reason', command.reason), ...given('by', command.by) } as const
    return followedBy(
      context,
      [answerQuestion(context, call, decision), withoutResult(context, call, denied(command.reason))],
      proceed,
    )
  })

const expiry = (context: AgentContext, call: Call): Events => [
  answerQuestion(context, call, { decision: 'expired' }),
  withoutResult(context, call, EXPIRED),
]

export const expire = (context: AgentContext, verdict: Of<Verdict, 'verdict.expired'>): Events =>
  withOpenCall(context, verdict.callId, (call) => followedBy(context, expiry(context, call), proceed))

/** A call's actor threw: the call failed, or if its body was running before a crash nobody knows. */
export function crash(context: AgentContext, call: Call, failure: LlmFailure): Events {
  if (call.status === 'awaiting') return followedBy(context, expiry(context, call), proceed)
  const outcome = call.recovering
    ? outcomeUnknown(call)
    : failed(`Error: ${failure.message}`, { name: 'Error', code: failure.code })
  return settleWith(context, call, outcome)
}

// Recovery

/** What the log allows of a call dispatched with that `onCrash`; the actor asked the live tool for the other half. */
const ALLOWED: Readonly<Record<OnCrash, readonly RecoveryDecision['kind'][]>> = {
  unknown: [],
  rerun: ['rerun'],
  ask: ['ask'],
  probe: ['done', 'not-done'],
}

export const recover = (context: AgentContext, verdict: Of<Verdict, 'verdict.recovered'>): Events =>
  withOpenCall(context, verdict.callId, (call) => {
    const { decision } = verdict
    if (!ALLOWED[call.onCrash ?? 'unknown'].includes(decision.kind)) {
      return settleWith(context, call, outcomeUnknown(call))
    }
    if (decision.kind === 'done') return settleWith(context, call, decision.result)
    if (context.cancel !== null) {
      return settleWith(context, call, decision.kind === 'not-done' ? ABORTED : outcomeUnknown(call))
    }
    return decision.kind === 'ask'
      ? [question(context, call, 'rerun', decision)]
      : [dispatch(context, call, verdict.onCrash)]
  })

/** Only a call that waits for an approval has one. */
const isOverdue = (call: Call, now: number): boolean => (call.approval?.expiresAt ?? Number.POSITIVE_INFINITY) <= now

/** Calls that `session/resumed` answers at once; the other open ones get their actor again. */
export function isLost(call: Call, now: number): boolean {
  switch (call.status) {
    case 'dispatched':
      return call.forked === true || (call.onCrash ?? 'unknown') === 'unknown'
    case 'awaiting':
      return call.forked === true || isOverdue(call, now)
    default:
      return false
  }
}

function answerLost(context: AgentContext, call: Call, now: number): Events {
  if (isOverdue(call, now) && !call.forked) return expiry(context, call)
  return [withoutResult(context, call, NOT_STARTED)]
}

/** Carries the batch on after a crash, or answers what is open and ends the step. */
export function resumeTools(context: AgentContext, event: KnownEvent<'session/resumed'>): Events {
  if (context.cancel !== null) return closeTools(context, ABORTED, 'aborted')
  if (context.interrupted !== null) return closeTools(context, NOT_STARTED, 'interrupted')
  const lost = context.calls.filter((call) => isLost(call, event.time))
  return followedBy(
    context,
    lost.flatMap((call) => answerLost(context, call, event.time)),
    proceed,
  )
}

function closeTools(context: AgentContext, neverBegan: CallResult, outcome: 'aborted' | 'interrupted'): Events {
  const answers = context.calls
    .filter(isOpen)
    .flatMap((call) => [
      ...(call.status === 'planned' && outcome === 'aborted' ? [schedule(context, call)] : []),
      withoutResult(context, call, neverBegan),
    ])
  return [...answers, endStep(context, { kind: outcome })]
}

/** `settleTimeoutMs` after a cancel what is still running is answered without it. */
export const settleTools = (context: AgentContext): Events => closeTools(context, ABORTED, 'aborted')
