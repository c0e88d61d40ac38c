/** SIGTERM while a tool runs: what settles in time keeps its result, and the turn is carried on as if never stopped. */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ofType } from '../kit/agents.ts'
import { answer, delta, wireServer } from '../kit/wire-server.ts'
import { linesOf, PATIENCE, type Place, place, until } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
let witness = ''
beforeEach(() => {
  here = place()
  witness = join(here.root, 'witness.txt')
})
afterEach(() => here.remove())

/** Runs `command` in a tool, sends SIGTERM once it is at work, and resumes. */
async function suspendIn(command: string) {
  const run = here.start('run', `run: ${command}`, '--model', 'demo', '--session', 's', '--yes')
  await until('the tool is at work', () => existsSync(witness))
  run.child.kill('SIGTERM')
  const { code, err } = await run.ended
  const suspended = await here.events('s')
  const resumed = await here.pawl('resume', 's', '--yes')
  return { code, err, suspended, resumed, log: await here.events('s') }
}

test('a tool that ends within the grace keeps its result, and resume goes on from there', async () => {
  const { code, err, suspended, resumed, log } = await suspendIn('echo began >> witness.txt; sleep 1; echo finished')
  expect({ code, err }).toEqual({ code: 143, err: expect.stringContaining('pawl resume s') })
  expect(suspended.at(-1)?.type).toBe('session/suspended')
  expect(ofType(suspended, 'tool/result')).toHaveLength(1)
  expect(ofType(suspended, 'turn/end')).toEqual([])
  expect(resumed.code).toBe(0)
  expect(linesOf(witness)).toEqual(['began'])
  expect(ofType(log, 'tool/result')[0]?.data.error).toBeUndefined()
  expect(ofType(log, 'session/resumed')).toMatchObject([{ data: { resumes: 0 } }])
  expect(ofType(log, 'turn/end')).toMatchObject([{ data: { reason: { kind: 'completed' } } }])
})

test('a tool that does not is answered as unknown by the resume, which counts as no failed recovery', async () => {
  const { code, suspended, resumed, log } = await suspendIn('echo began >> witness.txt; sleep 60')
  expect(code).toBe(143)
  expect(suspended.at(-1)?.type).toBe('session/suspended')
  expect(ofType(suspended, 'tool/result')).toEqual([])
  expect(resumed.code).toBe(0)
  expect(linesOf(witness)).toEqual(['began'])
  expect(ofType(log, 'tool/result')[0]?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
  expect(ofType(log, 'session/resumed')).toMatchObject([{ data: { resumes: 0 } }])
})

test('a full disk ends the command with 2 and a file in the state directory, which the next resume puts back', async ({
  skip,
}) => {
  const disk = join(here.root, '..', 'disk')
  spawnSync('mkdir', [disk])
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=640k', 'tmpfs', disk]).status !== 0) skip('mount is not permitted')
  try {
    const long = Array.from({ length: 45 }, () => delta({ content: 'x'.repeat(20_000) }))
    await using server = await wireServer([{ body: [...long, { kind: 'hang' }] }, { body: answer({ text: 'Short.' }) }])
    const flags = ['--store', join(disk, 'pawl.db'), '--base-url', server.url]
    const run = await here.pawl('run', 'go', '--session', 's', ...flags)
    expect({ code: run.code, err: run.err }).toEqual({ code: 2, err: expect.stringContaining('STORE_FAILURE') })
    const unsaved = join(here.root, '..', 'pawl', 'unsaved')
    expect(readdirSync(unsaved)).toHaveLength(1)
    expect(spawnSync('mount', ['-o', 'remount,size=64m', disk]).status).toBe(0)
    const resumed = await here.pawl('resume', 's', ...flags)
    expect({ code: resumed.code, out: resumed.out }).toEqual({ code: 0, out: expect.stringContaining('Short.') })
    expect(readdirSync(unsaved)).toEqual([])
  } finally {
    spawnSync('umount', ['-l', disk])
  }
})
