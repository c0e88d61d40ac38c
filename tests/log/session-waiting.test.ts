/** A session waits for nothing without a limit, and says of each answer that did not come what it was. */
import { afterEach, expect, test, vi } from 'vitest'
import { StoreFailure } from '../../src/log/errors.ts'
import { openSession, type Session } from '../../src/log/session.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { collect, LIMITS, settled, setup, turnEnd, turnStart, types } from './session-setup.ts'

afterEach(() => void vi.useRealTimers())
const useFakeTimers = (): unknown => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })

const WAY_OUT = 'open the session again once the store answers, or allow more with `storeTimeoutMs`'
const tooLate = (doing: string, ms = 500): StoreFailure =>
  new StoreFailure('timeout', `The store did not ${doing} session "s" within ${ms} ms: ${WAY_OUT}`)

const never = <T>(): Promise<T> => new Promise(() => {})

/** What it rejects with once `ms` have passed. */
async function after(ms: number, waiting: Promise<unknown>): Promise<unknown> {
  const failed = waiting.catch((error: unknown) => error)
  await settled()
  vi.advanceTimersByTime(ms)
  return failed
}

/** A session over a store that reads `readable` events, and then gives none for ever. */
async function stuckReading(readable: number): Promise<{ session: Session; store: LogStore; readFrom: unknown[] }> {
  const inner = memoryStore()
  const readFrom: unknown[] = []
  let stuck = false
  const store: LogStore = {
    ...inner,
    async *read(id, options) {
      let left = stuck ? readable : Number.POSITIVE_INFINITY
      if (stuck) readFrom.push(options?.from)
      for await (const event of inner.read(id, options)) {
        if (left-- === 0) await never()
        yield event
      }
    },
  }
  const { session } = await setup({ store, storeTimeoutMs: 500 })
  session.record([turnStart(), turnEnd()])
  await session.flush()
  stuck = true
  return { session, store, readFrom }
}

test('opening fails when the log is not read on', async () => {
  const { store, session } = await stuckReading(1)
  await session.close()
  const ownership = await store.acquire('s')
  useFakeTimers()
  const loaded: string[] = []
  const opening = openSession(store, ownership, {
    now: () => 1,
    limits: LIMITS,
    storeTimeoutMs: 500,
    onLoaded: ({ type }) => void loaded.push(type),
  })
  expect(await after(500, opening)).toEqual(tooLate('read'))
  expect([loaded, vi.getTimerCount()]).toEqual([['turn/start'], 0])
})

test('opening a log whose length is wrong fails for that, also when the store does not say whether the owner was fenced', async () => {
  const store = memoryStore()
  const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
  useFakeTimers()
  const opening = openSession(store, { ...real, head: 2, append: never }, { now: () => 1, limits: LIMITS })
  expect(await after(30_000, opening)).toMatchObject({ code: 'INVALID_LOG', rule: 'HEAD' })
  expect(vi.getTimerCount()).toBe(0)
})

test('a reader is told when its log is not read on; the session lives', async () => {
  const { session, readFrom } = await stuckReading(1)
  useFakeTimers()
  const seen: string[] = []
  const reading = async (live: boolean): Promise<void> => {
    for await (const { type } of session.events({ live })) seen.push(type)
  }
  expect(await after(500, reading(false))).toEqual(tooLate('read'))
  expect(await after(500, reading(true))).toEqual(tooLate('read'))
  const rest = collect(session.events({ from: 1 })).then(types)
  expect(await rest).toEqual(['turn/end'])
  expect([seen, readFrom]).toEqual([
    ['turn/start', 'turn/start'],
    [0, 0, 1],
  ])
  expect([session.failed.aborted, vi.getTimerCount()]).toEqual([false, 0])
})

test.each<[string, (session: Session) => Promise<void>]>([
  ['flush', (session) => session.flush()],
  ['an append that nobody flushes', (session) => session.durable(0)],
])('%s says what was not done', async (_, wait) => {
  useFakeTimers()
  const { session } = await setup({ interfere: never, storeTimeoutMs: 500 })
  session.append(turnStart())
  expect(await after(500, wait(session))).toEqual(tooLate('append to'))
  expect(session.failed.reason).toEqual(tooLate('append to'))
})

test('closing fails when the session is not released', async () => {
  const store = memoryStore()
  const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
  const session = await openSession(store, { ...real, release: never }, { now: () => 1, limits: LIMITS })
  useFakeTimers()
  expect(await after(30_000, session.close())).toEqual(tooLate('release', 30_000))
})
