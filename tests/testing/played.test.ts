/** Generated paths, each played on a real agent over SQLite: `npm run paths`, as it is run by hand. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { allTransitions } from '../../src/testing/closed-loop.ts'

interface Tally {
  readonly paths: number
  readonly crashes: number
  readonly seconds: number
  readonly mismatches: readonly unknown[]
  readonly ends: Readonly<Record<string, number>>
  readonly transitions: Readonly<Record<string, number>>
}

interface Missed {
  readonly unnamed: readonly string[]
  readonly taken: readonly string[]
}

interface Telling {
  linesOf(tally: Tally, missed: Missed, options: { budget: string; transitions: boolean }, seconds: number): string
  missedBy(tally: Pick<Tally, 'transitions'>): Missed
}

const { linesOf, missedBy }: Telling = await import(new URL('../../scripts/paths/tally.mjs', import.meta.url).href)

const budgets: Readonly<Record<string, unknown[]>> = JSON.parse(
  readFileSync(new URL('../../scripts/paths/budgets.json', import.meta.url), 'utf8'),
)

const run = promisify(execFile)
const paths = (...args: string[]) =>
  run(process.execPath, [fileURLToPath(new URL('../../scripts/paths.mjs', import.meta.url)), ...args], {
    maxBuffer: 16 * 1024 * 1024,
  })

test('a thousand paths through the chart happen to a real agent as they are told', { timeout: 600_000 }, async () => {
  const { stdout } = await paths('--json')
  const tally: Tally = JSON.parse(stdout)
  console.log(linesOf(tally, { unnamed: [], taken: [] }, { budget: 'test', transitions: false }, tally.seconds))
  expect(tally.mismatches).toEqual([])
  expect(tally.paths).toBeGreaterThanOrEqual(1_000)
  expect(tally.crashes).toBeGreaterThan(100)
  expect(Object.keys(tally.ends).sort()).toEqual([
    'aborted',
    'blocked',
    'completed',
    'error',
    'interrupted',
    'limit',
    'max-steps',
    'max-tokens',
    'stopped-by-policy',
  ])
})

test('paths are played by their label, and one that is not there is told', { timeout: 120_000 }, async () => {
  const few = ['--budget', 'few']
  expect(budgets.test).toEqual(expect.arrayContaining(budgets.few ?? []))
  const labels = (await paths(...few, '--list')).stdout.trim().split('\n')
  expect(labels).toContain(
    'retry on step 1, then crash while waiting to retry, then cancel while waiting to retry keeping the inbox: aborted',
  )
  // One that the sample passes over: what failed before a mend is to be found after it.
  const label = 'retry on step 1, then crash while waiting to retry, then cancel while waiting to retry: aborted'
  expect(labels).not.toContain(label)
  const { stdout } = await paths(...few, '--label', label, '--json')
  expect(JSON.parse(stdout)).toMatchObject({ paths: 1, mismatches: [] })
  await expect(paths(...few, '--label', 'nothing of the kind')).rejects.toThrow(
    'No path of the budget "few" is called "nothing of the kind"',
  )
})

test('what is named as never taken is in the chart', () => {
  const url = new URL('../../scripts/paths/unreached.json', import.meta.url)
  const unreached = Object.keys(JSON.parse(readFileSync(url, 'utf8')))
  expect(unreached.filter((name) => !allTransitions().includes(name))).toEqual([])
})

test('a transition that no path took has to be named with its reason, and only such a one', () => {
  const { unnamed, taken } = missedBy({ transitions: { 'idle on command.suspend': 1 } })
  expect(taken).toEqual(['idle on command.suspend'])
  expect(unnamed).toContain('idle on turn/start')
  expect(unnamed).not.toContain('turnOpen on turn/end')
})
