/** Any schedule, cut anywhere and as often as it likes, comes to rest with a sound log that folds to the live state. */
import { expect, test } from 'vitest'
import { emptyTally, simulate } from '../kit/simulator.ts'

/** One seed to look at, or how many to play; every crash and fork point of each with PAWL_THOROUGH=1. */
const { PAWL_SEED, PAWL_SEEDS, PAWL_THOROUGH } = process.env
const SEEDS = PAWL_SEED === undefined ? range(1, Number(PAWL_SEEDS ?? 300)) : [Number(PAWL_SEED)]
const POINTS =
  PAWL_THOROUGH === undefined ? ({ crashes: 1, forks: 1 } as const) : ({ crashes: 'all', forks: 'all' } as const)

function range(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

test('a random schedule with crashes, suspends and forks keeps every promise', { timeout: 3_600_000 }, () => {
  const tally = emptyTally()
  const told = (failures: number): void => {
    const { endings, ...counts } = tally
    const all = { ...counts, failures, ...Object.fromEntries(endings) }
    const words = Object.entries(all).map(([name, n]) => `${name} ${n}`)
    console.log(`the chart alone: ${words.join(', ')}`)
  }
  for (const seed of SEEDS) {
    try {
      simulate(seed, tally, POINTS)
    } catch (error) {
      told(1)
      const thorough = PAWL_THOROUGH === undefined ? '' : 'PAWL_THOROUGH=1 '
      const again = `${thorough}PAWL_SEED=${seed} npx vitest run tests/machines/simulator.test.ts`
      throw new Error(`${again}\n${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
  told(0)
  expect(tally.checks).toBeGreaterThan(0)
  expect(tally.crashes).toBeGreaterThan(0)
})
