/**
 * What there is of an agent from its opening to its end: its place in the session, its observers, whoever waits for it.
 * The rest is the agent at work. A class, because a thousand agents share its methods.
 */
import { BehaviorSubject, type Observable } from 'rxjs'
import type { PawlError } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import { inTime, sessionPatience } from '../log/patience.ts'
import {
  asPawlError,
  type Feed,
  type Left,
  openFeed,
  type ReadOptions,
  reopenSession,
  type Session,
} from '../log/session.ts'
import type { LogStore, Ownership, Resting, RestingOwner, SessionHeader } from '../log/store.ts'
import type { ChartState } from '../machines/fold.ts'
import { type Clock, MAX_TIMER_MS } from '../services/clock.ts'
import { AgentClosed } from '../services/errors.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import { createHooks } from '../services/hooks/registry.ts'
import { createInspection } from '../services/inspect/observer.ts'
import { maskError } from '../services/masking/errors.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { Agent } from './agent.ts'
import { type ClosingParts, createClosing } from './closing.ts'
import { type ForkOptions, forkSession } from './fork.ts'
import type { InboxParts } from './inbox.ts'
import { type Kept, LivingAgent, type LivingParts, type Watch } from './living.ts'
import { createMailbox, type Mailbox, type MailboxOptions } from './mailbox.ts'
import type { AgentOptions, Checked, Plugin } from './options.ts'
import { contained, type Disposer, disposeAll } from './plug-ins.ts'
import type { Receipts } from './receipts.ts'
import { atRest, atWork, gone } from './rest.ts'
import { withHead } from './restore.ts'
import type { ViewParts } from './session-view.ts'
import { leftToWait, statusOf } from './status.ts'
import type { TurnResult } from './turns.ts'
import { createWaiters } from './waiters.ts'

/** What is left of an agent at work while it sleeps. */
interface Asleep extends Left {
  /** The next seq. */
  readonly head: number
  /** Somebody reads live, or has read since. */
  feed: Feed | undefined
  readonly kept: Kept | undefined
}

/** What an agent is opened with. The ownership is released by closing, or by a defect. */
export interface PresenceOptions {
  readonly store: LogStore
  readonly ownership: Ownership
  readonly options: AgentOptions
  readonly checked: Checked
  readonly watch: Watch
}

export class Presence implements LivingParts, ClosingParts, MailboxOptions, ViewParts, InboxParts, RestingOwner {
  readonly checked: Checked
  readonly options: AgentOptions
  readonly watch: Watch
  readonly header: SessionHeader
  readonly hooks
  readonly waiters = createWaiters()
  readonly closing = createClosing(this)
  headerLogged = false
  status: AgentStatus = 'idle'
  /** Comes with the opening, as does all that may be done with it. */
  holder!: Agent
  readonly #store: LogStore
  /** Its place in the session. */
  #claim: Ownership | Resting
  /** The agent at work; none while it sleeps, and then `#asleep` is there. */
  #living: LivingAgent | undefined
  #asleep: Asleep | undefined
  /** None while the store tells of commands. */
  #mailbox: Mailbox | undefined
  #subject: BehaviorSubject<AgentStatus> | undefined
  #disposers: readonly Disposer[] = NO_DISPOSERS
  #storeFailure: { readonly error: PawlError } | undefined
  #failure: unknown
  #inspection: ((event: SessionEvent) => void) | undefined
  /** Until it hibernates by itself. */
  #idle: unknown
  /** Until what it waits for is due, while no actor of the chart waits for that. */
  #due: unknown

  constructor({ store, ownership, options, checked, watch }: PresenceOptions) {
    this.checked = checked
    this.options = options
    this.watch = watch
    this.header = ownership.header
    this.hooks = createHooks(options.hooks)
    this.#store = store
    this.#claim = ownership
    this.#living = new LivingAgent(this)
  }

  get id(): string {
    return this.header.id
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

  /** ms that a plug-in has to be disposed of. */
  get settleTimeoutMs(): number {
    return this.checked.settleTimeoutMs
  }

  get status$(): Observable<AgentStatus> {
    this.#subject ??= new BehaviorSubject(this.status)
    if (this.status === 'closed') this.#subject.complete()
    return this.#subject.asObservable()
  }

  // From loading to the start.

  /** The log was read. @throws the failure of a session that was lost meanwhile */
  begin(living: LivingAgent, session: Session): void {
    const folding = living.begin(session)
    const { inspect } = this.options
    if (inspect) this.#inspection = createInspection({ inspect, actorRef: living.shownActor(), folding })
    this.#setStatus(statusOf(living.state))
    this.watch.onReached?.(living.state)
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

  /** Commands from other processes are taken from here on, and it may sleep. */
  serve(mailbox: Mailbox): void {
    const ownership = this.#claim as Ownership
    this.#mailbox = mailbox
    mailbox.serve(ownership.commands(ownership.lost), (error) => this.die(error))
    this.#watchRest()
  }

  // What anybody may ask, and what wakes it.

  get atWork(): LivingAgent | undefined {
    return this.#living
  }

  /** The agent at work, woken if it sleeps. @throws AgentClosed if it sleeps and its log cannot be read any more */
  awake(): LivingAgent {
    return this.#living ?? this.#wake()
  }

  working(): LivingAgent | undefined {
    return this.#living ?? (this.#isOver ? undefined : this.#tryWake())
  }

  get isIdle(): boolean {
    if (this.status === 'closed') return true
    return this.#living === undefined ? this.status !== 'waiting' : this.#living.state.value === 'idle'
  }

  /** That turn was left open. */
  isOpen(turn: number): boolean {
    const state = this.#living?.state
    return state !== undefined && state.value !== 'idle' && state.context.turn === turn
  }

  get head(): number {
    return this.#living?.session.head ?? this.#asleep?.head ?? 0
  }

  events(options: ReadOptions = {}): AsyncIterable<SessionEvent> {
    const asleep = this.#asleep
    if (asleep === undefined) return this.awake().session.events(options)
    const { from = 0, live = false, signal } = options
    if (asleep.feed === undefined) {
      asleep.feed = openFeed(this.#store, this.id, asleep, this.checked.storeTimeoutMs)
      if (this.#isOver) asleep.feed.end(this.#storeFailure?.error)
    }
    return asleep.feed.read({ from, live, signal })
  }

  flush(): Promise<void> {
    if (this.#living !== undefined) return this.#living.session.flush()
    return this.#storeFailure === undefined ? Promise.resolve() : Promise.reject(this.#storeFailure.error)
  }

  get failure(): unknown {
    return this.#failure
  }

  get storeFailure(): { readonly error: PawlError } | undefined {
    return this.#storeFailure
  }

  checkOwner(): void {
    if (this.#living !== undefined) this.#living.session.checkOwner()
    else if ('lost' in this.#claim && this.#claim.lost.aborted) this.onLost(this.#claim.lost.reason)
  }

  fork(options?: ForkOptions): Promise<{ sessionId: string }> {
    const { session } = this.awake()
    const { newId, storeTimeoutMs } = this.checked
    return forkSession({ store: this.#store, session, newId, storeTimeoutMs }, options)
  }

  // Hibernation.

  /** Sleeps, unless something is going on or begins meanwhile. */
  async hibernate(): Promise<void> {
    const living = this.#living
    if (living === undefined || !this.#mayRest(living)) return
    const { session } = living
    try {
      await allDurable(session)
      await session.checkpointed()
      if (this.status === 'waiting' && this.#mayRest(living)) {
        this.#suspend(living)
        await allDurable(session)
        if (!living.isLying) return
      }
    } catch {
      return // The agent failed, and whoever is to know was told.
    }
    if (this.#mayRest(living)) this.#sleep(living)
  }

  #mayRest(living: LivingAgent): boolean {
    if (this.#living !== living || this.#store.readNow === undefined) return false
    if (this.#mailbox === undefined || this.closing.begun || living.held()) return false
    // What is due goes on at once.
    return this.isIdle || (this.status === 'waiting' && leftToWait(living.state, this.clock.now()) !== 0)
  }

  /** The actors of a turn that waits go, and with them whatever waited for a time. */
  #suspend(living: LivingAgent): void {
    living.layDown()
    const left = leftToWait(living.state, this.clock.now())
    if (left !== undefined && this.#due === undefined) this.#waitFor(left)
  }

  #sleep(living: LivingAgent): void {
    const { session } = living
    const left = session.leave()
    // Somebody recorded something.
    if (left === undefined) return
    living.layDown()
    const { feed, growth } = left
    const asleep: Asleep = { head: session.head, feed, growth, kept: living.kept() }
    feed?.over(asleep)
    gone(living)
    this.#living = undefined
    this.#asleep = asleep
    this.#disarm()
    const ownership = this.#claim as Ownership
    const resting = this.#store.rest?.(ownership, this)
    if (resting === undefined) {
      // The store knows no better way: the ownership is kept, and whoever serves its commands wakes the agent.
      ownership.lost.addEventListener('abort', this)
      this.checkOwner()
      return
    }
    this.#claim = resting
    this.#mailbox?.stop()
    this.#mailbox = undefined
  }

  /** The ownership that was kept is lost. */
  handleEvent(): void {
    this.checkOwner()
  }

  onPosted(): void {
    this.#tryWake()
  }

  onLost(reason: PawlError): void {
    if (this.#isOver) return
    maskError(this.mask, reason)
    this.fail(reason)
  }

  #tryWake(): LivingAgent | undefined {
    try {
      return this.awake()
    } catch {
      return undefined // The agent failed, and whoever is to know was told.
    }
  }

  #wake(): LivingAgent {
    const asleep = this.#asleep
    if (asleep === undefined) throw new AgentClosed(this.id)
    const living = new LivingAgent(this, asleep.kept)
    try {
      const session = reopenSession(this.#store, this.#reclaim(asleep.head), living, asleep)
      this.#living = living
      living.begin(session, this.#isOver ? 'stopped' : 'started')
      this.#asleep = undefined
      if (this.#isOver) this.#endSession(session)
      else if (this.#mailbox === undefined) this.serve(createMailbox(this))
    } catch (thrown) {
      this.#living = undefined
      this.#asleep = asleep
      // Nothing of it can be had any more, and nothing can follow.
      this.onLost(asPawlError(thrown, `wake session "${this.id}"`))
      throw new AgentClosed(this.id, { cause: this.#failure })
    }
    this.#watchRest()
    return living
  }

  /** An ownership to work with. Over, it may still be read what there was. */
  #reclaim(head: number): Ownership {
    if (this.#isOver) return endedOwnership(this.header, head)
    if (!('wake' in this.#claim)) return withHead(this.#claim, head)
    const ownership = this.#claim.wake(head)
    this.#claim = ownership
    return ownership
  }

  #endSession(session: Session): void {
    // With what it failed with, if it did; nothing can come of either.
    if (this.#storeFailure !== undefined) session.fail(this.#storeFailure.error)
    else session.close().catch(() => {})
  }

  /** At rest, the time until it hibernates begins anew. */
  #watchRest(): void {
    const { idleAfterMs, clock } = this.checked
    this.#disarm()
    if (idleAfterMs === undefined || this.#living === undefined || !this.#mayRest(this.#living)) return
    this.#idle = clock.setTimeout(() => this.#onIdle(idleAfterMs), idleAfterMs)
    letEnd(this.#idle)
  }

  #onIdle(idleAfterMs: number): void {
    this.#idle = undefined
    const left = this.#living && leftToWait(this.#living.state, this.clock.now())
    // What is due as soon is not worth a sleep.
    if (left === undefined || left > idleAfterMs) void this.hibernate()
  }

  #disarm(): void {
    if (this.#idle !== undefined) this.clock.clearTimeout(this.#idle)
    this.#idle = undefined
  }

  /** What waits goes on in time, whether it is awake by then or not. */
  #waitFor(ms: number): void {
    const now = Math.min(ms, MAX_TIMER_MS)
    this.#due = this.clock.setTimeout(() => {
      this.#due = undefined
      if (ms > now) this.#waitFor(ms - now)
      else this.#tryWake()?.raise()
    }, now)
  }

  #waitNoMore(): void {
    if (this.#due !== undefined) this.clock.clearTimeout(this.#due)
    this.#due = undefined
  }

  // What the agent at work tells.

  onReached(reached: ChartState): void {
    this.#setStatus(statusOf(reached))
    this.#living?.budgets.arm(this.status === 'running', reached.context.turn)
    this.#waitNoMore()
    if (this.#living !== undefined) {
      if (this.status === 'idle') atRest(this.#living)
      else atWork(this.#living)
    }
    this.#watchRest()
    this.watch.onReached?.(reached)
    this.waiters.look()
  }

  onDurable(event: SessionEvent, ended: TurnResult | undefined): void {
    this.#inspection?.(event)
    this.watch.onDurable?.(event, ended)
  }

  onAcknowledged(): void {
    this.waiters.look()
  }

  fail(error: PawlError): void {
    if (this.#isOver) return
    this.#storeFailure = { error }
    this.die(error)
    // Dead, it only keeps the session from whoever would carry it on.
    void this.#claim.release().catch(() => {})
  }

  onDefect(error: unknown): void {
    this.die(error)
    void this.#claim.release().catch(() => {})
  }

  // How it ends.

  die(error: unknown): void {
    if (this.#isOver) return
    this.#failure = error
    this.#living?.stop()
    this.closing.fail(error)
    this.#letGo(error)
    this.#setStatus('failed')
    this.#receipts?.fail(error)
    this.#asleep?.feed?.end(this.#storeFailure?.error)
    this.waiters.fail(error)
  }

  onStopped(reason: unknown): void {
    this.#living?.stop()
    this.#letGo(reason)
    this.#receipts?.fail(reason)
  }

  async release(): Promise<void> {
    if (this.#living !== undefined) return this.#living.session.close()
    this.#asleep?.feed?.end(this.#storeFailure?.error)
    await inTime(this.#claim.release(), `release session "${this.id}"`, sessionPatience(this.checked.storeTimeoutMs))
  }

  async onClosed(): Promise<void> {
    this.#setStatus('closed')
    this.#subject?.complete()
    this.waiters.look()
    await disposeAll(this.#disposers, this)
  }

  get #receipts(): Receipts | undefined {
    return this.#living?.receipts ?? this.#asleep?.kept?.receipts
  }

  /** What still runs for the open turn is told to end. */
  #letGo(reason: unknown): void {
    this.#disarm()
    this.#waitNoMore()
    if (this.#living !== undefined) this.#living.control.abandon(reason)
    else this.#asleep?.kept?.turn?.cancel.abort(reason)
  }

  get #isOver(): boolean {
    return this.status === 'failed' || this.status === 'closed'
  }

  #setStatus(next: AgentStatus): void {
    if (this.status === next || this.#isOver) return
    this.status = next
    if (this.#isOver && this.#living !== undefined) gone(this.#living)
    this.#subject?.next(next)
    this.hooks.tell('agent/status', next)
  }
}

const NO_DISPOSERS: readonly Disposer[] = Object.freeze([])

/** It is waited for and not hurried, as a flush would do: nothing of the log may be another for it. */
const allDurable = (session: Session): Promise<void> => session.durable(session.nextSeq - 1)

/** No such timer keeps a process: what would happen then is only that it sleeps. A clock of the caller's may have others. */
function letEnd(timer: unknown): void {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref()
}

/** Nothing can be done with it. */
const endedOwnership = (header: SessionHeader, head: number): Ownership => ({
  header,
  epoch: 0,
  head,
  lost: new AbortController().signal,
  append: () => Promise.reject(new AgentClosed(header.id)),
  commands: async function* () {},
  release: async () => {},
})
