/** Random numbers from a seed that is text: the same seed, the same numbers, on every machine. */
import { createHash } from 'node:crypto'

/** @typedef {() => number} Random a number in [0, 1) */

/** @param {string} seed @returns {Random} */
export function random(seed) {
  let state = numberOf(seed)
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A number that belongs to a text. @param {string} text */
export const numberOf = (text) => createHash('sha256').update(text).digest().readUInt32LE(0)

/** @template T @param {Random} draw @param {readonly [T, ...T[]]} from @returns {T} */
export const oneOf = (draw, from) => from[Math.floor(draw() * from.length)] ?? from[0]
