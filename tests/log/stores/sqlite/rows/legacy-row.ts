/** How 0.1.0 packed a row, kept as it was: what it wrote is read for ever. */
import type { SessionEvent } from '../../../../../src/log/events.ts'
import { frozenJson } from '../../../../../src/log/json.ts'
import type { StoredRow } from '../../../../../src/log/stores/sqlite/rows/row.ts'

const JSON_ARRAY = 1
const JSON_RUNS = 2

/** The row of `events` as 0.1.0 wrote it. */
export function legacyRow(events: readonly SessionEvent[]): StoredRow {
  const row = new RowText(events[0]?.seq ?? 0)
  for (const event of events) row.add(event)
  const body = Buffer.from(row.end())
  return { first: row.first, last: row.last, encoding: row.encoding, body }
}

/** What the deltas of a run share: turn, step, attempt, type, index. */
type Shared = readonly [number, number, number, string, number]

/** A run: the time of its first delta, what its deltas share, their texts, and the ms from each to the one before. */
type Run = readonly [time: number, shared: Shared, texts: readonly string[], later: readonly number[]]

/** A delta that may join a run. */
interface Delta {
  readonly shared: Shared
  readonly text: string
}

/** Events of one row on their way into it, from `first` on. */
class RowText {
  readonly first: number
  /** Characters of the events as they would be unpacked, more or less. */
  length = 0
  last: number
  encoding = JSON_ARRAY
  readonly #items: string[] = []
  #run: { shared: Shared; times: number[]; texts: string[] } | undefined

  constructor(first: number) {
    this.first = first
    this.last = first - 1
  }

  /** @throws NotJson */
  add(event: SessionEvent): void {
    // Recorded events were guarded and frozen; others are guarded here. What is no JSON must not be changed to some.
    const safe = frozenJson(event, `event ${event.seq}`)
    const delta = deltaOf(safe)
    this.last = safe.seq
    if (delta === undefined) {
      this.#endRun()
      const json = JSON.stringify(safe)
      this.length += json.length
      this.#items.push(json)
      return
    }
    if (this.#run === undefined || !isSame(this.#run.shared, delta.shared)) {
      this.#endRun()
      this.#run = { shared: delta.shared, times: [], texts: [] }
    }
    this.length += DELTA_LENGTH + delta.text.length
    this.#run.times.push(safe.time)
    this.#run.texts.push(delta.text)
  }

  /** The row's text. */
  end(): string {
    this.#endRun()
    return `[${this.#items.join(',')}]`
  }

  #endRun(): void {
    if (this.#run === undefined) return
    const { shared, times, texts } = this.#run
    const [time = 0] = times
    const later = times.slice(1).map((each, i) => each - (times[i] ?? 0))
    const run: Run = [time, shared, texts, later.some((ms) => ms !== 0) ? later : []]
    this.#items.push(JSON.stringify(run))
    this.#run = undefined
    this.encoding = JSON_RUNS
  }
}

/** A delta's event without its text. */
const DELTA_LENGTH = 140

const isSame = (a: Shared, b: Shared): boolean => a.every((value, i) => value === b[i])

const EVENT_KEYS = ['type', 'seq', 'time', 'data']
const DATA_KEYS = ['turn', 'step', 'attempt', 'chunk']
const CHUNK_KEYS = ['type', 'index', 'text']

/** Only an event that unpacking makes again exactly as it is. */
function deltaOf(event: SessionEvent): Delta | undefined {
  if (event.type !== 'assistant/chunk' || !Number.isSafeInteger(event.time) || !has(event, EVENT_KEYS)) return undefined
  if (!has(event.data, DATA_KEYS) || !has(event.data.chunk, CHUNK_KEYS)) return undefined
  const { turn, step, attempt, chunk } = event.data
  if (chunk.type !== 'text-delta' && chunk.type !== 'reasoning-delta') return undefined
  if (typeof chunk.text !== 'string') return undefined
  return { shared: [turn, step, attempt, chunk.type, chunk.index], text: chunk.text }
}

/** Exactly these keys, in this order. */
function has(value: unknown, keys: readonly string[]): boolean {
  // A store is given whatever a caller records, also what no session would.
  if (typeof value !== 'object' || value === null) return false
  const found = Object.keys(value)
  return found.length === keys.length && found.every((key, i) => key === keys[i])
}
