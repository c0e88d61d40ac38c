/** The memory store: the contract, plain and behind a slow line, and what is its own. */
import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test, vi } from 'vitest'
import { StoreFailure } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore } from '../../../src/log/store.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { faultyStore } from '../../kit/faulty-store.ts'
import { command, fill, logOf, type OpenedStore, own, range, refusal, turn } from '../../kit/store-contract/fixtures.ts'
import { storeContract } from '../../kit/store-contract.ts'

const without = {
  pages: 'its events are there already: to read them is no work that pages would save',
  second: 'what a memory store holds lives in the one instance',
  reopen: 'what a memory store holds is gone once it is closed',
}

const disposable = (store: LogStore): OpenedStore => ({ store, dispose: () => store[Symbol.asyncDispose]() })

storeContract('memory', async () => disposable(memoryStore()), without)

storeContract(
  'memory, late and out of order,',
  async () => disposable(faultyStore(memoryStore(), { seed: 7, maxTurns: 5 })),
  without,
)

test('two memory stores share nothing', async () => {
  const [one, other] = [memoryStore(), memoryStore()]
  await fill(await own(one), 0, 2)
  expect(await other.header('s')).toBeUndefined()
  expect((await own(other)).head).toBe(0)
})

test('an event that is frozen all through is kept as it is, without a copy', async () => {
  const store = memoryStore()
  const data = Object.freeze({ turn: 1, step: 1 })
  const event: SessionEvent = Object.freeze({ type: 'step/start', seq: 0, time: 1, data })
  await (await own(store)).append([event], { expectedSeq: 0 })
  expect((await logOf(store))[0]).toBe(event)
})

test('a closed memory store says that it is closed', async () => {
  const store = memoryStore()
  const owner = await own(store)
  await store[Symbol.asyncDispose]()
  expect(await refusal(fill(owner, 0, 1), StoreFailure)).toMatchObject({
    reason: 'io',
    message: expect.stringMatching(/closed.*open another/),
  })
  expect(owner.lost.reason).toBeInstanceOf(StoreFailure)
})

test('a session that is deleted while the list is read is not listed', async () => {
  const store = memoryStore()
  for (const id of ['a', 'b', 'c']) await (await own(store, id)).release()
  const listed: string[] = []
  for await (const { id } of store.list()) {
    listed.push(id)
    if (id === 'a') await store.delete('b')
  }
  expect(listed).toEqual(['a', 'c'])
})

test('who waits again and again leaves one listener on its signal, and none once it left', async () => {
  const store = memoryStore()
  const owner = await own(store)
  const { signal } = new AbortController()
  const listeners = (): number => getEventListeners(signal, 'abort').length
  const events = store.subscribe('s', { from: 0, signal })[Symbol.asyncIterator]()
  for (let seq = 0; seq < 5; seq++) {
    const next = events.next()
    await turn()
    expect(listeners()).toBe(1)
    await fill(owner, seq, 1)
    await next
  }
  await events.return?.()
  expect(listeners()).toBe(0)
})

test('what became of a command can be asked for a day, and of the last hundred for ever', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const store = memoryStore()
  const owner = await own(store)
  const taken = async (from: number, to: number): Promise<void> => {
    for (let i = from; i < to; i++) await store.post('s', command(`c${i}`))
    const takes = range(from, to).map((i) => ({ id: `c${i}`, outcome: { kind: 'taken', seq: i } as const }))
    await owner.append([], { expectedSeq: 0, takes })
  }
  const outcome = (i: number): Promise<unknown> =>
    store.outcome('s', `c${i}`, AbortSignal.timeout(1)).catch(() => 'nothing yet')
  await taken(0, 150)
  vi.setSystemTime(Date.now() + 86_399_000)
  await taken(150, 160)
  expect(await outcome(0)).toEqual({ kind: 'taken', seq: 0 })
  vi.setSystemTime(Date.now() + 2_000)
  await taken(160, 170)
  expect(await outcome(69)).toBe('nothing yet')
  expect(await outcome(70)).toEqual({ kind: 'taken', seq: 70 })
})
