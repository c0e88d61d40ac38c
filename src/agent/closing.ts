/** Closing: nothing new starts, what was dispatched may settle for a while, and an open turn is left to the next opening. */
import type { CancelCause } from '../log/events.ts'
import { LazyAbort } from '../log/lazy-abort.ts'
import type { Session } from '../log/session.ts'
import type { AgentCommand } from '../machines/commands.ts'
import type { AgentSnapshot } from '../machines/fold.ts'
import { type Clock, MAX_TIMER_MS } from '../services/clock.ts'
import { AgentClosed } from '../services/errors.ts'
import type { CloseOptions } from './agent.ts'
import { checkedCause } from './checked.ts'
import type { Waiters } from './waiters.ts'

export interface Closing {
  /** Commands are refused from here on. */
  readonly begun: boolean
  /** Services start nothing from here on. */
  readonly aborted: boolean
  readonly signal: AbortSignal
  /** The same, for who need not have a signal. */
  readonly starts: LazyAbort
  close(options?: CloseOptions): Promise<void>
  /** The agent failed: nothing can be left in order. */
  fail(error: unknown): void
}

export interface ClosingParts {
  readonly session: Session
  readonly actor: { getSnapshot(): AgentSnapshot; send(command: AgentCommand): void; stop(): void }
  readonly waiters: Waiters
  readonly clock: Clock
  /** The actor is stopped: what still runs is told to end, who waits is told why. */
  onStopped(reason: unknown): void
  /** The log is flushed and released, or could not be. */
  onClosed(): Promise<void>
}

const GRACE_MS = 5_000

export const createClosing = (parts: ClosingParts): Closing => new AgentClosing(parts)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentClosing implements Closing {
  readonly #parts: ClosingParts
  readonly starts = new LazyAbort()
  #closed: Promise<void> | undefined
  /** It takes no commands any more: a chart that is stopped would only warn of them. */
  #dead = false

  constructor(parts: ClosingParts) {
    this.#parts = parts
  }

  get begun(): boolean {
    return this.#closed !== undefined
  }

  get aborted(): boolean {
    return this.starts.aborted
  }

  get signal(): AbortSignal {
    return this.starts.signal
  }

  close(options: CloseOptions = {}): Promise<void> {
    if (this.#closed !== undefined) return this.#closed
    let cancel: CancelCause | undefined
    try {
      if (options.cancel !== undefined) cancel = checkedCause(options.cancel)
    } catch (refused) {
      // The caller's mistake: nothing was closed, so it may close again.
      return Promise.reject(refused)
    }
    const { graceMs = GRACE_MS } = options
    // Before the cancel, whose observers may close again; a pause, because an observer's commands come first.
    this.#closed = Promise.resolve().then(() => this.#shutDown(graceMs, cancel))
    this.#closed.catch(() => {})
    // At once, like any command: from an observer it comes before what the macrostep started begins.
    if (cancel !== undefined) this.#cancelTurn(cancel)
    return this.#closed
  }

  fail(error: unknown): void {
    this.#dead = true
    this.starts.abort(error)
  }

  async #shutDown(graceMs: number, cancel: CancelCause | undefined): Promise<void> {
    const { session, actor } = this.#parts
    const reason = new AgentClosed(session.id)
    try {
      if (session.failed.aborted) throw session.failed.reason
      if (cancel !== undefined) await this.#endTurn(cancel)
      this.starts.abort(reason)
      await this.#suspend(graceMs)
      // Before it is durable: a body that settles meanwhile would go on after the suspension, and start nothing.
      actor.stop()
      await session.flush()
    } finally {
      this.starts.abort(reason)
      actor.stop()
      this.#parts.onStopped(reason)
      try {
        await session.close()
      } finally {
        await this.#parts.onClosed()
      }
    }
  }

  async #endTurn(cause: CancelCause): Promise<void> {
    // A message that was sent just before may have opened one since.
    this.#cancelTurn(cause)
    await this.#parts.waiters.until(() => this.#isIdle())
  }

  #cancelTurn(cause: CancelCause): void {
    if (this.#dead || this.#parts.session.failed.aborted || this.#isIdle()) return
    this.#parts.actor.send({ type: 'command.cancel', cause })
  }

  async #suspend(graceMs: number): Promise<void> {
    const { actor } = this.#parts
    if (this.#dead) return
    if (bodiesRun(actor.getSnapshot())) await withGrace(this.#parts, graceMs)
    if (!this.#isIdle()) actor.send({ type: 'command.suspend' })
  }

  #isIdle(): boolean {
    return this.#parts.actor.getSnapshot().value === 'idle'
  }
}

const bodiesRun = ({ context }: AgentSnapshot): boolean =>
  context.calls.some(({ status, recovering }) => status === 'dispatched' && !recovering)

/** Until no body runs, or the grace is over. */
async function withGrace({ actor, waiters, clock }: ClosingParts, graceMs: number): Promise<void> {
  let over = false
  const timer = clock.setTimeout(
    () => {
      over = true
      waiters.look()
    },
    Math.min(graceMs, MAX_TIMER_MS),
  )
  try {
    await waiters.until(() => over || !bodiesRun(actor.getSnapshot()))
  } finally {
    // Also when the agent fails meanwhile: a timer holds the process.
    clock.clearTimeout(timer)
  }
}
