/** One owner a session: who gets in, who is put out, and what the one put out can still do (nothing). */
import { expect, test } from 'vitest'
import { Fenced, PawlError, SessionBusy, SessionNotFound } from '../../../src/log/errors.ts'
import type { Ownership } from '../../../src/log/store.ts'
import {
  aborted,
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
  whileTesting,
} from './fixtures.ts'

export function ownership(open: OpenStore): void {
  test('a session is created once, with its header, at seq 0', async () => {
    const store = await openedStore(open)
    const facts = header('s', { parentSession: 'p', seedLength: 3, meta: { cwd: '/a', tags: ['x', null, 1.5] } })
    const owner = await store.acquire('s', { create: facts })
    expect(owner.head).toBe(0)
    expect(owner.header).toEqual(facts)
    expect(await store.header('s')).toEqual(facts)
    expect(await logOf(store)).toEqual([])
  })

  test('opening an existing session keeps the header it was created with', async () => {
    const store = await openedStore(open)
    await (await store.acquire('s', { create: header('s', { meta: 'first' }) })).release()
    const owner = await store.acquire('s', { create: header('s', { meta: 'second' }) })
    expect(owner.header.meta).toBe('first')
    expect((await store.header('s'))?.meta).toBe('first')
  })

  test('without `create` a missing session is not found, and is not made', async () => {
    const store = await openedStore(open)
    expect((await refusal(store.acquire('s'), SessionNotFound)).sessionId).toBe('s')
    expect(await store.header('s')).toBeUndefined()
  })

  test('a session with a living owner is busy, and the owner is undisturbed', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const busy = await refusal(own(store), SessionBusy)
    expect(busy.sessionId).toBe('s')
    expect(busy.owner).not.toBe('')
    await refusal(store.acquire('s'), SessionBusy)
    expect(owner.lost.aborted).toBe(false)
    await fill(owner, 0, 2)
    expect(await seqsOf(store.read('s'))).toEqual([0, 1])
  })

  test('of many that want a session at once, one gets it', async () => {
    const store = await openedStore(open)
    const results = await Promise.allSettled(range(0, 12).map(() => own(store)))
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(SessionBusy)
    }
  })

  test('`steal` fences the owner: it is told, its appends are refused, and its log is intact', async () => {
    const store = await openedStore(open)
    const loser = await own(store)
    await fill(loser, 0, 3)
    const winner = await store.acquire('s', { steal: true })
    expect(winner.head).toBe(3)
    expect(winner.epoch).toBeGreaterThan(loser.epoch)
    expect(await aborted(loser.lost)).toBeInstanceOf(PawlError)
    expect((await refusal(loser.append([chunk(3, 'loser')], { expectedSeq: 3 }), Fenced)).epoch).toBe(loser.epoch)
    await winner.append([chunk(3, 'winner')], { expectedSeq: 3 })
    expect(winner.lost.aborted).toBe(false)
    expect(await logOf(store)).toEqual([...chunks(0, 3), chunk(3, 'winner')])
  })

  test('a fenced owner hears Fenced, also where its seq is wrong and where it appends nothing', async () => {
    const store = await openedStore(open)
    const loser = await own(store)
    const winner = await store.acquire('s', { steal: true })
    await fill(winner, 0, 5)
    await refusal(fill(loser, 0, 1), Fenced)
    await refusal(fill(loser, 5, 1), Fenced)
    await refusal(loser.append([], { expectedSeq: 5, summary: { turns: 9 } }), Fenced)
    expect(await seqsOf(store.read('s'))).toEqual(range(0, 5))
  })

  test('of many that steal at once, one is left and the log has only its events', async () => {
    const store = await openedStore(open)
    const owners = await Promise.all(range(0, 6).map(() => store.acquire('s', { create: header('s'), steal: true })))
    const results = await Promise.allSettled(owners.map((owner) => fill(owner, 0, 2)))
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
    const last = owners.toSorted((a, b) => a.epoch - b.epoch).at(-1)
    expect(owners.filter((owner) => !owner.lost.aborted)).toEqual([last])
    expect(await seqsOf(store.read('s'))).toEqual([0, 1])
  })

  test('`steal` takes a session that nobody owns as well', async () => {
    const store = await openedStore(open)
    await (await own(store)).release()
    const owner = await store.acquire('s', { steal: true })
    await fill(owner, 0, 1)
  })

  test('a released session can be acquired again, and goes on where it stopped', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 4)
    await first.release()
    expect(first.lost.aborted).toBe(false)
    const second = await store.acquire('s')
    expect(second.head).toBe(4)
    await fill(second, 4, 1)
    const { message } = await refusal(fill(first, 5, 1), Fenced)
    expect(message).toBe(`Epoch ${first.epoch} was released: acquire the session again`)
    expect(await seqsOf(store.read('s'))).toEqual(range(0, 5))
  })

  test('releasing twice, or after losing the session, puts nobody else out', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await first.release()
    await first.release()
    const second = await own(store)
    await first.release()
    const third = await store.acquire('s', { steal: true })
    await second.release()
    await refusal(store.acquire('s'), SessionBusy)
    await fill(third, 0, 1)
  })

  test('an append in flight when its session is released is whole or not there', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const [appended] = await Promise.allSettled([fill(owner, 0, 3), owner.release()])
    expect(await seqsOf(store.read('s'))).toEqual(appended.status === 'fulfilled' ? [0, 1, 2] : [])
  })

  test('epochs grow over the whole store and are never used twice, not even after a delete', async () => {
    const store = await openedStore(open)
    const epochs: number[] = []
    const visit = async (id: string): Promise<Ownership> => {
      const owner = await own(store, id)
      epochs.push(owner.epoch)
      return owner
    }
    await (await visit('a')).release()
    await (await visit('b')).release()
    await (await visit('a')).release()
    await store.delete('a')
    await store.delete('b')
    await (await visit('a')).release()
    await visit('b')
    epochs.push((await store.acquire('b', { steal: true })).epoch)
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b))
  })

  test('a session cannot be deleted while it is owned', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 2)
    expect((await refusal(store.delete('s'), SessionBusy)).sessionId).toBe('s')
    await fill(owner, 2, 1)
    expect(await seqsOf(store.read('s'))).toEqual([0, 1, 2])
  })

  test('a session that is missing or deleted is not found anywhere', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    await (await own(store, 'gone')).release()
    await store.delete('gone')
    for (const id of ['gone', 'never']) {
      await refusal(store.acquire(id), SessionNotFound)
      await refusal(store.acquire(id, { steal: true }), SessionNotFound)
      await refusal(logOf(store, id), SessionNotFound)
      await refusal(collect(store.subscribe(id, { from: 0, signal })), SessionNotFound)
      await refusal(store.post(id, command('c')), SessionNotFound)
      await refusal(store.outcome(id, 'c', signal), SessionNotFound)
      await refusal(store.delete(id), SessionNotFound)
      expect(await store.header(id)).toBeUndefined()
    }
    expect(await collect(store.list())).toEqual([])
  })

  test('a deleted session made again starts empty: no events, no commands, no outcomes, its own header', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 3)
    await store.post('s', command('old'))
    await store.post('s', command('taken'))
    const outcome = { kind: 'taken', seq: 1 } as const
    await first.append([], { expectedSeq: 3, takes: [{ id: 'taken', outcome }], summary: { turns: 4, owed: true } })
    await first.release()
    await store.delete('s')
    const second = await store.acquire('s', { create: header('s', { meta: 'anew' }) })
    expect(second.head).toBe(0)
    expect(second.epoch).toBeGreaterThan(first.epoch)
    expect(second.header.meta).toBe('anew')
    expect(await logOf(store)).toEqual([])
    expect(await collect(store.list())).toMatchObject([{ head: 0, turns: 0, owed: false }])
    await store.post('s', command('taken'))
    for await (const { id } of second.commands(whileTesting())) {
      expect(id).toBe('taken')
      break
    }
    await refusal(fill(first, 0, 1), Fenced)
  })
}
