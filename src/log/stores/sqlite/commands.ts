/**
 * The commands of an owner, as they come. Written out, and no generator: every idle agent waits at one, and a generator
 * that waits takes more than all else an ownership has.
 */
import type { PostedCommand } from '../../store.ts'
import type { Pulse, Waiter } from './pulse.ts'
import type { Posted, Reader } from './reader.ts'

export interface CommandPorts {
  look<T>(query: (reader: Reader) => T): Promise<T | undefined>
  readonly posts: Pulse
}

/** Who listens. */
export interface Listener {
  readonly session: number
  readonly lost: AbortSignal
  /** It may not listen any more; `posts` wakes then. */
  isOver(): boolean
}

export class Commands implements AsyncIterableIterator<PostedCommand>, Waiter {
  readonly keepAlive = false
  readonly #ports: CommandPorts
  readonly #listener: Listener
  readonly #signal: AbortSignal
  /** The place of the last command that was given. */
  #after = 0
  #left = false
  #settle: { resolve(result: IteratorResult<PostedCommand>): void; reject(error: unknown): void } | undefined

  constructor(ports: CommandPorts, listener: Listener, signal: AbortSignal) {
    this.#ports = ports
    this.#listener = listener
    this.#signal = signal
  }

  next(): Promise<IteratorResult<PostedCommand>> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.wake()
    })
  }

  async return(): Promise<IteratorResult<PostedCommand>> {
    this.#left = true
    return OVER
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Something was posted, or the end came. */
  wake(): void {
    if (this.#isOver()) {
      this.#settle?.resolve(OVER)
      return
    }
    // One at a time: while its consumer is busy with one, the next may be taken.
    this.#ports
      .look((reader) => reader.posted(this.#listener.session, this.#after, 1))
      .then(
        (found) => this.#found(found?.[0]),
        (error: unknown) => this.#settle?.reject(error),
      )
  }

  #found(next: Posted | undefined): void {
    if (this.#isOver()) this.#settle?.resolve(OVER)
    else if (next === undefined) this.#wait()
    else {
      this.#after = next.n
      this.#settle?.resolve({ done: false, value: next.command })
    }
  }

  #isOver(): boolean {
    return this.#left || this.#signal.aborted || this.#listener.isOver()
  }

  /** Right after a look that found nothing, or what changed in between would go unnoticed. */
  #wait(): void {
    const { session, lost } = this.#listener
    // An owner that is lost is woken as well.
    this.#ports.posts.add(session, this, this.#signal === lost ? undefined : this.#signal)
  }
}

const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined }
