/** Many agents in one process, each with a model that says so many deltas a second; how the event loop bears it. */
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createAgent } from '../../dist/index.js'
import { memoryStore, sqliteStore } from '../../dist/log.js'
import { isDelta } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'
import { createMetronome } from '../harness/metronome.mjs'
import { answersOf } from '../harness/script.mjs'

/** @typedef {{ folder: string, store: 'memory' | 'sqlite', agents: number, perSecond: number, seconds: number }} Job */

/**
 * @typedef {object} Taken
 * @property {{ p50: number, p99: number, max: number }} delay Of the event loop, ms, while all streamed.
 * @property {number} logged Deltas in all logs, counted when all was over.
 * @property {number} slowestMs How long after its last delta was due the last turn was durable.
 * @property {number} cpu Seconds of processor a second.
 */

/** How often the loop is looked at, ms; a look that comes on time counts as no delay. */
const RESOLUTION = 10

await answerJob(async (/** @type {Job} */ { folder, store: kind, agents: count, perSecond, seconds }) => {
  const store = kind === 'memory' ? memoryStore() : sqliteStore(join(folder, 'pawl.db'))
  const deltas = perSecond * seconds
  const { deltas: words } = answersOf({ deltas })(0)
  const metronome = createMetronome()
  let asked = 0
  let open = (/** @type {number} */ _begin) => {}
  const begin = /** @type {Promise<number>} */ (
    new Promise((resolve) => {
      open = resolve
    })
  )

  /** Deltas are due at fixed times: one that was taken late is followed at once by the next. @param {number} offset ms */
  async function* said(offset) {
    /** @typedef {import('../../dist/index.js').StreamChunk} StreamChunk */
    if (++asked === count) open(performance.now())
    const first = (await begin) + offset
    yield/** @type {StreamChunk} */ ({ type: 'block-start', index: 0, blockType: 'text' })
    for (const [i, text] of words.entries()) {
      await metronome.until(first + (i * 1_000) / perSecond)
      yield/** @type {StreamChunk} */ ({ type: 'text-delta', index: 0, text })
    }
    yield/** @type {StreamChunk} */ ({ type: 'block-end', index: 0, block: { type: 'text', text: words.join('') } })
    yield/** @type {StreamChunk} */ ({ type: 'usage', usage: { inputTokens: 100, outputTokens: words.length } })
    yield/** @type {StreamChunk} */ ({ type: 'finish', reason: { kind: 'stop' } })
  }

  const agents = await Promise.all(
    Array.from({ length: count }, (_, i) => {
      const offset = (i * 1_000) / perSecond / count
      return createAgent({
        model: { provider: 'bench', model: 'fake', stream: () => said(offset) },
        store,
        sessionId: `${i}`,
      })
    }),
  )
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION })
  const turns = agents.map((agent) => agent.run('Go.'))
  const begun = await begin
  const cpu = process.cpuUsage()
  loop.enable()
  await metronome.until(begun + seconds * 1_000)
  loop.disable()
  const { user, system } = process.cpuUsage(cpu)
  await Promise.all(turns)
  const slowestMs = performance.now() - (begun + ((deltas - 1) * 1_000) / perSecond)
  metronome.stop()

  let logged = 0
  for (const agent of agents) {
    for await (const event of agent.session.events()) if (isDelta(event)) logged += 1
    await agent.close()
  }
  await store[Symbol.asyncDispose]()
  const beyond = (/** @type {number} */ ns) => Math.max(0, ns / 1e6 - RESOLUTION)
  const delay = { p50: beyond(loop.percentile(50)), p99: beyond(loop.percentile(99)), max: beyond(loop.max) }
  return { delay, logged, slowestMs, cpu: (user + system) / 1e6 / seconds }
})
