/**
 * The commands of an owner, as they come. Written out, and no generator: every idle agent waits at one, and a generator
 * that waits was a third of what it took.
 */
import type { PawlError } from '../../errors.ts'
import type { PostedCommand } from '../../store.ts'
import type { Bell, Waiting } from './bell.ts'
import type { Mailbox } from './mailbox.ts'

/** Who listens. */
export interface Listener {
  readonly lost: AbortSignal
  /** Why it may not listen any more, once it may not; `mail` rings then. */
  readonly ended: PawlError | undefined
}

export class Commands implements AsyncIterableIterator<PostedCommand>, Waiting {
  readonly #mailbox: Mailbox
  readonly #mail: Bell
  readonly #listener: Listener
  readonly #signal: AbortSignal
  /** The number of the last letter that was given: what is posted meanwhile is met in its place. */
  #last = 0
  #left = false
  #resolve: ((result: IteratorResult<PostedCommand>) => void) | undefined

  constructor(mailbox: Mailbox, mail: Bell, listener: Listener, signal: AbortSignal) {
    this.#mailbox = mailbox
    this.#mail = mail
    this.#listener = listener
    this.#signal = signal
  }

  next(): Promise<IteratorResult<PostedCommand>> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.wake()
    })
  }

  async return(): Promise<IteratorResult<PostedCommand>> {
    this.#left = true
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Something was posted, or the end came. */
  wake(): void {
    if (this.#left || this.#signal.aborted || this.#listener.ended !== undefined) {
      this.#give({ done: true, value: undefined })
      return
    }
    const letter = this.#mailbox.after(this.#last)
    if (letter === undefined) {
      this.#wait()
      return
    }
    this.#last = letter.n
    this.#give({ done: false, value: letter.command })
  }

  #wait(): void {
    // A listener that is lost hears the bell as well.
    const signal = this.#signal === this.#listener.lost ? undefined : this.#signal
    this.#mail.onRing(signal, this)
  }

  #give(result: IteratorResult<PostedCommand>): void {
    this.#resolve?.(result)
    this.#resolve = undefined
  }
}
