/** What an audit remembers of the log so far, and how it says what must be. */
import type {
  EventMap,
  InboxItem,
  KnownEvent,
  OnCrash,
  Queue,
  SessionEvent,
  StepOutcome,
} from '../../../src/log/events.ts'

export interface Violation {
  readonly seq: number
  readonly message: string
}

export interface AuditOptions {
  /** The run is over: nothing may be open or owed. */
  readonly done?: boolean
  /** Hooks may decide how a turn ends: `completed` also after a step that the token limit cut. */
  readonly hooks?: boolean
  /** Lengths of the log after each batch. With them, a parked turn that starts by itself is seen. */
  readonly batches?: readonly number[]
  /** Bodies that really ran, as `callId.run`, with the log's length when they began. */
  readonly bodies?: readonly { readonly key: string; readonly at: number }[]
}

/** What became of a message of the inbox. */
export type Fate = 'pending' | 'claimed' | 'canceled' | 'entered' | 'dropped' | 'left'

export interface Audit {
  readonly violations: readonly Violation[]
  readonly fates: ReadonlyMap<string, Fate>
  /** How often turns ended in which way. */
  readonly endings: ReadonlyMap<string, number>
}

export interface AuditedCall {
  readonly mode: 'parallel' | 'exclusive'
  status: 'planned' | 'called' | 'awaiting' | 'approved' | 'dispatched' | 'answered'
  run: number
  onCrash: OnCrash | undefined
  dispatchedAt: number
  rerunApproved: boolean
  concludes: boolean
  synthetic: boolean
}

export const QUEUES: readonly Queue[] = ['next-step', 'next-turn']
/** Codes of results that say nothing of the tool's own work. */
export const SYNTHETIC: readonly string[] = ['TOOL_OUTCOME_UNKNOWN', 'TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH']

export class Frame {
  readonly violations: Violation[] = []
  readonly fates = new Map<string, Fate>()
  readonly endings = new Map<string, number>()
  readonly bodies: AuditOptions['bodies']
  readonly hooks: boolean
  readonly firstOfBatch: ReadonlySet<number> | undefined
  readonly seenCalls = new Set<string>()
  readonly queues: Record<Queue, InboxItem[]> = { 'next-turn': [], 'next-step': [] }

  seq = 0
  time = 0
  last: SessionEvent | undefined
  lastMoving: SessionEvent | undefined
  /** The only moving type that may come next, and why. */
  next: { readonly type: string; readonly why: string } | undefined
  resumedAt = -1
  seedAt = -1

  turn = 0
  open = false
  limits: EventMap['turn/start']['limits'] = { maxSteps: 0, maxParallelToolCalls: 0 }
  cancel: EventMap['turn/cancel'] | undefined
  interrupted: EventMap['session/resumed'] | undefined
  drain = false
  latch = false
  clearing = false
  claimedOfTurn = 0
  maxTokens = false
  resumes = 0

  step = 0
  inStep = false
  entering = false
  attempt = 0
  retry: KnownEvent<'llm/retry'> | undefined
  answer: EventMap['assistant/message'] | undefined
  outcome: StepOutcome | undefined
  calls = new Map<string, AuditedCall>()
  unscheduled: string[] = []

  constructor({ batches, bodies, hooks = false }: AuditOptions) {
    this.hooks = hooks
    this.bodies = bodies
    this.firstOfBatch = batches && new Set([0, ...batches])
  }

  must(holds: boolean, rule: string): void {
    if (!holds)
      this.violations.push({ seq: this.seq, message: `${rule}: ${this.last?.type ?? 'the beginning'} comes before` })
  }

  isHere({ turn, step }: { readonly turn: number; readonly step: number }): boolean {
    return turn === this.turn && step === this.step
  }

  expect(type: string, why: string): void {
    this.next = { type, why }
  }

  // Inbox

  get waiting(): boolean {
    return QUEUES.some((queue) => this.queues[queue].some((item) => item.kind === 'message'))
  }

  /** The batch of a cancel that keeps nothing empties the queues. */
  expectClear(): void {
    this.clearing &&= QUEUES.some((queue) => this.queues[queue].length > 0)
    if (this.clearing) this.expect('agent/inbox/spliced', 'a cancel that keeps nothing empties the queues')
  }

  /** A retry was planned and has not begun. */
  get waits(): boolean {
    return this.retry !== undefined && this.retry.data.attempt === this.attempt
  }

  // Calls

  callAt(data: { readonly turn: number; readonly step: number; readonly callId: string }): AuditedCall | undefined {
    const call = this.calls.get(data.callId)
    this.must(this.inStep && this.isHere(data) && call !== undefined, 'a call belongs to the open step')
    return call
  }

  wasCutShort(call: AuditedCall): boolean {
    return this.resumedAt > call.dispatchedAt && this.seedAt < call.dispatchedAt
  }
}
