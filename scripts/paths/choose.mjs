/** Which paths a budget stands for. */
import { readFileSync } from 'node:fs'
import { agentPaths } from '../../dist/testing.js'

/** @typedef {{ options: import('../../dist/testing.js').AgentPathsOptions, every?: number }} Budget */

/** @type {Record<string, readonly Budget[]>} */
const budgets = JSON.parse(readFileSync(new URL('budgets.json', import.meta.url), 'utf8'))

/**
 * The paths of a budget, or those of that label (each part of a budget has its own); of `of` shards, those of the shard.
 * @param {{ budget: string, label?: string, shard?: number, of?: number }} choice
 */
export function chosenPaths({ budget, label, shard = 0, of = 1 }) {
  const parts = budgets[budget]
  if (parts === undefined) throw new Error(`There is no budget "${budget}": ${Object.keys(budgets).join(', ')}`)
  const paths = parts.flatMap(({ options, every = 1 }) => agentPaths(options).filter((_, index) => index % every === 0))
  if (label !== undefined) {
    const found = paths.filter((path) => path.label === label)
    if (found.length === 0) throw new Error(`No path of the budget "${budget}" is called "${label}"`)
    return found
  }
  return paths.filter((_, index) => index % of === shard)
}
