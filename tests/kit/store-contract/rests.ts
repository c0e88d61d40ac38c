/** An owner that rests: the session stays its own, it is told of what concerns it, and it can be woken on the spot. */
import { expect } from 'vitest'
import { Fenced, PawlError, SessionBusy, SessionNotFound } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, Ownership, Resting, StoredPage } from '../../../src/log/store.ts'
import {
  chunk,
  collect,
  command,
  fill,
  logOf,
  type OpenStore,
  opened,
  openedStore,
  own,
  range,
  refusal,
  seqsOf,
  take,
  testUnless,
  turn,
  whileTesting,
} from './fixtures.ts'

/** Told of what happens while it rests. */
class Sleeper {
  posted = 0
  lost: PawlError | undefined
  #woken: () => void = () => {}

  onPosted(): void {
    this.posted += 1
    this.#woken()
  }

  onLost(reason: PawlError): void {
    this.lost = reason
    this.#woken()
  }

  /** Resolves the next time it is told anything. */
  told(): Promise<void> {
    return new Promise((resolve) => {
      this.#woken = resolve
    })
  }
}

function rest(store: LogStore, owner: Ownership, sleeper = new Sleeper()): Resting {
  return store.rest?.(owner, sleeper) ?? expect.fail('this store lets no owner rest')
}

const readNow = (store: LogStore, from: number, to: number, deltas: boolean): readonly StoredPage[] => [
  ...(store.readNow?.('s', { from, to, deltas }) ?? expect.fail('this store reads nothing without waiting')),
]

const eventsOf = (pages: readonly StoredPage[]): readonly SessionEvent[] => pages.flatMap(({ events }) => events)

const isDelta = ({ type }: SessionEvent): boolean => type === 'assistant/chunk'

/** Of 40 deltas each, in appends of three events. */
async function turns(owner: Ownership, count: number): Promise<void> {
  const start = (seq: number): SessionEvent => ({
    type: 'turn/start',
    seq,
    time: chunk(seq).time,
    data: { turn: seq, limits: { maxSteps: 1, maxParallelToolCalls: 1 } },
  })
  const events = range(0, count * 41).map((seq) => (seq % 41 === 0 ? start(seq) : chunk(seq)))
  for (let seq = 0; seq < events.length; seq += 3) await owner.append(events.slice(seq, seq + 3), { expectedSeq: seq })
}

export function rests(open: OpenStore, without: string | undefined): void {
  const test = testUnless(without)

  test('a log is read without waiting, in pages that leave nothing out but deltas, or nothing', async () => {
    const store = await openedStore(open)
    await turns(await own(store), 5)
    const log = await logOf(store)
    for (const [from, to] of [
      [0, 205],
      [0, 100],
      [41, 205],
      [57, 130],
      [205, 205],
    ] as const) {
      const stretch = log.slice(from, to)
      const whole = readNow(store, from, to, true)
      expect(eventsOf(whole)).toEqual(stretch)
      const pages = readNow(store, from, to, false)
      expect(eventsOf(pages).filter((event) => !isDelta(event))).toEqual(stretch.filter((event) => !isDelta(event)))
      for (const found of [whole, pages]) {
        let next = from
        for (const { first, count, time } of found) {
          expect(first).toBe(next)
          next = first + count
          expect(time).toBe(log[next - 1]?.time)
        }
        expect(next).toBe(to)
      }
    }
    expect(() => [...(store.readNow?.('never', { from: 0, to: 1, deltas: true }) ?? [])]).toThrow(SessionNotFound)
  })

  test('of an owner that rests the ownership is void, and the session is nobody else’s', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 2)
    const commands = collect(owner.commands(whileTesting()))
    await turn()
    rest(store, owner)
    expect(await commands).toEqual([])
    expect(await collect(owner.commands(whileTesting()))).toEqual([])
    await refusal(fill(owner, 2, 1), Fenced)
    await owner.release()
    await refusal(own(store), SessionBusy)
    await refusal(store.delete('s'), SessionBusy)
    expect(await collect(store.list())).toMatchObject([{ id: 's', owned: true }])
    expect(await seqsOf(store.read('s'))).toEqual([0, 1])
  })

  test('woken, it goes on where it was, under the same epoch, and may rest again', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 2)
    const second = rest(store, first).wake(2)
    expect([second.epoch, second.head, second.header]).toEqual([first.epoch, 2, first.header])
    await fill(second, 2, 3)
    await store.post('s', command('c'))
    expect((await take(second.commands(whileTesting()), 1)).map(({ id }) => id)).toEqual(['c'])
    const third = rest(store, second).wake(5)
    await refusal(fill(second, 5, 1), Fenced)
    await fill(third, 5, 1)
    expect(await seqsOf(store.read('s'))).toEqual(range(0, 6))
    await third.release()
    await (await own(store)).release()
  })

  test('it is told of a command that is posted, and of one that waited already', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const sleeper = new Sleeper()
    const told = sleeper.told()
    const resting = rest(store, owner, sleeper)
    await turn()
    expect(sleeper.posted).toBe(0)
    await store.post('s', command('a'))
    await told
    const again = new Sleeper()
    const toldAgain = again.told()
    // Nobody has taken it.
    const asleep = rest(store, resting.wake(0), again)
    await toldAgain
    const awake = asleep.wake(0)
    const heard = again.posted
    await store.post('s', command('b'))
    await turn()
    expect(again.posted).toBe(heard)
    expect((await take(awake.commands(whileTesting()), 2)).map(({ id }) => id)).toEqual(['a', 'b'])
  })

  test('a command that was taken wakes nobody', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await store.post('s', command('a'))
    await owner.append([], { expectedSeq: 0, takes: [{ id: 'a', outcome: { kind: 'taken' } }] })
    const sleeper = new Sleeper()
    rest(store, owner, sleeper)
    await turn()
    await own(store, 'other')
    await store.post('other', command('a'))
    await turn()
    expect(sleeper.posted).toBe(0)
  })

  test('it is told when another owner takes the session', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 2)
    const sleeper = new Sleeper()
    const told = sleeper.told()
    const resting = rest(store, owner, sleeper)
    const winner = await store.acquire('s', { steal: true })
    await told
    expect(sleeper.lost).toBeInstanceOf(Fenced)
    await resting.release()
    await fill(winner, 2, 1)
    await refusal(own(store), SessionBusy)
    const loser = resting.wake(2)
    expect(loser.lost.aborted).toBe(true)
    await refusal(fill(loser, 3, 1), Fenced)
  })

  test('it is told when the store is closed', async () => {
    const store = await openedStore(open)
    const sleeper = new Sleeper()
    const told = sleeper.told()
    rest(store, await own(store), sleeper)
    await store[Symbol.asyncDispose]()
    await told
    expect(sleeper.lost).toBeInstanceOf(PawlError)
  })

  test('released, it is told nothing, and the session is free', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 2)
    const sleeper = new Sleeper()
    const resting = rest(store, owner, sleeper)
    await resting.release()
    await resting.release()
    const next = await own(store)
    expect(next.epoch).toBeGreaterThan(owner.epoch)
    await store.post('s', command('c'))
    await fill(next, 2, 1)
    await turn()
    expect([sleeper.posted, sleeper.lost]).toEqual([0, undefined])
  })

  test('an ownership that was wrapped, that rests already or that is over does not rest, and nothing is changed', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    expect(store.rest?.({ ...owner }, new Sleeper())).toBeUndefined()
    await fill(owner, 0, 1)
    const resting = rest(store, owner)
    expect(store.rest?.(owner, new Sleeper())).toBeUndefined()
    const awake = resting.wake(1)
    await awake.release()
    expect(store.rest?.(awake, new Sleeper())).toBeUndefined()
    await (await own(store)).release()
  })

  test('after a rest it vouches for the checkpoint that it kept or was given, and for no other', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    await fill(first, 0, 3)
    expect(first.checkpointNow?.()).toBeUndefined()
    await first.keep?.({ seq: 3, body: new Uint8Array([1, 2, 3]) })
    const kept = first.checkpointNow?.()
    expect(kept && [kept.seq, [...kept.body]]).toEqual([3, [1, 2, 3]])
    const awake = rest(store, first).wake(3)
    expect(awake.checkpointNow?.()).toEqual(kept)
    await fill(awake, 3, 1)
    await awake.release()
    expect(awake.checkpointNow?.()).toBeUndefined()
    const next = await own(store)
    expect(await next.checkpoint?.()).toEqual(kept)
    expect(rest(store, next).wake(4).checkpointNow?.()).toEqual(kept)
  })
}

export function sharedRests(open: OpenStore, without: string | undefined): void {
  const test = testUnless(without)

  test('it is told of what happens in another instance, and only of what concerns it', async () => {
    const { store, second } = await opened(open)
    const elsewhere = (await second?.()) ?? expect.fail('there is no second instance')
    const [posted, robbed, other] = [new Sleeper(), new Sleeper(), new Sleeper()]
    rest(store, await own(store, 'posted'), posted)
    rest(store, await own(store, 'robbed'), robbed)
    rest(store, await own(store, 'other'), other)
    await turn()
    const told = [posted.told(), robbed.told()]
    await elsewhere.post('posted', command('c'))
    await elsewhere.acquire('robbed', { steal: true })
    await Promise.all(told)
    expect([posted.posted > 0, posted.lost]).toEqual([true, undefined])
    expect(robbed.lost).toBeInstanceOf(Fenced)
    expect([other.posted, other.lost]).toEqual([0, undefined])
    await refusal(elsewhere.acquire('posted'), SessionBusy)
  })
}
