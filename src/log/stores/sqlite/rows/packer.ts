/**
 * The events of one row on their way into its text, a JSON array: the time of the first event, then items. An item is an
 * object, an event as it is; or a list: [form, ms since the event before, ...what fills it], a run of deltas, or the
 * place (turn, step, attempt) of what comes next. What is unpacked equals what was packed, the order of keys included.
 */
import type { SessionEvent } from '../../../events.ts'
import { type DeltaBlock, type DeltaType, isCount, isSameBlock, type PlainDelta, plainDelta } from '../../deltas.ts'
import { type Filling, formsOf, type KnownForm, type Match } from './form.ts'
import { numeral } from './numerals.ts'
import { type Place, Said } from './said.ts'
import { shortened } from './shortened.ts'

/** First elements of lists that are of no form. */
export const RUN = -1
export const PLACE = -2

/** In a run, by their number. */
export const DELTA_TYPES: readonly DeltaType[] = ['text-delta', 'reasoning-delta', 'tool-call-delta']

/** All the seqs that the events of a row cite: more are not kept as a span, so that few bytes never ask for much memory. */
export const MOST_CITED = 1 << 18

/** Characters of an event beyond what fills it, more or less. */
const FRAME_LENGTH = 140

interface Run {
  readonly block: DeltaBlock
  text: string
  lengths: string
  /** ms, each since the event before. */
  times: string
  /** Some of them are not 0. */
  moves: boolean
}

export class RowPacker {
  readonly first: number
  last: number
  /** Characters of the events as they will be unpacked, more or less. */
  unpackedLength = 0
  readonly #said = new Said()
  #text = ''
  #cited = 0
  #run: Run | undefined

  constructor(first: number) {
    this.first = first
    this.last = first - 1
  }

  /** Characters of the row so far, more or less. */
  get length(): number {
    const run = this.#run
    return this.#text.length + (run === undefined ? 0 : run.text.length + run.lengths.length)
  }

  /** Takes the next event, which is JSON and frozen. */
  add(event: SessionEvent): void {
    if (this.#text === '') this.#open(event)
    this.last = event.seq
    const delta = plainDelta(event)
    if (delta !== undefined && delta.time >= this.#said.time) {
      this.#addDelta(delta)
      return
    }
    this.#endRun()
    if (!this.#addFormed(event)) this.#addWhole(event)
  }

  /** The row's text; nothing is added after it. */
  end(): string {
    this.#endRun()
    return `${this.#text}]`
  }

  #open({ time }: SessionEvent): void {
    if (isCount(time)) this.#said.time = time
    this.#text = `[${this.#said.time}`
  }

  #addDelta({ block, time, text }: PlainDelta): void {
    let run = this.#run
    if (run === undefined || !isSameBlock(run.block, block)) {
      this.#endRun()
      if (!this.#said.isAt(block)) this.#moveTo(block)
      run = this.#run = { block, text: '', lengths: '', times: '', moves: false }
    }
    const later = time - this.#said.time
    this.#said.time = time
    run.text += text
    run.lengths += numeral(text.length)
    run.times += numeral(later)
    if (later > 0) run.moves = true
    this.unpackedLength += FRAME_LENGTH + text.length
  }

  #endRun(): void {
    const run = this.#run
    if (run === undefined) return
    this.#run = undefined
    const { type, index } = run.block
    const times = run.moves ? `,"${withoutZeros(run.times)}"` : ''
    const text = JSON.stringify(run.text)
    this.#text += `,[${RUN},${DELTA_TYPES.indexOf(type)},${index},${text},"${run.lengths}"${times}]`
    this.#said.hearPiece(index, run.text)
  }

  #moveTo({ turn, step, attempt }: Place): void {
    this.#text += `,[${PLACE},${turn},${step},${attempt}]`
    this.#said.moveTo({ turn, step, attempt })
  }

  #addFormed(event: SessionEvent): boolean {
    const later = event.time - this.#said.time
    if (!isCount(later)) return false
    for (const known of formsOf(event.type)) {
      const match = known.match(event, this.#said.place)
      if (match === undefined) continue
      const cited = known.form.cites === true ? this.#citedBy(event) : ''
      if (cited === undefined) return false
      this.#addMatch(known, match, `${later}${cited}`)
      this.#said.time = event.time
      this.#hearPiece(event)
      return true
    }
    return false
  }

  /** How far back the first of the events it cites is, and how many there are; undefined if they have gaps. */
  #citedBy({ type, seq, sourceEventSeqs: seqs }: SessionEvent): string | undefined {
    if (!Array.isArray(seqs)) return undefined
    const count = seqs.length
    if (count === 0) return type === 'assistant/message' ? ',0,0' : undefined
    const [first]: readonly unknown[] = seqs
    if (!isCount(first) || first + count > seq || seqs.some((cited, i) => cited !== first + i)) return undefined
    this.#cited += count
    return this.#cited > MOST_CITED ? undefined : `,${seq - first},${count}`
  }

  #addMatch({ number, endsBlock }: KnownForm, { place, fillings }: Match, before: string): void {
    const { turn, step, attempt } = this.#said.place
    if (place.turn !== turn || place.step !== step || place.attempt !== attempt) this.#moveTo(place)
    const [index] = fillings
    if (endsBlock && typeof index === 'number') this.#said.endBlock(index)
    const from = this.#text.length
    this.#text += `,[${number},${before}`
    for (const filling of fillings) this.#text += `,${this.#filling(filling)}`
    this.#text += ']'
    this.unpackedLength += FRAME_LENGTH + this.#text.length - from
  }

  #filling(filling: Filling): string {
    if (typeof filling === 'number') return String(filling)
    if (typeof filling === 'string') return this.#word(filling)
    return 'json' in filling ? this.#json(filling.json) : `[${filling.map((one) => this.#filling(one)).join(',')}]`
  }

  /** A string said before is `[its number]`; an id or digest is `["what is short for it"]`. */
  #word(text: string): string {
    const number = this.#said.numberOf(text)
    if (number !== undefined) return `[${number}]`
    this.#said.hear(text)
    const short = shortened(text)
    return short === undefined ? JSON.stringify(text) : `["${short}"]`
  }

  /** JSON said before is its number, any other stands in a list. */
  #json(value: unknown): string {
    const text = JSON.stringify(value)
    const number = this.#said.numberOf(text)
    if (number !== undefined) return String(number)
    this.#said.hear(text)
    return `[${text}]`
  }

  /** Arguments that come in pieces: the first says whose they are, the others are a run. */
  #hearPiece(event: SessionEvent): void {
    if (event.type !== 'assistant/chunk' || event.data.chunk.type !== 'tool-call-delta') return
    this.#said.hearPiece(event.data.chunk.index, event.data.chunk.argumentsDelta)
  }

  #addWhole(event: SessionEvent): void {
    const text = JSON.stringify(event)
    this.#text += `,${text}`
    this.unpackedLength += text.length
    if (isCount(event.time)) this.#said.time = event.time
  }
}

/** Times that stand still at the end need not be said. */
const withoutZeros = (times: string): string => times.replace(/A+$/, '')
