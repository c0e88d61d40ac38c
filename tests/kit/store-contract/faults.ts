/** A store whose answers fail or get lost: what was acknowledged stands, what is in doubt is whole or absent. */
import { expect, test } from 'vitest'
import { Fenced, PawlError, SessionBusy, StoreFailure } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, Ownership } from '../../../src/log/store.ts'
import { type FaultyStore, faultyStore } from '../faulty-store.ts'
import {
  chunk,
  chunks,
  collect,
  command,
  fill,
  header,
  logOf,
  type OpenStore,
  openedStore,
  own,
  range,
  refusal,
  seqsOf,
  take,
  whileTesting,
} from './fixtures.ts'

export function faults(open: OpenStore): void {
  const faulty = async (seed = 1): Promise<FaultyStore> => faultyStore(await openedStore(open), { seed })

  test('an append that failed on its way wrote nothing, and can be tried again', async () => {
    const store = await faulty()
    const owner = await own(store)
    store.script('append', 'fail')
    await refusal(fill(owner, 0, 3), StoreFailure)
    expect(await logOf(store)).toEqual([])
    await fill(owner, 0, 3)
    expect(await logOf(store)).toEqual(chunks(0, 3))
  })

  test('an append whose answer was lost left all or nothing, and the next owner goes on from there', async () => {
    const store = await faulty()
    const owner = await own(store)
    await fill(owner, 0, 2)
    await store.post('s', command('c'))
    store.script('append', 'lose')
    const takes = [{ id: 'c', outcome: { kind: 'taken', seq: 2 } as const }]
    const summary = { turns: 1 }
    await refusal(owner.append(chunks(2, 3), { expectedSeq: 2, takes, summary }), StoreFailure)
    const written = (await seqsOf(store.read('s'))).length === 5
    expect(await logOf(store)).toEqual(chunks(0, written ? 5 : 2))
    const next = await store.acquire('s', { steal: true })
    expect(next.head).toBe(written ? 5 : 2)
    expect(await collect(store.list())).toMatchObject([{ head: next.head, turns: written ? 1 : 0 }])
    await store.post('s', command('end'))
    const [first] = await take(next.commands(whileTesting()), 1)
    expect(first?.id).toBe(written ? 'end' : 'c')
    await refusal(fill(owner, next.head, 1), Fenced)
    await fill(next, next.head, 1)
    expect(await seqsOf(store.read('s'))).toEqual(range(0, next.head + 1))
  })

  test('an acquire whose answer was lost locks nobody out for good', async () => {
    const store = await faulty()
    const first = await own(store)
    await first.release()
    store.script('acquire', 'lose')
    await refusal(own(store), StoreFailure)
    await refusal(own(store), SessionBusy)
    const owner = await store.acquire('s', { steal: true })
    expect(owner.epoch).toBeGreaterThan(first.epoch)
    await fill(owner, 0, 1)
  })

  test('a release whose answer was lost has released', async () => {
    const store = await faulty()
    const owner = await own(store)
    store.script('release', 'lose')
    await refusal(owner.release(), StoreFailure)
    await fill(await own(store), 0, 1)
  })

  test('a command whose acknowledgement was lost is posted again, and is one command', async () => {
    const store = await faulty()
    const owner = await own(store)
    store.script('post', 'lose')
    await refusal(store.post('s', command('c')), StoreFailure)
    await store.post('s', command('c'))
    await store.post('s', command('end'))
    expect((await take(owner.commands(whileTesting()), 2)).map(({ id }) => id)).toEqual(['c', 'end'])
  })

  test('a reader that is cut off carries on from the next seq', async () => {
    const store = await faulty()
    await fill(await own(store), 0, 40)
    store.script('read', 'lose')
    const events: SessionEvent[] = []
    await refusal(keep(events, store.read('s')), StoreFailure)
    expect(events.length).toBeLessThan(40)
    await keep(events, store.read('s', { from: events.length }))
    expect(events).toEqual(chunks(0, 40))
  })

  test.each(range(0, 12))('acknowledged batches stand, whole and once, whatever is lost (seed %i)', async (seed) => {
    const inner = await openedStore(open)
    const store = faultyStore(inner, { seed, rates: { fail: 0.15, lose: 0.15 } })
    await persist(store, range(0, 25))
    const texts = (await logOf(inner)).map(textOf)
    expect(texts).toEqual(range(0, 25).flatMap((batch) => [`${batch}`, `${batch}`, `${batch}`]))
    expect(await seqsOf(inner.read('s'))).toEqual(range(0, 75))
  })
}

async function keep<T>(into: T[], items: AsyncIterable<T>): Promise<void> {
  for await (const item of items) into.push(item)
}

const textOf = (event: SessionEvent): string =>
  event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta' ? event.data.chunk.text : event.type

/** Writes each batch of three until it is in the log, as a process does that is started again after each failure. */
async function persist(store: LogStore, batches: readonly number[]): Promise<void> {
  let owner = await carryOn(store)
  let { head } = owner
  for (const batch of batches) {
    while (head < (batch + 1) * 3) {
      expect(head).toBe(batch * 3)
      const events = range(head, head + 3).map((seq) => chunk(seq, `${batch}`))
      const [appended] = await Promise.allSettled([owner.append(events, { expectedSeq: head })])
      if (appended.status === 'fulfilled') head += 3
      else {
        expect(appended.reason).toBeInstanceOf(StoreFailure)
        owner = await carryOn(store)
        head = owner.head
      }
    }
  }
}

async function carryOn(store: LogStore): Promise<Ownership> {
  for (;;) {
    try {
      return await store.acquire('s', { create: header('s'), steal: true })
    } catch (error) {
      // Only the injected failures: anything else is what the test is about.
      if (!(error instanceof PawlError && error.code === 'STORE_FAILURE')) throw error
    }
  }
}
