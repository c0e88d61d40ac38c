/**
 * What a row has said so far, known alike to who packs it and who unpacks it: both call these methods at the same events
 * in the same order, so that a string said before is said again by its number.
 */
import type { DeltaBlock } from '../../deltas.ts'
import { Damaged } from './checked.ts'

/** Shorter strings are not worth a number. */
const LEAST_LENGTH = 8

/** Where an event belongs; 0 before the first. */
export interface Place {
  readonly turn: number
  readonly step: number
  readonly attempt: number
}

const NOWHERE: Place = { turn: 0, step: 0, attempt: 0 }

export class Said {
  place: Place = NOWHERE
  /** Epoch ms of the event before; of the first, its own. */
  time = 0
  readonly #numbers = new Map<string, number>()
  readonly #strings: string[] = []
  /** By block: what its deltas have said. At its end that is one string, as the answer will say it. */
  #blocks = new Map<number, string>()

  /** The number of a string that was said; undefined for a short one too. */
  numberOf(text: string): number | undefined {
    return text.length < LEAST_LENGTH ? undefined : this.#numbers.get(text)
  }

  /** @throws Damaged */
  stringAt(number: unknown): string {
    const text = typeof number === 'number' ? this.#strings[number] : undefined
    if (text === undefined) throw new Damaged('the number of a string that was never said')
    return text
  }

  hear(text: string): void {
    if (text.length < LEAST_LENGTH || this.#numbers.has(text)) return
    this.#numbers.set(text, this.#strings.length)
    this.#strings.push(text)
  }

  moveTo(place: Place): void {
    this.place = place
    if (this.#blocks.size > 0) this.#blocks = new Map()
  }

  hearPiece(index: number, text: string): void {
    this.#blocks.set(index, (this.#blocks.get(index) ?? '') + text)
  }

  endBlock(index: number): void {
    const text = this.#blocks.get(index)
    if (text !== undefined) this.hear(text)
    this.#blocks.delete(index)
  }

  isAt(block: DeltaBlock): boolean {
    const { turn, step, attempt } = this.place
    return turn === block.turn && step === block.step && attempt === block.attempt
  }
}
