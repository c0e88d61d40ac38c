/** Waiting out a lock, bounded and with jitter, so that processes that lost together do not come back together. */
import { StoreFailure } from '../../errors.ts'

const isLocked = (error: unknown): error is StoreFailure => error instanceof StoreFailure && error.reason === 'locked'

/** Up to 2 ms at first, up to 25 ms later; never nothing. */
const pauseMs = (attempt: number): number => 0.2 + Math.random() * Math.min(25, 2 ** (attempt + 1))

/** For the event loop: tries `act` again while it fails as locked, at most `ms`. */
export async function patiently<T>(act: () => T, ms: number): Promise<T> {
  const deadline = performance.now() + ms
  for (let attempt = 0; ; attempt++) {
    try {
      return act()
    } catch (error) {
      if (!isLocked(error) || performance.now() >= deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, pauseMs(attempt)))
    }
  }
}

/** The same for a worker, whose thread may sleep. */
export function patientlySync<T>(act: () => T, ms: number): T {
  const deadline = performance.now() + ms
  const nothing = new Int32Array(new SharedArrayBuffer(4))
  for (let attempt = 0; ; attempt++) {
    try {
      return act()
    } catch (error) {
      if (!isLocked(error) || performance.now() >= deadline) throw error
      Atomics.wait(nothing, 0, 0, pauseMs(attempt))
    }
  }
}
