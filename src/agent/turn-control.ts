/** The signal of the open turn and the time its cancel has to settle: what `openTurn` and `abortTurn` do. */
import { LazyAbort } from '../log/lazy-abort.ts'
import type { Clock } from '../services/clock.ts'
import type { AskedHook, OpenTurn } from '../services/runtime.ts'
import type { Materialised } from '../services/tools/contract.ts'
import type { Answer } from '../services/verdicts.ts'

export interface TurnControl {
  readonly open: OpenTurn
  /** The same, if anybody has asked for it. */
  readonly opened: OpenTurn | undefined
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
  onSettleTimeout(partial: Answer | undefined): void
}

/** `opened` is the open turn of the agent at work before. */
export const createTurnControl = (options: TurnControlOptions, opened?: OpenTurn): TurnControl =>
  new AgentTurnControl(options, opened)

/** A class for its signal, which is made when somebody asks: an idle agent has none. */
class ControlledTurn implements OpenTurn {
  readonly cancel = new LazyAbort()
  partial: OpenTurn['partial'] = undefined
  prompt: OpenTurn['prompt'] = undefined
  #added: Set<string> | undefined
  #asked: Set<AskedHook> | undefined
  #materialised: Map<string, Materialised> | undefined

  get signal(): AbortSignal {
    return this.cancel.signal
  }

  get materialised(): Map<string, Materialised> {
    this.#materialised ??= new Map()
    return this.#materialised
  }

  get asked(): Set<AskedHook> {
    this.#asked ??= new Set()
    return this.#asked
  }

  get added(): Set<string> {
    this.#added ??= new Set()
    return this.#added
  }
}

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentTurnControl implements TurnControl {
  readonly #options: TurnControlOptions
  /** Made when it is asked for: an idle agent has none. */
  #open: OpenTurn | undefined
  #timer: unknown

  constructor(options: TurnControlOptions, opened: OpenTurn | undefined) {
    this.#options = options
    this.#open = opened
  }

  get opened(): OpenTurn | undefined {
    return this.#open
  }

  get open(): OpenTurn {
    this.#open ??= new ControlledTurn()
    return this.#open
  }

  openTurn(): void {
    this.#clear()
    this.#open = undefined
  }

  abortTurn(): void {
    const { clock, settleTimeoutMs } = this.#options
    this.#clear()
    this.#timer = clock.setTimeout(() => this.#options.onSettleTimeout(this.open.partial?.()), settleTimeoutMs)
    this.open.cancel.abort(new DOMException('The turn was cancelled', 'AbortError'))
  }

  closeTurn(): void {
    // What the turn left behind finds that it is no longer the open one.
    this.openTurn()
  }

  abandon(reason: unknown): void {
    this.#clear()
    this.#open?.cancel.abort(reason)
  }

  #clear(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
