/** Summaries and lists: what can be known of a session without reading its log. */
import { expect, test } from 'vitest'
import type { SessionSummary, SummaryUpdate } from '../../../src/log/store.ts'
import { chunk, collect, EPOCH_MS, fill, header, type OpenStore, openedStore, own } from './fixtures.ts'

const idsOf = async (list: AsyncIterable<SessionSummary>): Promise<string[]> =>
  (await collect(list)).map(({ id }) => id)

export function summary(open: OpenStore): void {
  test('a new session is idle, owes nothing and is as old as its header says', async () => {
    const store = await openedStore(open)
    await store.acquire('s', { create: header('s', { parentSession: 'p', seedLength: 2 }) })
    expect(await collect(store.list())).toEqual([
      {
        id: 's',
        createdAt: EPOCH_MS,
        updatedAt: EPOCH_MS,
        head: 0,
        turns: 0,
        state: 'idle',
        owed: false,
        owned: true,
        parentSession: 'p',
      },
    ])
  })

  test('a summary follows each append: the head, the time of the last event, what the owner says', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const update: SummaryUpdate = {
      turns: 3,
      state: 'waiting',
      waitingFor: 'approval',
      wakeAt: EPOCH_MS + 500,
      owed: true,
      lastReason: 'completed',
    }
    await owner.append([chunk(0), chunk(1)], { expectedSeq: 0, summary: update })
    const expected = { id: 's', createdAt: EPOCH_MS, updatedAt: EPOCH_MS + 1, head: 2, owned: true, ...update }
    expect(await collect(store.list())).toStrictEqual([expected])
    await fill(owner, 2, 1)
    expect(await collect(store.list())).toEqual([{ ...expected, head: 3, updatedAt: EPOCH_MS + 2 }])
  })

  test("an update replaces the owner's fields as a whole: what may be absent and is, is gone", async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const waiting: SummaryUpdate = { state: 'waiting', waitingFor: 'retry', wakeAt: 5, lastReason: 'error', turns: 2 }
    await owner.append([], { expectedSeq: 0, summary: { ...waiting, owed: true } })
    await owner.append([], { expectedSeq: 0, summary: { state: 'running' } })
    const [seen] = await collect(store.list())
    expect(seen).toMatchObject({ state: 'running', turns: 2, owed: true })
    for (const field of ['waitingFor', 'wakeAt', 'lastReason']) expect(seen).not.toHaveProperty(field)
  })

  test('an append without events updates the summary, and the update outlives the owner', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 1)
    await owner.append([], { expectedSeq: 1, summary: { turns: 7, owed: true } })
    await owner.release()
    expect(await collect(store.list())).toMatchObject([{ turns: 7, owed: true, head: 1, owned: false }])
  })

  test('owned says whether an owner lives', async () => {
    const store = await openedStore(open)
    const owned = async (): Promise<boolean[]> => (await collect(store.list())).map((session) => session.owned)
    const owner = await own(store)
    expect(await owned()).toEqual([true])
    await owner.release()
    expect(await owned()).toEqual([false])
    const stolen = await store.acquire('s', { steal: true })
    await owner.release()
    expect(await owned()).toEqual([true])
    await stolen.release()
    expect(await owned()).toEqual([false])
  })

  test('lists are oldest first, by when the sessions were created', async () => {
    const store = await openedStore(open)
    for (const [id, age] of [
      ['b', 20],
      ['c', 30],
      ['a', 10],
      ['d', 40],
    ] as const) {
      await store.acquire(id, { create: header(id, { createdAt: EPOCH_MS + age }) })
    }
    expect(await idsOf(store.list())).toEqual(['a', 'b', 'c', 'd'])
  })

  test('a list has those that are owed, those that are due, either, or all', async () => {
    const store = await openedStore(open)
    const sessions: [string, SummaryUpdate][] = [
      ['rest', { owed: false }],
      ['owed', { owed: true }],
      ['due', { state: 'waiting', waitingFor: 'retry', wakeAt: EPOCH_MS + 10 }],
      ['later', { state: 'waiting', waitingFor: 'approval', wakeAt: EPOCH_MS + 11 }],
      ['both', { owed: true, wakeAt: EPOCH_MS }],
    ]
    for (const [i, [id, update]] of sessions.entries()) {
      const owner = await store.acquire(id, { create: header(id, { createdAt: EPOCH_MS + i }) })
      await owner.append([], { expectedSeq: 0, summary: update })
      await owner.release()
    }
    const dueBefore = EPOCH_MS + 11
    expect(await idsOf(store.list())).toEqual(['rest', 'owed', 'due', 'later', 'both'])
    expect(await idsOf(store.list({ owed: true }))).toEqual(['owed', 'both'])
    expect(await idsOf(store.list({ dueBefore }))).toEqual(['due', 'both'])
    expect(await idsOf(store.list({ owed: true, dueBefore }))).toEqual(['owed', 'due', 'both'])
  })

  test('a deleted session is in no list', async () => {
    const store = await openedStore(open)
    const owner = await own(store, 'a')
    await owner.append([], { expectedSeq: 0, summary: { owed: true, wakeAt: 1 } })
    await owner.release()
    await own(store, 'b')
    await store.delete('a')
    expect(await idsOf(store.list())).toEqual(['b'])
    expect(await idsOf(store.list({ owed: true, dueBefore: 9 }))).toEqual([])
  })
}
