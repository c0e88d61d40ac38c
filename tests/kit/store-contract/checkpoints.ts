/** Checkpoints beside a log: given out as they were kept, by their owner alone, and nothing else is changed by them. */
import { expect } from 'vitest'
import { Fenced, SeqConflict, StoreFailure } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { Checkpoint, LogStore, Ownership } from '../../../src/log/store.ts'
import { faultyStore } from '../faulty-store.ts'
import {
  chunk,
  chunks,
  collect,
  fill,
  logOf,
  type OpenedStore,
  type OpenStore,
  opened,
  openedStore,
  own,
  range,
  refusal,
  take,
  testUnless,
  turn,
  whileTesting,
} from './fixtures.ts'

const bodyOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

/** Keeps a checkpoint that says where it ends. */
const keep = (owner: Ownership, seq: number, text = `up to ${seq}`): Promise<void> =>
  owner.keep?.({ seq, body: bodyOf(text) }) ?? expect.fail('this store keeps no checkpoints')

async function kept(owner: Ownership): Promise<[number, string] | undefined> {
  const found: Checkpoint | undefined = await owner.checkpoint?.()
  return found && [found.seq, Buffer.from(found.body).toString()]
}

/** Appends one event at a time. */
async function appendSmall(owner: Ownership, from: number, to: number): Promise<void> {
  for (const seq of range(from, to)) await fill(owner, seq, 1)
}

async function again(store: LogStore, owner: Ownership, id = 's'): Promise<Ownership> {
  await owner.release()
  return own(store, id)
}

/** @param reason why the store keeps no checkpoints, if it keeps none. */
export function checkpoints(open: OpenStore, reason: string | undefined): void {
  const keeping = testUnless(reason)

  keeping('a session has no checkpoint before one is kept', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    expect(await kept(owner)).toBeUndefined()
    await fill(owner, 0, 3)
    expect(await kept(owner)).toBeUndefined()
    expect(await kept(await again(store, owner))).toBeUndefined()
  })

  keeping('what was kept last is given out, to this owner and to the next, also when the log has grown', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 3)
    await keep(first, 3, 'first')
    expect(await kept(first)).toEqual([3, 'first'])
    await fill(first, 3, 4)
    await keep(first, 7, 'second')
    await fill(first, 7, 2)
    expect(await kept(first)).toEqual([7, 'second'])
    expect(await kept(await again(store, first))).toEqual([7, 'second'])
    expect(await kept(await store.acquire('s', { steal: true }))).toEqual([7, 'second'])
  })

  keeping('an empty log and an empty body may be kept, and one of megabytes', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await keep(owner, 0, '')
    expect(await kept(owner)).toEqual([0, ''])
    await fill(owner, 0, 1)
    const large = 'é'.repeat(1_500_000)
    await keep(owner, 1, large)
    expect((await kept(await again(store, owner)))?.[1] === large).toBe(true)
  })

  keeping('what a reader does to a checkpoint changes nothing', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 1)
    await keep(owner, 1)
    const found = await owner.checkpoint?.()
    found?.body.fill(0)
    expect(await kept(owner)).toEqual([1, 'up to 1'])
  })

  keeping('each session has its own', async () => {
    const store = await openedStore(open)
    const [a, b, c] = [await own(store, 'a'), await own(store, 'b'), await own(store, 'c')]
    for (const owner of [a, b, c]) await fill(owner, 0, 2)
    await Promise.all([keep(a, 2, 'of a'), keep(b, 2, 'of b')])
    expect([await kept(a), await kept(b), await kept(c)]).toEqual([[2, 'of a'], [2, 'of b'], undefined])
  })

  keeping('a session that is deleted and made again has none', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 2)
    await keep(first, 2)
    await first.release()
    await store.delete('s')
    const second = await own(store)
    expect(await kept(second)).toBeUndefined()
    await fill(second, 0, 2)
    expect(await kept(second)).toBeUndefined()
  })

  keeping('an owner that was put out, or left, neither keeps nor is given one', async () => {
    const store = await openedStore(open)
    const loser = await own(store)
    await fill(loser, 0, 2)
    await keep(loser, 2, 'mine')
    const winner = await store.acquire('s', { steal: true })
    await refusal(keep(loser, 2, 'stale'), Fenced)
    await refusal(loser.checkpoint?.() ?? Promise.resolve(), Fenced)
    expect(await kept(winner)).toEqual([2, 'mine'])
    await winner.release()
    await refusal(keep(winner, 2, 'late'), Fenced)
    expect(await kept(await own(store))).toEqual([2, 'mine'])
  })

  keeping('one that claims more than the log holds is refused, and what was kept stays', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 2)
    await keep(owner, 2)
    expect(await refusal(keep(owner, 3), SeqConflict)).toMatchObject({ expected: 3, actual: 2 })
    expect(await kept(owner)).toEqual([2, 'up to 2'])
    await fill(owner, 2, 1)
    await keep(owner, 3)
    expect(await kept(owner)).toEqual([3, 'up to 3'])
  })

  keeping('keeping changes nothing of the log, whatever its appends were', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const events: SessionEvent[] = []
    let [seq, size] = [0, 1]
    for (; seq < 400; size = (size % 7) + 1) {
      const batch = range(seq, seq + size).map((at) => (at % 11 === 0 ? note(at) : chunk(at)))
      await owner.append(batch, { expectedSeq: seq })
      events.push(...batch)
      seq += size
      if (seq % 5 === 0) await keep(owner, seq)
    }
    await keep(owner, seq)
    const expected = JSON.stringify(events)
    expect(JSON.stringify(await logOf(store))).toBe(expected)
    const { pages } = store
    if (pages !== undefined) {
      const shown = (await collect(pages('s', { from: 3 }))).map(({ first, count }) => [first, first + count])
      expect([shown[0]?.[0], shown.at(-1)?.[1]]).toEqual([3, seq])
    }
    expect(await kept(await again(store, owner))).toEqual([seq, `up to ${seq}`])
    expect(JSON.stringify(await collect(store.read('s', { from: 57 })))).toBe(JSON.stringify(events.slice(57)))
  })

  keeping('a reader in the middle of the log sees every event once, whatever is kept meanwhile', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await appendSmall(owner, 0, 60)
    const view = take(store.subscribe('s', { from: 0, signal: whileTesting() }), 180)
    const seen: number[] = []
    for await (const event of store.read('s')) {
      seen.push(event.seq)
      if (event.seq % 20 === 7) await keep(owner, 60)
      await turn()
    }
    for (const from of [60, 100, 140]) {
      await appendSmall(owner, from, from + 40)
      await keep(owner, from + 40)
    }
    expect(seen).toEqual(range(0, 60))
    expect(await view).toEqual(chunks(0, 180))
  })

  keeping('lists show no trace of it', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await owner.append(chunks(0, 3), { expectedSeq: 0, summary: { turns: 1, owed: true } })
    const before = await collect(store.list())
    await keep(owner, 3)
    expect(await collect(store.list())).toEqual(before)
  })

  keeping('appends and keeps at once are each whole', async () => {
    const store = await openedStore(open)
    const ids = range(0, 8).map((i) => `s${i}`)
    await Promise.all(
      ids.map(async (id) => {
        const owner = await own(store, id)
        for (const seq of range(0, 30)) {
          const [appended] = await Promise.all([fill(owner, seq, 1), seq % 6 === 5 ? keep(owner, seq) : undefined])
          expect(appended).toBeUndefined()
        }
      }),
    )
    for (const id of ids) {
      expect(await logOf(store, id)).toEqual(chunks(0, 30))
      expect(await kept(await store.acquire(id, { steal: true }))).toEqual([29, 'up to 29'])
    }
  })

  keeping('a keep that failed on its way leaves what was kept; one whose answer was lost left either', async () => {
    const store = faultyStore(await openedStore(open), { seed: 1 })
    const owner = await own(store)
    await fill(owner, 0, 2)
    await keep(owner, 2)
    await fill(owner, 2, 2)
    store.script('keep', 'fail')
    await refusal(keep(owner, 4), StoreFailure)
    expect(await kept(owner)).toEqual([2, 'up to 2'])
    store.script('keep', 'lose')
    await refusal(keep(owner, 4), StoreFailure)
    expect([2, 4]).toContain((await kept(owner))?.[0])
    expect(await logOf(store)).toEqual(chunks(0, 4))
    await fill(owner, 4, 1)
  })
}

const note = (seq: number): SessionEvent =>
  JSON.parse(`{"type":"acme/note","seq":${seq},"time":${seq},"data":{"__proto__":${seq}},"ignorable":true}`)

/** @param reason why the store cannot be reopened, if it cannot. */
export function reopenedCheckpoints(open: OpenStore, reason: string | undefined): void {
  const reopened = testUnless(reason)
  const reopen = ({ reopen: anew }: OpenedStore): Promise<LogStore> =>
    anew === undefined ? expect.fail('this store cannot be reopened: pass the reason as `without.reopen`') : anew()

  reopened('a store opened again has the checkpoints it kept, and goes on from them', async () => {
    const fixture = await opened(open)
    const first = await own(fixture.store)
    await appendSmall(first, 0, 40)
    await keep(first, 40)
    await appendSmall(first, 40, 50)
    const store = await reopen(fixture)
    const second = await own(store)
    expect(await kept(second)).toEqual([40, 'up to 40'])
    await appendSmall(second, 50, 90)
    await keep(second, 90)
    await second.release()
    expect(await kept(await own(await reopen(fixture)))).toEqual([90, 'up to 90'])
  })
}
