/** One turn: a model that asks for a tool again and again, then answers. */
import { endCounted } from './counted.mjs'

/**
 * @param {import('../harness/contender.mjs').Program} program
 * @param {{ steps: number, deltas: number }} spec
 * @returns {import('../harness/child.mjs').Run}
 */
export function prepare(program, { steps, deltas }) {
  const requests = steps + 1
  let n = 0
  return async () => {
    const chat = await program.open(`steps-${n++}`)
    const begun = performance.now()
    await chat.turn('Look around.')
    const ms = performance.now() - begun
    await endCounted(program, chat, { deltas: requests * deltas, calls: steps, requests, history: 2 * steps + 1 })
    return { msPerStep: ms / requests }
  }
}
