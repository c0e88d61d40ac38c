/** One long answer. */
import { endCounted } from './counted.mjs'

/**
 * @param {import('../harness/contender.mjs').Program} program
 * @param {{ deltas: number }} spec
 * @returns {import('../harness/child.mjs').Run}
 */
export function prepare(program, { deltas }) {
  let n = 0
  return async () => {
    const chat = await program.open(`answer-${n++}`)
    const begun = performance.now()
    await chat.turn('Tell all.')
    const ms = performance.now() - begun
    await endCounted(program, chat, { deltas, calls: 0, requests: 1, history: 1 })
    return { perSecond: (deltas / ms) * 1_000 }
  }
}
