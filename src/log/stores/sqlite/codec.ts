/**
 * Encoding 3 of a row: a JSON array of the time of its first event, and of items. An item is an event as it is; or a
 * list that begins with the number of its form; or a run of deltas; or what the next ones are of: turn, step, attempt.
 * Strings said before in the row are said by their number. What is unpacked equals what was packed, key order included.
 */
import type { SessionEvent } from '../../events.ts'
import { ATTEMPT, type EventForm, type Form, FORMS, J, SEQS, STEP, TURN, V } from './forms.ts'

/** `log.encoding`. */
export const FORMED = 3

/** First elements of items that are no forms'. */
const RUN = -1
const OF = -2

/** Shorter strings are not worth a number. */
const LEAST = 8

type Scalar = string | number | boolean
type Fields = { readonly [key: string]: unknown }

/** Known to who packs and who unpacks alike: what was said, and of what. */
class Row {
  turn = 0
  step = 0
  attempt = 0
  readonly numbers = new Map<string, number>()
  readonly strings: string[] = []
  /** Of tool calls whose arguments come in pieces, by block. */
  #pieces: Map<number, string> | undefined

  hear(text: string): void {
    if (text.length < LEAST || this.numbers.has(text)) return
    this.numbers.set(text, this.strings.length)
    this.strings.push(text)
  }

  /** What is said in pieces is heard as a whole where its block ends. */
  follow(event: SessionEvent): void {
    if (event.type !== 'assistant/chunk') return
    const chunk = event.data?.chunk
    if (chunk?.type !== 'tool-call-delta' || typeof chunk.argumentsDelta !== 'string') return
    this.#pieces ??= new Map()
    this.#pieces.set(chunk.index, (this.#pieces.get(chunk.index) ?? '') + chunk.argumentsDelta)
  }

  close(index: number): void {
    const whole = this.#pieces?.get(index)
    if (whole === undefined) return
    this.hear(whole)
    this.#pieces?.delete(index)
  }
}

interface Compiled {
  readonly number: number
  readonly form: EventForm
  /** Of the envelope. */
  readonly keys: number
  readonly data: Node
  readonly endsBlock: boolean
}

type Node =
  | { readonly kind: 'hole'; readonly hole: symbol }
  | { readonly kind: 'same'; readonly value: Scalar }
  | { readonly kind: 'list'; readonly items: readonly Node[] }
  | { readonly kind: 'fields'; readonly keys: readonly string[]; readonly nodes: readonly Node[] }

function compile(form: Form): Node {
  if (typeof form === 'symbol') return { kind: 'hole', hole: form }
  if (typeof form !== 'object') return { kind: 'same', value: form }
  if (Array.isArray(form)) return { kind: 'list', items: form.map(compile) }
  const keys = Object.keys(form)
  return { kind: 'fields', keys, nodes: keys.map((key) => compile((form as { readonly [key: string]: Form })[key] as Form)) }
}

const COMPILED: readonly Compiled[] = FORMS.map((form, number) => ({
  number,
  form,
  keys: 4 + (form.surfaceOp === undefined ? 0 : 1) + (form.sourceEventSeqs === undefined ? 0 : 1),
  data: compile(form.data),
  endsBlock: JSON.stringify(form.data).includes('"block-end"'),
}))

const BY_TYPE = new Map<string, readonly Compiled[]>()
for (const one of COMPILED) BY_TYPE.set(one.form.type, [...(BY_TYPE.get(one.form.type) ?? []), one])

/** What fills the holes, in order: scalars to say, JSON as it is, and of seqs how far back and how many. */
type Filling = { readonly hole: symbol; readonly value: unknown }

function fits(node: Node, value: unknown, row: Row, holes: Filling[]): boolean {
  switch (node.kind) {
    case 'same':
      return value === node.value
    case 'hole':
      return fills(node.hole, value, row, holes)
    case 'list': {
      if (!Array.isArray(value) || value.length !== node.items.length) return false
      for (let i = 0; i < value.length; i++) if (!fits(node.items[i] as Node, value[i], row, holes)) return false
      return true
    }
    case 'fields': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
      let i = 0
      for (const key in value) {
        if (key !== node.keys[i] || !fits(node.nodes[i] as Node, (value as Fields)[key], row, holes)) return false
        i += 1
      }
      return i === node.keys.length
    }
  }
}

function fills(hole: symbol, value: unknown, row: Row, holes: Filling[]): boolean {
  switch (hole) {
    case TURN:
      return value === row.turn
    case STEP:
      return value === row.step
    case ATTEMPT:
      return value === row.attempt
    case J:
      holes.push({ hole, value })
      return value !== undefined
    default: {
      const type = typeof value
      holes.push({ hole, value })
      return type === 'string' || type === 'number' || type === 'boolean'
    }
  }
}

/** How far back the first is and how many there are; undefined for seqs with a gap. */
function span(seqs: unknown, seq: number): readonly [number, number] | undefined {
  if (!Array.isArray(seqs)) return undefined
  const first = seqs[0]
  for (let i = 0; i < seqs.length; i++) if (seqs[i] !== first + i) return undefined
  return seqs.length === 0 ? [0, 0] : [seq - first, seqs.length]
}

function keysOf(value: object): number {
  let keys = 0
  for (const _ in value) keys += 1
  return keys
}

/** A delta of text that is exactly that. */
function isDelta(event: SessionEvent): boolean {
  if (event.type !== 'assistant/chunk') return false
  const { data } = event
  // A store is given whatever a caller records, also what no session would.
  const chunk = data?.chunk
  if (chunk?.type !== 'text-delta' && chunk?.type !== 'reasoning-delta') return false
  return (
    typeof chunk.text === 'string' && isExactly(event, ENVELOPE) && isExactly(data, DATA) && isExactly(chunk, CHUNK)
  )
}

const ENVELOPE = ['type', 'seq', 'time', 'data']
const DATA = ['turn', 'step', 'attempt', 'chunk']
const CHUNK = ['type', 'index', 'text']

function isExactly(value: object, keys: readonly string[]): boolean {
  let i = 0
  for (const key in value) if (key !== keys[i++]) return false
  return i === keys.length
}

/** The events of one row on their way into it. */
export class FormedRow {
  readonly first: number
  last: number
  readonly encoding = FORMED
  /** Characters of the events as they would be unpacked, more or less. */
  length = 0
  readonly #row = new Row()
  #text = ''
  #time = 0
  #run: { readonly type: string; readonly index: number; readonly texts: string[]; readonly later: number[]; moved: boolean } | undefined

  constructor(first: number) {
    this.first = first
    this.last = first - 1
  }

  add(event: SessionEvent): void {
    this.last = event.seq
    if (this.#text === '') {
      this.#text = `[${event.time}`
      this.#time = event.time
    }
    if (isDelta(event)) return this.#addDelta(event as never)
    this.#endRun()
    this.#place(event)
    this.#text += `,${this.#formed(event) ?? this.#raw(event)}`
    this.#row.follow(event)
  }

  end(): string {
    this.#endRun()
    return `${this.#text}]`
  }

  #addDelta({ time, data: { turn, step, attempt, chunk } }: { time: number; data: { turn: number; step: number; attempt: number; chunk: { type: string; index: number; text: string } } }): void {
    const { type, index, text } = chunk
    const run = this.#run
    const row = this.#row
    const goesOn = run !== undefined && run.type === type && run.index === index
    if (!goesOn || row.turn !== turn || row.step !== step || row.attempt !== attempt) {
      this.#endRun()
      this.#of(turn, step, attempt)
      this.#run = { type, index, texts: [], later: [], moved: false }
    }
    const open = this.#run as NonNullable<typeof run>
    const later = time - this.#time
    this.#time = time
    open.texts.push(text)
    open.later.push(later)
    if (later !== 0) open.moved = true
    this.length += 140 + text.length
  }

  #endRun(): void {
    const run = this.#run
    if (run === undefined) return
    this.#run = undefined
    const { type, index, texts, later, moved } = run
    const times = moved ? `,${JSON.stringify(later)}` : ''
    this.#text += `,[${RUN},${type === 'text-delta' ? 0 : 1},${index},${JSON.stringify(texts)}${times}]`
    this.#row.hear(texts.join(''))
  }

  #place({ data }: SessionEvent): void {
    const { turn, step, attempt } = (data ?? {}) as Fields
    const row = this.#row
    const of = (given: unknown, known: number): number => (typeof given === 'number' ? given : known)
    this.#of(of(turn, row.turn), of(step, row.step), of(attempt, row.attempt))
  }

  #of(turn: number, step: number, attempt: number): void {
    const row = this.#row
    if (row.turn === turn && row.step === step && row.attempt === attempt) return
    row.turn = turn
    row.step = step
    row.attempt = attempt
    this.#text += `,[${OF},${turn},${step},${attempt}]`
  }

  #formed(event: SessionEvent): string | undefined {
    const { type, seq, time, data, surfaceOp, sourceEventSeqs } = event
    for (const compiled of BY_TYPE.get(type) ?? []) {
      const { form, number } = compiled
      if (keysOf(event) !== compiled.keys || surfaceOp !== form.surfaceOp) continue
      const sources = form.sourceEventSeqs === undefined ? undefined : span(sourceEventSeqs, seq)
      if (form.sourceEventSeqs !== undefined && sources === undefined) continue
      const holes: Filling[] = []
      if (!fits(compiled.data, data, this.#row, holes)) continue
      if (compiled.endsBlock) this.#row.close((event.data as { chunk: { index: number } }).chunk.index)
      let text = `[${number},${time - this.#time}`
      this.#time = time
      if (sources !== undefined) text += `,${sources[0]},${sources[1]}`
      for (const { hole, value } of holes) text += `,${hole === J ? JSON.stringify(value) : this.#said(value as Scalar)}`
      this.length += text.length + 120
      return `${text}]`
    }
    return undefined
  }

  #said(value: Scalar): string {
    if (typeof value !== 'string') return String(value)
    if (value.length < LEAST) return JSON.stringify(value)
    const known = this.#row.numbers.get(value)
    if (known !== undefined) return `[${known}]`
    this.#row.hear(value)
    const short = shortened(value)
    return short === undefined ? JSON.stringify(value) : `["${short}"]`
  }

  #raw(event: SessionEvent): string {
    const text = JSON.stringify(event)
    this.length += text.length
    this.#time = event.time
    return text
  }
}

const DIGEST = /^sha256:[0-9a-f]{64}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Digests and ids are hex: they are two thirds as long in base64, and told apart by their length. */
function shortened(value: string): string | undefined {
  if (value.length === 71 && DIGEST.test(value)) return Buffer.from(value.slice(7), 'hex').toString('base64url')
  if (value.length === 36 && UUID.test(value)) return Buffer.from(value.replaceAll('-', ''), 'hex').toString('base64url')
  return undefined
}

function lengthened(short: string): string | undefined {
  const hex = Buffer.from(short, 'base64url').toString('hex')
  if (short.length === 43) return `sha256:${hex}`
  if (short.length !== 22) return undefined
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** What a row holds: its events, and of runs of deltas, where they are not wanted, that they were there. */
export interface Unpacked {
  readonly events: SessionEvent[]
  /** The time of the last event, wanted or not. */
  readonly time: number
  /** How many there are, wanted or not. */
  readonly count: number
  /** By index: it is of a form, so its shape needs no look. */
  readonly formed: readonly boolean[]
}

class Damaged extends Error {}

/** The events of a row's parsed JSON, or undefined where it is not what `FormedRow` makes. */
export function unformed(parsed: unknown, first: number, deltas = true): Unpacked | undefined {
  if (!Array.isArray(parsed) || typeof parsed[0] !== 'number') return undefined
  try {
    return new Unpacking(parsed[0], first, deltas).all(parsed)
  } catch (error) {
    if (error instanceof Damaged || error instanceof TypeError) return undefined
    throw error
  }
}

class Unpacking {
  readonly #row = new Row()
  readonly #deltas: boolean
  readonly #events: SessionEvent[] = []
  readonly #formed: boolean[] = []
  readonly #first: number
  #seq: number
  #time: number
  #item: readonly unknown[] = []
  #at = 0

  constructor(time: number, first: number, deltas: boolean) {
    this.#time = time
    this.#first = first
    this.#seq = first
    this.#deltas = deltas
  }

  all(parsed: readonly unknown[]): Unpacked {
    for (let i = 1; i < parsed.length; i++) {
      const item = parsed[i]
      if (Array.isArray(item)) this.#list(item)
      else this.#push(item as SessionEvent, false)
    }
    return { events: this.#events, time: this.#time, count: this.#seq - this.#first, formed: this.#formed }
  }

  #push(event: SessionEvent, formed: boolean): void {
    this.#events.push(event)
    this.#formed.push(formed)
    this.#row.follow(event)
    this.#time = event.time
    this.#seq += 1
  }

  #list(item: readonly unknown[]): void {
    const [number] = item
    if (number === OF) {
      const [, turn, step, attempt] = item as readonly number[]
      Object.assign(this.#row, { turn, step, attempt })
    } else if (number === RUN) this.#run(item)
    else this.#push(this.#event(item), true)
  }

  #run(item: readonly unknown[]): void {
    const [, kind, index, texts, later] = item as [number, number, number, readonly string[], number[]?]
    if (!Array.isArray(texts)) throw new Damaged()
    const { turn, step, attempt } = this.#row
    const type = kind === 0 ? 'text-delta' : 'reasoning-delta'
    for (let i = 0; i < texts.length; i++) {
      this.#time += later?.[i] ?? 0
      if (this.#deltas) {
        const data = { turn, step, attempt, chunk: { type, index, text: texts[i] } }
        this.#events.push({ type: 'assistant/chunk', seq: this.#seq, time: this.#time, data } as SessionEvent)
        this.#formed.push(true)
      }
      this.#seq += 1
    }
    this.#row.hear(texts.join(''))
  }

  #event(item: readonly unknown[]): SessionEvent {
    const compiled = COMPILED[item[0] as number]
    if (compiled === undefined) throw new Damaged()
    const { form } = compiled
    this.#item = item
    this.#at = 2
    const time = this.#time + (item[1] as number)
    let sources: number[] | undefined
    if (form.sourceEventSeqs !== undefined) {
      const [back, count] = [item[2] as number, item[3] as number]
      sources = Array.from({ length: count }, (_, i) => this.#seq - back + i)
      this.#at = 4
    }
    // The block's index is its first hole.
    if (compiled.endsBlock) this.#row.close(item[2] as number)
    const data = this.#built(compiled.data)
    const event: Record<string, unknown> = { type: form.type, seq: this.#seq, time, data }
    if (form.surfaceOp !== undefined) event.surfaceOp = form.surfaceOp
    if (sources !== undefined) event.sourceEventSeqs = sources
    return event as unknown as SessionEvent
  }

  #built(node: Node): unknown {
    switch (node.kind) {
      case 'same':
        return node.value
      case 'list':
        return node.items.map((item) => this.#built(item))
      case 'fields': {
        const fields: Record<string, unknown> = {}
        for (let i = 0; i < node.keys.length; i++) fields[node.keys[i] as string] = this.#built(node.nodes[i] as Node)
        return fields
      }
      case 'hole':
        return this.#hole(node.hole)
    }
  }

  #hole(hole: symbol): unknown {
    if (hole === TURN) return this.#row.turn
    if (hole === STEP) return this.#row.step
    if (hole === ATTEMPT) return this.#row.attempt
    const value = this.#item[this.#at++]
    if (hole === J) return value
    if (typeof value === 'string') {
      this.#row.hear(value)
      return value
    }
    if (!Array.isArray(value)) {
      if (typeof value === 'object') throw new Damaged()
      return value
    }
    const [said] = value
    const known = typeof said === 'string' ? lengthened(said) : this.#row.strings[said as number]
    if (known === undefined) throw new Damaged()
    if (typeof said === 'string') this.#row.hear(known)
    return known
  }
}

export type { Scalar }
export { SEQS, V }
