/**
 * Nothing an agent asks of others is waited for without a limit: a store that never answers, a plug-in that never ends,
 * an adapter that never says its price. What is too late leaves nothing behind.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createActor, waitFor } from 'xstate'
import { type Agent, type AgentOptions, createAgent, type Plugin } from '../../src/agent.ts'
import { agentActor } from '../../src/index.ts'
import type { LogStore, SessionSummary } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'
import { settle, startAgent, stored } from '../kit/agents.ts'
import { type FaultyStore, faultyStore, type Operation } from '../kit/faulty-store.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const LIMIT = 500
const WAY_OUT = 'open the session again once the store answers, or allow more with `storeTimeoutMs`'
const FORK_AGAIN = 'fork again once the store answers, or allow more with `storeTimeoutMs`'

const never = <T>(): Promise<T> => new Promise(() => {})

const tooLate = (doing: string, wayOut = WAY_OUT) => ({
  code: 'STORE_FAILURE',
  reason: 'timeout',
  message: `The store did not ${doing} within ${LIMIT} ms: ${wayOut}`,
})

/** Lets time pass until the promise settles; its rejection, or 'done'. */
async function outcomeOf(waiting: Promise<unknown>, limits = 1): Promise<unknown> {
  let outcome: unknown = 'pending'
  const note = (value: unknown): void => {
    outcome = value
  }
  waiting.then(() => note('done'), note)
  await settle(40)
  for (let n = 0; n < limits; n++) {
    expect(outcome).toBe('pending')
    vi.advanceTimersByTime(LIMIT - 1)
    await settle(40)
    expect(outcome).toBe('pending')
    vi.advanceTimersByTime(1)
    await settle(40)
  }
  return outcome
}

const far = (inner: LogStore = memoryStore()): FaultyStore => faultyStore(inner, { seed: 1, maxTurns: 1 })

const open = (store: LogStore, more: Partial<AgentOptions> = {}): Promise<Agent> =>
  createAgent({ model: scripted(() => 'ok'), store, sessionId: 'session', storeTimeoutMs: LIMIT, ...more })

/** A store with a session that a turn was run in. */
async function used(): Promise<{ inner: LogStore; store: FaultyStore }> {
  const inner = memoryStore()
  const { agent } = await startAgent({ store: inner })
  await agent.run('go')
  await agent.close()
  return { inner, store: far(inner) }
}

async function idsIn(store: LogStore): Promise<readonly string[]> {
  const all: SessionSummary[] = []
  for await (const summary of store.list()) all.push(summary)
  return all.map(({ id }) => id)
}

/** Nobody has the session, and no timer is left. */
async function expectNothingLeft(inner: LogStore, id = 'session'): Promise<void> {
  await settle(20)
  expect(vi.getTimerCount()).toBe(0)
  await (await inner.acquire(id)).release()
}

describe('opening', () => {
  test.each<[Operation, string]>([
    ['acquire', 'acquire session "session"'],
    ['read', 'read session "session"'],
  ])('fails in time when the store does not answer to %s, and leaves nothing behind', async (operation, doing) => {
    const { inner, store } = await used()
    store.script(operation, 'hang')
    expect(await outcomeOf(open(store))).toMatchObject(tooLate(doing))
    await expectNothingLeft(inner)
    await (await open(store)).close()
  })

  test('gives a session back that is acquired too late', async () => {
    const { inner, store } = await used()
    store.script('acquire', 'late')
    expect(await outcomeOf(open(store))).toMatchObject(tooLate('acquire session "session"'))
    await expect(inner.acquire('session')).rejects.toMatchObject({ code: 'SESSION_BUSY' })
    store.answerLate()
    await expectNothingLeft(inner)
  })

  test('fails for its first reason, also when the session is not given back in time', async () => {
    const { inner, store } = await used()
    store.script('read', 'fail')
    store.script('release', 'late')
    expect(await outcomeOf(open(store))).toMatchObject({ code: 'STORE_FAILURE', reason: 'io' })
    await expectNothingLeft(inner)
  })

  test('fails for its first reason, also when giving the session back fails', async () => {
    const { store } = await used()
    store.script('read', 'hang')
    store.script('release', 'fail')
    expect(await outcomeOf(open(store))).toMatchObject(tooLate('read session "session"'))
  })

  test.each<[Operation, number, string]>([
    ['read', 0, 'read session "session"'],
    ['read', 1, 'read session "session"'],
    ['append', 0, 'append to session "session"'],
  ])('with events that a failing store left fails in time at %s %i, and keeps them', async (operation, skip, doing) => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const fallbackDir = mkdtempSync(join(tmpdir(), 'pawl-waiting-'))
    onTestFinished(() => rmSync(fallbackDir, { recursive: true }))
    const inner = memoryStore()
    const failing = far(inner)
    const first = await open(failing, { fallbackDir })
    failing.script('append', 'fail')
    await expect(first.followup('kept').accepted).rejects.toMatchObject({ code: 'STORE_FAILURE' })
    await first.close().catch(() => {})
    expect(readdirSync(fallbackDir)).toHaveLength(1)

    const store = far(inner)
    store.script(operation, 'hang', skip)
    expect(await outcomeOf(open(store, { fallbackDir }))).toMatchObject(tooLate(doing))
    expect(readdirSync(fallbackDir)).toHaveLength(1)
    await expectNothingLeft(inner)
    const again = await open(store, { fallbackDir })
    await again.whenIdle()
    await again.close()
    expect(readdirSync(fallbackDir)).toEqual([])
    expect((await stored(inner, 'session')).map(({ type }) => type)).toContain('turn/end')
  })

  test('is given up a second after its signal aborts, whatever is waited for, and gives back what comes', async () => {
    const { inner, store } = await used()
    const giving = new AbortController()
    store.script('acquire', 'late')
    const opening = open(store, { signal: giving.signal, storeTimeoutMs: 60_000 }).catch((error: unknown) => error)
    await settle()
    giving.abort(new Error('left'))
    vi.advanceTimersByTime(999)
    expect(await Promise.race([opening, settle().then(() => 'pending')])).toBe('pending')
    vi.advanceTimersByTime(1)
    expect(await opening).toEqual(new Error('left'))
    store.answerLate()
    await expectNothingLeft(inner)
  })

  test('that is given up in time for its store to answer leaves the session free, whenever that is', async () => {
    const { inner, store } = await used()
    for (let turns = 0; turns < 20; turns++) {
      const giving = new AbortController()
      const opening = open(store, { signal: giving.signal }).catch((error: unknown) => error)
      await settle(turns)
      giving.abort(new Error('left'))
      const agent = await opening
      // An agent that was there already is its holder's.
      if (agent instanceof Error) expect(agent.message).toBe('left')
      else await (agent as Agent).close()
      await (await inner.acquire('session')).release()
      expect(vi.getTimerCount()).toBe(0)
    }
  })

  test('that a plug-in gives up closes the agent it was given', async () => {
    const { inner } = await used()
    const giving = new AbortController()
    let made: Agent | undefined
    const leaves: Plugin = (agent) => {
      made = agent
      giving.abort(new Error('left'))
    }
    await expect(open(inner, { signal: giving.signal, plugins: [leaves] })).rejects.toThrow('left')
    expect(made?.status).toBe('closed')
    await expectNothingLeft(inner)
  })

  test('whose store never answers puts the actor of an agent in error', async () => {
    const { store } = await used()
    store.script('acquire', 'hang')
    const logic = agentActor({ model: scripted([]), store, storeTimeoutMs: LIMIT })
    const actor = createActor(logic, { input: { sessionId: 'session' } })
    const errors: unknown[] = []
    actor.subscribe({ error: (error) => void errors.push(error) })
    actor.start()
    await settle()
    vi.advanceTimersByTime(LIMIT)
    await settle()
    expect(actor.getSnapshot()).toMatchObject({ status: 'error', agent: { status: 'failed' } })
    expect(errors).toMatchObject([tooLate('acquire session "session"')])
  })

  test('an actor that is stopped while it opens lets the next one of its session wait for it', async () => {
    const { store } = await used()
    store.script('acquire', 'late')
    const logic = agentActor({ model: scripted([]), store, storeTimeoutMs: LIMIT })
    const first = createActor(logic, { input: { sessionId: 'session' } }).start()
    await settle()
    first.stop()
    const second = createActor(logic, { input: { sessionId: 'session' } }).start()
    await settle()
    expect(second.getSnapshot().agent.status).toBe('opening')
    store.answerLate()
    await settle(20)
    expect((await waitFor(second, ({ agent }) => agent.status !== 'opening')).agent.status).toBe('idle')
    second.stop()
    await settle(20)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a price', () => {
  const limits = { turn: { cost: 1 } }

  test('that an adapter never tells fails the opening in time, before a session is made', async () => {
    const store = memoryStore()
    let heard: AbortSignal | undefined
    const prepare = (_: unknown, signal: AbortSignal): Promise<never> => {
      heard = signal
      return never()
    }
    const opening = open(store, { model: { ...scripted([]), prepare }, limits }).catch((error: unknown) => error)
    await settle()
    vi.advanceTimersByTime(59_999)
    await settle()
    expect(heard?.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(await opening).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('within 60000 ms') })
    expect([heard?.aborted, await idsIn(store), vi.getTimerCount()]).toEqual([true, [], 0])
  })

  test('is no longer waited for when the signal aborts', async () => {
    const giving = new AbortController()
    const model = { ...scripted([]), prepare: never }
    const opening = open(memoryStore(), { model, limits, signal: giving.signal })
    await settle()
    giving.abort(new Error('left'))
    await expect(opening).rejects.toThrow('left')
    await settle()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a fork', () => {
  test.each<[Operation, number, string]>([
    ['header', 0, 'look up session "child"'],
    ['read', 0, 'read session "session"'],
    ['acquire', 0, 'acquire session "child"'],
    ['read', 1, 'read session "session"'],
    ['append', 0, 'append to session "child"'],
    ['release', 0, 'release session "child"'],
  ])('fails in time when the store does not answer to %s %i, and leaves no child', async (operation, skip, doing) => {
    const { inner, store } = await used()
    const parent = await open(store)
    store.script(operation, 'hang', skip)
    expect(await outcomeOf(parent.fork({ sessionId: 'child' }))).toMatchObject(tooLate(doing, FORK_AGAIN))
    expect(await idsIn(inner)).toEqual(['session'])
    // The parent goes on, and so does a fork that is tried again.
    expect(await parent.fork({ sessionId: 'child' })).toEqual({ sessionId: 'child' })
    expect((await parent.run('go on')).reason).toEqual({ kind: 'completed' })
    await parent.close()
    await expectNothingLeft(inner, 'child')
  })

  test.each<[Operation, string]>([
    ['acquire', 'acquire session "child"'],
    ['append', 'append to session "child"'],
    ['release', 'release session "child"'],
  ])('whose %s comes too late leaves no child once it comes', async (operation, doing) => {
    const { inner, store } = await used()
    const parent = await open(store)
    store.script(operation, 'late')
    expect(await outcomeOf(parent.fork({ sessionId: 'child' }))).toMatchObject(tooLate(doing, FORK_AGAIN))
    store.answerLate()
    await settle(20)
    expect(await idsIn(inner)).toEqual(['session'])
    await parent.close()
    await expectNothingLeft(inner)
  })

  test('that cannot be taken back fails in time all the same', async () => {
    const { inner, store } = await used()
    const parent = await open(store)
    store.script('append', 'fail')
    store.script('delete', 'hang')
    expect(await outcomeOf(parent.fork({ sessionId: 'child' }))).toMatchObject({ reason: 'io' })
    // Nobody has it, and nobody can open it.
    await expect(open(inner, { sessionId: 'child' })).rejects.toMatchObject({ code: 'INVALID_LOG', rule: 'SEED' })
    await parent.close()
    await expectNothingLeft(inner, 'child')
  })

  test('to a session that somebody else made meanwhile gives it back, however late', async () => {
    const { inner, store } = await used()
    const parent = await open(store)
    const header = { format: 1, id: 'child', createdAt: 1 } as const
    const late = { ...inner, header: async () => undefined }
    await (await inner.acquire('child', { create: header })).release()
    const line = far(late)
    const other = await createAgent({ model: scripted([]), store: line, sessionId: 'other', storeTimeoutMs: LIMIT })
    line.script('acquire', 'late')
    expect(await outcomeOf(other.fork({ sessionId: 'child' }))).toMatchObject(
      tooLate('acquire session "child"', FORK_AGAIN),
    )
    line.answerLate()
    await settle(20)
    expect(await inner.header('child')).toEqual(header)
    await expectNothingLeft(inner, 'child')
    await parent.close()
    await other.close()
  })
})

describe('closing', () => {
  test('leaves a plug-in behind that does not come to an end, with a warning, and disposes of the others', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const disposed: string[] = []
    const plugins: Plugin[] = [() => never, () => () => void disposed.push('second'), () => async () => {}]
    const agent = await open(memoryStore(), { plugins, settleTimeoutMs: LIMIT })
    expect(await outcomeOf(agent.close())).toBe('done')
    expect([disposed, vi.getTimerCount()]).toEqual([['second'], 0])
    expect(warned.mock.calls).toEqual([
      [`disposing a plug-in failed: it took more than ${LIMIT} ms and is left behind`, 'PawlPluginWarning'],
    ])
  })

  test('does not wait for itself: a plug-in may close the agent it is disposed of by', async () => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const plugins: Plugin[] = [(agent) => () => agent.close()]
    const agent = await open(memoryStore(), { plugins, settleTimeoutMs: LIMIT })
    expect(await outcomeOf(agent.close())).toBe('done')
  })
})
