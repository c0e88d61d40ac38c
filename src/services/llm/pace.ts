/**
 * Lets the event loop turn while models talk. Chunks that are there already are taken in microtasks, and between those
 * no timer fires, no socket is read and nobody can cancel. All streams of the process count together: a thousand that
 * say one chunk each hold the loop as long as one that says a thousand.
 */
// Not the global: what a test puts in its place and takes away again would leave every stream waiting.
import { setImmediate } from 'node:timers'

/** What may be done between two turns, in short deltas: a few milliseconds of work at most. */
const ALLOWANCE = 256
/** So little that nobody need watch for the next turn. */
const LITTLE = 32
/** What a request costs beside its chunks: a step is recorded before it and another one after it. */
const REQUEST = 32
/** Characters that cost as much as a delta. */
const CHARACTERS = 1_024

/** Since the event loop last turned, or a little more. */
let spent = 0
let isWatched = false
/** Who has to wait for the next turn waits for this. */
let turn: Promise<void> | undefined
let begin: (() => void) | undefined

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
  if (spent < LITTLE) return
  if (!isWatched) setImmediate(turned)
  isWatched = true
  if (spent < ALLOWANCE) return
  turn ??= new Promise((resolve) => {
    begin = resolve
  })
}

function turned(): void {
  const resolve = begin
  spent = 0
  isWatched = false
  turn = undefined
  begin = undefined
  resolve?.()
}
