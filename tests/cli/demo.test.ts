import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
beforeEach(() => {
  here = place()
})
afterEach(() => here.remove())

test('pawl demo kills an agent at work and shows on one screen that it carried on', async () => {
  const { code, out, err } = await here.pawl('demo')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const lines = out.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(40)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100)
  expect(out).toMatch(/SIGKILL to process \d+ after .*, while search_text was at work\. On disk: \d+ events/)
  expect(out).toMatch(/list_files +ran 1× {2}finished before the kill, not run again/)
  expect(out).toContain('no run began twice, nothing finished ran again')
  expect(out.match(/ran 2× {2}killed in run 1, again as run 2: onCrash: rerun/g)).toHaveLength(1)
  expect(out).toContain('README.md:1  # Ratchet')
  expect(out).toMatch(/^verify ok: \d+ events, 1 turn, idle$/m)
  const store = /The log is in (\S+\.db)/.exec(out)?.[1] ?? ''
  expect(await here.pawl('verify', 'demo', '--store', store)).toMatchObject({ code: 0 })
})

test('pawl demo says so when there was no tool to kill', async () => {
  const { code, out } = await here.pawl('demo', '.', '--question', 'hello')
  expect(code).toBe(0)
  expect(out).toContain('before a tool could be killed')
})
