/**
 * Limits on waiting for a server. A clock runs only while a read is outstanding, so a slow consumer spends nothing,
 * and only an event ends a wait: keep-alive comments are bytes, not an answer.
 */
import type { LlmFailure } from '../../../log/messages.ts'
import type { Clock } from '../../clock.ts'

/** ms; `totalMs` is none by default. */
export interface Limits {
  /** From the request to the first byte of the body. */
  readonly firstByteMs: number
  /** From one event to the next. */
  readonly idleMs: number
  readonly totalMs?: number
}

export interface Watchdog {
  /** Waits for `read` under the limits. When one runs out it aborts the transport, and `read` is to reject. */
  during<T>(read: () => Promise<T>): Promise<T>
  /** The body has begun. */
  sawByte(): void
  /** Why the transport was aborted, if it was the watchdog. */
  readonly expired: LlmFailure | undefined
}

/** A watchdog that calls `abort` once a limit has run out. */
export function createWatchdog(limits: Limits, { clock, abort }: { clock: Clock; abort: () => void }): Watchdog {
  let begun = false
  let waited = 0
  let since: number | undefined
  let timer: unknown
  let expired: LlmFailure | undefined

  const arm = () => {
    const left = begun ? limits.idleMs : limits.firstByteMs - waited
    const total = (limits.totalMs ?? Number.POSITIVE_INFINITY) - waited
    const message =
      total < left ? tooLong(limits.totalMs ?? 0) : begun ? silent(limits.idleMs) : mute(limits.firstByteMs)
    since = clock.now()
    timer = clock.setTimeout(() => expire(message), Math.max(0, Math.min(left, total)))
  }
  const disarm = () => {
    if (since === undefined) return
    clock.clearTimeout(timer)
    waited += clock.now() - since
    since = undefined
  }
  const expire = (message: string) => {
    expired = { message, code: 'TIMEOUT' }
    abort()
  }
  return {
    async during(read) {
      arm()
      try {
        return await read()
      } finally {
        disarm()
      }
    },
    sawByte() {
      if (begun) return
      const waiting = since !== undefined
      disarm()
      begun = true
      if (waiting && expired === undefined) arm()
    },
    get expired() {
      return expired
    },
  }
}

const mute = (ms: number): string => `The server sent nothing within ${ms} ms`
const silent = (ms: number): string => `The server sent no event for ${ms} ms`
const tooLong = (ms: number): string => `The answer took more than ${ms} ms of waiting`
