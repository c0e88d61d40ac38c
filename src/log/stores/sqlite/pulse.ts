/**
 * Waking those who wait for a change of the file: at once for what this process did, by polling for what others did.
 * Waiting loses nothing: the version last seen is never younger than the look that found nothing.
 */

/** How often others' changes are looked for; a change is seen well within 250 ms even on a busy machine. */
const POLL_MS = 25

export interface Pulse {
  /** Resolves when `topic` may have changed or `signal` aborts; `keepAlive` keeps the process alive meanwhile. */
  wait(topic: number, options: { signal: AbortSignal; keepAlive: boolean }): Promise<void>
  /** Wakes those who wait for `topic`, or everybody. */
  wake(topic?: number): void
}

interface Waiter {
  readonly topic: number
  readonly keepAlive: boolean
  readonly wake: () => void
}

/** `version` changes when another process, or another store, changed something. */
export function createPulse(version: () => number): Pulse {
  const waiters = new Set<Waiter>()
  let keeping = 0
  let seen: number | undefined
  let timer: NodeJS.Timeout | undefined

  const wake = (topic?: number): void => {
    for (const waiter of [...waiters]) if (topic === undefined || waiter.topic === topic) waiter.wake()
  }
  const poll = (): void => {
    const now = look()
    if (now !== undefined && now === seen) return
    seen = now
    wake()
  }
  const look = (): number | undefined => {
    try {
      return version()
    } catch {
      // Everybody is woken then, and their own queries say what is wrong with the file.
      return undefined
    }
  }
  const adjust = (by: number): void => {
    keeping += by
    if (waiters.size === 0) {
      clearInterval(timer)
      timer = undefined
      return
    }
    timer ??= setInterval(poll, POLL_MS)
    if (keeping > 0) timer.ref()
    else timer.unref()
  }

  return {
    wake,
    wait: (topic, { signal, keepAlive }) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve()
        const weight = keepAlive ? 1 : 0
        const waiter: Waiter = {
          topic,
          keepAlive,
          wake() {
            signal.removeEventListener('abort', waiter.wake)
            waiters.delete(waiter)
            adjust(-weight)
            resolve()
          },
        }
        signal.addEventListener('abort', waiter.wake, { once: true })
        waiters.add(waiter)
        adjust(weight)
      }),
  }
}
