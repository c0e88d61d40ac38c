/** Opening: the stored log is read once, refused where it breaks a rule, and folded. Its events are not kept. */
import { Fenced, InvalidEvent, InvalidLog, LogTooNew } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { inTime, itemsInTime, type Patience } from '../patience.ts'
import { unpaired } from '../projections/pairing.ts'
import type { LogStore, Ownership, StoredPage } from '../store.ts'
import { validateStored } from '../validate.ts'
import { type CheckpointContent, decodeCheckpoint } from './checkpoint.ts'
import type { CheckpointHolder } from './contract.ts'
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
export async function load(
  store: LogStore,
  ownership: Ownership,
  { patience, deltas, onLoaded, checkpoints }: LoadOptions,
): Promise<Loaded> {
  const { header, head, lost } = ownership
  const format: number = header.format
  if (format !== 1) throw new LogTooNew({ format })
  if (header.seedLength !== undefined && head <= header.seedLength) {
    throw new InvalidLog(head, 'SEED', `this fork was cut off while it was made: delete "${header.id}" and fork again`)
  }
  const found = checkpoints && (await findCheckpoint(ownership, patience, checkpoints))
  const folded = createFolded(found?.content.folds)
  const from = folded.nextSeq
  let step: Step = 'closed'
  const take = (event: SessionEvent): void => {
    placeStored(folded, event)
    step = stepAfter(step, event)
    onLoaded(event)
  }
  const doing = `read session "${header.id}"`
  if (store.pages !== undefined && !deltas) {
    for await (const page of itemsInTime(store.pages(header.id, { from }), doing, patience))
      takePage(folded, page, take)
  } else {
    for await (const stored of itemsInTime(store.read(header.id, { from }), doing, patience)) {
      take(validateStored(stored, folded.nextSeq, folded.lastTime))
    }
  }
  if (lost.aborted) throw asPawlError(lost.reason, 'keep the session')
  if (folded.nextSeq !== head) {
    await refuseFenced(ownership, patience)
    throw new InvalidLog(folded.nextSeq, 'HEAD', `the store says ${head} events are here, and ${folded.nextSeq} are`)
  }
  // What a checkpoint covers was written by an owner, who asks nothing of a model while a call has no result.
  if (from < head || from === 0) checkPairing(folded, step)
  return found === undefined ? { folded } : { folded, checkpoint: { seq: from, bytes: found.bytes } }
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
  const { header, head } = ownership
  try {
    const asked = ownership.checkpoint?.()
    const checkpoint = asked && (await inTime(asked, `read the checkpoint of session "${header.id}"`, patience))
    if (checkpoint === undefined || checkpoint.seq > head || checkpoint.seq <= (header.seedLength ?? 0))
      return undefined
    const content = decodeCheckpoint({ header, maker: holder.maker }, checkpoint)
    if (content === undefined || !holder.restore(content.holder)) return undefined
    return { content, bytes: checkpoint.body.byteLength }
  } catch {
    return undefined // Of what the store or the folds throw at it, nothing concerns the log.
  }
}

/** What the store made of its own words has the shape it should; its place in the log is checked all the same. */
function takePage(folded: Folded, page: StoredPage, take: (event: SessionEvent) => void): void {
  const { first, count, time, events, formed } = page
  if (first !== folded.nextSeq) throw new InvalidLog(first, 'SEQ-CONTIGUOUS', `expected seq ${folded.nextSeq}`)
  events.forEach((event, i) => {
    const { seq } = event
    if (!(seq >= folded.nextSeq && seq < first + count)) throw new InvalidLog(seq, 'SEQ-CONTIGUOUS', `found seq ${seq}`)
    if (formed[i] !== true) return take(validateStored(event, seq, folded.lastTime))
    if (!(Number.isSafeInteger(event.time) && event.time >= folded.lastTime)) {
      throw new InvalidLog(seq, 'TIME-MONOTONE', `time ${event.time} is before ${folded.lastTime}`)
    }
    take(KEPT.has(event.type) ? freeze(event) : event)
  })
  if (time < folded.lastTime) throw new InvalidLog(first + count - 1, 'TIME-MONOTONE', `time ${time}`)
  folded.skipTo(first + count, time)
}

/** What is kept of a log, and shown. */
const KEPT: ReadonlySet<string> = new Set(['user/message', 'assistant/message', 'tool/result', 'agent/inbox/spliced'])

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

/** `calling`: open, and its answer has calls, which need no result yet. */
type Step = 'closed' | 'open' | 'calling'

function stepAfter(step: Step, event: SessionEvent): Step {
  switch (event.type) {
    case 'step/start':
      return 'open'
    case 'step/end':
      return 'closed'
    case 'assistant/message':
      return step !== 'closed' && event.data.calls.length > 0 ? 'calling' : step
    default:
      return step
  }
}

/** No provider takes a history with a call unanswered, so every later request would fail. */
function checkPairing({ surface, nextSeq }: Folded, step: Step): void {
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
