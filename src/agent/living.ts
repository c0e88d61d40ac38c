/**
 * An agent at work: the session it records in, the chart that decides, and all that follows its macrosteps. Everything
 * that happens goes through the actor. It is made from the log, and goes with a hibernation: what lasts longer is the
 * presence's. A class, because a thousand agents share its methods; it is the one object that its parts call back to.
 */
import { InvalidLog, type PawlError } from '../log/errors.ts'
import type { BoundCause, OnCrash, Recordable, SessionEvent, TurnLimits } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type { CheckpointHolder, Session, SessionOptions } from '../log/session.ts'
import type { SummaryUpdate } from '../log/store.ts'
import type { AgentCommand } from '../machines/commands.ts'
import { type ChartState, createFold, stateName } from '../machines/fold.ts'
import type { ChartPorts } from '../machines/live.ts'
import { resumption } from '../machines/resumption.ts'
import { callOf } from '../machines/tool-records.ts'
import type { Clock } from '../services/clock.ts'
import { contextStands } from '../services/llm/runtime-context.ts'
import { maskError } from '../services/masking/errors.ts'
import { maskEvent } from '../services/masking/events.ts'
import { bindRuntime } from '../services/runtime.ts'
import type { Answer, Verdict } from '../services/verdicts.ts'
import { createApprovals } from './approvals.ts'
import { createBudgets } from './budgets.ts'
import { type AgentRef, createChart } from './chart.ts'
import { chartHash, VERSION } from './chart-hash.ts'
import { MAKER, restoredAgent, type SavedAgent, savedAgent } from './checkpoint.ts'
import { createBatchObserver } from './observers.ts'
import type { AgentOptions, Checked } from './options.ts'
import { createReceipts, type Receipts } from './receipts.ts'
import { createRuntime, type RuntimeParts, type WorkParts } from './runtime.ts'
import { summaryOf } from './status.ts'
import { createTurnControl, type TurnControl, type TurnControlOptions } from './turn-control.ts'
import { createTurns, type TurnResult } from './turns.ts'
import { eventDigest, saveUnsaved } from './unsaved.ts'

/** For who embeds an agent. */
export interface Watch {
  /** What is durable, in order. */
  readonly onDurable?: (event: SessionEvent, ended: TurnResult | undefined) => void
  /** Where the chart is: once the agent is open, and after each macrostep. */
  readonly onReached?: (reached: ChartState) => void
}

type Folding = ReturnType<typeof createFold>

/** What lasts longer than one agent at work, and what is told of it. */
export interface LivingParts extends RuntimeParts {
  readonly options: Pick<AgentOptions, 'fallbackDir'>
  /** A macrostep is over. */
  onReached(reached: ChartState): void
  /** One event more is durable; `ended` is the result of the turn that it ended. */
  onDurable(event: SessionEvent, ended: TurnResult | undefined): void
  /** That is all of an append. */
  onAcknowledged(): void
  /** The session is lost, or its store failed. */
  fail(error: PawlError): void
  /** The chart has a defect. */
  onDefect(error: unknown): void
}

/** What a hibernation leaves of the agent at work, for the one that comes after it. */
export interface Kept {
  /** Somebody waits for them. */
  readonly receipts: Receipts | undefined
  /** Its signal was given away. */
  readonly turn: TurnControl['opened']
}

/** Made, given to `openSession`, then begun with the session. */
export class LivingAgent implements SessionOptions, CheckpointHolder, ChartPorts, TurnControlOptions, WorkParts {
  readonly checked: Checked
  readonly gathers = true
  readonly maker = MAKER
  readonly observer
  readonly approvals = createApprovals()
  readonly receipts
  readonly control
  readonly budgets
  /** Comes with `begin`, before anything can ask for it. */
  session!: Session
  /** The conversation still says what the runtime context was told to be. */
  contextStands = false
  readonly #parts: LivingParts
  readonly #kept: Kept | undefined
  readonly #turns = createTurns()
  /** Where the chart is while it has no actor. */
  #left: ChartState = AT_FIRST
  #actor: AgentRef | undefined
  /** Somebody else may have the actor. */
  #isShown = false
  #phase: 'loading' | 'begun' | 'started' | 'stopped' = 'loading'
  /** The turn and the step that were the last to begin. */
  #at: SavedAgent['at'] = NOWHERE
  /** The log folded while it is read; dropped then. */
  #folding: Folding | undefined = createFold()
  #lastReason: string | undefined
  /** What the tail continues that a failing store does not take. */
  #lastDurable: SessionEvent | undefined
  #summary: SummaryUpdate = NO_SUMMARY
  /** Between the first record of a macrostep and its end: the batch in hand is not whole. */
  #recording = false
  #withFirstRecord: (() => void) | undefined
  /** The session failed before it was begun. */
  #failedEarly: { readonly error: unknown } | undefined

  constructor(parts: LivingParts, kept?: Kept) {
    const { checked, hooks } = parts
    this.checked = checked
    this.#parts = parts
    this.#kept = kept
    this.observer = createBatchObserver(hooks)
    this.receipts = kept?.receipts ?? createReceipts()
    this.control = createTurnControl(this, kept?.turn)
    this.budgets = createBudgets(checked, () => this.#timeUp())
  }

  /** What `turn/start` is stamped with. */
  get limits(): TurnLimits {
    return this.checked.turnLimits
  }

  get storeTimeoutMs(): number {
    return this.checked.storeTimeoutMs
  }

  get clock(): Clock {
    return this.checked.clock
  }

  get settleTimeoutMs(): number {
    return this.checked.settleTimeoutMs
  }

  now(): number {
    return this.checked.clock.now()
  }

  get checkpoints(): CheckpointHolder {
    return this
  }

  // What the session asks and tells.

  save(): Json {
    return savedAgent({
      state: this.#folding?.snapshot() ?? this.state,
      at: this.#at,
      lastEvent: this.#lastDurable ?? null,
      lastReason: this.#lastReason ?? null,
      contextStands: this.contextStands,
      approvals: this.approvals.saved(),
      budgets: this.budgets.saved(),
      openTurn: this.#turns.saved(),
    })
  }

  restore(saved: Json): boolean {
    const restored = restoredAgent(saved)
    if (restored === undefined || !this.budgets.restore(restored.budgets)) return false
    const { at, queues } = restored
    this.#folding = createFold(restored.snapshot)
    this.#at = at
    this.#lastDurable = restored.lastEvent ?? undefined
    this.#lastReason = restored.lastReason ?? undefined
    this.contextStands = restored.contextStands
    this.approvals.restore(restored.approvals)
    this.#turns.restore(restored.openTurn)
    this.observer.restore({ ...at, queues })
    this.receipts.restore({ ...at, queues })
    return true
  }

  onLoaded(event: SessionEvent): void {
    this.#lastDurable = event
    this.#fold(event)
    this.observer.load(event)
    this.#take(event)
    const ended = this.#turns.place(event)
    // Receipts that were kept were told of it when it became durable.
    if (this.receipts !== this.#kept?.receipts) this.receipts.place(event, ended)
  }

  onSealed(events: readonly SessionEvent[]): void {
    for (const event of events) this.#take(event)
    // Before observers are told: what their commands bring about is another batch.
    this.#summary = summaryOf(this.state)
    this.observer.tell(events)
  }

  onDurable(events: readonly SessionEvent[]): void {
    this.#lastDurable = events.at(-1) ?? this.#lastDurable
    for (const event of events) {
      const ended = this.#turns.place(event)
      this.receipts.place(event, ended)
      this.#parts.onDurable(event, ended)
    }
    this.#parts.onAcknowledged()
  }

  onFailed(error: PawlError): void {
    if (this.#phase === 'loading') {
      this.#failedEarly = { error }
      return
    }
    // First, because whoever is told of the failure may end the process.
    this.#keepUnsaved(error)
    this.#parts.fail(error)
  }

  summary(): SummaryUpdate {
    return this.#lastReason === undefined ? this.#summary : { ...this.#summary, lastReason: this.#lastReason }
  }

  held(): boolean {
    return this.#recording
  }

  countsDeltas(): boolean {
    return this.budgets.limits !== undefined
  }

  /** Limits count each delta as it comes, and observers are told of it. */
  eager(): boolean {
    return this.budgets.limits !== undefined || this.#parts.hooks.has('session/event')
  }

  masked(type: string, data: Json): Json {
    return maskEvent(this.checked.mask, type, data)
  }

  maskError(error: PawlError): void {
    maskError(this.checked.mask, error)
  }

  mayReplace(): boolean {
    const { value } = this.state
    return value !== 'toolExec' && typeof value === 'string'
  }

  /** A log that the chart cannot have written would be carried on from a state that never was. @throws InvalidLog */
  #fold(event: SessionEvent): void {
    if (this.#folding?.accepts(event) === false) {
      const state = stateName(this.#folding.snapshot())
      throw new InvalidLog(event.seq, 'CHART', `${event.type} cannot happen in ${state}`)
    }
    this.#folding?.push(event)
  }

  // From loading to the start.

  /** The log was read, by the fold that is returned. @throws the failure of a session that was lost meanwhile */
  begin(session: Session, phase: 'begun' | 'started' | 'stopped' = 'begun'): Folding {
    if (this.#failedEarly !== undefined) throw this.#failedEarly.error
    const folding = this.#folding ?? createFold()
    this.#folding = undefined
    this.session = session
    this.#left = stateOf(folding.snapshot())
    this.#phase = phase
    return folding
  }

  /** What it was sent until now happens. */
  start(): void {
    this.#phase = 'started'
    this.#actor?.start()
  }

  // The chart.

  get state(): ChartState {
    return this.#actor?.getSnapshot() ?? this.#left
  }

  /** Nothing of the chart runs: it has no actor. */
  get isLying(): boolean {
    return this.#actor === undefined
  }

  send(command: AgentCommand | Verdict): void {
    if (this.#phase !== 'stopped') this.#raised().send(command)
  }

  /** The actor for somebody else: from here on it is there as long as this is. */
  shownActor(): AgentRef {
    this.#isShown = true
    return this.#raised()
  }

  /** Carries on what waits, if anything does: the chart gets its actor again. */
  raise(): void {
    this.#raised()
  }

  /** An agent at rest needs no actor until something is to move it; a fresh one has none yet. */
  #raised(): AgentRef {
    if (this.#actor !== undefined) return this.#actor
    const actor = createChart(this.#left, this, createRuntime(this.#parts, this))
    this.#actor = actor
    actor.subscribe(this)
    if (this.#phase === 'started') this.#resume(actor)
    else if (this.#phase === 'stopped') {
      actor.start()
      actor.stop()
    }
    return actor
  }

  /** A turn that waits was suspended, and is carried on whatever the options say of one that a crash cut short. */
  #resume(actor: AgentRef): void {
    const resumed = resumption(this.#left, { recovery: 'continue', maxResumes: this.checked.maxResumes })
    if (resumed !== undefined) {
      actor.send({ type: 'command.resume', resumed: { ...resumed, version: VERSION, chart: chartHash } })
    }
    actor.start()
  }

  /** At rest, what the services kept for the next turn goes, and with it the actor, unless somebody has it. */
  slim(): void {
    if (this.#actor === undefined || this.#phase !== 'started' || this.#recording || this.state.value !== 'idle') return
    if (this.#isShown) bindRuntime(this.#actor, createRuntime(this.#parts, this))
    else this.layDown()
  }

  /** The actor goes. A turn that waits is suspended first. */
  layDown(): void {
    this.suspend()
    const actor = this.#actor
    if (actor === undefined) return
    this.#left = stateOf(actor.getSnapshot())
    this.#actor = undefined
    actor.stop()
  }

  /** Records that an open turn is left to whoever carries it on, unless it was. */
  suspend(): void {
    if (this.#actor !== undefined && this.state.value !== 'idle') this.#actor.send({ type: 'command.suspend' })
  }

  /** Nothing more happens. */
  stop(): void {
    this.#phase = 'stopped'
    this.budgets.arm(false, 0)
    this.#actor?.stop()
  }

  /** What is still needed of it once it is gone. */
  kept(): Kept | undefined {
    const receipts = this.receipts.isEmpty ? undefined : this.receipts
    const turn = this.control.opened
    return receipts === undefined && turn === undefined ? undefined : { receipts, turn }
  }

  // What the chart does.

  /** Calls once, when the chart records for the first time: into the same batch. */
  withFirstRecord(call: () => void): void {
    this.#withFirstRecord = call
  }

  write(events: readonly Recordable[]): readonly SessionEvent[] {
    if (!this.#recording) {
      // Deltas in hand are a batch of their own.
      this.session.sealDeltas()
      this.#recording = true
    }
    this.#withFirstRecord?.()
    this.#withFirstRecord = undefined
    return this.session.recordOwn(events)
  }

  openTurn(): void {
    this.control.openTurn()
  }

  abortTurn(): void {
    this.control.abortTurn()
  }

  closeTurn(): void {
    this.control.closeTurn()
  }

  onSettleTimeout(partial: Answer | undefined): void {
    const { turn } = this.state.context
    const message = `The hook did not answer within ${this.settleTimeoutMs} ms of the cancel: it is left behind`
    for (const { hook, at, inCore } of this.control.open.asked) {
      if (inCore) continue
      this.session.append({ type: 'agent/hook-failed', data: { hook, ...at, error: { code: 'TIMEOUT', message } } })
    }
    this.send({ type: 'verdict.settle', turn, ...(partial === undefined ? {} : { partial }) })
  }

  // What its parts ask for.

  stopFor(cause: BoundCause): void {
    const { turn } = this.state.context
    this.send({ type: 'command.cancel', cause, keepInbox: true, turn })
  }

  onCrashOf(callId: string): OnCrash {
    const name = callOf(this.state.context, callId)?.name ?? ''
    return this.checked.tools.get(name)?.onCrash ?? 'unknown'
  }

  #keepUnsaved(failure: PawlError): void {
    const { id: sessionId, header, epoch, head: expectedSeq } = this.session
    const after = this.#lastDurable === undefined ? null : eventDigest(this.#lastDurable)
    const events = this.session.unflushed()
    const tail = { format: 1, sessionId, createdAt: header.createdAt, epoch, expectedSeq, after, events } as const
    saveUnsaved(tail, failure, this.#parts.options.fallbackDir)
  }

  // What the actor tells.

  /** A macrostep is over. */
  next(reached: ChartState): void {
    this.#recording = false
    this.session.seal()
    this.#parts.onReached(reached)
  }

  /** A defect: the batch in hand was never whole, so it is not kept, and neither is the claim to the log. */
  error(error: unknown): void {
    this.#parts.onDefect(error)
  }

  #take(event: SessionEvent): void {
    if (event.type === 'assistant/chunk') {
      if (this.budgets.limits !== undefined) this.budgets.place(event)
      return
    }
    this.approvals.place(event)
    this.budgets.place(event)
    this.contextStands = contextStands(this.contextStands, event)
    if (event.type === 'turn/start') this.#at = { turn: event.data.turn, step: 0 }
    else if (event.type === 'step/start') this.#at = event.data
    else if (event.type === 'turn/end') this.#lastReason = event.data.reason.kind
  }

  #timeUp(): void {
    const limit = this.budgets.limits?.reached(this.now())
    if (limit !== undefined) this.stopFor({ kind: 'limit', limit })
  }
}

const AT_FIRST: ChartState = createFold().snapshot()

/** A snapshot holds more than it takes to make another. */
const stateOf = (reached: ChartState): ChartState =>
  reached === AT_FIRST ? AT_FIRST : { value: reached.value, context: reached.context }
const NOWHERE: SavedAgent['at'] = Object.freeze({ turn: 0, step: 0 })
const NO_SUMMARY: SummaryUpdate = Object.freeze({})
