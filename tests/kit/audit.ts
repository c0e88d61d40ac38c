/**
 * What must hold of any log, told from its events alone: nothing here knows the chart. Written against the design, so
 * that a mistake in the chart and its reducer is not repeated here.
 */
import type {
  EventMap,
  InboxItem,
  KnownEvent,
  OnCrash,
  Queue,
  SessionEvent,
  StepOutcome,
} from '../../src/log/events.ts'
import { isMoving } from '../../src/log/events.ts'

export interface Violation {
  readonly seq: number
  readonly message: string
}

export interface AuditOptions {
  /** The run is over: nothing may be open or owed. */
  readonly done?: boolean
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

interface AuditedCall {
  readonly mode: 'parallel' | 'exclusive'
  status: 'planned' | 'called' | 'awaiting' | 'approved' | 'dispatched' | 'answered'
  run: number
  onCrash: OnCrash | undefined
  dispatchedAt: number
  rerunApproved: boolean
  concludes: boolean
  synthetic: boolean
}

const QUEUES: readonly Queue[] = ['next-step', 'next-turn']
const SYNTHETIC: readonly string[] = ['TOOL_OUTCOME_UNKNOWN', 'TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH']

/** Reads a whole log, from seq 0, and tells everything in it that must not be. */
export function audit(log: readonly SessionEvent[], options: AuditOptions = {}): Audit {
  const auditor = new Auditor(options)
  for (const event of log) auditor.read(event)
  return auditor.conclude()
}

class Auditor {
  private readonly violations: Violation[] = []
  private readonly fates = new Map<string, Fate>()
  private readonly endings = new Map<string, number>()
  private readonly options: AuditOptions
  private readonly firstOfBatch: ReadonlySet<number> | undefined
  private readonly seenCalls = new Set<string>()
  private readonly queues: Record<Queue, InboxItem[]> = { 'next-turn': [], 'next-step': [] }

  private seq = 0
  private time = 0
  private last: SessionEvent | undefined
  private lastMoving: SessionEvent | undefined
  /** The only moving type that may come next, and why. */
  private next: { readonly type: string; readonly why: string } | undefined
  private resumedAt = -1
  private seedAt = -1

  private turn = 0
  private open = false
  private limits: EventMap['turn/start']['limits'] = { maxSteps: 0, maxParallelToolCalls: 0 }
  private cancel: EventMap['turn/cancel'] | undefined
  private interrupted: EventMap['session/resumed'] | undefined
  private drain = false
  private latch = false
  private clearing = false
  private claimedOfTurn = 0
  private maxTokens = false
  private resumes = 0

  private step = 0
  private inStep = false
  private entering = false
  private attempt = 0
  private retry: KnownEvent<'llm/retry'> | undefined
  private answer: EventMap['assistant/message'] | undefined
  private outcome: StepOutcome | undefined
  private calls = new Map<string, AuditedCall>()
  private unscheduled: string[] = []

  constructor(options: AuditOptions) {
    this.options = options
    this.firstOfBatch = options.batches && new Set([0, ...options.batches])
  }

  read(event: SessionEvent): void {
    this.seq = event.seq
    this.must(event.seq === (this.last?.seq ?? -1) + 1, 'seq is contiguous')
    this.must(event.time >= this.time, 'time never goes back')
    this.time = event.time
    if (isMoving(event)) {
      const allowed = this.next === undefined || event.type === this.next.type || event.type === 'session/end-seed'
      this.must(allowed, this.next?.why ?? '')
      this.next = undefined
    }
    if (event.type !== 'user/message') this.endEntering()
    this.apply(event)
    this.last = event
    if (isMoving(event)) this.lastMoving = event
  }

  conclude(): Audit {
    if (this.options.done) {
      this.must(!this.open && !this.inStep, 'no turn is left open')
      this.must(this.next === undefined, 'nothing is owed at the end')
      this.must(![...this.fates.values()].includes('claimed'), 'no message stays claimed for ever')
    }
    return { violations: this.violations, fates: this.fates, endings: this.endings }
  }

  private must(holds: boolean, rule: string): void {
    if (!holds)
      this.violations.push({ seq: this.seq, message: `${rule}: ${this.last?.type ?? 'the beginning'} comes before` })
  }

  private apply(event: SessionEvent): void {
    switch (event.type) {
      case 'agent/inbox/spliced':
        this.spliced(event.data)
        break
      case 'turn/start':
        this.turnStarted(event)
        break
      case 'turn/cancel':
        this.turnCancelled(event.data)
        break
      case 'turn/end':
        this.turnEnded(event.data)
        break
      case 'step/start':
        this.stepStarted(event.data)
        break
      case 'step/end':
        this.stepEnded(event.data)
        break
      case 'user/message':
        this.entered(event.data.id)
        break
      case 'assistant/chunk':
        this.must(this.inStep && this.isHere(event.data) && !this.answer, 'a chunk belongs to an open request')
        this.must(event.data.attempt === this.attempt, 'a chunk is of the attempt in progress')
        break
      case 'assistant/message':
        this.answered(event.data)
        break
      case 'llm/retry':
        this.retryPlanned(event)
        break
      case 'llm/retry-started':
        this.retryStarted(event)
        break
      case 'tool/call':
        this.called(event.data)
        break
      case 'tool/approval-requested':
        this.questioned(event.data)
        break
      case 'tool/approval-resolved':
        this.resolved(event.data)
        break
      case 'tool/dispatch':
        this.dispatched(event.data)
        break
      case 'tool/result':
        this.resulted(event.data)
        break
      case 'session/resumed':
        this.resumed(event.data)
        break
      case 'session/suspended':
        this.must(this.open, 'only an open turn is suspended')
        break
      case 'session/end-seed':
        this.seedEnded()
        break
    }
  }

  private isHere({ turn, step }: { readonly turn: number; readonly step: number }): boolean {
    return turn === this.turn && step === this.step
  }

  private expect(type: string, why: string): void {
    this.next = { type, why }
  }

  // Inbox

  private get waiting(): boolean {
    return QUEUES.some((queue) => this.queues[queue].some((item) => item.kind === 'message'))
  }

  private spliced(data: EventMap['agent/inbox/spliced']): void {
    const queue = this.queues[data.queue]
    this.must(data.start >= 0 && data.start + data.deleteCount <= queue.length, 'a splice stays within its queue')
    this.must(data.deleteCount > 0 || data.inserted.length > 0, 'a splice changes something')
    this.must(data.deleteCount === 0 || data.outcome !== undefined, 'what leaves a queue has an outcome')
    const atEnd = data.start === queue.length
    const whole = data.deleteCount === queue.length
    const removed = queue.splice(data.start, data.deleteCount, ...data.inserted)
    for (const item of removed) if (item.kind === 'message') this.took(item.message.id, data.outcome)
    for (const item of data.inserted) {
      if (item.kind === 'message') this.inserted(item.message.id, data)
      else this.owedResult(item, data.queue, atEnd)
    }
    if (data.outcome === 'claimed') this.claimed(data, whole)
    if (data.wake) this.woken(data.queue)
    if (!this.waiting) this.drain = this.latch = false
    this.must(!this.clearing || data.outcome === 'canceled', 'a cancel that keeps nothing empties the queues')
    this.expectClear()
  }

  private took(id: string, outcome: 'claimed' | 'canceled' | undefined): void {
    this.must(this.fates.get(id) === 'pending', 'a message leaves its queue once')
    this.fates.set(id, outcome ?? 'canceled')
  }

  private inserted(id: string, data: EventMap['agent/inbox/spliced']): void {
    const before = this.fates.get(id)
    this.must(data.outcome !== 'claimed', 'a claim inserts nothing')
    if (before !== undefined) {
      const puts = this.cancel?.keepInbox === true || (this.interrupted !== undefined && this.cancel === undefined)
      this.must(before === 'claimed' && puts, 'only a claimed message that is kept comes back')
      this.must(data.start === 0 && !data.wake, 'what comes back goes to the head and wakes nobody')
    }
    this.fates.set(id, 'pending')
  }

  private owedResult(item: Extract<InboxItem, { kind: 'tool-result' }>, queue: Queue, atEnd: boolean): void {
    const call = this.calls.get(item.callId)
    this.must(
      this.inStep && item.turn === this.turn && call?.status === 'answered',
      'a result is owed once it is there',
    )
    this.must(queue === 'next-step' && atEnd, 'owed results go to the end of next-step')
    this.must(this.cancel === undefined && this.step < this.limits.maxSteps, 'a result is owed only to a step to come')
    const count = this.queues['next-step'].filter(
      (other) => other.kind === 'tool-result' && other.callId === item.callId,
    )
    this.must(count.length === 1, 'a result is owed once')
  }

  private claimed(data: EventMap['agent/inbox/spliced'], whole: boolean): void {
    this.must(this.open && !this.inStep && this.cancel === undefined, 'a claim opens a step of a turn that goes on')
    if (data.queue === 'next-step') {
      this.must(whole, 'all of next-step is claimed')
      return
    }
    this.claimedOfTurn++
    const first = this.step === 0 && this.claimedOfTurn === 1 && data.start === 0 && data.deleteCount === 1
    this.must(first, 'a turn claims one of next-turn, at its opening')
  }

  private woken(queue: Queue): void {
    if (!this.open) this.expect('turn/start', 'what wakes an idle agent starts a turn in its batch')
    if (this.cancel === undefined) return
    this.must(queue === 'next-turn', 'what wakes during a cancel is for the turn after it')
    this.latch = true
  }

  // Turns

  private turnStarted({ seq, data }: KnownEvent<'turn/start'>): void {
    this.must(!this.open && data.turn === this.turn + 1, 'turns follow each other')
    this.must(this.waiting, 'a turn has something to begin with')
    const before = this.lastMoving
    const woken = before?.type === 'agent/inbox/spliced' && before.data.wake === true
    const commanded = this.firstOfBatch?.has(seq) ?? true
    this.must(woken || this.drain || this.latch || commanded, 'what is parked starts nothing by itself')
    this.turn = data.turn
    this.limits = data.limits
    this.step = this.claimedOfTurn = this.resumes = 0
    this.open = true
    this.maxTokens = this.drain = this.latch = false
    this.cancel = this.interrupted = this.outcome = undefined
  }

  private turnCancelled(data: EventMap['turn/cancel']): void {
    this.must(this.open && data.turn === this.turn, 'an open turn is cancelled')
    this.must(this.cancel === undefined, 'a turn is cancelled once')
    this.cancel = data
    this.clearing = !data.keepInbox
    this.expectClear()
  }

  /** The batch of a cancel that keeps nothing empties the queues. */
  private expectClear(): void {
    this.clearing &&= QUEUES.some((queue) => this.queues[queue].length > 0)
    if (this.clearing) this.expect('agent/inbox/spliced', 'a cancel that keeps nothing empties the queues')
  }

  private turnEnded({ turn, reason }: EventMap['turn/end']): void {
    this.must(this.open && !this.inStep && turn === this.turn, 'an open turn ends, its steps before it')
    this.endings.set(reason.kind, (this.endings.get(reason.kind) ?? 0) + 1)
    this.reasonFits(reason)
    const owed = this.queues['next-step'].some((item) => item.kind === 'tool-result')
    this.must(!owed, 'owed results do not outlive their turn')
    this.dropClaimed(reason.kind === 'interrupted' || this.cancel?.keepInbox === true)
    this.open = false
    const drains = reason.kind === 'completed' || reason.kind === 'max-tokens'
    this.drain = drains && this.step > 0 && this.waiting
    this.cancel = this.interrupted = undefined
    if (this.drain || this.latch) this.expect('turn/start', 'idle starts what is owed')
  }

  private reasonFits(reason: EventMap['turn/end']['reason']): void {
    const { kind } = reason
    const cause = this.cancel?.cause.kind
    const cancelled = kind === 'aborted' || kind === 'limit'
    this.must(cancelled === (cause !== undefined), 'a cancelled turn ends by its cancel, and no other does')
    this.must(!cancelled || (kind === 'limit') === (cause === 'limit'), 'the reason is the cause')
    const toolsAnswered = this.outcome?.kind === 'tool-calls'
    const spent = this.step >= this.limits.maxSteps
    if (kind === 'max-steps') this.must(toolsAnswered && spent, 'max-steps: the model was owed results')
    if (kind === 'completed' || kind === 'max-tokens') {
      const skipped = this.lastMoving?.type === 'agent/inbox/spliced'
      this.must(!toolsAnswered || skipped, 'a turn whose model is owed results goes on')
      this.must((kind === 'max-tokens') === this.maxTokens, 'a step cut by the token limit sets the reason')
    }
    if (kind === 'interrupted') {
      this.must(this.interrupted !== undefined, 'only recovery interrupts')
      this.must('cause' in reason === (this.interrupted?.cause !== undefined), 'the cause of an interruption is kept')
    } else this.must(this.interrupted === undefined || cancelled, 'an interrupted turn ends so')
  }

  /** Claimed messages that did not enter are gone, unless they had to be kept. */
  private dropClaimed(kept: boolean): void {
    for (const [id, fate] of this.fates) {
      if (fate !== 'claimed') continue
      this.must(!kept, 'a claimed message that is kept goes back to its queue')
      this.fates.set(id, 'dropped')
    }
  }

  // Steps and requests

  private stepStarted(data: EventMap['step/start']): void {
    this.must(this.open && !this.inStep && data.turn === this.turn, 'a step opens in an open turn')
    this.must(data.step === this.step + 1 && data.step <= this.limits.maxSteps, 'steps are counted, and bounded')
    this.must(this.cancel === undefined && this.interrupted === undefined, 'nothing new starts in a turn being ended')
    this.step = data.step
    this.inStep = this.entering = true
    this.attempt = 1
    this.answer = this.retry = this.outcome = undefined
    this.calls = new Map()
    this.unscheduled = []
  }

  private entered(id: string): void {
    this.must(this.entering, 'messages enter at the opening of a step')
    const fate = this.fates.get(id)
    this.must(fate === undefined || fate === 'claimed', 'a message enters once, after its claim')
    this.fates.set(id, 'entered')
  }

  /** After the last message that enters, a hook has left out what is still claimed. */
  private endEntering(): void {
    if (!this.entering) return
    this.entering = false
    for (const [id, fate] of this.fates) if (fate === 'claimed') this.fates.set(id, 'dropped')
  }

  private answered(data: EventMap['assistant/message']): void {
    this.must(this.inStep && this.isHere(data) && this.answer === undefined, 'a step has one answer')
    this.must(data.attempt === this.attempt && !this.waits, 'the answer is of the attempt in progress')
    this.must(
      !data.interrupted || (this.cancel !== undefined && data.calls.length === 0),
      'only a cancel cuts an answer',
    )
    this.answer = data
    for (const { callId, mode } of data.calls) {
      this.must(!this.seenCalls.has(callId), 'a call id is used once in a session')
      this.seenCalls.add(callId)
      this.unscheduled.push(callId)
      this.calls.set(callId, {
        mode,
        status: 'planned',
        run: 0,
        onCrash: undefined,
        dispatchedAt: -1,
        rerunApproved: false,
        concludes: false,
        synthetic: false,
      })
    }
  }

  /** A retry was planned and has not begun. */
  private get waits(): boolean {
    return this.retry !== undefined && this.retry.data.attempt === this.attempt
  }

  private retryPlanned(event: KnownEvent<'llm/retry'>): void {
    const asking = this.inStep && this.isHere(event.data) && this.answer === undefined
    this.must(asking && event.data.attempt === this.attempt && !this.waits, 'a retry follows a failed attempt')
    this.must(this.cancel === undefined, 'a cancelled turn retries nothing')
    this.retry = event
  }

  private retryStarted({ time, data }: KnownEvent<'llm/retry-started'>): void {
    const { retry } = this
    this.must(this.waits && this.isHere(data) && data.attempt === this.attempt + 1, 'a retry begins after its wait')
    this.must(
      retry !== undefined && data.retryId === retry.data.retryId && data.retry === retry.data.retry,
      'the retry is the one planned',
    )
    this.must(retry !== undefined && time >= retry.time + retry.data.delayMs, 'a retry begins after its delay')
    this.must(this.cancel === undefined, 'a cancelled turn retries nothing')
    this.attempt = data.attempt
  }

  private stepEnded({ outcome, ...at }: EventMap['step/end']): void {
    const calls = [...this.calls.values()]
    this.must(this.inStep && this.isHere(at), 'an open step ends')
    this.must(
      calls.every(({ status }) => status === 'answered'),
      'every call has a result when its step ends',
    )
    this.outcomeFits(outcome.kind, calls)
    this.inStep = false
    this.outcome = outcome
    this.maxTokens ||= outcome.kind === 'max-tokens'
    if (outcome.kind !== 'interrupted' && !calls.some(({ synthetic }) => synthetic)) this.resumes = 0
  }

  private outcomeFits(kind: StepOutcome['kind'], calls: readonly AuditedCall[]): void {
    this.must((kind === 'aborted') === (this.cancel !== undefined), 'a cancelled step is aborted, and no other is')
    const concluded = calls.some(({ concludes }) => concludes)
    if (kind === 'completed')
      this.must(calls.length === 0 && this.answer?.finish.kind !== 'max-tokens', 'completed: an answer without calls')
    if (kind === 'max-tokens') this.must(this.answer?.finish.kind === 'max-tokens', 'max-tokens: an answer cut short')
    if (kind === 'concluded') this.must(concluded, 'concluded: by a result that says so')
    if (kind === 'interrupted') this.must(this.interrupted !== undefined, 'only recovery interrupts')
    if (kind !== 'tool-calls') return
    this.must(calls.length > 0 && !concluded, 'tool-calls: calls, none of which concludes the turn')
    const owed = this.queues['next-step'].filter((item) => item.kind === 'tool-result').map(({ callId }) => callId)
    const all = [...this.calls.keys()].every((callId) => owed.includes(callId))
    this.must(all || this.step >= this.limits.maxSteps, 'the model is owed every result')
  }

  // Calls

  private callAt(data: {
    readonly turn: number
    readonly step: number
    readonly callId: string
  }): AuditedCall | undefined {
    const call = this.calls.get(data.callId)
    this.must(this.inStep && this.isHere(data) && call !== undefined, 'a call belongs to the open step')
    return call
  }

  private called(data: EventMap['tool/call']): void {
    const call = this.callAt(data)
    if (call === undefined) return
    this.must(
      call.status === 'planned' && this.unscheduled.shift() === data.callId,
      'calls are scheduled in the model’s order',
    )
    call.status = 'called'
    if (this.cancel !== undefined) {
      this.expect('tool/result', 'a call scheduled during a cancel is answered at once')
      return
    }
    const busy = [...this.calls.values()].filter(({ status }) => status !== 'planned' && status !== 'answered')
    this.must(busy.length <= this.limits.maxParallelToolCalls, 'no more calls at once than allowed')
    this.must(busy.length === 1 || busy.every(({ mode }) => mode === 'parallel'), 'an exclusive call runs alone')
  }

  private questioned(data: EventMap['tool/approval-requested']): void {
    const call = this.callAt(data)
    if (call === undefined) return
    this.must(this.cancel === undefined, 'a cancelled turn asks nobody')
    this.must(data.run === call.run, 'a question names the run it is about')
    const rerun = call.status === 'dispatched' && call.onCrash === 'ask' && this.wasCutShort(call)
    this.must(data.purpose === 'run' ? call.status === 'called' && call.run === 0 : rerun, 'a question has its time')
    call.status = 'awaiting'
    call.rerunApproved = data.purpose === 'rerun'
  }

  private resolved(data: EventMap['tool/approval-resolved']): void {
    const call = this.callAt(data)
    if (call === undefined) return
    this.must(call.status === 'awaiting' && data.run === call.run, 'an open question is answered')
    const approved = data.decision === 'approved'
    if (approved) call.status = 'approved'
    this.expect(approved ? 'tool/dispatch' : 'tool/result', 'an answered question is acted on at once')
  }

  private wasCutShort(call: AuditedCall): boolean {
    return this.resumedAt > call.dispatchedAt && this.seedAt < call.dispatchedAt
  }

  private dispatched(data: EventMap['tool/dispatch']): void {
    const call = this.callAt(data)
    if (call === undefined) return
    this.must(this.cancel === undefined && this.interrupted === undefined, 'a turn being ended dispatches nothing')
    this.must(data.run === call.run + 1, 'runs are counted')
    this.must(call.run === 0 ? this.mayRun(call) : this.mayRunAgain(call), 'a call runs when the log allows it')
    call.status = 'dispatched'
    call.run = data.run
    call.onCrash = data.onCrash
    call.dispatchedAt = this.seq
    call.rerunApproved = false
  }

  private mayRun({ status }: AuditedCall): boolean {
    return status === 'called' || status === 'approved'
  }

  private mayRunAgain(call: AuditedCall): boolean {
    if (!this.wasCutShort(call)) return false
    if (call.onCrash === 'ask') return call.status === 'approved' && call.rerunApproved
    return call.status === 'dispatched' && (call.onCrash === 'rerun' || call.onCrash === 'probe')
  }

  private resulted({ message, error, concludesTurn, ...at }: EventMap['tool/result']): void {
    const { callId } = message.source
    const call = this.callAt({ ...at, callId })
    if (call === undefined) return
    const code = error?.code ?? ''
    this.must(call.status !== 'answered', 'a call has one result')
    this.must(call.status !== 'planned' || code === 'TOOL_NOT_STARTED', 'a result follows its call')
    if (call.status === 'planned') this.unscheduled = this.unscheduled.filter((other) => other !== callId)
    this.codeFits(call, callId, code)
    call.status = 'answered'
    call.concludes = concludesTurn === true
    call.synthetic = SYNTHETIC.includes(code)
    if (!call.synthetic) this.resumes = 0
  }

  private codeFits(call: AuditedCall, callId: string, code: string): void {
    const refused = this.last?.type === 'tool/approval-resolved' && this.last.data.decision !== 'approved'
    const saysNever = code === 'ABORTED_BEFORE_DISPATCH' || code === 'TOOL_NOT_STARTED' || (refused && code === '')
    const probed = call.onCrash === 'probe' && this.wasCutShort(call)
    const ran = this.options.bodies?.some(({ key, at }) => key.startsWith(`${callId}.`) && at <= this.seq) ?? false
    if (saysNever) this.must(probed || (call.run === 0 && !ran), 'what is said never to have begun never did')
    if (code === 'TOOL_OUTCOME_UNKNOWN') this.must(call.run > 0, 'only what began has an unknown outcome')
    const bySomebody = SYNTHETIC.includes(code) || refused
    const own = call.status === 'dispatched' || (call.status === 'called' && call.run === 0)
    const crashed = code === 'UNKNOWN' || refused
    this.must(bySomebody || own || crashed, 'a result of its own comes from a call under way')
  }

  // Crashes and forks

  private resumed(data: EventMap['session/resumed']): void {
    const counted = data.resumes - this.resumes
    this.must(counted === 0 || counted === 1, 'resumes count one by one, from the last progress')
    if (this.lastMoving?.type === 'session/suspended') this.must(counted === 0, 'a clean close is not counted')
    this.must(data.cause === undefined || data.recovery === 'interrupt', 'the recovery limit interrupts')
    this.resumes = data.resumes
    this.resumedAt = this.seq
    this.interrupted = data.recovery === 'interrupt' ? data : undefined
    const asking = this.inStep && this.answer === undefined && !this.waits
    if (asking && this.cancel === undefined && this.interrupted === undefined) this.attempt++
  }

  private seedEnded(): void {
    this.seedAt = this.seq
    for (const queue of QUEUES) {
      for (const item of this.queues[queue]) if (item.kind === 'message') this.fates.set(item.message.id, 'left')
      this.queues[queue] = this.queues[queue].filter((item) => item.kind === 'tool-result')
    }
    for (const call of this.calls.values())
      if (call.status === 'approved') call.status = call.run > 0 ? 'dispatched' : 'called'
    this.drain = this.latch = false
    this.resumes = 0
    this.clearing = false
  }
}
