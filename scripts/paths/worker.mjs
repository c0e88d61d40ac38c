/** One process of `npm run paths`: plays its shard of the paths and tells its parent what came of them. */
import { applyInput, beginLoop, playPaths } from '../../dist/testing.js'
import { chosenPaths } from './choose.mjs'
import { count, emptyTally } from './tally.mjs'

const tally = emptyTally()

await playPaths(chosenPaths(JSON.parse(process.argv[2] ?? '{}')), {
  onPlayed(path, outcome) {
    tally.paths += 1
    if ('thrown' in outcome) {
      const { thrown } = outcome
      tally.mismatches.push({ label: path.label, message: thrown instanceof Error ? thrown.message : String(thrown) })
      return
    }
    tally.inputs += outcome.inputs.length
    tally.comparisons += outcome.comparisons
    tally.crashes += outcome.crashes
    tally.events += outcome.events.length
    for (const kind of outcome.ends) count(tally.ends, kind)
    let state = beginLoop(path.setup)
    for (const input of outcome.inputs) {
      ;({ state } = applyInput(state, input, (name) => count(tally.transitions, name)))
    }
  },
})
process.send?.(tally)
