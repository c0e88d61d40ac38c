/** Closing: nothing new starts, what was dispatched may settle for a while, and an open turn is left to the next opening. */
import type { CancelCause } from '../log/events.ts'
import { LazyAbort } from '../log/lazy-abort.ts'
import type { AgentCommand } from '../machines/commands.ts'
import type { ChartState } from '../machines/fold.ts'
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
  readonly id: string
  readonly waiters: Waiters
  readonly clock: Clock
  /** None while it sleeps: nothing runs then. */
  readonly atWork: ClosingWork | undefined
  /** Why the session failed. */
  readonly storeFailure: { readonly error: unknown } | undefined
  readonly isIdle: boolean
  checkOwner(): void
  /** The same, woken if it sleeps; undefined if that cannot be. */
  working(): ClosingWork | undefined
  flush(): Promise<void>
  /** The actor is stopped: what still runs is told to end, who waits is told why. */
  onStopped(reason: unknown): void
  /** Flushes the log and gives the session back. */
  release(): Promise<void>
  /** That is done, or could not be. */
  onClosed(): Promise<void>
}

/** The agent at work, as its closing knows it. */
interface ClosingWork {
  readonly state: ChartState
  send(command: AgentCommand): void
  /** Leaves an open turn to the next opening. */
  suspend(): void
  stop(): void
}

const GRACE_MS = 5_000

export const createClosing = (parts: ClosingParts): Closing => new AgentClosing(parts)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentClosing implements Closing {
  readonly #parts: ClosingParts
  /** Made when somebody asks. */
  #starts: LazyAbort | undefined
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
    return this.#starts?.aborted ?? false
  }

  get starts(): LazyAbort {
    this.#starts ??= new LazyAbort()
    return this.#starts
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
    const parts = this.#parts
    const reason = new AgentClosed(parts.id)
    try {
      parts.checkOwner()
      const { storeFailure } = parts
      if (storeFailure !== undefined) throw storeFailure.error
      if (cancel !== undefined) await this.#endTurn(cancel)
      this.starts.abort(reason)
      await this.#suspend(graceMs)
      // Before it is durable: a body that settles meanwhile would go on after the suspension, and start nothing.
      parts.atWork?.stop()
      await parts.flush()
    } finally {
      this.starts.abort(reason)
      parts.atWork?.stop()
      parts.onStopped(reason)
      try {
        await parts.release()
      } finally {
        await parts.onClosed()
      }
    }
  }

  async #endTurn(cause: CancelCause): Promise<void> {
    // A message that was sent just before may have opened one since.
    this.#cancelTurn(cause)
    await this.#parts.waiters.until(() => this.#parts.isIdle)
  }

  #cancelTurn(cause: CancelCause): void {
    const parts = this.#parts
    parts.checkOwner()
    if (this.#dead || parts.storeFailure !== undefined || parts.isIdle) return
    parts.working()?.send({ type: 'command.cancel', cause })
  }

  async #suspend(graceMs: number): Promise<void> {
    if (this.#dead) return
    if (bodiesRun(this.#parts)) await withGrace(this.#parts, graceMs)
    this.#parts.atWork?.suspend()
  }
}

const bodiesRun = ({ atWork }: ClosingParts): boolean =>
  atWork?.state.context.calls.some(({ status, recovering }) => status === 'dispatched' && !recovering) ?? false

/** Until no body runs, or the grace is over. */
async function withGrace(parts: ClosingParts, graceMs: number): Promise<void> {
  const { waiters, clock } = parts
  let over = false
  const timer = clock.setTimeout(
    () => {
      over = true
      waiters.look()
    },
    Math.min(graceMs, MAX_TIMER_MS),
  )
  try {
    await waiters.until(() => over || !bodiesRun(parts))
  } finally {
    // Also when the agent fails meanwhile: a timer holds the process.
    clock.clearTimeout(timer)
  }
}
