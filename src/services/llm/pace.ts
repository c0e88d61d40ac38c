/**
 * Lets the event loop turn while models talk. Chunks that are there already are taken in microtasks, and between those
 * no timer fires, no socket is read and nobody can cancel. All streams of the process count together: a thousand that
 * say one chunk each hold the loop as long as one that says a thousand.
 */

/** What may be done between two turns, in short deltas: a few milliseconds of work at most. */
const ALLOWANCE = 256
/** What a request costs beside its chunks: a step is recorded before it and another one after it. */
const REQUEST = 32
/** Characters that cost as much as a delta. */
const CHARACTERS = 1_024

let spent = 0
let turn: Promise<void> | undefined

/** Counts a request; its first chunk waits if it has to. */
export function spendRequest(): void {
  spend(REQUEST)
}

/** Counts a chunk with that many characters. A promise is to be waited for before the next one. */
export function spendChunk(characters: number): Promise<void> | undefined {
  spend(1 + characters / CHARACTERS)
  return turn
}

function spend(cost: number): void {
  spent += cost
  if (spent >= ALLOWANCE) turn ??= new Promise((resolve) => setImmediate(begin, resolve))
}

function begin(resolve: () => void): void {
  spent = 0
  turn = undefined
  resolve()
}
