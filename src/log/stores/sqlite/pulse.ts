/**
 * Waking those who wait for a change of the file: at once for what this process did, by polling for what others did.
 * Waiting loses nothing: the version last seen is never younger than the look that found nothing.
 */

/** How often others' changes are looked for; a change is seen well within 250 ms even on a busy machine. */
const POLL_MS = 25

/** Who waits. Woken once; it may wait again from there. */
export interface Waiter {
  /** Its waiting keeps the process alive. */
  readonly keepAlive: boolean
  wake(): void
}

export interface Pulse {
  /** Resolves when `topic` may have changed or `signal` aborts; `keepAlive` keeps the process alive meanwhile. */
  wait(topic: number, options: { signal: AbortSignal; keepAlive: boolean }): Promise<void>
  /** The same for who has a name. */
  add(topic: number, waiter: Waiter, signal?: AbortSignal): void
  /** So many more, or fewer, who are told of topics without waiting. */
  poll(by: number): void
  /** Wakes those who wait for `topic`, or everybody. */
  wake(topic?: number): void
}

/** What changed, where that can be told. */
export interface Topics {
  /** Those that changed after `version`. */
  since(version: number): readonly number[]
  /** Told of each topic that changed, whoever waits. */
  changed(topic: number): void
}

/** `version` grows when another process, or another store, changed something. Without `topics` it may be anything. */
export function createPulse(version: () => number, topics?: Topics): Pulse {
  const waiting = new Map<number, readonly Waiter[]>()
  let count = 0
  let keeping = 0
  let told = 0
  let seen: number | undefined
  let timer: NodeJS.Timeout | undefined

  const wake = (topic?: number): void => {
    for (const one of topic === undefined ? [...waiting.keys()] : [topic]) {
      for (const waiter of waiting.get(one) ?? []) {
        remove(one, waiter)
        waiter.wake()
      }
    }
    if (topic !== undefined) topics?.changed(topic)
  }
  const add = (topic: number, waiter: Waiter): void => {
    waiting.set(topic, [...(waiting.get(topic) ?? []), waiter])
    count += 1
    if (waiter.keepAlive) keeping += 1
    adjust()
  }
  const remove = (topic: number, waiter: Waiter): boolean => {
    const there = waiting.get(topic) ?? []
    if (!there.includes(waiter)) return false
    const left = there.filter((other) => other !== waiter)
    if (left.length > 0) waiting.set(topic, left)
    else waiting.delete(topic)
    count -= 1
    if (waiter.keepAlive) keeping -= 1
    adjust()
    return true
  }
  const adjust = (): void => {
    if (count + told === 0) {
      clearInterval(timer)
      timer = undefined
      return
    }
    timer ??= setInterval(poll, POLL_MS)
    if (keeping > 0) timer.ref()
    else timer.unref()
  }
  const poll = (): void => {
    const before = seen
    const changes = look()
    if (changes === 'none') return
    // Everybody, where it cannot be told who: their own queries say what is new, or what is wrong with the file.
    if (changes === undefined || before === undefined) wake()
    for (const topic of changes ?? []) wake(topic)
  }
  /** The topics that changed; undefined where nobody can tell. */
  const look = (): readonly number[] | 'none' | undefined => {
    try {
      const now = version()
      if (now === seen) return 'none'
      const changes = topics?.since(seen ?? 0)
      seen = now
      return changes
    } catch {
      seen = undefined
      return undefined
    }
  }

  return {
    wake,
    poll(by) {
      told += by
      adjust()
    },
    add(topic, waiter, signal) {
      if (signal === undefined) return add(topic, waiter)
      if (signal.aborted) return waiter.wake()
      const withSignal: Waiter = {
        keepAlive: waiter.keepAlive,
        wake() {
          signal.removeEventListener('abort', aborted)
          waiter.wake()
        },
      }
      const aborted = (): void => {
        if (remove(topic, withSignal)) waiter.wake()
      }
      signal.addEventListener('abort', aborted, { once: true })
      add(topic, withSignal)
    },
    wait(topic, { signal, keepAlive }) {
      return new Promise((resolve) => this.add(topic, { keepAlive, wake: resolve }, signal))
    },
  }
}
