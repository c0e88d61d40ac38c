/** Two store instances on the same data, as two processes have them; and the same data closed and opened again. */
import { expect } from 'vitest'
import { Fenced, PawlError, SessionBusy, SessionNotFound } from '../../../src/log/errors.ts'
import type { CommandOutcome, LogStore } from '../../../src/log/store.ts'
import {
  aborted,
  chunk,
  chunks,
  collect,
  command,
  fill,
  header,
  logOf,
  type OpenedStore,
  type OpenStore,
  opened,
  own,
  range,
  refusal,
  seqsOf,
  take,
  testUnless,
  whileTesting,
} from './fixtures.ts'

const TAKEN: CommandOutcome = { kind: 'taken', seq: 3 }

async function pair(open: OpenStore): Promise<[LogStore, LogStore]> {
  const { store, second } = await opened(open)
  if (second === undefined)
    return expect.fail('this store opens no second instance: pass the reason as `without.second`')
  return [store, await second()]
}

const again = ({ reopen }: OpenedStore): Promise<LogStore> =>
  reopen === undefined ? expect.fail('this store cannot be reopened: pass the reason as `without.reopen`') : reopen()

/** @param reason why the store has no second instance, if it has none. */
export function sharing(open: OpenStore, reason: string | undefined): void {
  const shared = testUnless(reason)

  shared('a session owned in one instance is busy in the other, until it is released', async () => {
    const [here, there] = await pair(open)
    const owner = await own(here)
    await refusal(there.acquire('s'), SessionBusy)
    await fill(owner, 0, 2)
    await owner.release()
    const next = await there.acquire('s')
    expect(next.head).toBe(2)
    expect(next.epoch).toBeGreaterThan(owner.epoch)
    await refusal(own(here), SessionBusy)
  })

  shared('of owners that come from both instances at once, one gets in', async () => {
    const stores = await pair(open)
    await (await own(stores[0])).release()
    const results = await Promise.allSettled(range(0, 8).map((i) => own(stores[i % 2 === 0 ? 0 : 1])))
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
  })

  shared('a session stolen by the other instance is fenced at once, and its owner is told', async () => {
    const [here, there] = await pair(open)
    const loser = await own(here)
    await fill(loser, 0, 2)
    const winner = await there.acquire('s', { steal: true })
    await refusal(loser.append([chunk(2, 'loser')], { expectedSeq: 2 }), Fenced)
    await winner.append([chunk(2, 'winner')], { expectedSeq: 2 })
    expect(await aborted(loser.lost)).toBeInstanceOf(PawlError)
    expect(await collect(loser.commands(whileTesting()))).toEqual([])
    await loser.release()
    await refusal(own(here), SessionBusy)
    expect(await logOf(here)).toEqual([...chunks(0, 2), chunk(2, 'winner')])
  })

  shared('closing an instance frees its sessions for the other', async () => {
    const [here, there] = await pair(open)
    await fill(await own(here), 0, 1)
    await here[Symbol.asyncDispose]()
    expect(await collect(there.list())).toMatchObject([{ owned: false }])
    await fill(await there.acquire('s'), 1, 1)
  })

  shared(
    'a command posted in one instance reaches a waiting owner in the other, and its outcome comes back',
    async () => {
      const [here, there] = await pair(open)
      const owner = await own(here)
      const got = take(owner.commands(whileTesting()), 2)
      await there.post('s', command('a'))
      await there.post('s', command('b'))
      const outcome = there.outcome('s', 'a', whileTesting())
      expect(await got).toEqual([command('a'), command('b')])
      await owner.append([], { expectedSeq: 0, takes: [{ id: 'a', outcome: TAKEN }] })
      expect(await outcome).toEqual(TAKEN)
      expect(await there.outcome('s', 'a', whileTesting())).toEqual(TAKEN)
    },
  )

  shared('a subscriber in the other instance misses nothing and gets nothing twice', async () => {
    const [here, there] = await pair(open)
    const owner = await own(here)
    await fill(owner, 0, 5)
    const views = [0, 3, 5, 50].map((from) => take(there.subscribe('s', { from, signal: whileTesting() }), 200 - from))
    for (let seq = 5; seq < 200; seq += 5) await fill(owner, seq, 5)
    expect(await Promise.all(views)).toEqual([0, 3, 5, 50].map((from) => chunks(from, 200 - from)))
  })

  shared('both instances list, read and delete the same sessions', async () => {
    const [here, there] = await pair(open)
    const owner = await own(here)
    await owner.append(chunks(0, 3), { expectedSeq: 0, summary: { turns: 2, owed: true } })
    expect(await collect(there.list())).toEqual(await collect(here.list()))
    expect(await collect(there.list())).toMatchObject([{ owned: true, turns: 2, head: 3 }])
    expect(await there.header('s')).toEqual(header('s'))
    await refusal(there.delete('s'), SessionBusy)
    await owner.release()
    await there.delete('s')
    await refusal(logOf(here), SessionNotFound)
    expect((await own(here)).epoch).toBeGreaterThan(owner.epoch)
  })

  shared('sessions of both instances append at once, each in its own order', async () => {
    const stores = await pair(open)
    await Promise.all(
      range(0, 12).map(async (i) => {
        const owner = await own(stores[i % 2 === 0 ? 0 : 1], `s${i}`)
        for (let seq = 0; seq < 20; seq += 2) await fill(owner, seq, 2)
      }),
    )
    for (const i of range(0, 12)) expect(await seqsOf(stores[1].read(`s${i}`))).toEqual(range(0, 20))
  })
}

/** @param reason why the store cannot be reopened, if it cannot. */
export function reopening(open: OpenStore, reason: string | undefined): void {
  const reopened = testUnless(reason)

  reopened('a store opened again has its sessions, free, with all they had', async () => {
    const fixture = await opened(open)
    const owner = await own(fixture.store)
    await fixture.store.post('s', command('taken'))
    await fixture.store.post('s', command('waiting'))
    const takes = [{ id: 'taken', outcome: TAKEN }]
    await owner.append(chunks(0, 3), { expectedSeq: 0, takes, summary: { turns: 1, lastReason: 'completed' } })
    const [before] = await collect(fixture.store.list())
    const store = await again(fixture)
    expect(await collect(store.list())).toEqual([{ ...before, owned: false }])
    expect(await logOf(store)).toEqual(chunks(0, 3))
    expect(await store.header('s')).toEqual(header('s'))
    expect(await store.outcome('s', 'taken', whileTesting())).toEqual(TAKEN)
    const next = await store.acquire('s')
    expect(next.head).toBe(3)
    expect(next.epoch).toBeGreaterThan(owner.epoch)
    expect(await take(next.commands(whileTesting()), 1)).toEqual([command('waiting')])
    await fill(next, 3, 1)
  })

  reopened('every append that was acknowledged is there, and every batch is whole', async () => {
    const fixture = await opened(open)
    const owners = await Promise.all(range(0, 10).map((i) => own(fixture.store, `s${i}`)))
    await Promise.all(owners.map((owner) => fill(owner, 0, 3)))
    const inFlight = Promise.allSettled(owners.map((owner) => fill(owner, 3, 3)))
    const store = await again(fixture)
    for (const [i, result] of (await inFlight).entries()) {
      const { length } = await logOf(store, `s${i}`)
      expect(result.status === 'fulfilled' ? [6] : [3, 6]).toContain(length)
    }
  })

  reopened('an epoch is not used again after its session was deleted and the store reopened', async () => {
    const fixture = await opened(open)
    const owner = await own(fixture.store)
    await owner.release()
    await fixture.store.delete('s')
    expect((await own(await again(fixture))).epoch).toBeGreaterThan(owner.epoch)
  })
}
