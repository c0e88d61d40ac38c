/**
 * An agent at work: the session it records in, the chart that decides, and all that follows its macrosteps. Everything
 * that happens goes through the actor. A class, because a thousand agents share its methods; it is the one object that
 * the agent's parts call back to.
 */
import { BehaviorSubject } from 'rxjs'
import type { ActorRefFrom } from 'xstate'
import { InvalidLog, type PawlError } from '../log/errors.ts'
import type { BoundCause, OnCrash, Recordable, SessionEvent, TurnLimits } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type { CheckpointHolder, Session, SessionOptions } from '../log/session.ts'
import type { LogStore, Ownership, SummaryUpdate } from '../log/store.ts'
import type { agentMachine } from '../machines/agent.ts'
import { type AgentSnapshot, createFold, stateName } from '../machines/fold.ts'
import type { ChartPorts } from '../machines/live.ts'
import { callOf } from '../machines/tool-records.ts'
import type { Clock } from '../services/clock.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import { createHooks } from '../services/hooks/registry.ts'
import { createInspection } from '../services/inspect/observer.ts'
import { contextStands } from '../services/llm/runtime-context.ts'
import { maskError } from '../services/masking/errors.ts'
import { maskEvent } from '../services/masking/events.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { Answer } from '../services/verdicts.ts'
import type { Agent } from './agent.ts'
import { createApprovals } from './approvals.ts'
import { createBudgets } from './budgets.ts'
import { MAKER, restoredAgent, type SavedAgent, savedAgent } from './checkpoint.ts'
import { type ClosingParts, createClosing } from './closing.ts'
import type { Parts } from './facade.ts'
import { type ForkOptions, forkSession } from './fork.ts'
import type { MailboxOptions } from './mailbox.ts'
import { createBatchObserver } from './observers.ts'
import type { AgentOptions, Checked, Plugin } from './options.ts'
import { contained, type Disposer, disposeAll } from './plug-ins.ts'
import { createReceipts } from './receipts.ts'
import { statusOf, summaryOf } from './status.ts'
import { createTurnControl, type TurnControlOptions } from './turn-control.ts'
import { createTurns, type TurnResult } from './turns.ts'
import { eventDigest, saveUnsaved } from './unsaved.ts'
import { createWaiters } from './waiters.ts'

/** For who embeds an agent: what is durable, in order. */
export interface Watch {
  readonly onDurable?: (event: SessionEvent, ended: TurnResult | undefined) => void
}

/** What an agent is opened with. The ownership is released by closing, or by a defect. */
export interface LivingOptions {
  readonly store: LogStore
  readonly ownership: Ownership
  readonly options: AgentOptions
  readonly checked: Checked
  readonly watch: Watch
}

/** Made, given to `openSession`, then begun with the session and the actor. */
export class LivingAgent
  implements SessionOptions, CheckpointHolder, ChartPorts, TurnControlOptions, ClosingParts, MailboxOptions, Parts
{
  readonly checked: Checked
  /** What `turn/start` is stamped with. */
  readonly limits: TurnLimits
  readonly storeTimeoutMs: number
  readonly gathers = true
  readonly maker = MAKER
  readonly hooks
  readonly observer
  readonly approvals = createApprovals()
  readonly receipts = createReceipts()
  readonly waiters = createWaiters()
  readonly closing = createClosing(this)
  readonly control = createTurnControl(this)
  readonly budgets
  readonly status = new BehaviorSubject<AgentStatus>('idle')
  /** These two come with `begin`, before anything can ask for them. */
  session!: Session
  actor!: ActorRefFrom<typeof agentMachine>
  /** The conversation still says what the runtime context was told to be. */
  contextStands = false
  readonly #store: LogStore
  readonly #ownership: Ownership
  readonly #watch: Watch
  readonly #turns = createTurns()
  readonly #inspect: AgentOptions['inspect']
  readonly #fallbackDir: string | undefined
  /** The turn and the step that were the last to begin. */
  #at: SavedAgent['at'] = NOWHERE
  /** The log folded while it is read; dropped then. */
  #folding: ReturnType<typeof createFold> | undefined = createFold()
  #inspection: ((event: SessionEvent) => void) | undefined
  #disposers: readonly Disposer[] = NO_DISPOSERS
  #lastReason: string | undefined
  /** What the tail continues that a failing store does not take. */
  #lastDurable: SessionEvent | undefined
  #summary: SummaryUpdate = NO_SUMMARY
  /** Between the first record of a macrostep and its end: the batch in hand is not whole. */
  #recording = false
  #withFirstRecord: (() => void) | undefined
  /** The session failed before there was an actor to stop. */
  #failedEarly: { readonly error: unknown } | undefined

  constructor({ store, ownership, options, checked, watch }: LivingOptions) {
    this.checked = checked
    this.limits = Object.freeze({ maxSteps: checked.maxSteps, maxParallelToolCalls: checked.maxParallelToolCalls })
    this.storeTimeoutMs = checked.storeTimeoutMs
    this.hooks = createHooks(options.hooks)
    this.observer = createBatchObserver(this.hooks)
    this.budgets = createBudgets(checked, () => this.#timeUp())
    this.#store = store
    this.#ownership = ownership
    this.#watch = watch
    this.#inspect = options.inspect
    this.#fallbackDir = options.fallbackDir
  }

  get clock(): Clock {
    return this.checked.clock
  }

  get newId(): () => string {
    return this.checked.newId
  }

  get mask(): Mask {
    return this.checked.mask
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
      state: this.actor.getSnapshot(),
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
    this.receipts.place(event, this.#turns.place(event))
  }

  onSealed(events: readonly SessionEvent[]): void {
    for (const event of events) this.#take(event)
    // Before observers are told: what their commands bring about is another batch.
    this.#summary = summaryOf(this.actor.getSnapshot())
    this.observer.tell(events)
  }

  onDurable(events: readonly SessionEvent[]): void {
    this.#lastDurable = events.at(-1) ?? this.#lastDurable
    for (const event of events) {
      const ended = this.#turns.place(event)
      this.receipts.place(event, ended)
      this.#inspection?.(event)
      this.#watch.onDurable?.(event, ended)
    }
    this.waiters.look()
  }

  onFailed(error: PawlError): void {
    if (this.actor === undefined) {
      this.#failedEarly = { error }
      return
    }
    // First, because whoever is told of the failure may end the process.
    this.#keepUnsaved(error)
    this.die(error)
    // Dead, it only keeps the session from whoever would carry it on.
    void this.#ownership.release().catch(() => {})
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
    return this.budgets.limits !== undefined || this.hooks.has('session/event')
  }

  masked(type: string, data: Json): Json {
    return maskEvent(this.mask, type, data)
  }

  maskError(error: PawlError): void {
    maskError(this.mask, error)
  }

  mayReplace(): boolean {
    const { value } = this.actor.getSnapshot()
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

  /** The state the log left. @throws the failure of a session that was lost meanwhile */
  loaded(): AgentSnapshot {
    if (this.#failedEarly !== undefined) throw this.#failedEarly.error
    return (this.#folding ?? createFold()).snapshot()
  }

  begin(session: Session, actor: ActorRefFrom<typeof agentMachine>, snapshot: AgentSnapshot): void {
    this.session = session
    this.actor = actor
    if (this.#inspect && this.#folding) {
      this.#inspection = createInspection({ inspect: this.#inspect, actorRef: actor, folding: this.#folding })
    }
    this.#folding = undefined
    this.status.next(statusOf(snapshot))
    actor.subscribe(this)
  }

  async plugIn(agent: Agent, plugins: readonly Plugin[]): Promise<void> {
    for (const plugin of plugins) {
      // One before it closed the agent, which may be over already.
      if (this.closing.begun) return
      await contained('a plug-in', () => {
        const given: unknown = plugin(agent)
        if (typeof given === 'function') this.#disposers = [...this.#disposers, given as Disposer]
        // One that takes its time is not waited for; what it fails with is heard all the same.
        else if (given instanceof Promise) void contained('a plug-in', () => given)
      })
    }
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
    const { turn } = this.actor.getSnapshot().context
    const message = `The hook did not answer within ${this.settleTimeoutMs} ms of the cancel: it is left behind`
    for (const { hook, at, inCore } of this.control.open.asked) {
      if (inCore) continue
      this.session.append({ type: 'agent/hook-failed', data: { hook, ...at, error: { code: 'TIMEOUT', message } } })
    }
    this.actor.send({ type: 'verdict.settle', turn, ...(partial === undefined ? {} : { partial }) })
  }

  // What its parts ask for.

  stopFor(cause: BoundCause): void {
    const { turn } = this.actor.getSnapshot().context
    this.actor.send({ type: 'command.cancel', cause, keepInbox: true, turn })
  }

  onCrashOf(callId: string): OnCrash {
    const name = callOf(this.actor.getSnapshot().context, callId)?.name ?? ''
    return this.checked.tools.get(name)?.onCrash ?? 'unknown'
  }

  fork(options?: ForkOptions): Promise<{ sessionId: string }> {
    const { session, newId, storeTimeoutMs } = this
    return forkSession({ store: this.#store, session, newId, storeTimeoutMs }, options)
  }

  // How it ends.

  onStopped(reason: unknown): void {
    this.budgets.arm(false, 0)
    this.control.abandon(reason)
    this.receipts.fail(reason)
  }

  async onClosed(): Promise<void> {
    this.#setStatus('closed')
    this.status.complete()
    this.waiters.look()
    await disposeAll(this.#disposers, this)
  }

  die(error: unknown): void {
    if (this.#isOver()) return
    this.budgets.arm(false, 0)
    this.actor.stop()
    this.closing.fail(error)
    this.control.abandon(error)
    this.#setStatus('failed')
    this.receipts.fail(error)
    this.waiters.fail(error)
  }

  #keepUnsaved(failure: PawlError): void {
    const { id: sessionId, header, epoch, head: expectedSeq } = this.session
    const after = this.#lastDurable === undefined ? null : eventDigest(this.#lastDurable)
    const events = this.session.unflushed()
    const tail = { format: 1, sessionId, createdAt: header.createdAt, epoch, expectedSeq, after, events } as const
    saveUnsaved(tail, failure, this.#fallbackDir)
  }

  // What the actor tells.

  /** A macrostep is over. */
  next(reached: AgentSnapshot): void {
    this.#settled(reached)
  }

  /** A defect: the batch in hand was never whole, so it is not kept, and neither is the claim to the log. */
  error(error: unknown): void {
    this.die(error)
    void this.#ownership.release().catch(() => {})
  }

  #settled(reached: AgentSnapshot): void {
    this.#recording = false
    this.session.seal()
    this.#setStatus(statusOf(reached))
    this.budgets.arm(this.status.value === 'running', reached.context.turn)
    this.waiters.look()
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

  #isOver(): boolean {
    return this.status.value === 'failed' || this.status.value === 'closed'
  }

  #setStatus(next: AgentStatus): void {
    if (this.status.value === next || this.#isOver()) return
    this.status.next(next)
    this.hooks.tell('agent/status', next)
  }
}

const NOWHERE: SavedAgent['at'] = Object.freeze({ turn: 0, step: 0 })
const NO_DISPOSERS: readonly Disposer[] = Object.freeze([])
const NO_SUMMARY: SummaryUpdate = Object.freeze({})
