import { expect, onTestFinished, test, vi } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import { resumeAll } from '../../src/index.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { Clock } from '../../src/services/clock.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, stored } from '../kit/agents.ts'
import { faultyStore } from '../kit/faulty-store.ts'

/** An hour ago: what waits for a time then is due now. */
const past: Clock = {
  now: () => Date.now() - 3_600_000,
  setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
}

const pay = (witness: string[] = []) =>
  tool({
    name: 'pay',
    description: 'Pays',
    parameters: { type: 'object' },
    needsApproval: true,
    approvalExpiresMs: 60_000,
    execute: () => void witness.push('paid'),
  })

/** Leaves a session as its owner's crash would: suspended once what it does hangs or waits. */
async function leave(store: LogStore, sessionId: string, options: Partial<AgentOptions>, until?: Promise<void>) {
  const { agent } = await startAgent({ store, sessionId, ...options })
  agent.followup('go')
  await (until ?? agent.whenQuiet())
  await agent.session.flush()
  await agent.close()
}

async function leaveStreaming(store: LogStore, sessionId: string): Promise<void> {
  const held = gate()
  await leave(store, sessionId, { model: scripted([[text('half'), pause(held)]]) }, held.reached)
}

const reasons = async (store: LogStore, sessionId: string): Promise<readonly string[]> =>
  ofType(await stored(store, sessionId), 'turn/end').map(({ data }) => data.reason.kind)

test('open turns are carried on, and sessions at rest are not touched', async () => {
  const store = memoryStore()
  await leave(store, 'rest', {})
  const rest = await stored(store, 'rest')
  await leaveStreaming(store, 'a')
  await leaveStreaming(store, 'b')
  const opened: string[] = []
  const reports = await resumeAll(store, ({ id }) => {
    opened.push(id)
    return { model: scripted(['whole']) }
  })
  expect(reports).toEqual([
    { sessionId: 'a', result: 'quiet' },
    { sessionId: 'b', result: 'quiet' },
  ])
  expect(opened).toEqual(['a', 'b'])
  expect(await stored(store, 'rest')).toEqual(rest)
  expect(await reasons(store, 'a')).toEqual(['completed'])
  expect(await resumeAll(store, () => ({ model: scripted([]) }))).toEqual([])
})

test('an approval past its expiry is answered as expired and the turn goes on; one with time left waits', async () => {
  const store = memoryStore()
  const witness: string[] = []
  const options = { tools: [pay(witness)] }
  const asks = () => scripted([toolCall('pay', {}, { id: 'c1' }), 'Not paid.'])
  await leave(store, 'late', { ...options, model: asks(), clock: past })
  await leave(store, 'early', { ...options, model: asks() })
  const early = await stored(store, 'early')
  const reports = await resumeAll(store, () => ({ ...options, model: scripted(['Not paid.']) }))
  expect(reports).toEqual([{ sessionId: 'late', result: 'quiet' }])
  const log = await stored(store, 'late')
  expect(ofType(log, 'tool/approval-resolved').map(({ data }) => data.decision)).toEqual(['expired'])
  expect(await reasons(store, 'late')).toEqual(['completed'])
  expect(witness).toEqual([])
  expect(await stored(store, 'early')).toEqual(early)
})

test('a retry whose time has come is made before the session is left again', async () => {
  const store = memoryStore()
  const retry = { backoff: { initialDelayMs: 30_000, maxDelayMs: 30_000, jitterRatio: 0 } }
  await leave(store, 's', { retry, clock: past, model: scripted([fails({ code: 'SERVER' })]) })
  expect(ofType(await stored(store, 's'), 'llm/retry')).toHaveLength(1)
  const model = scripted(['at last'])
  expect(await resumeAll(store, () => ({ retry, model }))).toEqual([{ sessionId: 's', result: 'quiet' }])
  expect(model.requests).toHaveLength(1)
  expect(await reasons(store, 's')).toEqual(['completed'])
})

test('a turn that comes to wait for an approval is quiet, and is left waiting', async () => {
  const store = memoryStore()
  await leaveStreaming(store, 's')
  const options = () => ({ tools: [pay()], model: scripted([toolCall('pay', {}, { id: 'c1' })]) })
  expect(await resumeAll(store, options)).toEqual([{ sessionId: 's', result: 'quiet' }])
  for await (const session of store.list()) expect(session).toMatchObject({ state: 'waiting', owned: false })
})

test('a session that is owned is left to its owner, also when it was taken since it was listed', async () => {
  const store = memoryStore()
  await leaveStreaming(store, 'a')
  await leaveStreaming(store, 'b')
  const a = await startAgent({ store, sessionId: 'a', model: scripted(() => [text('x'), hangs()]) })
  const owners: Promise<unknown>[] = []
  const reports = await resumeAll(store, ({ id }) => {
    owners.push(store.acquire(id))
    return { model: scripted(['never asked']) }
  })
  await Promise.all(owners)
  expect(reports).toEqual([])
  expect(await reasons(store, 'b')).toEqual([])
  await a.agent.close()
})

test('what goes wrong with one session is its report, and the others are carried on', async () => {
  // Where the unsaved tail is told, without a folder for it.
  const said = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => said.mockRestore())
  const inner = memoryStore()
  const store = faultyStore(inner, { seed: 1, maxTurns: 0 })
  for (const id of ['factory', 'option', 'store', 'fine']) await leaveStreaming(inner, id)
  const reports = await resumeAll(
    store,
    ({ id }) => {
      if (id === 'factory') throw new TypeError('no options today')
      if (id === 'store') store.script('append', 'fail')
      return { model: scripted(['whole']), ...(id === 'option' ? { maxSteps: 0 } : {}) }
    },
    { concurrency: 1 },
  )
  expect(reports).toEqual([
    { sessionId: 'factory', error: expect.objectContaining({ code: 'UNKNOWN', message: 'no options today' }) },
    { sessionId: 'option', error: expect.objectContaining({ code: 'INVALID_OPTION' }) },
    { sessionId: 'store', error: expect.objectContaining({ code: 'STORE_FAILURE' }) },
    { sessionId: 'fine', result: 'quiet' },
  ])
  expect(await reasons(inner, 'fine')).toEqual(['completed'])
  // None of them is held by what failed.
  for await (const session of inner.list()) expect(session.owned).toBe(false)
})

test.each([
  [undefined, 4],
  [2, 2],
])('with concurrency %s, %s sessions are open at a time', async (concurrency, most) => {
  const store = memoryStore()
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await leaveStreaming(store, id)
  let open = 0
  const seen: number[] = []
  const reports = await resumeAll(
    store,
    () => ({
      model: scripted(['whole']),
      plugins: [
        () => {
          seen.push(++open)
          return () => void open--
        },
      ],
    }),
    concurrency === undefined ? {} : { concurrency },
  )
  expect([reports.length, Math.max(...seen), open]).toEqual([6, most, 0])
})

test('a concurrency that is no count is refused', async () => {
  for (const concurrency of [0, 1.5, Number.NaN]) {
    await expect(resumeAll(memoryStore(), () => ({ model: scripted([]) }), { concurrency })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  }
})

test('a store that never tells its sessions is a failure in time', async () => {
  const store = faultyStore(memoryStore(), { seed: 1 })
  store.script('list', 'hang')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const resumed = resumeAll(store, () => ({ model: scripted([]) })).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(30_000)
  expect(await resumed).toMatchObject({
    code: 'STORE_FAILURE',
    reason: 'timeout',
    message: 'The store did not list its sessions within 30000 ms: try again once the store answers',
  })
})

test('a session whose store never answers is a report, and stops no other', async () => {
  const inner = memoryStore()
  await leaveStreaming(inner, 'a')
  await leaveStreaming(inner, 'b')
  const store = faultyStore(inner, { seed: 1, maxTurns: 0 })
  store.script('acquire', 'hang')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const resumed = resumeAll(store, () => ({ model: scripted(['whole']) }), { concurrency: 1 })
  await vi.advanceTimersByTimeAsync(30_000)
  expect(await resumed).toMatchObject([
    { sessionId: 'a', error: { reason: 'timeout' } },
    { sessionId: 'b', result: 'quiet' },
  ])
})
