/** A small crash campaign: 20 kills and 4 polite signals to real processes, counted from outside. `npm run crash` is the large one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

/** 20 s on two free cores; much more where others are at work. */
const PATIENCE_MS = 300_000

interface Report {
  readonly by: Record<'cli' | 'worker', { SIGKILL: number; SIGTERM: number }>
  /** The state of the log at the signal. */
  readonly states: Record<string, number>
  readonly defects: Record<string, number>
  readonly counts: Record<string, number>
  readonly findings: readonly string[]
}

test('20 kills and 4 polite signals to the command line and to a worker lose nothing and do nothing twice', {
  timeout: PATIENCE_MS,
}, async () => {
  // A third of the signals come by what was recorded, so that they land in work also where starting takes long.
  const how = '--kills 20 --terms 4 --seed 11 --lanes 2 --bursts 4 --row 5-5 --within 1200 --events 12 --json'
  const child = spawn(process.execPath, [resolve('scripts/crash.mjs'), ...how.split(' ')], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void child.kill())
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const [code] = await once(child, 'close')
  const report: Report = JSON.parse(out)
  expect(report.findings).toEqual([])
  expect(Object.values(report.defects).every((count) => count === 0)).toBe(true)
  const { cli, worker } = report.by
  expect([cli.SIGKILL + worker.SIGKILL, cli.SIGTERM + worker.SIGTERM]).toEqual([20, 4])
  expect(Object.keys(report.states).filter((state) => !state.startsWith('opening'))).not.toEqual([])
  expect(report.counts['events seen by readers']).toBeGreaterThan(0)
  expect(report.counts['messages acknowledged']).toBeGreaterThan(0)
  expect(code).toBe(0)
})
