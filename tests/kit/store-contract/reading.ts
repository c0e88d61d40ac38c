/** Reading and following a log: durable events only, each once and in order, without a lock and in bounded memory. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { SessionNotFound } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, Ownership } from '../../../src/log/store.ts'
import {
  chunk,
  chunks,
  collect,
  fill,
  logOf,
  type OpenStore,
  openedStore,
  own,
  range,
  refusal,
  seqsOf,
  take,
  turn,
  whileTesting,
} from './fixtures.ts'

const MEGABYTE = 2 ** 20

export function reading(open: OpenStore): void {
  test.each([
    [0, 10],
    [4, 10],
    [9, 10],
    [10, 10],
    [99, 10],
  ])('a log read from %i has the events from there to the head at %i', async (from, head) => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 3)
    await fill(owner, 3, head - 3)
    expect(await seqsOf(store.read('s', { from }))).toEqual(range(0, head).slice(from))
  })

  test.each([
    [-1, 0],
    [Number.NEGATIVE_INFINITY, 0],
    [2.5, 3],
  ])('a log read or followed from %d begins at %i', async (from, first) => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 5)
    expect(await seqsOf(store.read('s', { from }))).toEqual(range(0, 5).slice(first))
    expect(await take(store.subscribe('s', { from, signal: whileTesting() }), 1)).toEqual([chunk(first)])
  })

  test('a log read by types has those types only, in order, and from where it was asked', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const start = (seq: number): SessionEvent => ({
      type: 'turn/start',
      seq,
      time: 1,
      data: { turn: seq, limits: { maxSteps: 1, maxParallelToolCalls: 1 } },
    })
    await owner.append([start(0), chunk(1), chunk(2), start(3)], { expectedSeq: 0 })
    await owner.append([chunk(4), start(5), chunk(6)], { expectedSeq: 4 })
    expect(await seqsOf(store.read('s', { types: ['turn/start'] }))).toEqual([0, 3, 5])
    expect(await seqsOf(store.read('s', { from: 2, types: ['turn/start'] }))).toEqual([3, 5])
    expect(await seqsOf(store.read('s', { from: 5, types: ['turn/start', 'assistant/chunk'] }))).toEqual([5, 6])
    expect(await seqsOf(store.read('s', { types: ['turn/end'] }))).toEqual([])
  })

  test('a read ends at the head it found, whatever is appended meanwhile', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 5)
    const seen: number[] = []
    for await (const event of store.read('s')) {
      seen.push(event.seq)
      if (event.seq === 0) await fill(owner, 5, 5)
    }
    expect(seen).toEqual(range(0, 5))
  })

  test('reading acquires nothing and disturbs no owner', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 3)
    await take(store.read('s'), 1)
    await take(store.subscribe('s', { from: 1, signal: whileTesting() }), 1)
    await logOf(store)
    await store.header('s')
    expect(owner.lost.aborted).toBe(false)
    await fill(owner, 3, 1)
    await owner.release()
    await logOf(store)
    expect(await collect(store.list())).toMatchObject([{ owned: false, head: 4 }])
    await fill(await own(store), 4, 1)
  })

  test('a read left open holds up neither appends nor other reads', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 5)
    const left = store.read('s')[Symbol.asyncIterator]()
    expect(await left.next()).toMatchObject({ value: { seq: 0 } })
    await fill(owner, 5, 5)
    expect(await seqsOf(store.read('s'))).toEqual(range(0, 10))
    expect(await left.next()).toMatchObject({ value: { seq: 1 } })
    await left.return?.()
  })

  test('two hundred thousand events are read in bounded memory', { timeout: 60_000 }, async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    for (let seq = 0; seq < 200_000; seq += 1_000) await fill(owner, seq, 1_000)
    const growth = await heapGrowth(store.read('s'), 40_000)
    expect(growth.events).toBe(200_000)
    expect(growth.bytes).toBeLessThan(24 * MEGABYTE)
  })

  test('a subscriber gets what is there and then what comes, until it aborts', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const done = new AbortController()
    await fill(owner, 0, 2)
    const seen: SessionEvent[] = []
    for await (const event of store.subscribe('s', { from: 0, signal: done.signal })) {
      seen.push(event)
      if (event.seq === 1) await fill(owner, 2, 2)
      if (event.seq === 3) done.abort()
    }
    expect(seen).toEqual(chunks(0, 4))
  })

  test('a subscriber that waits ends when it aborts, and one that is aborted gets nothing', async () => {
    const store = await openedStore(open)
    await fill(await own(store), 0, 2)
    const done = new AbortController()
    const waiting = seqsOf(store.subscribe('s', { from: 2, signal: done.signal }))
    await turn()
    done.abort()
    expect(await waiting).toEqual([])
    expect(await seqsOf(store.subscribe('s', { from: 0, signal: done.signal }))).toEqual([])
  })

  test('a subscriber that leaves takes nobody with it', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const leaving = new AbortController()
    const signals = [whileTesting(), leaving.signal, whileTesting()]
    const [before, left, after] = signals.map((signal) => take(store.subscribe('s', { from: 0, signal }), 1))
    await turn()
    leaving.abort()
    expect(await left).toEqual([])
    await fill(owner, 0, 1)
    expect(await Promise.all([before, after])).toEqual([[chunk(0)], [chunk(0)]])
  })

  test('a subscriber from beyond the head waits for that event', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const waiting = take(store.subscribe('s', { from: 4, signal: whileTesting() }), 2)
    await fill(owner, 0, 3)
    await fill(owner, 3, 3)
    expect(await waiting).toEqual(chunks(4, 2))
  })

  test('subscribers of any speed, from any start, see every event once and in order', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const total = 600
    await fill(owner, 0, 20)
    const starts = [0, 0, 3, 19, 20, 21, 150, 599]
    const views = starts.map((from, i) => follow(store, from, total, i % 2 === 1))
    await Promise.all([appendUnevenly(owner, 20, total), ...noise(store)])
    const later = [0, 300].map((from) => follow(store, from, total, false))
    expect(await Promise.all(views)).toEqual(starts.map((from) => range(from, total)))
    expect(await Promise.all(later)).toEqual([range(0, total), range(300, total)])
  })

  test('a subscriber outlives the owner it began under', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    const view = take(store.subscribe('s', { from: 0, signal: whileTesting() }), 3)
    await fill(first, 0, 1)
    await first.release()
    await fill(await own(store), 1, 1)
    await fill(await store.acquire('s', { steal: true }), 2, 1)
    expect(await view).toEqual(chunks(0, 3))
  })

  test('a subscriber of a session that is deleted is told so, also when it is made again', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 1)
    await owner.release()
    const events = store.subscribe('s', { from: 0, signal: whileTesting() })[Symbol.asyncIterator]()
    await events.next()
    const next = events.next()
    await store.delete('s')
    const told = refusal(next, SessionNotFound)
    await fill(await own(store), 0, 3)
    await told
  })
}

/** The most the heap grew while `events` were read, sampled each `every` events after a full collection. */
async function heapGrowth(
  events: AsyncIterable<SessionEvent>,
  every: number,
): Promise<{ events: number; bytes: number }> {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const heap = (): number => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const before = heap()
  let [count, bytes] = [0, 0]
  for await (const event of events) {
    if (event.seq === count) count += 1
    if (count % every === 0) bytes = Math.max(bytes, heap() - before)
  }
  return { events: count, bytes }
}

async function follow(store: LogStore, from: number, to: number, slow: boolean): Promise<number[]> {
  const seqs: number[] = []
  for await (const event of store.subscribe('s', { from, signal: whileTesting() })) {
    seqs.push(event.seq)
    if (event.seq === to - 1) break
    if (slow && event.seq % 5 === 0) await turn()
  }
  return seqs
}

async function appendUnevenly(owner: Ownership, from: number, to: number): Promise<void> {
  for (let seq = from, size = 1; seq < to; size = (size % 7) + 1) {
    const count = Math.min(size, to - seq)
    await fill(owner, seq, count)
    seq += count
  }
}

/** Other sessions that append at the same time. */
const noise = (store: LogStore): Promise<void>[] =>
  range(0, 10).map(async (i) => appendUnevenly(await own(store, `other ${i}`), 0, 60))
