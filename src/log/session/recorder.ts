/**
 * Recording: events are validated all together, then get their place and join the batch in hand. One bad event and
 * none is recorded, and the next one takes the seq it would have had.
 */
import { InvalidEvent } from '../errors.ts'
import {
  type KnownEvent,
  type NewEvent,
  type Recordable,
  type SessionEvent,
  SURFACE,
  type TurnLimits,
} from '../events.ts'
import { frozenJson, type Json } from '../json.ts'
import type { StreamChunk } from '../messages.ts'
import { streamChunk } from '../shapes.ts'
import type { CommandOutcome } from '../store.ts'
import { placed, type ValidEvent, validateNew } from '../validate.ts'
import type { ChunkPlace, SessionOptions } from './contract.ts'
import { report } from './failure.ts'
import type { Folded } from './folded.ts'
import type { Batch, Take } from './writer.ts'

/** A plug-in's event before it has a place; its data is not trusted. */
export interface Note {
  readonly type: string
  readonly data: unknown
  readonly ignorable: true
}

type RecorderOptions = Pick<SessionOptions, 'now' | 'limits' | 'held' | 'masked' | 'onSealed' | 'summary' | 'eager'>

/** Takes each sealed batch, in order. */
interface Queue {
  enqueue(batch: Batch): void
}

export interface Recorder {
  /** The number of the last batch that holds anything; 0 if none did. */
  readonly lastBatch: number
  /** @throws InvalidEvent, NotJson, TooLarge: nothing is recorded then. */
  record(events: readonly (Recordable | Note)[]): readonly SessionEvent[]
  /** As `record`, for events made of values that were guarded and masked when they came in: nothing is looked at again. */
  recordOwn(events: readonly Recordable[]): readonly SessionEvent[]
  /** Records a masked chunk; it is sealed with what comes next, or when the event loop turns. @throws as `record` */
  recordChunk(place: ChunkPlace, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'>
  take(id: string, outcome: CommandOutcome): void
  seal(): void
  /** Seals what is in hand if that is deltas alone. */
  sealDeltas(): void
  /** Nothing is in hand. */
  readonly isEmpty: boolean
  /** What is recorded and not yet queued for the store, oldest first. */
  inHand(): readonly SessionEvent[]
}

/** A longer delta goes the long way, where its size is checked. */
const SHORT = 16_384

/** A frozen copy of a delta of text that is exactly that: what may be recorded without another look. */
function plainDelta(chunk: StreamChunk): StreamChunk | undefined {
  const { type } = chunk
  if (type !== 'text-delta' && type !== 'reasoning-delta') return undefined
  const { index, text } = chunk
  if (typeof text !== 'string' || text.length > SHORT || !Number.isSafeInteger(index) || index < 0) return undefined
  let keys = 0
  for (const _ in chunk) keys += 1
  return keys === 3 ? Object.freeze({ type, index, text }) : undefined
}

/** @throws NotJson, InvalidEvent */
function guardedChunk(chunk: StreamChunk): StreamChunk {
  const copy = frozenJson(chunk, 'assistant/chunk: data.chunk')
  const wrong = streamChunk(copy as Json)
  if (wrong !== undefined) throw new InvalidEvent(`assistant/chunk: data.chunk${wrong}`)
  return copy
}

export const createRecorder = (folded: Folded, options: RecorderOptions, queue: Queue): Recorder =>
  new BatchRecorder(folded, options, queue)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class BatchRecorder implements Recorder {
  readonly #folded: Folded
  readonly #options: RecorderOptions
  readonly #queue: Queue
  /** The number of the last batch that was opened. */
  #number = 0
  /** The batch in hand; none while nothing is in it. */
  #hand: Batch | undefined
  #sealing: Batch | undefined
  /** Seals the deltas in hand, if nothing has by then. */
  #due: ReturnType<typeof setImmediate> | undefined

  constructor(folded: Folded, options: RecorderOptions, queue: Queue) {
    this.#folded = folded
    this.#options = options
    this.#queue = queue
  }

  get lastBatch(): number {
    return this.#number
  }

  record(events: readonly (Recordable | Note)[]): readonly SessionEvent[] {
    const valid = this.#validated(events)
    for (const event of valid) {
      this.#folded.place(event)
      const hand = this.#open()
      hand.events.push(event)
      hand.bytes += ENVELOPE_BYTES + roughBytes(event.data)
      if (event.type !== 'assistant/chunk') hand.patient = false
    }
    return valid
  }

  recordOwn(events: readonly Recordable[]): readonly SessionEvent[] {
    const sizes: number[] = []
    for (const event of events) {
      const bytes = frozenBytes(event.data)
      // Rare, and worth every look.
      if (bytes > LARGE || mayHoldUnmasked(event)) return this.record(events)
      sizes.push(bytes)
    }
    const time = this.#now()
    return events.map((event, i) => this.#recordOne(event, time, sizes[i] ?? 0))
  }

  #recordOne(event: Recordable, time: number, bytes: number): SessionEvent {
    const own = this.#own(event, time)
    this.#folded.place(own)
    const hand = this.#open()
    hand.events.push(own)
    hand.bytes += ENVELOPE_BYTES + bytes
    hand.patient = false
    return own
  }

  #own(event: Recordable, time: number): SessionEvent {
    const { type, data } = event
    if (SURFACE.has(type)) return this.#onSurface(event as NewEvent<'tool/result'>, time)
    const seq = this.#folded.nextSeq
    if (type !== 'turn/start') return Object.freeze({ type, seq, time, data }) as SessionEvent
    return Object.freeze({ type, seq, time, data: Object.freeze({ ...data, limits: this.#options.limits }) })
  }

  #onSurface(
    { type, data, surfaceOp = 'append', sourceEventSeqs }: NewEvent<'tool/result'>,
    time: number,
  ): SessionEvent {
    const scheduled = type === 'tool/result' ? this.#folded.calls.scheduledAt(data.message.source.callId) : undefined
    const sources = sourceEventSeqs ?? (scheduled === undefined ? undefined : [scheduled])
    const seq = this.#folded.nextSeq
    // Written out: a spread makes an object of its own hidden class, and freezing it another.
    return sources === undefined
      ? Object.freeze({ type, seq, time, data, surfaceOp })
      : Object.freeze({ type, seq, time, data, surfaceOp, sourceEventSeqs: Object.freeze(sources) })
  }

  recordChunk(place: ChunkPlace, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'> {
    const { turn, step, attempt } = place
    const said = plainDelta(chunk) ?? guardedChunk(chunk)
    const bytes = 'text' in said ? said.text.length : roughBytes(said)
    if (bytes > LARGE) {
      const data = { turn, step, attempt, chunk, ...(request === undefined ? {} : { request }) }
      const [event] = this.record([{ type: 'assistant/chunk', data }])
      this.seal()
      return event as KnownEvent<'assistant/chunk'>
    }
    const data =
      request === undefined ? { turn, step, attempt, chunk: said } : { turn, step, attempt, chunk: said, request }
    const folded = this.#folded
    const event: KnownEvent<'assistant/chunk'> = Object.freeze({
      type: 'assistant/chunk',
      seq: folded.nextSeq,
      time: this.#now(),
      data: Object.freeze(data),
    })
    folded.place(event)
    const hand = this.#open()
    hand.events.push(event)
    hand.bytes += DELTA_BYTES + bytes
    if (!this.#options.held?.()) {
      if (hand.bytes > LARGE || this.#options.eager?.() !== false) this.seal()
      else this.#due ??= setImmediate(onLoopTurn, this)
    }
    return event
  }

  loopTurned(): void {
    this.#due = undefined
    this.seal()
  }

  /** A clock that says no time would make a log that cannot be opened again. */
  #now(): number {
    const now = Math.floor(this.#options.now())
    return Number.isSafeInteger(now) ? Math.max(this.#folded.lastTime, now) : this.#folded.lastTime
  }

  take(id: string, outcome: CommandOutcome): void {
    // The command happened in what follows it, not in the chunks before.
    this.sealDeltas()
    const hand = this.#open()
    hand.takes = [...hand.takes, { id, outcome }]
    hand.patient = false
  }

  seal(): void {
    // What an observer records is sealed below, as the next batch.
    if (this.#sealing !== undefined || this.#options.held?.()) return
    while (this.#hand !== undefined) this.#sealHand(this.#hand)
  }

  sealDeltas(): void {
    if (this.#hand?.patient) this.seal()
  }

  get isEmpty(): boolean {
    return this.#hand === undefined && this.#sealing === undefined
  }

  inHand(): readonly SessionEvent[] {
    return [...(this.#sealing?.events ?? []), ...(this.#hand?.events ?? [])]
  }

  #open(): Batch {
    this.#hand ??= { number: ++this.#number, events: [], takes: NO_TAKES, bytes: 0, patient: true }
    return this.#hand
  }

  #sealHand(batch: Batch): void {
    this.#hand = undefined
    this.#sealing = batch
    if (batch.takes.length > 0) batch.takes = batch.takes.map((take) => located(take, batch.events[0]))
    report(() => this.#options.onSealed?.(batch.events))
    report(() => {
      batch.summary = this.#options.summary?.()
    })
    this.#sealing = undefined
    this.#queue.enqueue(batch)
  }

  /** Changes nothing: what it throws leaves the session as it was. */
  #validated(events: readonly (Recordable | Note)[]): readonly SessionEvent[] {
    const folded = this.#folded
    const { limits } = this.#options
    const time = this.#now()
    const placed: SessionEvent[] = []
    for (const event of events) {
      const valid = this.#masked(validateNew(stamped(event, limits)))
      const place = { seq: folded.nextSeq + placed.length, time }
      placed.push(this.#sourced(valid, place, placed))
    }
    for (const event of placed) this.#checkSurface(event, placed.length)
    return placed
  }

  /** Valid data, masked and checked once more if that changed it. */
  #masked(valid: ValidEvent): ValidEvent {
    const { type, marks } = valid
    const data = this.#options.masked?.(type, valid.data) ?? valid.data
    return data === valid.data ? valid : validateNew({ type, data, ...marks })
  }

  /** The event in its place. A result that names no sources comes from its call, if that was scheduled in the open step. */
  #sourced(valid: ValidEvent, place: Place, before: readonly SessionEvent[]): SessionEvent {
    const event = placedAt(valid, place)
    if (event.type !== 'tool/result' || event.sourceEventSeqs !== undefined) return event
    const { callId } = event.data.message.source
    const call = before.findLast((each) => each.type === 'tool/call' && each.data.callId === callId)
    const source = call?.seq ?? this.#folded.calls.scheduledAt(callId)
    if (source === undefined) return event
    return placedAt({ ...valid, marks: { ...valid.marks, sourceEventSeqs: Object.freeze([source]) } }, place)
  }

  /** A replacement is checked against the surface as it is, so nothing may change that before it is placed. */
  #checkSurface(event: SessionEvent, recorded: number): void {
    if (typeof event.surfaceOp !== 'object') return
    if (recorded > 1) throw new InvalidEvent(`${event.type}: what replaces part of the surface is recorded alone`)
    this.#folded.surface.check(event)
  }
}

const onLoopTurn = (recorder: BatchRecorder): void => recorder.loopTurned()

const NO_TAKES: readonly Take[] = Object.freeze([])

/** Rough bytes of an envelope around its data. */
const ENVELOPE_BYTES = 64
/** Of a delta without its text. */
const DELTA_BYTES = 160

/** About how many bytes a JSON value is, without making its text. */
function roughBytes(value: unknown): number {
  if (typeof value === 'string') return 2 + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = 2
  if (Array.isArray(value)) for (const item of value) bytes += roughBytes(item)
  else for (const [key, item] of Object.entries(value)) bytes += 4 + key.length + roughBytes(item)
  return bytes
}

/** More bytes than this, and an event is looked at as one from outside is: its size is bounded. */
const LARGE = 65_536

/** Freezes what is not frozen yet, and tells about how many bytes it is. What is frozen is frozen all through. */
function frozenBytes(value: unknown): number {
  if (typeof value === 'string') return 2 + value.length
  if (typeof value !== 'object' || value === null) return 8
  let bytes = 2
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) bytes += frozenBytes(value[i])
  else for (const key in value) bytes += 4 + key.length + frozenBytes((value as Record<string, unknown>)[key])
  if (!Object.isFrozen(value)) Object.freeze(value)
  return bytes
}

/** All others are made of what was masked on its way in. */
function mayHoldUnmasked(event: Recordable): boolean {
  switch (event.type) {
    case 'turn/start':
    case 'request/header':
    case 'step/start':
    case 'agent/inbox/spliced':
    case 'user/message':
    case 'assistant/message':
    case 'tool/call':
    case 'tool/dispatch':
      return typeof ('surfaceOp' in event ? event.surfaceOp : undefined) === 'object'
    case 'step/end':
      return event.data.outcome.kind === 'error'
    case 'turn/end':
      return event.data.reason.kind !== 'completed'
    case 'tool/result':
      return event.data.error !== undefined || event.data.message.content[0].isError === true
    default:
      return true
  }
}

/** A command that was taken and names no event happened in the first event of its batch. */
function located(take: Take, first: SessionEvent | undefined): Take {
  if (take.outcome.kind !== 'taken' || take.outcome.seq !== undefined || first === undefined) return take
  return { id: take.id, outcome: { kind: 'taken', seq: first.seq } }
}

/** The event with what the session adds to it, unless given. */
function stamped(event: Recordable | Note, limits: TurnLimits): unknown {
  if (event.type === 'turn/start') return { ...event, data: withLimits(event.data, limits) }
  return SURFACE.has(event.type) ? { surfaceOp: 'append', ...event } : event
}

const withLimits = (data: unknown, limits: TurnLimits): unknown =>
  typeof data === 'object' ? { ...data, limits, ...data } : data

interface Place {
  readonly seq: number
  readonly time: number
}

const placedAt = (valid: ValidEvent, { seq, time }: Place): SessionEvent => placed(valid, seq, time)
