/** Which paths a budget stands for. */
import { readFileSync } from 'node:fs'
import { agentPaths } from '../../dist/testing.js'

/** @typedef {{ options: import('../../dist/testing.js').AgentPathsOptions, every?: number }} Budget */

/** @type {Record<string, readonly Budget[]>} */
const budgets = JSON.parse(readFileSync(new URL('budgets.json', import.meta.url), 'utf8'))

/**
 * The paths of a budget; of `of` shards, those of the shard. Or all of that label (each part of a budget has its own),
 * also those that the budget passes over: a mended chart has other paths, and the sample is another one.
 * @param {{ budget: string, label?: string, shard?: number, of?: number }} choice
 */
export function chosenPaths({ budget, label, shard = 0, of = 1 }) {
  const parts = budgets[budget]
  if (parts === undefined) throw new Error(`There is no budget "${budget}": ${Object.keys(budgets).join(', ')}`)
  if (label !== undefined) return calledBy(parts, label)
  const paths = parts.flatMap(({ options, every = 1 }) => agentPaths(options).filter((_, index) => index % every === 0))
  return paths.filter((_, index) => index % of === shard)
}

/** @param {readonly Budget[]} parts @param {string} label */
const calledBy = (parts, label) =>
  parts.flatMap(({ options }) => agentPaths(options).filter((path) => path.label === label))
