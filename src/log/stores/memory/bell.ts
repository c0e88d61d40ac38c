/** What rings for whoever waits. */

/** Who waits at a bell. Called once; it may wait again from there. */
export interface Waiting {
  wake(): void
}

const NOBODY: readonly Waiting[] = Object.freeze([])

/** A class, because a session has two and a thousand sessions share their methods. */
export class Bell {
  /** Replaced, never written to: one that nobody waits for costs nothing. */
  #waiting = NOBODY

  ring(): void {
    const waiting = this.#waiting
    this.#waiting = NOBODY
    for (const one of waiting) one.wake()
  }

  /** Resolves at the next ring, or when `signal` aborts. */
  rung(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => this.onRing(signal, { wake: resolve }))
  }

  /** Calls back once, at the next ring or when `signal` aborts. */
  onRing(signal: AbortSignal | undefined, one: Waiting): void {
    if (signal === undefined) {
      this.#waiting = [...this.#waiting, one]
      return
    }
    const withSignal: Waiting = {
      wake: () => {
        signal.removeEventListener('abort', aborted)
        one.wake()
      },
    }
    const aborted = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== withSignal)
      one.wake()
    }
    this.#waiting = [...this.#waiting, withSignal]
    signal.addEventListener('abort', aborted, { once: true })
  }
}
