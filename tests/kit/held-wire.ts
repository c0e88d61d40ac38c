/**
 * A wire whose time and bytes are in the test's hand: a clock that tells when a wait begins, and a fetch that answers
 * and goes on only when told.
 */
import { vi } from 'vitest'
import type { Clock } from '../../src/services/clock.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'

export interface WaitClock extends ManualClock {
  /** Resolves once a wait is outstanding; at once if one is. */
  waiting(): Promise<void>
}

/** A manual clock for one adapter, which has one timer per wait. */
export function waitClock(): WaitClock {
  const clock = manualClock()
  let begun: (() => void)[] = []
  const setTimeout: Clock['setTimeout'] = (fire, ms) => {
    const id = clock.setTimeout(fire, ms)
    for (const tell of begun) tell()
    begun = []
    return id
  }
  return {
    now: clock.now,
    clearTimeout: clock.clearTimeout,
    advance: clock.advance,
    setTimeout,
    get pending() {
      return clock.pending
    },
    waiting: () => (clock.pending > 0 ? Promise.resolve() : new Promise((resolve) => begun.push(resolve))),
  }
}

export interface HeldBody {
  /** Sends one packet. */
  send(text: string): void
  end(): void
}

/** Replaces fetch, until `vi.unstubAllGlobals`, by one that answers at once with a body that is sent by hand. */
export function holdFetch(type = 'text/event-stream', status = 200): HeldBody {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
  })
  vi.stubGlobal('fetch', async (_: URL, { signal }: { signal: AbortSignal }) => {
    signal.addEventListener('abort', () => controller?.error(signal.reason))
    return new Response(body, { status, headers: { 'content-type': type } })
  })
  return {
    send: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
  }
}
