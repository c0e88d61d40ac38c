/** The process that is counted: what one more of each unit takes, by difference of longer and shorter lives. */
import { join } from 'node:path'
import { takeTally } from '../guard/tally.mjs'
import { createWalCounter } from '../guard/wal.mjs'
import { answerJob } from '../harness/alone.mjs'

/** @typedef {Record<string, number>} Counts */
/** `where`: the functions called most. @typedef {{ counts: Counts, where: readonly (readonly [name: string, calls: number])[] }} Counted */
/** @typedef {{ folder: string, store: 'memory' | 'sqlite' }} Job */

/** How often each is lived. */
const LIVES = 3
/** Functions that are told of by name. */
const MOST = 15

await answerJob(async (/** @type {Job} */ { folder, store }) => {
  // After the tally has begun, or its functions would not be counted.
  const { createSubject } = await import('../guard/subject.mjs')
  const path = join(folder, 'pawl.db')
  const wal = store === 'sqlite' ? createWalCounter(path) : undefined
  const subject = createSubject({ store, path, committed: () => wal?.look() })
  /** By unit. @type {Record<string, Counted>} */
  const figures = {}
  for (const [unit, { live, size }] of Object.entries(subject.units)) {
    await live(size)
    const shorter = await counted(() => live(size))
    const longer = await counted(() => live(2 * size))
    figures[unit] = difference(longer, shorter, size)
  }
  await subject.end()
  return figures

  /** The least of some lives: what the disk's answers meet is chance, and can only add. @param {() => Promise<void>} act */
  async function counted(act) {
    /** @type {Taken[]} */
    const lives = []
    for (let i = 0; i < LIVES; i++) {
      take()
      await act()
      lives.push(take())
    }
    return lives.reduce(least)
  }

  function take() {
    const { calls, xstate, promises, messages, where } = takeTally()
    return { where, counts: { calls, xstate, promises, ...(wal && { messages, ...wal.take() }) } }
  }
})

/** @typedef {{ counts: Counts, where: Map<string, number> }} Taken */

/** @param {Taken} a @param {Taken} b @returns {Taken} */
function least(a, b) {
  const counts = Object.entries(a.counts).map(([what, count]) => [what, Math.min(count, b.counts[what] ?? count)])
  const where = [...a.where].map(
    ([name, count]) => /** @type {const} */ ([name, Math.min(count, b.where.get(name) ?? 0)]),
  )
  return { counts: Object.fromEntries(counts), where: new Map(where) }
}

/** @param {Taken} longer @param {Taken} shorter @param {number} size @returns {Counted} */
function difference(longer, shorter, size) {
  const each = (/** @type {number} */ more, /** @type {number} */ less) =>
    Math.round(((more - less) / size) * 100) / 100
  const counts = Object.entries(longer.counts).map(([what, count]) => [what, each(count, shorter.counts[what] ?? 0)])
  const where = [...longer.where].map(
    ([name, count]) => /** @type {const} */ ([name, each(count, shorter.where.get(name) ?? 0)]),
  )
  return { counts: Object.fromEntries(counts), where: where.sort(([, a], [, b]) => b - a).slice(0, MOST) }
}
