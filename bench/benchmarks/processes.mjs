/** Several processes on one SQLite file, and a cancel that comes from yet another one. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { sqliteStore } from '../../dist/log.js'
import { inFolder } from '../harness/alone.mjs'
import { spread } from '../harness/figures.mjs'

const COLUMNS = {
  name: '',
  perSecond: 'appends/s in all',
  p50: 'append ms, p50',
  p99: 'p99',
  max: 'max',
  cancel: 'cancel ms',
  cancelMax: 'max',
}
const NEIGHBOUR = new URL('../processes/neighbour.mjs', import.meta.url)

/** @type {import('../harness/table.mjs').Benchmark} */
export const processes = {
  about:
    'each appends one event after the other to its own session; meanwhile another process cancels turns of one more',
  async run(pace) {
    const rows = []
    for (const count of pace.quick ? [1, 2] : [1, 4, 8]) rows.push(await together(count, pace))
    return [{ id: 'processes', title: 'Processes on one SQLite file', columns: COLUMNS, rows }]
  },
}

/** @param {number} count @param {import('../harness/pace.mjs').Pace} pace */
function together(count, pace) {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db')
    const ms = pace.of(5_000, 500)
    const neighbours = []
    // One after the other, or eight processes that load their modules would be measured.
    for (let i = 0; i < count; i++) neighbours.push(await neighbour(path, `appends-${i}`))
    const silent = await neighbour(path, 'silent')
    try {
      const cancelled = cancels(path, silent, { times: pace.of(20, 3), ms })
      const took = await Promise.all(neighbours.map(({ ask }) => ask({ append: ms })))
      const all = /** @type {number[][]} */ (took).flat().sort((a, b) => a - b)
      const cancel = spread(await cancelled)
      const at = (/** @type {number} */ part) =>
        all[Math.min(all.length - 1, Math.floor(all.length * part))] ?? Number.NaN
      const figures = { p50: at(0.5), p99: at(0.99), max: at(1), cancel: cancel.median, cancelMax: cancel.max }
      return {
        name: `${count} ${count === 1 ? 'process' : 'processes'}`,
        perSecond: (all.length * 1_000) / ms,
        ...figures,
      }
    } finally {
      for (const { stop } of [...neighbours, silent]) stop()
    }
  })
}

/** @param {string} path @param {string} session */
async function neighbour(path, session) {
  const child = fork(NEIGHBOUR, [JSON.stringify({ path, session })])
  const exited = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The process of ${session} ended with ${signal ?? `exit code ${code}`}`)
  })
  exited.catch(() => {})
  const answer = () => Promise.race([once(child, 'message').then(([message]) => message), exited])
  await answer()
  return {
    answer,
    /** @param {import('node:child_process').Serializable} order @returns {Promise<unknown>} */
    ask(order) {
      const answered = answer()
      child.send(order)
      return answered
    },
    stop: () => child.kill(),
  }
}

/**
 * From `post` to the owner's answer, over the time that the others append.
 * @param {string} path
 * @param {Awaited<ReturnType<typeof neighbour>>} silent
 * @param {{ times: number, ms: number }} spacing
 */
async function cancels(path, silent, { times, ms }) {
  const store = sqliteStore(path)
  const took = []
  try {
    let begun = silent.ask({ hang: times })
    for (let turn = 1; turn <= times; turn++) {
      await begun
      begun = silent.answer()
      // The last has nobody that waits for it.
      begun.catch(() => {})
      await setTimeout(ms / times / 2)
      const id = `cancel-${turn}`
      const posted = performance.now()
      await store.post('silent', { id, kind: 'cancel', turn, cause: { kind: 'user' } })
      const outcome = await store.outcome('silent', id, AbortSignal.timeout(30_000))
      took.push(performance.now() - posted)
      if (outcome.kind !== 'taken') throw new Error(`A cancel was refused: ${outcome.message}`)
    }
  } finally {
    await store[Symbol.asyncDispose]()
  }
  return took
}
