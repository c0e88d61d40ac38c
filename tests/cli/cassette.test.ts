import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { cassette } from '../../src/services/adapters/cassette.ts'
import { gate, pause, scripted, text } from '../../src/services/adapters/scripted.ts'
import { workspaceTools } from '../../src/services/tools/workspace/workspace-tools.ts'
import { ofType, startAgent } from '../kit/agents.ts'
import { CLI, eventsIn, PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

const QUESTION = 'How do I run the tests?'

let here: Place
beforeAll(async () => {
  here = place()
  const { out } = await here.pawl('run', QUESTION, '--model', 'demo', '--session', 'asked', '--json')
  writeFileSync(join(here.root, '..', 'run.jsonl'), out)
})
afterAll(() => here.remove())

/** The recorded question, asked again with the tools of the command line and what it tells its model. */
async function again(text: string): Promise<{ said: string; kind: string }> {
  const events = eventsIn(text)
  const model = cassette(events)
  const { system = '' } = ofType(events, 'request/header')[0]?.data.header ?? {}
  const tools = workspaceTools({ root: here.root })
  await using started = await startAgent({ model, tools, system })
  const { text: said, reason } = await started.agent.run(QUESTION)
  expect(model.left).toBe(0)
  return { said, kind: reason.kind }
}

test('prints the whole session, which a cassette plays to an agent that asks the same', async () => {
  const { code, out, err } = await here.pawl('cassette', 'asked')
  expect(code).toBe(0)
  expect(err).toMatch(/^\d+ attempts of pawl demo\na recording holds the whole conversation: mind who may read it\n$/)
  expect(out).toBe((await here.pawl('log', 'asked', '--json')).out)
  expect(await again(out)).toMatchObject({ kind: 'completed', said: expect.stringContaining('npm test') })
})

// Only Linux has a device that is always full.
test.skipIf(!existsSync('/dev/full'))('a recording that could not be written is an error', () => {
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [CLI, 'cassette', 'asked', '--store', here.store], {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  })
  closeSync(full)
  expect(stderr).toContain('ENOSPC')
  expect(status).toBe(1)
})

test('what `pawl run --json` prints of a new session is a recording, too', async () => {
  const run = readFileSync(join(here.root, '..', 'run.jsonl'), 'utf8')
  expect(await again(run)).toMatchObject({ kind: 'completed', said: expect.stringContaining('npm test') })
})

test('of a session that goes on it is the end, which no cassette takes', async () => {
  await here.pawl('run', 'hello', '--model', 'demo', '--session', 'two')
  const { out } = await here.pawl('run', QUESTION, '--model', 'demo', '--session', 'two', '--json')
  expect(() => cassette(eventsIn(out))).toThrow(/the recording begins at seq \d+.*pawl cassette SESSION/)
  expect(ofType(eventsIn((await here.pawl('cassette', 'two')).out), 'turn/start')).toHaveLength(2)
})

test('a session may be recorded while another process works on it', async () => {
  const held = gate()
  await using store = sqliteStore(here.store)
  await using started = await startAgent({
    store,
    sessionId: 'busy',
    model: scripted([[text('half'), pause(held)]]),
  })
  const running = started.agent.run('go')
  await held.reached
  await started.agent.session.flush()
  const { code, out, err } = await here.pawl('cassette', 'busy')
  expect(code).toBe(0)
  expect(err).toMatch(/^1 attempt of scripted scripted, the last of them not over\n/)
  expect(cassette(eventsIn(out)).left).toBe(1)
  held.release()
  expect((await running).reason.kind).toBe('completed')
})

describe('what cannot be recorded is said in one line, and nothing is printed', () => {
  test.each([
    [['cassette'], 1, /^error: .*session/],
    [['cassette', 'missing'], 1, /SESSION_NOT_FOUND/],
    [['cassette', 'asked', '--store', '/no/such/store.db'], 1, /no store at/],
    [['cassette', 'silent'], 1, /CASSETTE_EMPTY/],
  ])('%j', async (args, exit, said) => {
    if (args[1] === 'silent') await silentSession()
    const { code, out, err } = await here.pawl(...args)
    expect({ code, out }).toEqual({ code: exit, out: '' })
    expect(err).toMatch(/^error: [^\n]+\n$/)
    expect(err).toMatch(said)
  })
})

/** A turn that a hook blocked before any model was asked. */
async function silentSession(): Promise<void> {
  await using store = sqliteStore(here.store)
  const hooks = { 'agent/pre-step': () => ({ kind: 'reject' }) as const }
  await using started = await startAgent({ store, sessionId: 'silent', model: scripted([]), hooks })
  await started.agent.followup('go').turn
}

test('a reader that leaves early ends the output quietly', async () => {
  const recording = here.start('cassette', 'asked')
  recording.child.stdout.destroy()
  expect(await recording.ended).toMatchObject({ code: 0 })
})
