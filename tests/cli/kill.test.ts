/** The CLI is killed at its worst moments and carried on: what a tool did is done once, and the log says what is known. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { answer, delta, wireServer } from '../kit/wire-server.ts'
import { linesOf, PATIENCE, type Place, place, type Started, until } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
let witness = ''
beforeEach(() => {
  here = place()
  witness = join(here.root, 'witness.txt')
})
afterEach(() => here.remove())

const COMMAND = 'echo began >> witness.txt; sleep 60'

const of = <T extends SessionEvent['type']>(events: readonly SessionEvent[], type: T) =>
  events.filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type)

async function kill(run: Started, signal: NodeJS.Signals = 'SIGKILL'): ReturnType<typeof run.ended.then> {
  run.child.kill(signal)
  return run.ended
}

test('killed while a tool runs and again while the model streams, it carries on both times', async () => {
  const asks = { id: 'call_1', name: 'run_command', arguments: JSON.stringify({ command: COMMAND }) }
  await using server = await wireServer([
    { body: answer({ text: 'I run it.', calls: [asks] }) },
    { body: [delta({ role: 'assistant', content: 'It may ' }), delta({ content: 'have ' }), { kind: 'hang' }] },
    { body: answer({ text: 'It may have run.' }) },
  ])
  const flags = ['--base-url', server.url, '--json', '--yes'] as const

  const first = here.start('run', 'run it', '--session', 's', ...flags)
  await until('the tool is at work', () => existsSync(witness))
  await kill(first)

  const second = here.start('resume', 's', ...flags)
  await until('a piece of the answer is durable', () => second.out().includes('"text":"have "'))
  await kill(second)

  expect((await here.pawl('resume', 's', ...flags)).code).toBe(0)

  const events = await here.events('s')
  expect(linesOf(witness)).toEqual(['began'])
  expect(of(events, 'tool/result').map(({ data }) => data.error?.code)).toEqual(['TOOL_OUTCOME_UNKNOWN'])
  const attempts = of(events, 'assistant/chunk').filter(({ data }) => data.step === 2)
  expect(new Set(attempts.map(({ data }) => data.attempt))).toEqual(new Set([1, 2]))
  const messages = of(events, 'assistant/message').filter(({ data }) => data.step === 2)
  expect(messages.map(({ data }) => data.attempt)).toEqual([2])
  expect(of(events, 'turn/end').map(({ data }) => data.reason.kind)).toEqual(['completed'])
  expect(await here.pawl('verify', 's')).toMatchObject({ code: 0, out: expect.stringContaining('1 turn, idle') })
})

test('the demo model is told that the outcome is unknown, and does not run it again', async () => {
  const run = here.start('run', `run: ${COMMAND}`, '--model', 'demo', '--session', 's', '--yes')
  await until('the tool is at work', () => existsSync(witness))
  await kill(run)
  const { code, out } = await here.pawl('resume', 's', '--yes')
  expect(code).toBe(0)
  expect(out).toContain('did not succeed')
  expect(linesOf(witness)).toEqual(['began'])
})

test('SIGINT cancels the turn: the tool is stopped, exit code 130', async () => {
  const run = here.start('run', `run: ${COMMAND}`, '--model', 'demo', '--session', 's', '--yes')
  await until('the tool is at work', () => existsSync(witness))
  expect(await kill(run, 'SIGINT')).toMatchObject({ code: 130, err: expect.stringContaining('cancelled by the user') })
  expect(of(await here.events('s'), 'turn/end').map(({ data }) => data.reason.kind)).toEqual(['aborted'])
  expect((await here.pawl('verify', 's')).code).toBe(0)
})

test('SIGTERM suspends the turn, exit code 143, and resume carries it on', async () => {
  await using server = await wireServer([
    { body: [delta({ content: 'Hel' }), { kind: 'hang' }] },
    { body: answer({ text: 'Hello.' }) },
  ])
  const run = here.start('run', 'hello', '--session', 's', '--base-url', server.url)
  await until('the model speaks', () => run.out().includes('Hel'))
  expect(await kill(run, 'SIGTERM')).toMatchObject({ code: 143, err: expect.stringContaining('pawl resume s') })
  expect((await here.events('s')).at(-1)?.type).toBe('session/suspended')
  expect(await here.pawl('resume', 's', '--base-url', server.url)).toMatchObject({ code: 0, out: 'Hello.\n' })
})

test('pawl cancel ends the turn of a process that is at it', async () => {
  const run = here.start('run', `run: ${COMMAND}`, '--model', 'demo', '--session', 's', '--yes')
  await until('the tool is at work', () => existsSync(witness))
  expect(await here.pawl('cancel', 's')).toMatchObject({ code: 0, out: 'cancelled turn 1 of s\n' })
  expect((await run.ended).code).toBe(130)
})

test('pawl cancel ends the turn of a session that nobody has', async () => {
  await here.pawl('run', 'run: echo', '--model', 'demo', '--session', 's')
  expect(await here.pawl('cancel', 's')).toMatchObject({ code: 0, out: 'cancelled turn 1 of s\n' })
  const events = await here.events('s')
  expect(of(events, 'turn/end').map(({ data }) => data.reason)).toEqual([{ kind: 'aborted', cause: { kind: 'user' } }])
  expect(of(events, 'tool/dispatch')).toEqual([])
  expect(await here.pawl('cancel', 's')).toMatchObject({ code: 1, err: expect.stringContaining('(SESSION_IDLE)') })
})
