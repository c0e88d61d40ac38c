/** What is said to a session from another process, while a living owner has it. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Agent, createAgent } from '../../src/agent.ts'
import type { LogStore } from '../../src/log/store.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { demo } from '../../src/services/adapters/demo.ts'
import { workspaceTools } from '../../src/services/tools/workspace/workspace-tools.ts'
import { PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
let store: LogStore
let owner: Agent
beforeEach(async () => {
  here = place()
  store = sqliteStore(here.store)
  owner = await createAgent({ store, sessionId: 's', model: demo(), tools: workspaceTools({ root: here.root }) })
  owner.followup('run: echo hi')
  await owner.whenQuiet()
})
afterEach(async () => {
  await owner.close()
  await store[Symbol.asyncDispose]()
  here.remove()
})

const lastAnswer = (): string => JSON.stringify(owner.session.messages().at(-1))

test('the owner takes an approval at once and carries on', async () => {
  const call = owner.approvals()[0]?.callId ?? ''
  expect(await here.pawl('approve', 's', call)).toMatchObject({
    code: 0,
    out: `approved run_command (${call})\n`,
    err: '',
  })
  await owner.whenIdle()
  expect(lastAnswer()).toContain('run: echo hi is done')
})

test('the owner takes a denial, and the model is told the reason', async () => {
  const call = owner.approvals()[0]?.callId ?? ''
  expect(await here.pawl('deny', 's', call, '--reason', 'not today')).toMatchObject({
    code: 0,
    out: `denied run_command (${call})\n`,
  })
  await owner.whenIdle()
  expect(lastAnswer()).toContain('not today')
})

test('the owner takes a cancel', async () => {
  expect(await here.pawl('cancel', 's')).toMatchObject({ code: 0, out: 'cancelled turn 1 of s\n' })
  await owner.whenIdle()
  expect(owner.approvals()).toEqual([])
})

test('a list says that it waits', async () => {
  expect((await here.pawl('sessions')).out).toMatch(/^s +waits: approval +1 /m)
})
