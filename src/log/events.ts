/**
 * The log's vocabulary: every durable event, with what it means where it is declared. Only the moving ones move the
 * chart; the others are facts beside it. An event changes by new optional fields only.
 */
import type { Json } from './json.ts'
import type {
  AssistantMessage,
  FinishReason,
  LlmFailure,
  StreamChunk,
  TokenUsage,
  ToolResultMessage,
  UserMessage,
} from './messages.ts'
import type { RequestHeader } from './requests.ts'

export type Queue = 'next-turn' | 'next-step'

/** Something waiting in the inbox. A tool result waits as a reference: the result itself is already on the surface. */
export type InboxItem =
  | { readonly kind: 'message'; readonly message: UserMessage }
  | { readonly kind: 'tool-result'; readonly turn: number; readonly callId: string }

/** A bound that was reached: tokens, ms, or currency units. */
export type Limit = {
  readonly name: 'tokens' | 'time' | 'cost'
  readonly scope: 'turn' | 'session'
  readonly max: number
  readonly spent: number
  /** Some of it was not told by the provider. */
  readonly estimated?: true
}

export type CancelCause =
  | { readonly kind: 'user' }
  | { readonly kind: 'parent' }
  | { readonly kind: 'hook'; readonly reason: string }
  | { readonly kind: 'limit'; readonly limit: Limit }
  | { readonly kind: 'repeated-call'; readonly name: string; readonly count: number }
  | { readonly kind: 'disposed' }

/** A cause that no person gave: a bound was reached. */
export type BoundCause = Extract<CancelCause, { kind: 'limit' | 'repeated-call' }>

export const isBound = (cause: CancelCause): cause is BoundCause =>
  cause.kind === 'limit' || cause.kind === 'repeated-call'

export type TurnEndReason =
  | { readonly kind: 'completed' }
  | { readonly kind: 'blocked'; readonly reason?: string }
  | { readonly kind: 'error'; readonly error: LlmFailure }
  | { readonly kind: 'aborted'; readonly cause: CancelCause }
  | { readonly kind: 'max-tokens' }
  | { readonly kind: 'max-steps'; readonly maxSteps: number }
  | { readonly kind: 'limit'; readonly limit: Limit }
  | { readonly kind: 'repeated-call'; readonly name: string; readonly count: number }
  | { readonly kind: 'interrupted'; readonly cause?: 'recovery-limit' }
  | { readonly kind: 'stopped-by-policy'; readonly policy: string; readonly reason?: string }

export type StepOutcome =
  | { readonly kind: 'completed' | 'tool-calls' | 'concluded' | 'max-tokens' | 'aborted' | 'interrupted' }
  | { readonly kind: 'error'; readonly error: LlmFailure }

export type TurnLimits = { readonly maxSteps: number; readonly maxParallelToolCalls: number }

/** What may be done with a call whose body was running when the process died. */
export type OnCrash = 'unknown' | 'rerun' | 'ask' | 'probe'

/** How a call may share the step with its siblings. */
export type ToolMode = 'parallel' | 'exclusive'

/** A call as the answer scheduled it. */
export type PlannedCall = { readonly callId: string; readonly name: string; readonly mode: ToolMode }

export type ToolError = { readonly name: string; readonly code: string }

/** Currency units per million tokens. */
export type Price = {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}

type InStep = { readonly turn: number; readonly step: number }
type InCall = InStep & { readonly callId: string }

/** A planned retry. A chain of them shares its `retryId`. */
export type Retry = {
  readonly retryId: string
  readonly provider: string
  readonly policyKey: string
  readonly retry: number
  /** ms from the event's `time` to the next attempt. */
  readonly delayMs: number
  readonly failure: LlmFailure
} & ({ readonly mode: 'normal'; readonly maxRetries: number } | { readonly mode: 'always' })

export interface EventMap {
  /** The one way an inbox queue changes. A claim takes items for a turn, a cancellation drops them. */
  'agent/inbox/spliced': {
    readonly mutation: 'splice'
    readonly queue: Queue
    readonly start: number
    readonly deleteCount: number
    readonly inserted: readonly InboxItem[]
    readonly outcome?: 'claimed' | 'canceled'
    /** The items inserted want a turn: at once when idle, after the cancel when one is in progress. */
    readonly wake?: true
  }
  /** Opens a turn, before any input is claimed: even a rejected attempt leaves a trace. */
  'turn/start': { readonly turn: number; readonly limits: TurnLimits }
  /** The turn is being ended early. At most one a turn; what runs may settle, nothing new starts. */
  'turn/cancel': { readonly turn: number; readonly cause: CancelCause; readonly keepInbox?: true }
  /** The turn is over. Nothing of it can move the machine or the history afterwards. */
  'turn/end': { readonly turn: number; readonly reason: TurnEndReason }
  /** Opens a step: one request (its attempts) and the tools it asks for. */
  'step/start': InStep
  /** Closes a step, whatever became of it. */
  'step/end': InStep & { readonly outcome: StepOutcome }
  /** The model's whole answer, or under a cancel what was visible of it. Its calls are scheduled here, once. */
  'assistant/message': InStep & {
    readonly attempt: number
    readonly message: AssistantMessage
    readonly finish: FinishReason
    readonly calls: readonly PlannedCall[]
    readonly usage?: TokenUsage
    readonly interrupted?: true
  }
  /** The attempt failed and will be tried again after `delayMs`. Recorded before the wait. */
  'llm/retry': InStep & { readonly attempt: number } & Retry
  /** The wait is over: the next attempt begins. */
  'llm/retry-started': InStep & { readonly attempt: number; readonly retryId: string; readonly retry: number }
  /** A call is scheduled. `arguments` is the model's raw string. */
  'tool/call': InCall & { readonly name: string; readonly arguments: string }
  /** Somebody must allow the call before its body may run (again). `expiresAt` in epoch ms. */
  'tool/approval-requested': InCall & {
    readonly run: number
    readonly name: string
    readonly argumentsDigest: string
    readonly purpose: 'run' | 'rerun'
    readonly expiresAt?: number
  }
  /** The question was answered, once. */
  'tool/approval-resolved': InCall & {
    readonly run: number
    readonly decision: 'approved' | 'denied' | 'expired'
    readonly reason?: string
    readonly by?: string
  }
  /** Authorised. Durable before the tool's body runs: a crash after it leaves the outcome unknown, never silent. */
  'tool/dispatch': InCall & { readonly run: number; readonly onCrash: OnCrash }
  /** The call's one answer, durable the moment the tool settles. */
  'tool/result': InStep & {
    readonly message: ToolResultMessage
    readonly error?: ToolError
    readonly meta?: Json
    readonly concludesTurn?: true
  }
  /** A log that was not at rest was opened again. What each state does on it stands in the chart. */
  'session/resumed': {
    readonly recovery: 'continue' | 'interrupt'
    readonly cause?: 'recovery-limit'
    readonly resumes: number
    readonly version: string
    readonly chart: string
  }
  /** A clean close with a turn open: the next resume is not counted against the recovery limit. */
  'session/suspended': Readonly<Record<string, never>>
  /** The end of what a fork inherited. */
  'session/end-seed': Readonly<Record<string, never>>
  /** A message entered the conversation. The data is the message itself. */
  'user/message': UserMessage
  /** One chunk of an attempt, as it came. The attempt's first carries the digest of its request. */
  'assistant/chunk': InStep & { readonly attempt: number; readonly chunk: StreamChunk; readonly request?: string }
  /** All of the request but its messages, whenever it changes: a full snapshot. */
  'request/header': { readonly header: RequestHeader; readonly reason: 'initial' | 'resume' | 'change' }
  /** Which model answers, how much it can read (tokens), and what a million tokens cost. */
  'request/context': {
    readonly provider: string
    readonly model: string
    readonly contextWindow?: number
    readonly price?: Price
  }
  /** What a tool said after its call had been answered without it. */
  'tool/late-result': InCall & { readonly run: number; readonly outcome: Json }
  /** A hook threw, hung past a cancel, or answered nonsense. The loop lives. */
  'agent/hook-failed': {
    readonly hook: string
    readonly turn: number
    readonly step?: number
    readonly error: LlmFailure
  }
}

export type EventType = keyof EventMap

/** Where a surface event goes: at the end, or in place of the inclusive range of nodes `start` to `end` (seqs). */
export type SurfaceOp = 'append' | { readonly op: 'replace'; readonly start: number; readonly end: number }

interface Marks {
  readonly surfaceOp?: SurfaceOp
  readonly sourceEventSeqs?: readonly number[]
  readonly ignorable?: true
}

/** An event before it has a place: the session gives it seq and time, validates and freezes it. */
export type NewEvent<T extends EventType = EventType> = {
  [K in T]: { readonly type: K; readonly data: EventMap[K] } & Marks
}[T]

/** What may be handed to the session: as NewEvent, but `limits` of `turn/start` are the session's to stamp. */
export type Recordable =
  | NewEvent<Exclude<EventType, 'turn/start'>>
  | { readonly type: 'turn/start'; readonly data: { readonly turn: number } }

/** An event in its place: `seq` is contiguous from 0, `time` is epoch ms and never goes back. */
export type KnownEvent<T extends EventType = EventType> = {
  [K in T]: { readonly type: K; readonly seq: number; readonly time: number; readonly data: EventMap[K] } & Marks
}[T]

/** A plug-in's own event, named `owner/name`, ignorable and never moving. */
export interface PluginEvent extends Marks {
  readonly type: `${string}/${string}`
  readonly seq: number
  readonly time: number
  readonly data: Json
  readonly ignorable: true
}

/** One entry of a log. Narrow on `type` with `isKnown` first where plug-in events may come. */
export type SessionEvent = KnownEvent

const MOVING_TYPES = [
  'agent/inbox/spliced',
  'turn/start',
  'turn/cancel',
  'turn/end',
  'step/start',
  'step/end',
  'assistant/message',
  'llm/retry',
  'llm/retry-started',
  'tool/call',
  'tool/approval-requested',
  'tool/approval-resolved',
  'tool/dispatch',
  'tool/result',
  'session/resumed',
  'session/suspended',
  'session/end-seed',
] as const satisfies readonly EventType[]

export type MovingType = (typeof MOVING_TYPES)[number]
export type MovingEvent = KnownEvent<MovingType>

/** The events that move the chart; the others are facts beside it. */
export const MOVING: ReadonlySet<string> = new Set(MOVING_TYPES)

export const isMoving = (event: SessionEvent): event is MovingEvent => MOVING.has(event.type)

/** The three types that have a place on the surface, that is, in the conversation. */
export const SURFACE: ReadonlySet<string> = new Set(['user/message', 'assistant/message', 'tool/result'])

/** Every type this version knows. */
export const KNOWN: ReadonlySet<string> = new Set<EventType>([
  ...MOVING_TYPES,
  'user/message',
  'assistant/chunk',
  'request/header',
  'request/context',
  'tool/late-result',
  'agent/hook-failed',
])

/** An event over this many bytes of JSON is refused before it is recorded (1 MiB). */
export const MAX_EVENT_BYTES = 1_048_576
