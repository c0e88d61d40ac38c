/** A store that answers in time or fails: the contract, and what becomes of each operation that is not answered. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { StoreFailure } from '../../../src/log/errors.ts'
import type { Patience } from '../../../src/log/patience.ts'
import type { LogStore, Ownership } from '../../../src/log/store.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { timedStore } from '../../../src/log/stores/timed.ts'
import { type FaultyStore, faultyStore, type Operation } from '../../kit/faulty-store.ts'
import { command, fill, own, turn } from '../../kit/store-contract/fixtures.ts'
import { storeContract } from '../../kit/store-contract.ts'
import { collect } from '../session-setup.ts'

const patience: Patience = { timeoutMs: 100, wayOut: 'try again' }

storeContract(
  'memory, in time or not at all,',
  async () => {
    const store = timedStore(memoryStore(), { timeoutMs: 60_000, wayOut: 'try again' })
    return { store, dispose: () => Promise.resolve(store[Symbol.asyncDispose]()) }
  },
  {
    second: 'what a memory store holds lives in the one instance',
    reopen: 'what a memory store holds is gone once it is closed',
    pages: 'its events are there already: to read them is no work that pages would save',
  },
)

afterEach(() => void vi.useRealTimers())

async function opened(): Promise<{ far: FaultyStore; store: LogStore }> {
  const far = faultyStore(memoryStore(), { seed: 1, maxTurns: 0 })
  await (await fillOne(far)).release()
  return { far, store: timedStore(far, patience) }
}

async function fillOne(store: LogStore): Promise<Ownership> {
  const owner = await own(store)
  await fill(owner, 0, 3)
  return owner
}

const ASKED: readonly [Operation, doing: string, ask: (store: LogStore) => Promise<unknown>][] = [
  ['acquire', 'acquire session "s"', (store) => store.acquire('s')],
  ['read', 'read session "s"', (store) => collect(store.read('s'))],
  ['post', 'take a command for session "s"', (store) => store.post('s', command('c1'))],
  ['list', 'list its sessions', (store) => collect(store.list())],
  ['header', 'look up session "s"', (store) => store.header('s')],
  ['delete', 'delete session "s"', (store) => store.delete('s')],
]

test.each(ASKED)('%s: no answer is a failure in time that says what was asked', async (operation, doing, ask) => {
  const { far, store } = await opened()
  far.script(operation, 'hang')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const asked = ask(store).catch((error: unknown) => error)
  vi.advanceTimersByTime(100)
  expect(await asked).toEqual(new StoreFailure('timeout', `The store did not ${doing} within 100 ms: try again`))
  expect(vi.getTimerCount()).toBe(0)
})

test('closing that does not end is a failure in time', async () => {
  const stuck: LogStore = { ...memoryStore(), [Symbol.asyncDispose]: () => new Promise(() => {}) }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const closing = Promise.resolve(timedStore(stuck, patience)[Symbol.asyncDispose]()).catch((error: unknown) => error)
  vi.advanceTimersByTime(100)
  expect(await closing).toEqual(new StoreFailure('timeout', 'The store did not close within 100 ms: try again'))
})

describe('what waits for others has no limit', () => {
  test('of its own: subscribe, outcome and commands end by their signal', async () => {
    const { far, store } = await opened()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const leaving = new AbortController()
    const { signal } = leaving
    await far.post('s', command('c1'))
    const owner = await store.acquire('s')
    const waiting = [
      collect(store.subscribe('s', { from: 0, signal })).then((events) => events.length),
      store.outcome('s', 'c1', signal).catch((reason: unknown) => reason),
      collect(owner.commands(signal)).then((commands) => commands.length),
    ]
    for (let turns = 0; turns < 10; turns++) await turn()
    expect(vi.getTimerCount()).toBe(0)
    const reason = new Error('left')
    leaving.abort(reason)
    expect(await Promise.all(waiting)).toEqual([3, reason, 1])
    await owner.release()
  })
})

test('an ownership that comes too late is given back', async () => {
  const { far, store } = await opened()
  far.script('acquire', 'late')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const asked = store.acquire('s').catch((error: unknown) => error)
  for (let turns = 0; turns < 5; turns++) await turn()
  vi.advanceTimersByTime(100)
  expect(await asked).toBeInstanceOf(StoreFailure)
  await expect(far.acquire('s')).rejects.toMatchObject({ code: 'SESSION_BUSY' })
  far.answerLate()
  for (let turns = 0; turns < 5; turns++) await turn()
  await (await far.acquire('s')).release()
})
