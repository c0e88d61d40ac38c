/** What came of playing paths, counted. */
import { readFileSync } from 'node:fs'
import { allTransitions } from '../../dist/testing.js'

/** @typedef {{ label: string, message: string }} Mismatch */
/**
 * @typedef {{ paths: number, inputs: number, comparisons: number, crashes: number, events: number,
 *   ends: Record<string, number>, transitions: Record<string, number>, mismatches: Mismatch[] }} Tally
 */

/** @returns {Tally} */
export const emptyTally = () => ({
  paths: 0,
  inputs: 0,
  comparisons: 0,
  crashes: 0,
  events: 0,
  ends: {},
  transitions: {},
  mismatches: [],
})

/** @param {Record<string, number>} counts @param {string} name */
export function count(counts, name, times = 1) {
  counts[name] = (counts[name] ?? 0) + times
}

/** @param {Tally} into @param {Tally} from */
export function merge(into, from) {
  for (const name of /** @type {const} */ (['paths', 'inputs', 'comparisons', 'crashes', 'events'])) {
    into[name] += from[name]
  }
  for (const [name, times] of Object.entries(from.ends)) count(into.ends, name, times)
  for (const [name, times] of Object.entries(from.transitions)) count(into.transitions, name, times)
  into.mismatches.push(...from.mismatches)
  return into
}

/** Transitions of the chart that no path took, and why. */
const unreached = /** @type {Record<string, string>} */ (
  JSON.parse(readFileSync(new URL('unreached.json', import.meta.url), 'utf8'))
)

/**
 * What paths/unreached.json does not tell: transitions that were not taken, and named ones that were.
 * @param {Tally} tally
 */
export function missedBy({ transitions }) {
  const unnamed = allTransitions().filter((name) => transitions[name] === undefined && unreached[name] === undefined)
  const taken = Object.keys(unreached).filter((name) => transitions[name] !== undefined)
  return { unnamed, taken }
}

/**
 * @param {Tally} tally
 * @param {{ unnamed: readonly string[], taken: readonly string[] }} missed
 * @param {{ budget: string, transitions: boolean }} options
 * @param {number} seconds
 */
export function linesOf(tally, missed, { budget, transitions }, seconds) {
  const all = allTransitions()
  const taken = all.filter((name) => tally.transitions[name] !== undefined)
  const ends = Object.entries(tally.ends).sort(([, a], [, b]) => b - a)
  return [
    ...tally.mismatches
      .slice(0, 10)
      .flatMap(({ label, message }) => [
        `MISMATCH ${message}`,
        `  again: npm run paths -- --budget ${budget} --label ${JSON.stringify(label)}`,
      ]),
    `paths ${tally.paths}, inputs ${tally.inputs}, events ${tally.events}, crashes ${tally.crashes}, ` +
      `comparisons ${tally.comparisons}, mismatches ${tally.mismatches.length}, ${seconds.toFixed(1)} s`,
    `turns ended: ${ends.map(([kind, times]) => `${kind} ${times}`).join(', ')}`,
    `transitions of the chart taken: ${taken.length} of ${all.length}`,
    ...(transitions ? all.map((name) => `  ${tally.transitions[name] ?? 0}  ${name}${reasonOf(name)}`) : []),
    ...missed.unnamed.map((name) => `NOT TAKEN, and not in scripts/paths/unreached.json: ${name}`),
    ...missed.taken.map((name) => `TAKEN, though scripts/paths/unreached.json says it cannot be: ${name}`),
  ].join('\n')
}

/** @param {string} name */
const reasonOf = (name) => (unreached[name] === undefined ? '' : `: ${unreached[name]}`)
