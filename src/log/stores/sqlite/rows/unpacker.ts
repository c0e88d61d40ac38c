/** The events of a row's text again, each in its place: what `RowPacker` made, or Damaged. */
import type { SessionEvent } from '../../../events.ts'
import { type DeltaBlock, deltaEvent, isCount } from '../../deltas.ts'
import { count, Damaged, json, list, string } from './checked.ts'
import { type Fillings, formAt, type KnownForm } from './form.ts'
import { numbersOf } from './numerals.ts'
import { DELTA_TYPES, MOST_CITED, PLACE, RUN } from './packer.ts'
import { type Place, Said } from './said.ts'
import { lengthened } from './shortened.ts'

/** Which events of a row are asked for; the others are passed over. */
export interface Wanted {
  /** The first seq. */
  readonly from: number
  /** The seq after the last. */
  readonly to: number
  /** Deltas only from this seq on; 0 by default. */
  readonly deltasFrom?: number
}

export interface Unpacked {
  /** In order; without the deltas that are not wanted. */
  readonly events: SessionEvent[]
  /** By index: the event was made of a form, so it has the shape of its type. */
  readonly formed: boolean[]
  /** Of the last event before `to`, whether it is wanted or not; epoch ms. */
  readonly time: number
}

/** Where a row lies in its log. */
export interface Span {
  readonly first: number
  readonly last: number
}

/** The wanted events of a row whose text was parsed. @throws Damaged */
export function unpackRow(parsed: readonly unknown[], span: Span, wanted: Wanted): Unpacked {
  return new RowUnpacker(span, wanted).unpack(parsed)
}

class RowUnpacker {
  readonly #said = new Said()
  readonly #span: Span
  readonly #wanted: Wanted
  readonly #deltasFrom: number
  readonly #events: SessionEvent[] = []
  readonly #formed: boolean[] = []
  /** Of the last event before the end that is wanted. */
  #time = 0
  /** Of the next event. */
  #seq: number
  #cited = 0

  constructor(span: Span, wanted: Wanted) {
    this.#span = span
    this.#wanted = wanted
    this.#deltasFrom = wanted.deltasFrom ?? 0
    this.#seq = span.first
  }

  unpack([time, ...items]: readonly unknown[]): Unpacked {
    this.#said.time = count(time)
    for (const item of items) {
      if (Array.isArray(item)) this.#takeList(item)
      else this.#takeWhole(item)
    }
    if (this.#seq !== this.#span.last + 1) throw new Damaged('another number of events')
    return { events: this.#events, formed: this.#formed, time: this.#time }
  }

  #takeList(item: readonly unknown[]): void {
    const [kind] = item
    if (kind === RUN) this.#takeRun(item)
    else if (kind === PLACE) this.#takePlace(item)
    else this.#takeFormed(item)
  }

  /** The next event is there; `time` is its own. */
  #pass(time: number): void {
    this.#said.time = time
    if (this.#seq < this.#wanted.to) this.#time = time
    this.#seq += 1
  }

  #isWanted(): boolean {
    return this.#seq >= this.#wanted.from && this.#seq < this.#wanted.to
  }

  #give(event: SessionEvent, formed: boolean): void {
    this.#events.push(event)
    this.#formed.push(formed)
  }

  #takeWhole(item: unknown): void {
    if (typeof item !== 'object' || item === null) throw new Damaged('no event')
    const event = item as SessionEvent
    if (event.seq !== this.#seq) throw new Damaged('an event in the place of another')
    if (this.#isWanted()) this.#give(event, false)
    this.#pass(isCount(event.time) ? event.time : this.#said.time)
  }

  #takePlace(item: readonly unknown[]): void {
    const [, turn, step, attempt, ...rest] = item
    if (rest.length > 0) throw new Damaged('more than a place')
    this.#said.moveTo({ turn: count(turn), step: count(step), attempt: count(attempt) })
  }

  #takeRun(item: readonly unknown[]): void {
    const [, number, index, text, lengths, times = '', ...rest] = item
    const type = typeof number === 'number' ? DELTA_TYPES[number] : undefined
    if (type === undefined || rest.length > 0) throw new Damaged('a run')
    const whole = string(text)
    const { turn, step, attempt } = this.#said.place
    if (turn < 1 || step < 1 || attempt < 1) throw new Damaged('a run of no attempt')
    const block: DeltaBlock = { turn, step, attempt, type, index: count(index) }
    this.#takeDeltas(block, whole, { lengths: numbersOf(string(lengths)), times: numbersOf(string(times)) })
    this.#said.hearPiece(block.index, whole)
  }

  #takeDeltas(
    block: DeltaBlock,
    text: string,
    { lengths, times }: { lengths: readonly number[]; times: readonly number[] },
  ): void {
    if (lengths.length === 0 || times.length > lengths.length) throw new Damaged('times of no deltas')
    let from = 0
    for (let i = 0; i < lengths.length; i++) {
      const to = from + (lengths[i] as number)
      const time = count(this.#said.time + (times[i] ?? 0))
      if (this.#seq >= this.#deltasFrom && this.#isWanted()) {
        this.#give(deltaEvent(block, this.#seq, time, text.slice(from, to)), true)
      }
      this.#pass(time)
      from = to
    }
    if (from !== text.length) throw new Damaged('a text of another length')
  }

  #takeFormed(item: readonly unknown[]): void {
    const known = formAt(item[0])
    const fillings = new FillingReader(item, 2, this.#said)
    const time = count(this.#said.time + count(item[1]))
    const sources = known.form.cites === true ? this.#cites(known, fillings) : undefined
    // Its first hole is the block's index.
    if (known.endsBlock) this.#said.endBlock(count(fillings.first()))
    const data = known.data(fillings)
    const { type, surfaceOp } = known.form
    const event = {
      ...{ type, seq: this.#seq, time, data },
      ...(surfaceOp === undefined ? {} : { surfaceOp }),
      ...(sources === undefined ? {} : { sourceEventSeqs: sources }),
    } as SessionEvent
    this.#hearPiece(event)
    if (this.#isWanted()) this.#give(event, true)
    this.#pass(time)
  }

  #cites({ form }: KnownForm, fillings: FillingReader): readonly number[] {
    const [back, many] = [count(fillings.next()), count(fillings.next())]
    this.#cited += many
    const none = many === 0
    if (this.#cited > MOST_CITED || (none && form.type !== 'assistant/message')) throw new Damaged('what it cites')
    if (!none && (back > this.#seq || many > back)) throw new Damaged('it cites what is no earlier event')
    return Array.from({ length: many }, (_, i) => this.#seq - back + i)
  }

  #hearPiece(event: SessionEvent): void {
    if (event.type !== 'assistant/chunk' || event.data.chunk.type !== 'tool-call-delta') return
    this.#said.hearPiece(event.data.chunk.index, event.data.chunk.argumentsDelta)
  }
}

class FillingReader implements Fillings {
  readonly #items: readonly unknown[]
  readonly #said: Said
  #at: number
  #last: unknown

  constructor(items: readonly unknown[], from: number, said: Said) {
    this.#items = items
    this.#at = from
    this.#said = said
  }

  get place(): Place {
    return this.#said.place
  }

  isOver(): boolean {
    return this.#at >= this.#items.length
  }

  /** What comes next, without taking it. */
  first(): unknown {
    return this.#items[this.#at]
  }

  next(): unknown {
    if (this.isOver()) throw new Damaged('less than its form asks for')
    return this.#items[this.#at++]
  }

  word(): unknown {
    this.#last = this.#word(this.next())
    return this.#last
  }

  again(): unknown {
    return this.#last
  }

  number(): number {
    return count(this.next())
  }

  list(): FillingReader {
    return new FillingReader(list(this.next()), 0, this.#said)
  }

  json(): unknown {
    const given = this.next()
    if (!Array.isArray(given)) return json(this.#said.stringAt(given))
    const [value] = given
    if (given.length !== 1) throw new Damaged('no JSON')
    this.#said.hear(JSON.stringify(value))
    return value
  }

  #word(given: unknown): unknown {
    if (typeof given === 'number') return given
    if (!Array.isArray(given)) return this.#heard(string(given))
    const [said] = given
    if (given.length !== 1) throw new Damaged('no word')
    return typeof said === 'string' ? this.#heard(lengthened(said)) : this.#said.stringAt(said)
  }

  #heard(text: string): string {
    this.#said.hear(text)
    return text
  }
}
