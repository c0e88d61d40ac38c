/**
 * Limits on waiting for a server. The clocks run only while a read is outstanding, so a slow consumer spends nothing,
 * and only a piece of the answer ends an idle wait: a keep-alive is bytes, not an answer.
 */
import type { LlmFailure } from '../../../log/messages.ts'
import type { Clock } from '../../clock.ts'
import { LlmError } from '../../errors.ts'

/** ms of waiting; `totalMs` is none by default. Each is named after the option that sets it. */
export interface Limits {
  /** From the request to the first byte of the body. */
  readonly firstByteMs: number
  /** From the first byte, or one piece of the answer, to the next piece. */
  readonly idleMs: number
  /** From the model's word that it has stopped to the end, in all; `idleMs` by default, and never more. */
  readonly endMs?: number
  readonly totalMs?: number
}

export interface Watchdog {
  /**
   * Waits for `read` under the limits. When one runs out it aborts the transport, and `read` is to reject.
   * @throws LlmError TIMEOUT if nothing is left to wait; and whatever `read` rejects with.
   */
  during<T>(read: () => Promise<T>): Promise<T>
  /** The body has begun. */
  sawByte(): void
  /** The answer went on. */
  sawProgress(): void
  /** The model has stopped: what may still come is waited for once, however it comes. */
  sawFinish(): void
  /** Why the transport was aborted, if it was the watchdog. */
  readonly expired: LlmFailure | undefined
}

/** A watchdog that calls `abort` once a limit has run out. */
export function createWatchdog(limits: Limits, { clock, abort }: { clock: Clock; abort: () => void }): Watchdog {
  const { firstByteMs, idleMs, endMs = idleMs, totalMs = Number.POSITIVE_INFINITY } = limits
  let begun = false
  let finished = false
  let waited = 0
  /** Of what was waited, that since the answer last went on. */
  let quiet = 0
  let expired: LlmFailure | undefined

  const expire = (): LlmFailure => {
    const inAll = totalMs - waited < quietLimit() - quiet
    const message = inAll ? tooLong(totalMs) : isEnding() ? endless(endMs) : begun ? silent(idleMs) : mute(firstByteMs)
    expired ??= { message, code: 'TIMEOUT' }
    abort()
    return expired
  }
  const isEnding = (): boolean => finished && endMs < idleMs
  const quietLimit = (): number => (isEnding() ? endMs : begun ? idleMs : firstByteMs)
  return {
    async during(read) {
      const left = Math.min(quietLimit() - quiet, totalMs - waited)
      // A flood of keep-alives leaves a timer no time to fire.
      if (left <= 0) throw new LlmError(expire())
      const since = clock.now()
      const timer = clock.setTimeout(expire, left)
      try {
        return await read()
      } finally {
        clock.clearTimeout(timer)
        const spent = Math.max(0, clock.now() - since)
        waited += spent
        quiet += spent
      }
    },
    sawByte() {
      if (begun) return
      begun = true
      quiet = 0
    },
    sawProgress() {
      if (!finished) quiet = 0
    },
    sawFinish() {
      finished = true
    },
    get expired() {
      return expired
    },
  }
}

const mute = (ms: number): string => `The server sent nothing within ${ms} ms (firstByteTimeoutMs)`
const silent = (ms: number): string => `The server sent no event for ${ms} ms (idleTimeoutMs)`
const endless = (ms: number): string => `The server did not end the answer within ${ms} ms of its finish (endTimeoutMs)`
const tooLong = (ms: number): string => `The answer took more than ${ms} ms of waiting (totalTimeoutMs)`
