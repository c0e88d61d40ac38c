/** The signal of the open turn and the time its cancel has to settle: what `openTurn` and `abortTurn` do. */
import type { Clock } from '../services/clock.ts'
import type { OpenTurn } from '../services/runtime.ts'
import type { Answer } from '../services/verdicts.ts'

export interface TurnControl {
  readonly open: OpenTurn
  openTurn(): void
  abortTurn(): void
  closeTurn(): void
  /** Ends whatever still runs: the process gives the session up. */
  abandon(reason: unknown): void
}

export interface TurnControlOptions {
  readonly clock: Clock
  readonly settleTimeoutMs: number
  /** The cancel did not settle in time; what the request had so far. */
  readonly onSettleTimeout: (partial: Answer | undefined) => void
}

export function createTurnControl({ clock, settleTimeoutMs, onSettleTimeout }: TurnControlOptions): TurnControl {
  let controller = new AbortController()
  let open: OpenTurn = { signal: controller.signal, partial: undefined, prompt: undefined }
  let timer: unknown
  const clear = (): void => {
    if (timer !== undefined) clock.clearTimeout(timer)
    timer = undefined
  }
  const renew = (): void => {
    clear()
    controller = new AbortController()
    open = { signal: controller.signal, partial: undefined, prompt: undefined }
  }
  return {
    get open() {
      return open
    },
    openTurn: renew,
    abortTurn() {
      clear()
      timer = clock.setTimeout(() => onSettleTimeout(open.partial?.()), settleTimeoutMs)
      controller.abort(new DOMException('The turn was cancelled', 'AbortError'))
    },
    // What the turn left behind finds that it is no longer the open one.
    closeTurn: renew,
    abandon(reason) {
      clear()
      controller.abort(reason)
    },
  }
}
