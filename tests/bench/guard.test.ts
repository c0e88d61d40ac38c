/** What `npm run bench -- guard` holds counts to; the counting itself runs in `.ci/run`. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

type Tree<T> = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, T>>>>>>
interface Allowance {
  readonly allowed: number
  readonly reason: string
}
interface Verdict {
  readonly unit: string
  readonly what: string
  readonly says: string
}
interface Judge {
  judge(figures: Tree<number>, allowances: Tree<Allowance>): readonly Verdict[]
  failures(verdicts: readonly Verdict[]): readonly Verdict[]
  rewritten(figures: Tree<number>, allowances: Tree<Allowance>, raiseFor?: string): Tree<Allowance>
}

const here = (path: string): URL => new URL(`../../bench/${path}`, import.meta.url)
const { judge, failures, rewritten }: Judge = await import(here('guard/judge.mjs').href)
const checkedIn: Tree<Allowance> = JSON.parse(readFileSync(here('guard.json'), 'utf8'))

const counted = (counts: Readonly<Record<string, number>>): Tree<number> => ({ sqlite: { step: counts } })
const allowing = (counts: Readonly<Record<string, number>>, reason = 'It is so.'): Tree<Allowance> => ({
  sqlite: { step: Object.fromEntries(Object.entries(counts).map(([what, allowed]) => [what, { allowed, reason }])) },
})
const says = (figures: Tree<number>, allowances: Tree<Allowance>): readonly string[] =>
  judge(figures, allowances).map((verdict) => verdict.says)
const failed = (figures: Tree<number>, allowances: Tree<Allowance>): readonly string[] =>
  failures(judge(figures, allowances)).map(({ what }) => what)

const mapped = <T, U>(of: Readonly<Record<string, T>>, map: (value: T) => U): Readonly<Record<string, U>> =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [key, map(value)]))

describe('a count', () => {
  test('that is above its allowance fails, and the others do not hide it', () => {
    const allowances = allowing({ commits: 2, calls: 1000, promises: 100 })
    expect(failed(counted({ commits: 2, calls: 1000, promises: 100 }), allowances)).toEqual([])
    expect(failed(counted({ commits: 2, calls: 1100, promises: 100 }), allowances)).toEqual(['calls'])
  })

  test.each(['commits', 'messages'])('of %s may not rise at all', (what) => {
    expect(failed(counted({ [what]: 2 }), allowing({ [what]: 2 }))).toEqual([])
    expect(failed(counted({ [what]: 2.05 }), allowing({ [what]: 2 }))).toEqual([what])
  })

  test.each(['calls', 'xstate', 'promises', 'frames'])('of %s may rise by two hundredths and no more', (what) => {
    expect(failed(counted({ [what]: 1020 }), allowing({ [what]: 1000 }))).toEqual([])
    expect(failed(counted({ [what]: 1021 }), allowing({ [what]: 1000 }))).toEqual([what])
    expect(failed(counted({ [what]: 0.1 }), allowing({ [what]: 0 }))).toEqual([])
    expect(failed(counted({ [what]: 0.2 }), allowing({ [what]: 0 }))).toEqual([what])
  })

  test('that is well below its allowance is told, and fails nothing', () => {
    const figures = counted({ commits: 1, calls: 900 })
    const allowances = allowing({ commits: 2, calls: 1000 })
    expect(says(figures, allowances)).toEqual(['well below', 'well below'])
    expect(failed(figures, allowances)).toEqual([])
  })

  test('without an allowance fails, and so does an allowance for what was not counted', () => {
    expect(says(counted({ calls: 10 }), allowing({}))).toEqual(['no allowance'])
    expect(says(counted({}), allowing({ calls: 10 }))).toEqual(['not counted'])
    expect(failed(counted({ calls: 10 }), allowing({ promises: 1 }))).toEqual(['calls', 'promises'])
  })

  test.each(['', '  '])('whose allowance has no reason (%j) fails, however low it is', (reason) => {
    expect(says(counted({ calls: 1 }), allowing({ calls: 10 }, reason))).toEqual(['no reason'])
    expect(failed(counted({ calls: 1 }), allowing({ calls: 10 }, reason))).toEqual(['calls'])
  })
})

test('writing down what is lower raises nothing, keeps reasons, and drops what is no longer counted', () => {
  const allowances = allowing({ calls: 1000, commits: 2, gone: 1 }, 'Two.')
  expect(rewritten(counted({ calls: 1100, commits: 1, promises: 7 }), allowances)).toEqual({
    sqlite: {
      step: {
        calls: { allowed: 1000, reason: 'Two.' },
        commits: { allowed: 1, reason: 'Two.' },
        promises: { allowed: 7, reason: 'As first counted.' },
      },
    },
  })
})

test('what is raised has the reason that was given, and nothing else has', () => {
  const allowances = allowing({ calls: 1000, xstate: 100, commits: 2 }, 'Old.')
  const figures = counted({ calls: 1100, xstate: 101, commits: 1 })
  expect(rewritten(figures, allowances, 'New.').sqlite?.step).toEqual({
    calls: { allowed: 1100, reason: 'New.' },
    xstate: { allowed: 100, reason: 'Old.' },
    commits: { allowed: 1, reason: 'Old.' },
  })
})

test('what is checked in has a reason for each allowance: two commits a step, one a burst, none for a delta', () => {
  const figures = Object.fromEntries(
    Object.entries(checkedIn).map(([store, units]) => [
      store,
      mapped(units, (counts) => mapped(counts, (a) => a.allowed)),
    ]),
  )
  expect(failures(judge(figures, checkedIn))).toEqual([])
  expect(figures.sqlite).toMatchObject({
    followup: { commits: 2, messages: 2 },
    step: { commits: 2, messages: 2 },
    burst: { commits: 1, messages: 1 },
    delta: { commits: 0, messages: 0 },
  })
})
