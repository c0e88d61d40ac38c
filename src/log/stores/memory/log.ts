/**
 * The events of one session in memory, by seq. Events are kept as they were given; neighbouring deltas, most of any log,
 * are kept as runs that say once what they share, and made again for who reads them.
 */
import type { SessionEvent } from '../../events.ts'
import { type DeltaBlock, deltaEvent, isSameBlock, type PlainDelta, plainDelta } from '../deltas.ts'

interface Run {
  readonly first: number
  readonly block: DeltaBlock
  readonly texts: string[]
  /** Of each delta; none while all came at once. */
  times: number[] | undefined
  time: number
}

type Entry = SessionEvent | Run

const isRun = (entry: Entry): entry is Run => 'texts' in entry
const firstOf = (entry: Entry): number => (isRun(entry) ? entry.first : entry.seq)

export class MemoryLog {
  length = 0
  /** Of the last event, epoch ms. */
  time: number | undefined
  readonly #entries: Entry[] = []
  /** Where the last event was found: reading goes on from there. */
  #place = 0

  /** The next events, frozen all through. */
  push(events: readonly SessionEvent[]): void {
    for (const event of events) {
      const delta = plainDelta(event)
      if (delta === undefined) this.#entries.push(event)
      else if (!this.#joinRun(delta)) this.#entries.push(runOf(event.seq, delta))
      this.length += 1
      this.time = event.time
    }
  }

  at(seq: number): SessionEvent | undefined {
    if (seq < 0 || seq >= this.length) return undefined
    return eventAt(this.#entries[this.#find(seq)] as Entry, seq)
  }

  #joinRun({ block, time, text }: PlainDelta): boolean {
    const run = this.#entries.at(-1)
    if (run === undefined || !isRun(run) || !isSameBlock(run.block, block)) return false
    if (time !== run.time) run.times ??= run.texts.map(() => run.time)
    run.times?.push(time)
    run.texts.push(text)
    run.time = time
    return true
  }

  /** The index of the entry with the event of that seq. */
  #find(seq: number): number {
    if (this.#isAt(this.#place, seq)) return this.#place
    if (this.#isAt(this.#place + 1, seq)) return ++this.#place
    let [low, high] = [0, this.#entries.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (firstOf(this.#entries[middle] as Entry) <= seq) low = middle
      else high = middle - 1
    }
    this.#place = low
    return low
  }

  #isAt(place: number, seq: number): boolean {
    const entry = this.#entries[place]
    if (entry === undefined || firstOf(entry) > seq) return false
    const next = this.#entries[place + 1]
    return next === undefined || firstOf(next) > seq
  }
}

const runOf = (first: number, { block, time, text }: PlainDelta): Run => ({
  first,
  block,
  texts: [text],
  times: undefined,
  time,
})

const timeAt = ({ first, times, time }: Run, seq: number): number => times?.[seq - first] ?? time

const eventAt = (entry: Entry, seq: number): SessionEvent => (isRun(entry) ? deltaAt(entry, seq) : entry)

/** Frozen, as every event of the store is. */
function deltaAt(run: Run, seq: number): SessionEvent {
  const event = deltaEvent(run.block, seq, timeAt(run, seq), run.texts[seq - run.first] as string)
  if (event.type === 'assistant/chunk') Object.freeze(event.data.chunk)
  Object.freeze(event.data)
  return Object.freeze(event)
}
