/**
 * When a session keeps a checkpoint: once its log has grown enough since the last one, so that writing them costs a
 * fixed part of writing the log, and when it closes.
 */
import { inTime, type Patience } from '../patience.ts'
import type { Ownership } from '../store.ts'
import { type CheckpointHolder, type CheckpointPlace, encodeCheckpoint } from './checkpoint.ts'
import type { Folded } from './folded.ts'

/** Events after which another one is due, and the part of the last one's bytes by which the log must have grown. */
const GROWN = { events: 1_000, part: 0.25 }

export interface Kept {
  /** What it covers ends before this seq. */
  readonly seq: number
  readonly bytes: number
}

/** How far a log has come since its last checkpoint. */
export interface Growth {
  /** Rough bytes. */
  readonly bytes: number
  /** What is before this seq needs no new one: it was there when the log was opened, and opening alone writes nothing. */
  readonly seen: number
}

export interface CheckpointOptions {
  readonly ownership: Ownership
  readonly holder: CheckpointHolder
  readonly folded: Folded
  /** What was opened from. */
  readonly kept: Kept | undefined
  /** Of the session before, whose owner rested meanwhile. */
  readonly growth: Growth | undefined
  /** A store that does not keep it by then is not waited for. */
  readonly patience: Patience
}

export interface Checkpoints {
  readonly growth: Growth
  /** The log is durable up to `head`, by so many rough bytes more. */
  grown(head: number, bytes: number): void
  /** Keeps one now, unless nothing is new since the last. Never rejects: what fails is tried at the next occasion. */
  keep(head: number): Promise<void>
  /** Resolves when none is being kept. */
  settled(): Promise<void>
}

/** Undefined where the store keeps none. */
export const createCheckpoints = (options: CheckpointOptions): Checkpoints | undefined =>
  options.ownership.keep === undefined ? undefined : new SessionCheckpoints(options)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class SessionCheckpoints implements Checkpoints {
  readonly #options: CheckpointOptions
  /** The last one, also if it could not be kept. */
  #last: Kept
  /** Rough bytes by which the log has grown since. */
  #bytes: number
  /** As `Growth.seen`. */
  #seen: number
  #keeping: Promise<void> | undefined

  constructor(options: CheckpointOptions) {
    this.#options = options
    this.#last = options.kept ?? { seq: 0, bytes: 0 }
    this.#bytes = options.growth?.bytes ?? 0
    this.#seen = options.growth?.seen ?? options.folded.nextSeq
  }

  get growth(): Growth {
    return { bytes: this.#bytes, seen: this.#seen }
  }

  grown(head: number, bytes: number): void {
    this.#bytes += bytes
    const events = this.#options.ownership.keepEvery ?? GROWN.events
    if (head - this.#last.seq < events || this.#bytes < this.#last.bytes * GROWN.part) return
    void this.keep(head)
  }

  async settled(): Promise<void> {
    while (this.#keeping !== undefined) await this.#keeping
  }

  keep(head: number): Promise<void> {
    const { folded } = this.#options
    // Not now, if something is recorded and not durable: what is folded of it cannot be taken out again.
    if (head === this.#seen || folded.nextSeq !== head) return this.#keeping ?? Promise.resolve()
    if (this.#keeping !== undefined) return this.#keeping.then(() => this.keep(head))
    this.#keeping = this.#write(head).finally(() => {
      this.#keeping = undefined
    })
    return this.#keeping
  }

  async #write(seq: number): Promise<void> {
    const { ownership, holder, folded, patience } = this.#options
    const place: CheckpointPlace = { header: ownership.header, maker: holder.maker }
    this.#seen = seq
    this.#last = { seq, bytes: this.#last.bytes }
    this.#bytes = 0
    try {
      const body = await encodeCheckpoint(place, { folds: folded.saved(), holder: holder.save() })
      this.#last = { seq, bytes: body.byteLength }
      const kept = ownership.keep?.({ seq, body })
      // It keeps no process from ending.
      const doing = `keep a checkpoint of session "${ownership.header.id}"`
      if (kept !== undefined) await inTime(kept, doing, patience, { holds: false })
    } catch {
      // The log is whole without it, and what is wrong with the store its next append tells.
    }
  }
}
