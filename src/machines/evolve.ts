/**
 * The one reducer: context and durable event to context. It is the chart's only way to change context, and what the
 * records use to look ahead. Pure and total; it holds facts from events only, never configuration.
 */
import type {
  CancelCause,
  EventMap,
  InboxItem,
  KnownEvent,
  OnCrash,
  PlannedCall,
  Queue,
  Recordable,
  StepOutcome,
  TurnLimits,
} from '../log/events.ts'
import type { ToolCallBlock } from '../log/messages.ts'

export type CallStatus = 'planned' | 'called' | 'awaiting' | 'dispatched' | 'settled'

/** One tool call of the open step. `run` counts dispatches: 0, its body never began. */
export interface Call extends PlannedCall {
  readonly arguments: string
  readonly status: CallStatus
  readonly run: number
  readonly onCrash?: OnCrash
  readonly approval?: {
    readonly argumentsDigest: string
    readonly purpose: 'run' | 'rerun'
    readonly expiresAt?: number
  }
  readonly concludes?: true
  /** Dispatched before a crash, and not again since. */
  readonly recovering?: true
  /** Answered by recovery or a cancel, not by its tool. */
  readonly synthetic?: true
  /** Was under way when a fork cut the log: what it did in the world is the parent's. */
  readonly forked?: true
}

export interface Claimed {
  readonly queue: Queue
  readonly item: InboxItem
}

/** A retry that was planned: waiting for its time, or begun. `at` is epoch ms, `delayMs` counts from there. */
export interface PlannedRetry {
  readonly retryId: string
  readonly provider: string
  readonly policyKey: string
  readonly retry: number
  readonly at: number
  readonly delayMs: number
}

export interface AgentContext {
  readonly turn: number
  readonly step: number
  readonly attempt: number
  readonly limits: TurnLimits
  readonly inbox: Readonly<Record<Queue, readonly InboxItem[]>>
  readonly claimed: readonly Claimed[]
  readonly calls: readonly Call[]
  readonly cancel: { readonly cause: CancelCause; readonly keepInbox: boolean } | null
  readonly outcome: StepOutcome | null
  /** A step of this turn was cut by the token limit. */
  readonly maxTokens: boolean
  readonly interrupted: { readonly cause?: 'recovery-limit' } | null
  readonly retry: PlannedRetry | null
  /** The last turn ended well and left messages: the next one starts by itself. */
  readonly drain: boolean
  /** Something that wakes came while a cancel was in progress. */
  readonly latch: boolean
  readonly resumes: number
  readonly suspended: boolean
}

export const initialContext: AgentContext = {
  turn: 0,
  step: 0,
  attempt: 0,
  limits: { maxSteps: 0, maxParallelToolCalls: 0 },
  inbox: { 'next-turn': [], 'next-step': [] },
  claimed: [],
  calls: [],
  cancel: null,
  outcome: null,
  maxTokens: false,
  interrupted: null,
  retry: null,
  drain: false,
  latch: false,
  resumes: 0,
  suspended: false,
}

/** An event in its place in the log, or one still on its way there. */
export type Evolvable = Recordable | KnownEvent

export const isMessage = (item: InboxItem): item is Extract<InboxItem, { kind: 'message' }> => item.kind === 'message'

const hasMessage = (inbox: AgentContext['inbox']): boolean =>
  inbox['next-step'].some(isMessage) || inbox['next-turn'].some(isMessage)

/** A message waits in either queue. */
export const pending = (context: AgentContext): boolean => hasMessage(context.inbox)

/** Idle has to start a turn by itself. */
export const owed = (context: AgentContext): boolean => (context.drain || context.latch) && pending(context)

/** The codes of results that say nothing of the tool's own work: they are no progress. */
const SYNTHETIC: ReadonlySet<string | undefined> = new Set([
  'TOOL_OUTCOME_UNKNOWN',
  'TOOL_NOT_STARTED',
  'ABORTED_BEFORE_DISPATCH',
])

/** The context after a durable event; the same object for an event that does not move. */
export function evolve(context: AgentContext, event: Evolvable): AgentContext {
  switch (event.type) {
    case 'agent/inbox/spliced':
      return spliced(context, event.data)
    case 'turn/start':
      return turnStarted(context, event.data.turn, 'limits' in event.data ? event.data.limits : context.limits)
    case 'turn/cancel':
      return { ...context, cancel: { cause: event.data.cause, keepInbox: event.data.keepInbox === true } }
    case 'turn/end':
      return turnEnded(context, event.data)
    case 'step/start':
      return { ...context, step: event.data.step, attempt: 1, claimed: [], calls: [], outcome: null, retry: null }
    case 'step/end':
      return stepEnded(context, event.data)
    case 'assistant/message':
      return { ...context, calls: planned(event.data) }
    case 'llm/retry':
      return { ...context, retry: retryOf(event.data, 'time' in event ? event.time : 0) }
    case 'llm/retry-started':
      return { ...context, attempt: event.data.attempt }
    case 'tool/call':
      return withCall(context, event.data.callId, (call) => ({ ...call, status: 'called' }))
    case 'tool/approval-requested':
      return withCall(context, event.data.callId, (call) => awaiting(call, event.data))
    case 'tool/approval-resolved':
      return withCall(context, event.data.callId, (call) => resolved(call, event.data.decision))
    case 'tool/dispatch':
      return withCall(context, event.data.callId, (call) => dispatched(call, event.data))
    case 'tool/result':
      return answered(context, event.data)
    case 'session/resumed':
      return resumed(context, event.data)
    case 'session/suspended':
      return { ...context, suspended: true }
    case 'session/end-seed':
      return seedEnded(context)
    default:
      return context
  }
}

/** The context after a record, were it durable. Events that do not move change nothing. */
export const evolveAll = (context: AgentContext, events: readonly Recordable[]): AgentContext =>
  events.reduce((reached, event) => evolve(reached, event), context)

function spliced(context: AgentContext, data: EventMap['agent/inbox/spliced']): AgentContext {
  const queue = [...context.inbox[data.queue]]
  const removed = queue.splice(data.start, data.deleteCount, ...data.inserted)
  const inbox = { ...context.inbox, [data.queue]: queue }
  const anyMessage = hasMessage(inbox)
  const wakes = data.wake === true && context.cancel !== null
  return {
    ...context,
    inbox,
    claimed:
      data.outcome === 'claimed'
        ? [...context.claimed, ...removed.map((item) => ({ queue: data.queue, item }))]
        : putBack(context.claimed, data.inserted),
    drain: context.drain && anyMessage,
    latch: (context.latch || wakes) && anyMessage,
  }
}

/** A claimed message that is inserted again is no longer claimed. */
function putBack(claimed: readonly Claimed[], inserted: readonly InboxItem[]): readonly Claimed[] {
  const ids = new Set(inserted.filter(isMessage).map((item) => item.message.id))
  return claimed.filter(({ item }) => !(isMessage(item) && ids.has(item.message.id)))
}

const turnStarted = (context: AgentContext, turn: number, limits: TurnLimits): AgentContext => ({
  ...initialContext,
  inbox: context.inbox,
  turn,
  limits,
})

const turnEnded = (context: AgentContext, { reason }: EventMap['turn/end']): AgentContext => ({
  ...context,
  attempt: 0,
  claimed: [],
  calls: [],
  cancel: null,
  outcome: null,
  maxTokens: false,
  interrupted: null,
  retry: null,
  drain: (reason.kind === 'completed' || reason.kind === 'max-tokens') && context.step > 0 && pending(context),
})

function stepEnded(context: AgentContext, { outcome }: EventMap['step/end']): AgentContext {
  const progress = outcome.kind !== 'interrupted' && !context.calls.some((call) => call.synthetic)
  return {
    ...context,
    outcome,
    maxTokens: context.maxTokens || outcome.kind === 'max-tokens',
    calls: [],
    retry: null,
    resumes: progress ? 0 : context.resumes,
  }
}

function planned(data: EventMap['assistant/message']): readonly Call[] {
  const blocks = data.message.content.filter((block): block is ToolCallBlock => block.type === 'tool-call')
  const raw = new Map(blocks.map((block) => [block.id, block.arguments]))
  return data.calls.map((call) => ({ ...call, arguments: raw.get(call.callId) ?? '', status: 'planned', run: 0 }))
}

const retryOf = (data: EventMap['llm/retry'], at: number): PlannedRetry => ({
  retryId: data.retryId,
  provider: data.provider,
  policyKey: data.policyKey,
  retry: data.retry,
  at,
  delayMs: data.delayMs,
})

const withCall = (context: AgentContext, callId: string, change: (call: Call) => Call): AgentContext => ({
  ...context,
  calls: context.calls.map((call) => (call.callId === callId ? change(call) : call)),
})

const awaiting = (call: Call, data: EventMap['tool/approval-requested']): Call => ({
  ...call,
  status: 'awaiting',
  approval: {
    argumentsDigest: data.argumentsDigest,
    purpose: data.purpose,
    ...(data.expiresAt === undefined ? {} : { expiresAt: data.expiresAt }),
  },
})

/** Approved, it is where it was before the question; denied or expired, its result follows in the same batch. */
function resolved(call: Call, decision: 'approved' | 'denied' | 'expired'): Call {
  if (decision !== 'approved') return call
  const { approval: _, ...rest } = call
  return { ...rest, status: call.run > 0 ? 'dispatched' : 'called' }
}

function dispatched(call: Call, data: EventMap['tool/dispatch']): Call {
  const { recovering: _, ...rest } = call
  return { ...rest, status: 'dispatched', run: data.run, onCrash: data.onCrash }
}

function answered(context: AgentContext, data: EventMap['tool/result']): AgentContext {
  const synthetic = SYNTHETIC.has(data.error?.code)
  const next = withCall(context, data.message.source.callId, (call) => ({
    ...call,
    status: 'settled',
    ...(data.concludesTurn ? { concludes: true as const } : {}),
    ...(synthetic ? { synthetic: true as const } : {}),
  }))
  return synthetic ? next : { ...next, resumes: 0 }
}

const resumed = (context: AgentContext, data: EventMap['session/resumed']): AgentContext => ({
  ...context,
  suspended: false,
  resumes: data.resumes,
  interrupted: data.recovery === 'interrupt' ? (data.cause === undefined ? {} : { cause: data.cause }) : null,
  calls: context.calls.map((call) => (call.status === 'dispatched' ? { ...call, recovering: true } : call)),
})

/** A fork leaves the queues, and what they owe, to its parent; the open turn it carries on. */
const seedEnded = (context: AgentContext): AgentContext => ({
  ...context,
  inbox: {
    'next-turn': [],
    'next-step': context.inbox['next-step'].filter((item) => !isMessage(item)),
  },
  drain: false,
  latch: false,
  resumes: 0,
  suspended: false,
  calls: context.calls.map((call) =>
    call.status === 'dispatched' || call.status === 'awaiting' ? { ...call, forked: true } : call,
  ),
})
