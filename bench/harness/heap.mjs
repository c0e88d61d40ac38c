/** The heap of this process, garbage gone. Needs `--expose-gc`. */
import { setTimeout } from 'node:timers/promises'

/** So alike, two readings in a row say that nothing more is let go. */
const ALIKE_BYTES = 2_000
const MOST_READINGS = 40
const BETWEEN_MS = 25

/** Bytes, with the buffers that it holds: read until nothing more goes, since what is closed is let go little by little. */
export async function settledHeap() {
  let before = Number.NaN
  for (let i = 0; ; i++) {
    globalThis.gc?.()
    const { heapUsed, external } = process.memoryUsage()
    const now = heapUsed + external
    if (Math.abs(now - before) <= ALIKE_BYTES || i === MOST_READINGS) return now
    before = now
    await setTimeout(BETWEEN_MS)
  }
}
