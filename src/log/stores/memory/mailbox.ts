/** The commands of one session: those that wait for an owner, and what became of those that were taken. */
import type { CommandOutcome, PostedCommand } from '../../store.ts'
import { OUTCOMES_KEPT } from '../outcomes.ts'

/** A command that waits. Letters are numbered as they come. */
export interface Letter {
  readonly n: number
  readonly command: PostedCommand
}

interface Taken {
  readonly outcome: CommandOutcome
  /** Epoch ms. */
  readonly at: number
}

/** A class, and its tables lazy, because a thousand sessions have one and most of them are never written to. */
export class Mailbox {
  #posted = 0
  /** By id. A map gives its entries in the order in which they were put there: oldest first. */
  #waiting: Map<string, Letter> | undefined
  #taken: Map<string, Taken> | undefined

  /** The first of an id stays. */
  post(command: PostedCommand): void {
    const { id } = command
    if (this.#taken?.has(id) || this.#waiting?.has(id)) return
    this.#waiting ??= new Map()
    this.#waiting.set(id, { n: ++this.#posted, command })
  }

  waiting(): readonly PostedCommand[] {
    return [...(this.#waiting?.values() ?? [])].map(({ command }) => command)
  }

  /** The oldest that waits and came after the letter of that number. */
  after(n: number): Letter | undefined {
    for (const letter of this.#waiting?.values() ?? []) if (letter.n > n) return letter
    return undefined
  }

  /** A command that does not wait is passed over: its first outcome stays. */
  take(id: string, outcome: CommandOutcome): void {
    if (this.#waiting?.delete(id) !== true) return
    this.#taken ??= new Map()
    this.#taken.set(id, { outcome, at: Date.now() })
    forget(this.#taken)
  }

  outcome(id: string): CommandOutcome | undefined {
    return this.#taken?.get(id)?.outcome
  }
}

function forget(taken: Map<string, Taken>): void {
  for (const [id, { at }] of taken) {
    if (taken.size <= OUTCOMES_KEPT.last || at > Date.now() - OUTCOMES_KEPT.ms) return
    taken.delete(id)
  }
}
