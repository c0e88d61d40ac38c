/** Agents that wait, many of them in one process: heap bytes each. Needs `--expose-gc`. */
import { strictEqual } from 'node:assert'

/**
 * @param {import('../harness/contender.mjs').Program} program
 * @param {{ agents: number, turns: number, hibernated: number, deltas: number }} spec
 * @returns {import('../harness/child.mjs').Run}
 */
export function prepare(program, { agents, turns, hibernated, deltas }) {
  let n = 0
  return async () => {
    const round = n++
    const before = heapUsed()
    const chats = []
    for (let i = 0; i < agents; i++) {
      const chat = await program.open(`idle-${round}-${i}`)
      for (let turn = 0; turn < turns; turn++) await chat.turn('Hello.')
      chats.push(chat)
    }
    let able = true
    if (hibernated > 0) for (const chat of chats) able = ((await chat.hibernate?.()) ?? false) && able
    const bytes = (heapUsed() - before) / agents
    let logged = 0
    for (const chat of chats) {
      logged += (await chat.logged?.()) ?? 0
      await chat.close()
    }
    const seen = program.seen()
    strictEqual(seen.requests, agents * turns)
    strictEqual(seen.deltas + logged, agents * turns * deltas)
    return able ? { bytes } : {}
  }
}

/** With the buffers that it holds. Twice: what the first collection lets go may hold more. */
function heapUsed() {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
