/** A server's worth of sessions in one process, few of them at work. Needs `--expose-gc`. */
import { start } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'

/** @typedef {{ folder: string, sessions: number, working: number, turns: number, deltas: number }} Job */

/**
 * @typedef {object} Taken Memory in MB of a million bytes.
 * @property {boolean} hibernated
 * @property {number} openedSeconds Until each was there and had taken a turn.
 * @property {{ heap: number, rss: number }} idle
 * @property {{ heap: number, rss: number }} peak While some work, garbage and all.
 * @property {number} turnsPerSecond Of those at work.
 */

/** How many are opened at once. */
const AT_ONCE = 64
const SAMPLE_MS = 5
const MB = 1_000_000

await answerJob(async (/** @type {Job} */ { folder, sessions, working, turns, deltas }) => {
  const program = await start({ script: { deltas }, store: 'sqlite', folder, unwatched: true })
  const begun = performance.now()
  let hibernated = true
  /** @type {import('../harness/contender.mjs').Chat[]} */
  const chats = []
  const openSome = async () => {
    while (chats.length < sessions) {
      const at = chats.push(/** @type {import('../harness/contender.mjs').Chat} */ ({})) - 1
      const chat = await program.open(`session-${at}`)
      chats[at] = chat
      await chat.turn('Hello.')
      hibernated = ((await chat.hibernate?.()) ?? false) && hibernated
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, openSome))
  const openedSeconds = (performance.now() - begun) / 1_000
  globalThis.gc?.()
  globalThis.gc?.()
  const idle = memory()

  const peak = { ...idle }
  const sampler = setInterval(() => {
    const { heap, rss } = memory()
    peak.heap = Math.max(peak.heap, heap)
    peak.rss = Math.max(peak.rss, rss)
  }, SAMPLE_MS)
  const workers = chats.slice(0, working)
  const workBegun = performance.now()
  await Promise.all(
    workers.map(async (chat) => {
      for (let turn = 0; turn < turns; turn++) await chat.turn('Go on.')
    }),
  )
  const turnsPerSecond = (working * turns * 1_000) / (performance.now() - workBegun)
  clearInterval(sampler)

  for (const [i, chat] of chats.entries()) {
    const logged = await chat.logged?.()
    const wanted = deltas * (i < working ? turns + 1 : 1)
    if (logged !== wanted) throw new Error(`Session ${i} has ${logged} deltas of ${wanted}`)
    await chat.close()
  }
  await program.end()
  return { hibernated, openedSeconds, idle, peak, turnsPerSecond }
})

function memory() {
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed / MB, rss: rss / MB }
}
