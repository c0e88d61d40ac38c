/** A command whose store never answers ends in time, says which file does not answer, and leaves with the store's code. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createAgent } from '../../src/agent.ts'
import { answer, cancel } from '../../src/cli/answering.ts'
import { cassette } from '../../src/cli/cassette.ts'
import { type Console, exitCodeOfError } from '../../src/cli/console.ts'
import { check, log, sessions } from '../../src/cli/reading.ts'
import { resume, run } from '../../src/cli/run.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { demo } from '../../src/services/adapters/demo.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { settle } from '../kit/agents.ts'
import { type FaultyStore, faultyStore, type Operation } from '../kit/faulty-store.ts'
import { silentConsole } from './silent-console.ts'

let store: FaultyStore
vi.mock('../../src/log/stores/sqlite.ts', () => ({ sqliteStore: () => store }))

/** As the CLI waits. */
const LIMIT = 30_000

let folder: string
let path: string
let console: Console
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-waiting-'))
  path = join(folder, 'pawl.db')
  writeFileSync(path, '')
  console = silentConsole()
  vi.stubEnv('XDG_STATE_HOME', folder)
  store = faultyStore(memoryStore(), { seed: 1, maxTurns: 0 })
  await leaveAsking()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

/** Session "s" has an open turn whose call c1 asks for approval. */
async function leaveAsking(): Promise<void> {
  const parameters = { type: 'object' } as const
  const pay = tool({ name: 'pay', description: 'Pays', parameters, needsApproval: true, execute: () => 'paid' })
  const model = { ...demo(), stream: scripted([toolCall('pay', {}, { id: 'c1' })]).stream }
  const agent = await createAgent({ model, store, sessionId: 's', tools: [pay] })
  agent.followup('go')
  await agent.whenQuiet()
  await agent.close()
}

type Command = () => Promise<number>

const COMMANDS: Readonly<Record<string, Command>> = {
  sessions: () => sessions({ store: path }, console),
  log: () => log('s', { store: path }, console),
  verify: () => check('s', { store: path }, console),
  cassette: () => cassette('s', { store: path }, console),
  approve: () => answer('approve', { session: 's', callId: 'c1' }, { store: path }, console),
  deny: () => answer('deny', { session: 's', callId: 'c1' }, { store: path }, console),
  cancel: () => cancel('s', { store: path }, console),
  resume: () => resume('s', { store: path, root: folder }, console),
  run: () => run('hello', { store: path, root: folder, model: 'demo', session: 's' }, console),
}

test.each<[command: string, Operation, skip: number, doing: string]>([
  ['sessions', 'list', 0, 'list its sessions'],
  ['log', 'header', 0, 'look up session "s"'],
  ['log', 'read', 0, 'read session "s"'],
  ['verify', 'read', 0, 'read session "s"'],
  ['cassette', 'read', 0, 'read session "s"'],
  ['approve', 'list', 0, 'list its sessions'],
  ['approve', 'read', 0, 'read session "s"'],
  ['approve', 'post', 0, 'take a command for session "s"'],
  ['deny', 'post', 0, 'take a command for session "s"'],
  ['cancel', 'read', 0, 'read session "s"'],
  ['cancel', 'post', 0, 'take a command for session "s"'],
  ['cancel', 'acquire', 0, 'acquire session "s"'],
  ['resume', 'header', 0, 'look up session "s"'],
  ['resume', 'read', 0, 'read session "s"'],
  ['resume', 'acquire', 0, 'acquire session "s"'],
  ['resume', 'read', 1, 'read session "s"'],
  ['run', 'acquire', 0, 'acquire session "s"'],
])('pawl %s: a store that does not answer to %s (%i) is told in time', async (command, operation, skip, doing) => {
  store.script(operation, 'hang', skip)
  const ended = COMMANDS[command]?.().catch((error: unknown) => error)
  await settle(40)
  await vi.advanceTimersByTimeAsync(LIMIT)
  const error = await ended
  expect(error).toMatchObject({
    code: 'STORE_FAILURE',
    reason: 'timeout',
    message: `The store did not ${doing} within ${LIMIT} ms: see whether the disk of ${path} answers, then try again`,
  })
  expect([exitCodeOfError(error), vi.getTimerCount()]).toEqual([2, 0])
})

test('pawl log: a store that does not close is told in time', async () => {
  vi.spyOn(store, Symbol.asyncDispose).mockReturnValue(new Promise(() => {}))
  const ended = log('s', { store: path }, console).catch((error: unknown) => error)
  await settle(40)
  await vi.advanceTimersByTimeAsync(LIMIT)
  expect(await ended).toMatchObject({ reason: 'timeout', message: expect.stringContaining('The store did not close') })
})
