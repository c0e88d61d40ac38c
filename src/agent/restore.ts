/**
 * Opening a session whose store failed before: the tail that was kept then goes where it belongs, as it was recorded,
 * or is set aside. It belongs there if nothing was written since: the log ends, to the byte, where the tail begins, or
 * within it, when the store had taken some of it after all. The epoch cannot say so, because a store counts all its
 * sessions with one counter, and an owner that wrote nothing changed nothing.
 */
import { PawlError } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import { inTime, type Patience } from '../log/patience.ts'
import type { LogStore, Ownership } from '../log/store.ts'
import { timedStore } from '../log/stores/timed.ts'
import { validateStored } from '../log/validate.ts'
import { createFold, stateName } from '../machines/fold.ts'
import { summaryOf } from './status.ts'
import {
  eventDigest,
  findUnsaved,
  removeUnsaved,
  setAside,
  type UnsavedFile,
  type UnsavedTail,
  warn,
} from './unsaved.ts'

export interface Restored {
  /** The same ownership, with the head where the log now ends. */
  readonly ownership: Ownership
  /** Why a tail was set aside, one for each. */
  readonly refused: readonly PawlError[]
}

export interface RestoreOptions {
  readonly folder: string | undefined
  readonly patience: Patience
}

/** @throws what the store throws; the tail is kept then */
export async function restoreUnsaved(
  store: LogStore,
  ownership: Ownership,
  { folder, patience }: RestoreOptions,
): Promise<Restored> {
  let owner = ownership
  const refused: PawlError[] = []
  for (const file of folder === undefined ? [] : filesOf(folder, ownership)) {
    const outcome = await restore({ store: timedStore(store, patience), patience }, owner, file)
    if (typeof outcome === 'number') {
      removeUnsaved(file.path)
      owner = withHead(owner, outcome)
    } else if (outcome !== 'of another session') refused.push(refuse(file, ownership, outcome.why))
  }
  return { ownership: owner, refused }
}

/** A folder that cannot be read keeps nobody from opening a session. */
function filesOf(folder: string, { header }: Ownership): readonly UnsavedFile[] {
  try {
    return findUnsaved(folder, header.id)
  } catch (error) {
    warn(`Cannot look for unsaved events in ${folder}: ${error instanceof Error ? error.message : String(error)}`)
    return []
  }
}

function refuse({ path }: UnsavedFile, { header }: Ownership, why: string): PawlError {
  const aside = setAside(path)
  const message = `Unsaved events of session "${header.id}" do not belong to its log (${why}): they are kept in ${aside}`
  warn(message)
  return new PawlError(message, 'UNSAVED_SET_ASIDE')
}

interface Place {
  /** Answers in time. */
  readonly store: LogStore
  readonly patience: Patience
}

/** The head after all of the tail is in the log, or why it cannot be. */
async function restore(
  place: Place,
  owner: Ownership,
  { tail }: UnsavedFile,
): Promise<number | 'of another session' | { readonly why: string }> {
  const { header, head, epoch } = owner
  if (tail === undefined) return { why: 'the file cannot be read' }
  if (tail.sessionId !== header.id || tail.createdAt !== header.createdAt) return 'of another session'
  if (tail.epoch >= epoch || head < tail.expectedSeq) return { why: 'the log is not the one it continues' }
  const stored = await compare(place.store, owner, tail)
  if (stored === undefined) return { why: 'the log went on without them' }
  if (stored === tail.events.length) return head
  return carryOver(place, owner, tail.events.slice(stored))
}

/** How many events of the tail the log holds already; undefined when it holds others. */
async function compare(store: LogStore, { header }: Ownership, tail: UnsavedTail): Promise<number | undefined> {
  const { expectedSeq, after, events } = tail
  if (expectedSeq === 0 && after !== null) return undefined
  let same = 0
  for await (const event of store.read(header.id, { from: Math.max(0, expectedSeq - 1) })) {
    if (event.seq < expectedSeq) {
      if (eventDigest(event) !== after) return undefined
      continue
    }
    if (same === events.length) return same
    if (eventDigest(event) !== digestOf(events[same])) return undefined
    same += 1
  }
  return same
}

/** Undefined for what is no event and equals none. */
function digestOf(event: unknown): string | undefined {
  try {
    return eventDigest(event)
  } catch {
    return undefined // Nested too deep to be an event.
  }
}

/** Appends what is left of the tail if the log, and then each of its events, leads the chart to the next one. */
async function carryOver(
  { store, patience }: Place,
  owner: Ownership,
  rest: readonly unknown[],
): Promise<number | { readonly why: string }> {
  const folded = createFold()
  let lastReason: string | undefined
  let lastTime = 0
  const push = (event: SessionEvent): void => {
    folded.push(event)
    lastTime = event.time
    if (event.type === 'turn/end') lastReason = event.data.reason.kind
  }
  for await (const event of store.read(owner.header.id)) push(event)
  const events: SessionEvent[] = []
  try {
    for (const each of rest) {
      const event = validateStored(each, owner.head + events.length, lastTime)
      if (!folded.accepts(event)) return { why: `${event.type} cannot happen in ${stateName(folded.snapshot())}` }
      push(event)
      events.push(event)
    }
  } catch (error) {
    if (!(error instanceof PawlError)) throw error
    return { why: error.message }
  }
  const summary = { ...summaryOf(folded.snapshot()), ...(lastReason === undefined ? {} : { lastReason }) }
  const append = owner.append(events, { expectedSeq: owner.head, summary })
  await inTime(append, `append to session "${owner.header.id}"`, patience)
  return owner.head + events.length
}

/** The same ownership of a log that has grown. */
export const withHead = (owner: Ownership, head: number): Ownership => ({
  header: owner.header,
  epoch: owner.epoch,
  head,
  ...(owner.posted === undefined ? {} : { posted: owner.posted }),
  lost: owner.lost,
  append: (events, options) => owner.append(events, options),
  ...checkpointsOf(owner),
  commands: (signal) => owner.commands(signal),
  release: () => owner.release(),
})

/** What a store leaves out stays out. */
const checkpointsOf = (owner: Ownership): Pick<Ownership, 'checkpoint' | 'checkpointNow' | 'keep' | 'keepEvery'> => ({
  ...(owner.checkpoint === undefined ? {} : { checkpoint: () => owner.checkpoint?.() ?? Promise.resolve(undefined) }),
  ...(owner.checkpointNow === undefined ? {} : { checkpointNow: () => owner.checkpointNow?.() }),
  ...(owner.keep === undefined ? {} : { keep: (checkpoint) => owner.keep?.(checkpoint) ?? Promise.resolve() }),
  ...(owner.keepEvery === undefined ? {} : { keepEvery: owner.keepEvery }),
})
