/** One conversation of many turns, each timed by itself. */
import { spread } from '../harness/figures.mjs'
import { endCounted } from './counted.mjs'

/** A turn is the median of so many around it: one may meet the garbage collector. */
const AROUND = 10

/**
 * @param {import('../harness/contender.mjs').Program} program
 * @param {{ turns: number, deltas: number }} spec
 * @returns {import('../harness/child.mjs').Run}
 */
export function prepare(program, { turns, deltas }) {
  let n = 0
  return async () => {
    const chat = await program.open(`chat-${n++}`)
    /** @type {number[]} */
    const took = []
    for (let turn = 1; turn <= turns; turn++) {
      const begun = performance.now()
      await chat.turn(`Question ${turn}?`)
      took.push(performance.now() - begun)
    }
    await endCounted(program, chat, { deltas: turns * deltas, calls: 0, requests: turns, history: 2 * turns - 1 })
    const early = spread(took.slice(AROUND / 2, (3 * AROUND) / 2)).median
    const last = spread(took.slice(-AROUND)).median
    return { last, early, growth: last / early }
  }
}
