/**
 * What there is of an agent from its opening to its end: its place in the session, its observers, whoever waits for it.
 * The rest is the agent at work. A class, because a thousand agents share its methods.
 */
import { BehaviorSubject, type Observable } from 'rxjs'
import type { PawlError } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import type { ReadOptions, Session } from '../log/session.ts'
import type { LogStore, Ownership, SessionHeader } from '../log/store.ts'
import type { ChartState } from '../machines/fold.ts'
import type { Clock } from '../services/clock.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import { createHooks } from '../services/hooks/registry.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { Agent } from './agent.ts'
import { type ClosingParts, createClosing } from './closing.ts'
import { type ForkOptions, forkSession } from './fork.ts'
import type { InboxParts } from './inbox.ts'
import { LivingAgent, type LivingParts, type Watch } from './living.ts'
import type { MailboxOptions } from './mailbox.ts'
import type { AgentOptions, Checked, Plugin } from './options.ts'
import { contained, type Disposer, disposeAll } from './plug-ins.ts'
import { atRest, atWork, over } from './rest.ts'
import type { ViewParts } from './session-view.ts'
import { statusOf } from './status.ts'
import { createWaiters } from './waiters.ts'

/** What an agent is opened with. The ownership is released by closing, or by a defect. */
export interface PresenceOptions {
  readonly store: LogStore
  readonly ownership: Ownership
  readonly options: AgentOptions
  readonly checked: Checked
  readonly watch: Watch
}

export class Presence implements LivingParts, ClosingParts, MailboxOptions, ViewParts, InboxParts {
  readonly checked: Checked
  readonly options: AgentOptions
  readonly watch: Watch
  readonly hooks
  readonly waiters = createWaiters()
  readonly closing = createClosing(this)
  headerLogged = false
  status: AgentStatus = 'idle'
  /** Comes with `begin`. */
  holder!: Agent
  readonly #store: LogStore
  readonly #ownership: Ownership
  readonly #living: LivingAgent
  #subject: BehaviorSubject<AgentStatus> | undefined
  #disposers: readonly Disposer[] = NO_DISPOSERS
  #storeFailure: { readonly error: unknown } | undefined
  #failure: unknown

  constructor({ store, ownership, options, checked, watch }: PresenceOptions) {
    this.checked = checked
    this.options = options
    this.watch = watch
    this.hooks = createHooks(options.hooks)
    this.#store = store
    this.#ownership = ownership
    this.#living = new LivingAgent(this)
  }

  get id(): string {
    return this.header.id
  }

  get header(): SessionHeader {
    return this.#ownership.header
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
  begin(session: Session): void {
    this.#living.begin(session)
    this.#reach(this.#living.state)
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

  // What anybody may ask, also of an agent that sleeps.

  get atWork(): LivingAgent | undefined {
    return this.#living
  }

  awake(): LivingAgent {
    return this.#living
  }

  working(): LivingAgent | undefined {
    return this.#living
  }

  get isIdle(): boolean {
    return this.status === 'closed' || this.#living.state.value === 'idle'
  }

  /** That turn is open, in the log if no longer here. */
  isOpen(turn: number): boolean {
    const { value, context } = this.#living.state
    return value !== 'idle' && context.turn === turn
  }

  get head(): number {
    return this.#living.session.head
  }

  events(options?: ReadOptions): AsyncIterable<SessionEvent> {
    return this.#living.session.events(options)
  }

  flush(): Promise<void> {
    return this.#living.session.flush()
  }

  get failure(): unknown {
    return this.#failure
  }

  get storeFailure(): { readonly error: unknown } | undefined {
    return this.#storeFailure
  }

  checkOwner(): void {
    this.#living.session.checkOwner()
  }

  fork(options?: ForkOptions): Promise<{ sessionId: string }> {
    const { session } = this.awake()
    const { newId, storeTimeoutMs } = this.checked
    return forkSession({ store: this.#store, session, newId, storeTimeoutMs }, options)
  }

  // What the agent at work tells.

  onReached(reached: ChartState): void {
    this.#reach(reached)
    this.#living.budgets.arm(this.status === 'running', reached.context.turn)
    this.waiters.look()
  }

  onDurable(): void {
    this.waiters.look()
  }

  fail(error: PawlError): void {
    this.#storeFailure = { error }
    this.die(error)
    // Dead, it only keeps the session from whoever would carry it on.
    void this.#ownership.release().catch(() => {})
  }

  onDefect(error: unknown): void {
    this.die(error)
    void this.#ownership.release().catch(() => {})
  }

  // How it ends.

  die(error: unknown): void {
    if (this.#isOver) return
    this.#failure = error
    this.#living.stop()
    this.closing.fail(error)
    this.#living.control.abandon(error)
    this.#setStatus('failed')
    this.#living.receipts.fail(error)
    this.waiters.fail(error)
  }

  onStopped(reason: unknown): void {
    this.#living.stop()
    this.#living.control.abandon(reason)
    this.#living.receipts.fail(reason)
  }

  release(): Promise<void> {
    return this.#living.session.close()
  }

  async onClosed(): Promise<void> {
    this.#setStatus('closed')
    this.#subject?.complete()
    this.waiters.look()
    await disposeAll(this.#disposers, this)
  }

  #reach(reached: ChartState): void {
    this.#setStatus(statusOf(reached))
    if (this.status === 'idle') atRest(this.#living)
    else atWork(this.#living)
    this.watch.onReached?.(reached)
  }

  get #isOver(): boolean {
    return this.status === 'failed' || this.status === 'closed'
  }

  #setStatus(next: AgentStatus): void {
    if (this.status === next || this.#isOver) return
    this.status = next
    if (this.#isOver) over(this.#living)
    this.#subject?.next(next)
    this.hooks.tell('agent/status', next)
  }
}

const NO_DISPOSERS: readonly Disposer[] = Object.freeze([])
