/** Opening: the stored log is read once, refused where it breaks a rule, and folded. Its events are not kept. */
import { Fenced, InvalidEvent, InvalidLog, LogTooNew, StoreFailure } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { inTime, itemsInTime, type Patience } from '../patience.ts'
import { unpaired } from '../projections/pairing.ts'
import type { Checkpoint, LogStore, Ownership, StoredPage } from '../store.ts'
import { validateStored } from '../validate.ts'
import { type CheckpointContent, type CheckpointHolder, decodeCheckpoint } from './checkpoint.ts'
import { asPawlError } from './failure.ts'
import { createFolded, type Folded } from './folded.ts'

export interface LoadOptions {
  readonly patience: Patience
  /** Somebody counts deltas. */
  readonly deltas: boolean
  /** Told of each event in order; without deltas where nobody counts them. */
  onLoaded(event: SessionEvent): void
  /** None: the whole log is folded. */
  readonly checkpoints?: CheckpointHolder | undefined
}

export interface Loaded {
  readonly folded: Folded
  /** What was opened from; undefined where the whole log was read. */
  readonly checkpoint?: { readonly seq: number; readonly bytes: number }
}

/**
 * The folds over the whole stored log, from its checkpoint on where it has one.
 * @throws InvalidLog with seq and rule, LogTooNew, what the store throws, or why the ownership is lost.
 */
export async function load(store: LogStore, ownership: Ownership, options: LoadOptions): Promise<Loaded> {
  const { header, head } = ownership
  const { patience, deltas, checkpoints } = options
  refuseUnreadable(ownership)
  const loading = new Loading(options, checkpoints && (await findCheckpoint(ownership, patience, checkpoints)))
  const { from } = loading
  const doing = `read session "${header.id}"`
  if (store.pages !== undefined && !deltas) {
    for await (const page of itemsInTime(store.pages(header.id, { from }), doing, patience)) loading.takePage(page)
  } else {
    for await (const stored of itemsInTime(store.read(header.id, { from }), doing, patience)) loading.takeStored(stored)
  }
  refuseLost(ownership)
  if (loading.folded.nextSeq !== head) await refuseFenced(ownership, patience)
  return loading.end(head)
}

/** As `load`, without waiting: up to the ownership's head, whoever has written since. */
export function loadNow(store: LogStore, ownership: Ownership, options: LoadOptions): Loaded {
  const { header, head } = ownership
  const { deltas, checkpoints } = options
  refuseUnreadable(ownership)
  const loading = new Loading(
    options,
    checkpoints && readCheckpoint(ownership, checkpoints, () => ownership.checkpointNow?.()),
  )
  const pages = store.readNow?.(header.id, { from: loading.from, to: head, deltas })
  if (pages === undefined) throw new StoreFailure('io', `The store cannot read session "${header.id}" without waiting`)
  for (const page of pages) loading.takePage(page)
  refuseLost(ownership)
  return loading.end(head)
}

function refuseUnreadable({ header, head }: Ownership): void {
  const format: number = header.format
  if (format !== 1) throw new LogTooNew({ format })
  if (header.seedLength !== undefined && head <= header.seedLength) {
    throw new InvalidLog(head, 'SEED', `this fork was cut off while it was made: delete "${header.id}" and fork again`)
  }
}

function refuseLost({ lost }: Ownership): void {
  if (lost.aborted) throw asPawlError(lost.reason, 'keep the session')
}

/** A log as it is folded. */
class Loading {
  readonly folded: Folded
  /** Where reading begins. */
  readonly from: number
  readonly #options: LoadOptions
  readonly #found: Found | undefined

  constructor(options: LoadOptions, found: Found | undefined) {
    this.#options = options
    this.#found = found
    this.folded = createFolded(found?.content.folds)
    this.from = this.folded.nextSeq
  }

  takeStored(stored: unknown): void {
    this.#take(validateStored(stored, this.folded.nextSeq, this.folded.lastTime))
  }

  /** What the store made of its own words has the shape it should; its place in the log is checked all the same. */
  takePage({ first, count, time, events, formed }: StoredPage): void {
    const { folded } = this
    if (first !== folded.nextSeq) throw new InvalidLog(first, 'SEQ-CONTIGUOUS', `expected seq ${folded.nextSeq}`)
    for (const [i, event] of events.entries()) {
      const { seq } = event
      if (!(seq >= folded.nextSeq && seq < first + count)) {
        throw new InvalidLog(seq, 'SEQ-CONTIGUOUS', `found seq ${seq}`)
      }
      this.#take(formed[i] === true ? this.#formed(event) : validateStored(event, seq, folded.lastTime))
    }
    if (time < folded.lastTime) throw new InvalidLog(first + count - 1, 'TIME-MONOTONE', `time ${time}`)
    folded.skipTo(first + count, time)
  }

  /** In its time, and frozen as what was recorded is. */
  #formed(event: SessionEvent): SessionEvent {
    const { seq, time, type } = event
    if (!(Number.isSafeInteger(time) && time >= this.folded.lastTime)) {
      throw new InvalidLog(seq, 'TIME-MONOTONE', `time ${time} is before ${this.folded.lastTime}`)
    }
    // Of chunks nothing is kept.
    return type === 'assistant/chunk' ? event : freeze(event)
  }

  end(head: number): Loaded {
    const { folded, from } = this
    if (folded.nextSeq !== head) {
      throw new InvalidLog(folded.nextSeq, 'HEAD', `the store says ${head} events are here, and ${folded.nextSeq} are`)
    }
    // What a checkpoint covers was written by an owner, who asks nothing of a model while a call has no result.
    if (from < head || from === 0) checkPairing(folded)
    return this.#found === undefined ? { folded } : { folded, checkpoint: { seq: from, bytes: this.#found.bytes } }
  }

  #take(event: SessionEvent): void {
    placeStored(this.folded, event)
    this.#options.onLoaded(event)
  }
}

interface Found {
  readonly content: CheckpointContent
  readonly bytes: number
}

/** The checkpoint that the log can be opened from. Whatever is wrong with one, the log itself can be read. */
async function findCheckpoint(
  ownership: Ownership,
  patience: Patience,
  holder: CheckpointHolder,
): Promise<Found | undefined> {
  const doing = `read the checkpoint of session "${ownership.header.id}"`
  const asked = ownership.checkpoint?.()
  const checkpoint = asked && (await inTime(asked, doing, patience).catch(() => undefined))
  return readCheckpoint(ownership, holder, () => checkpoint)
}

function readCheckpoint(
  { header, head }: Ownership,
  holder: CheckpointHolder,
  find: () => Checkpoint | undefined,
): Found | undefined {
  try {
    const checkpoint = find()
    if (checkpoint === undefined || checkpoint.seq > head || checkpoint.seq <= (header.seedLength ?? 0)) {
      return undefined
    }
    const content = decodeCheckpoint({ header, maker: holder.maker }, checkpoint)
    if (content === undefined || !holder.restore(content.holder)) return undefined
    return { content, bytes: checkpoint.body.byteLength }
  } catch {
    return undefined // Of what the store or the folds throw at it, nothing concerns the log.
  }
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const key in value) freeze(value[key])
  return Object.freeze(value)
}

/** A log that grew may have another owner by now, which this one was not told of yet; then nothing is wrong with it. */
async function refuseFenced(ownership: Ownership, patience: Patience): Promise<void> {
  try {
    const append = ownership.append([], { expectedSeq: ownership.head })
    await inTime(append, `append to session "${ownership.header.id}"`, patience)
  } catch (error) {
    if (error instanceof Fenced) throw error
    // Anything else says less than the log at hand.
  }
}

/** No provider takes a history with a call unanswered, so every later request would fail. */
function checkPairing({ surface, nextSeq, step }: Folded): void {
  const messages = surface.messages()
  const answer = messages.findLastIndex(({ role }) => role === 'assistant')
  const wrong = unpaired(step === 'calling' ? messages.slice(0, answer) : messages)
  if (wrong !== undefined) throw new InvalidLog(nextSeq - 1, 'HISTORY-PAIRING', `${wrong}; verify the log to see where`)
}

function placeStored(folded: Folded, event: SessionEvent): void {
  try {
    folded.place(event)
  } catch (error) {
    if (error instanceof InvalidEvent) throw new InvalidLog(event.seq, 'SURFACE', error.message)
    throw error
  }
}
