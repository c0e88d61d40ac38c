/** Holds what is to what must be, counts how often, and tells a difference with its place on the path. */
import type { AgentSnapshot } from '../../machines/fold.ts'
import type { PathInput } from '../path-input.ts'
import { type Difference, PathMismatch } from './mismatch.ts'

export class Comparison {
  /** What happened so far, the last one being what is compared after. */
  readonly inputs: PathInput[] = []
  /** From 0: which input of the path it is. */
  step = 0
  /** How often something was compared. */
  count = 0
  readonly #label: string

  constructor(label: string) {
    this.#label = label
  }

  /** @throws PathMismatch unless both say the same, line by line */
  compare(what: string, expected: readonly string[], actual: readonly string[]): void {
    this.count += 1
    if (!isSame(expected, actual)) throw this.#mismatch({ what, expected, actual })
  }

  /** @throws PathMismatch: it did not happen in time */
  miss(what: string, ms: number): never {
    throw this.#mismatch({ what: 'what happened', expected: [what], actual: [`nothing within ${ms} ms`] })
  }

  /** Whatever else was thrown, told with its place on the path. */
  mismatch(thrown: unknown): PathMismatch {
    if (thrown instanceof PathMismatch) return thrown
    const said = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
    return this.#mismatch({ what: 'what was thrown', expected: [], actual: said.split('\n'), cause: thrown })
  }

  #mismatch(difference: Pick<Difference, 'what' | 'expected' | 'actual' | 'cause'>): PathMismatch {
    return new PathMismatch({ label: this.#label, step: this.step, inputs: this.inputs, ...difference })
  }
}

export const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** A state to the letter, a field a line. */
export const linesOf = ({ value, context }: Pick<AgentSnapshot, 'value' | 'context'>): readonly string[] =>
  Object.entries({ value, ...context }).map(([field, said]) => `${field} ${JSON.stringify(said)}`)
