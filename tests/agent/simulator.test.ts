/** Whole agents in a world that does everything to them: each schedule comes to rest with every promise kept. */
import { expect, test } from 'vitest'
import { campaign, countsInWords, replay, reportOf } from '../kit/agent-simulator/campaign.ts'
import { play } from '../kit/agent-simulator/play.ts'
import { shrink } from '../kit/agent-simulator/shrink.ts'
import { type Bytes, decodeTape, encodeTape, givenTape, seededTape } from '../kit/agent-simulator/tape.ts'

/** One seed or tape to look at, or how many seeds to play, from which one on, for how long at most. */
const { PAWL_SEED, PAWL_SEEDS, PAWL_FROM, PAWL_MINUTES, PAWL_TAPE } = process.env
const SEEDS = PAWL_SEED === undefined ? range(Number(PAWL_FROM ?? 1), Number(PAWL_SEEDS ?? 120)) : [Number(PAWL_SEED)]
const MINUTES = PAWL_MINUTES === undefined ? Number.POSITIVE_INFINITY : Number(PAWL_MINUTES)

function range(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

test.skipIf(PAWL_TAPE !== undefined)('whatever happens, every promise is kept', { timeout: 36_000_000 }, async () => {
  const reports: string[] = []
  const result = await campaign(SEEDS, (report) => reports.push(report), MINUTES)
  console.log(countsInWords(result))
  if (reports.length > 0) throw new Error(reports.slice(0, 5).join('\n\n'))
  expect(result.counts.get('fold checks')).toBeGreaterThan(0)
})

test.runIf(PAWL_TAPE !== undefined)('a tape that broke something', { timeout: 600_000 }, async () => {
  const played = await replay(PAWL_TAPE ?? '')
  console.log(reportOf('the schedule:', played, Number.POSITIVE_INFINITY))
  expect(played.breach).toBeUndefined()
})

test('a seed is one schedule: byte for byte the same logs and the same story', async () => {
  for (const seed of [3, 8, 48]) {
    const [first, second] = [await play(seededTape(seed)), await play(seededTape(seed))]
    expect(first.logs.length).toBeGreaterThan(1_000)
    expect(second.story).toEqual(first.story)
    expect(second.logs).toBe(first.logs)
    // What was drawn is the whole of it.
    const taped = await play(givenTape(decodeTape(encodeTape(first.tape))))
    expect(taped.logs).toBe(first.logs)
  }
})

/** A tenth of them is played with more to do. */
const SOME = SEEDS.slice(0, Math.ceil(SEEDS.length / 10))

test.skipIf(PAWL_TAPE !== undefined)(
  'agents that hibernate whenever they rest or wait keep every promise',
  { timeout: 36_000_000 },
  async () => {
    for (const seed of SOME) {
      const { breach, story } = await play(seededTape(seed), 'always')
      expect(breach, `seed ${seed}\n${story.slice(-12).join('\n')}`).toBeUndefined()
    }
  },
)

test('a tape that is used up plays on with the plainest choices', async () => {
  const { breach, counts } = await play(givenTape([]))
  expect(breach).toBeUndefined()
  expect([...counts.keys()].filter((what) => what.startsWith('fault'))).toEqual([])
})

test('a failing tape is shrunk to what makes it fail', async () => {
  const tape = [[9], [0, 3], [200, 1], [1], [77, 160], [4]]
  const fails = async (bytes: Bytes): Promise<boolean> => bytes.flat().some((byte) => byte > 150)
  expect(await shrink(tape, fails)).toHaveLength(1)
})
