/** Closing: nothing new starts, what was dispatched may settle for a while, and an open turn is left to the next opening. */
import type { CancelCause } from '../log/events.ts'
import type { Session } from '../log/session.ts'
import type { AgentCommand } from '../machines/commands.ts'
import type { AgentSnapshot } from '../machines/fold.ts'
import type { Clock } from '../services/clock.ts'
import { AgentClosed } from '../services/errors.ts'
import type { CloseOptions } from './agent.ts'
import type { Waiters } from './waiters.ts'

export interface Closing {
  /** Commands are refused from here on. */
  readonly begun: boolean
  /** Services start nothing from here on. */
  readonly signal: AbortSignal
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
  readonly onStopped: (reason: unknown) => void
  /** The log is flushed and released, or could not be. */
  readonly onClosed: () => Promise<void>
}

const GRACE_MS = 5_000

export function createClosing(parts: ClosingParts): Closing {
  const { session, actor, waiters } = parts
  const controller = new AbortController()
  let closed: Promise<void> | undefined
  const isIdle = (): boolean => actor.getSnapshot().value === 'idle'

  const endTurn = async (cause: CancelCause): Promise<void> => {
    if (isIdle()) return
    actor.send({ type: 'command.cancel', cause })
    await waiters.until(isIdle)
  }
  const suspend = async (graceMs: number): Promise<void> => {
    if (bodiesRun(actor.getSnapshot())) await withGrace(parts, graceMs)
    if (!isIdle()) actor.send({ type: 'command.suspend' })
  }
  const shutDown = async ({ graceMs = GRACE_MS, cancel }: CloseOptions): Promise<void> => {
    await Promise.resolve()
    const reason = new AgentClosed(session.id)
    try {
      if (session.failed.aborted) throw session.failed.reason
      if (cancel !== undefined) await endTurn(cancel)
      controller.abort(reason)
      await suspend(graceMs)
      await session.flush()
    } finally {
      controller.abort(reason)
      actor.stop()
      parts.onStopped(reason)
      try {
        await session.close()
      } finally {
        await parts.onClosed()
      }
    }
  }

  return {
    get begun() {
      return closed !== undefined
    },
    signal: controller.signal,
    close(options = {}) {
      if (closed === undefined) {
        closed = shutDown(options)
        closed.catch(() => {})
      }
      return closed
    },
    fail: (error) => controller.abort(error),
  }
}

const bodiesRun = ({ context }: AgentSnapshot): boolean =>
  context.calls.some(({ status, recovering }) => status === 'dispatched' && !recovering)

/** Until no body runs, or the grace is over. */
async function withGrace({ actor, waiters, clock }: ClosingParts, graceMs: number): Promise<void> {
  let over = false
  const timer = clock.setTimeout(() => {
    over = true
    waiters.look()
  }, graceMs)
  await waiters.until(() => over || !bodiesRun(actor.getSnapshot()))
  clock.clearTimeout(timer)
}
