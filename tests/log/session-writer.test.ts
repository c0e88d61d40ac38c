import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Fenced, StoreFailure } from '../../src/log/errors.ts'
import type { Recordable, SessionEvent } from '../../src/log/events.ts'
import type { SummaryUpdate } from '../../src/log/store.ts'
import {
  call,
  chunk,
  collect,
  entered,
  latch,
  result,
  settled,
  setup,
  turnEnd,
  turnStart,
  types,
  user,
} from './session-setup.ts'

function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}

describe('appending', () => {
  test('a batch is one append, with what was taken and the latest summary', async () => {
    const { session, appends } = await setup({ summary: () => ({ turns: 1, state: 'running', owed: false }) })
    session.record([turnStart()])
    session.take('c1', { kind: 'taken' })
    session.record([entered('a')])
    session.seal()
    await session.flush()
    expect(appends).toHaveLength(1)
    expect(types(appends[0]?.events ?? [])).toEqual(['turn/start', 'user/message'])
    expect(appends[0]?.options).toEqual({
      expectedSeq: 0,
      takes: [{ id: 'c1', outcome: { kind: 'taken', seq: 0 } }],
      summary: { turns: 1, state: 'running', owed: false },
    })
  })

  test('nothing in hand, nothing appended', async () => {
    const { session, appends } = await setup()
    session.seal()
    await session.flush()
    expect(appends).toEqual([])
  })

  test('one append is in flight; all sealed meanwhile is the next one', async () => {
    const first = latch()
    let turns = 0
    const { session, appends } = await setup({
      interfere: (append, n) => (n === 1 ? first.opened.then(() => append()) : append()),
      summary: (): SummaryUpdate => ({ turns: ++turns }),
    })
    session.append(turnStart())
    session.append(entered('a'))
    session.take('c1', { kind: 'refused', code: 'TURN_OVER', message: 'over' })
    session.append(entered('b'))
    expect(appends).toHaveLength(1)
    first.open()
    await session.flush()
    expect(appends.map(({ events, options }) => [options.expectedSeq, events.length])).toEqual([
      [0, 1],
      [1, 2],
    ])
    expect(appends[1]?.options.takes).toEqual([
      { id: 'c1', outcome: { kind: 'refused', code: 'TURN_OVER', message: 'over' } },
    ])
    expect(appends[1]?.options.summary).toEqual({ turns: 3 })
  })

  test('a command is taken also where no event is recorded, and flush waits for it', async () => {
    const { session, store } = await setup()
    await store.post('s', { id: 'c1', kind: 'wake' })
    session.take('c1', { kind: 'taken' })
    await session.flush()
    expect(await store.outcome('s', 'c1', new AbortController().signal)).toEqual({ kind: 'taken' })
  })

  test('each event is told durable once, in order, with the head already past it', async () => {
    const told: number[] = []
    const { session } = await setup({
      onDurable(events) {
        for (const event of events) told.push(event.seq)
        expect(session.head).toBe((events.at(-1)?.seq ?? 0) + 1)
      },
    })
    session.append(turnStart())
    session.append(entered('a'))
    session.append(entered('b'))
    await session.flush()
    expect(told).toEqual([0, 1, 2])
  })
})

describe('waiting for the store', () => {
  test('[persist-017] flush closes the batch in hand and resolves once all recorded so far is durable', async () => {
    const gate = latch()
    const { session } = await setup({ interfere: (append) => gate.opened.then(() => append()) })
    session.record([turnStart()])
    let done = false
    const flushed = session.flush().then(() => {
      done = true
    })
    await settled()
    expect([done, session.head]).toEqual([false, 0])
    gate.open()
    await flushed
    expect([session.head, session.unflushed()]).toEqual([1, []])
  })

  test('durable resolves with the acknowledgement of that event, not before', async () => {
    const gates = [latch(), latch()]
    const { session } = await setup({ interfere: (append, n) => gates[n - 1]!.opened.then(() => append()) })
    const order: string[] = []
    session.append(turnStart())
    session.append(turnEnd())
    const second = session.durable(1).then(() => order.push('second'))
    const first = session.durable(0).then(() => order.push('first'))
    gates[0]?.open()
    await first
    await settled()
    expect(order).toEqual(['first'])
    gates[1]?.open()
    await second
    await session.durable(0)
  })

  test('ready holds while over a mebibyte waits, and the bytes that wait are told', async () => {
    const gates = [latch(), latch()]
    const { session } = await setup({ interfere: (append, n) => gates[n - 1]!.opened.then(() => append()) })
    session.append(turnStart())
    await session.ready()
    for (const id of ['a', 'b', 'c']) session.append(big(id))
    expect(session.queuedBytes).toBeGreaterThan(1_048_576)
    let ready = false
    const waiting = session.ready().then(() => {
      ready = true
    })
    gates[0]?.open()
    await session.durable(0)
    await settled()
    expect(ready).toBe(false)
    gates[1]?.open()
    await waiting
    await session.flush()
    expect(session.queuedBytes).toBe(0)
  })

  test('[persist-017] flush rejects when the store does not answer, and the session is over', async () => {
    useFakeTimers()
    const { session } = await setup({ interfere: () => new Promise(() => {}), storeTimeoutMs: 500 })
    session.append(turnStart())
    const flushed = session.flush()
    vi.advanceTimersByTime(499)
    await settled()
    expect(session.failed.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    await expect(flushed).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'timeout' })
    expect(session.failed.aborted).toBe(true)
    expect(types(session.unflushed())).toEqual(['turn/start'])
  })
})

test('an append that is never answered ends the session, also when nobody flushes', async () => {
  useFakeTimers()
  const { session } = await setup({ interfere: () => new Promise(() => {}), storeTimeoutMs: 500 })
  session.append(turnStart())
  const durable = session.durable(0)
  vi.advanceTimersByTime(500)
  await settled()
  expect(session.failed.aborted).toBe(true)
  await expect(durable).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'timeout' })
})

/** A message of 400 kB. */
const big = (id: string): Recordable => ({ type: 'user/message', data: user(id, 'x'.repeat(400_000)) })

describe('the window of chunks', () => {
  test('the first chunk goes at once, those after it together when the window ends', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk('1'))
    await settled()
    for (const text of ['2', '3']) session.append(chunk(text))
    await settled()
    vi.advanceTimersByTime(19)
    expect(appends.map(({ events }) => events.length)).toEqual([1])
    vi.advanceTimersByTime(1)
    await settled()
    session.append(chunk('4'))
    expect(appends.map(({ events }) => events.length)).toEqual([1, 2])
    vi.advanceTimersByTime(20)
    expect(appends.map(({ events }) => events.length)).toEqual([1, 2, 1])
  })

  test('after a quiet window the next chunk goes at once again', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk())
    await settled()
    vi.advanceTimersByTime(20)
    session.append(chunk())
    expect(appends).toHaveLength(2)
  })

  test.each([
    { what: 'a flush', hurry: 'flush' },
    { what: 'another event', hurry: 'event' },
    { what: 'a taken command', hurry: 'take' },
    { what: '64 kB', hurry: 'bytes' },
  ] as const)('$what ends the wait', async ({ hurry }) => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk('1'))
    await settled()
    session.append(chunk('2'))
    expect(appends).toHaveLength(1)
    if (hurry === 'flush') void session.flush()
    if (hurry === 'event') session.append(entered('a'))
    if (hurry === 'take') session.take('c1', { kind: 'taken' })
    if (hurry === 'take') session.seal()
    if (hurry === 'bytes') session.append(chunk('x'.repeat(65_536)))
    expect(appends).toHaveLength(2)
  })

  test('other events open none: the chunk after one goes at once', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(turnStart())
    await settled()
    session.append(chunk())
    expect(appends).toHaveLength(2)
  })

  test('its timer holds the process only while a chunk waits', async () => {
    const holding = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const { session } = await setup({ windowMs: 1_000 })
    const before = holding()
    session.append(chunk('1'))
    expect(holding()).toBe(before)
    await settled()
    const between = holding()
    session.append(chunk('2'))
    expect(holding()).toBe(between + 1)
    session.append(entered('a'))
    expect(holding()).toBe(between)
  })

  test('a window of nothing lets no chunk wait', async () => {
    const { session, appends } = await setup({ windowMs: 0 })
    session.append(chunk('1'))
    await settled()
    session.append(chunk('2'))
    expect(appends).toHaveLength(2)
  })
})

describe('a failed append', () => {
  const lost = new StoreFailure('io', 'connection reset')

  test('whose events are there after all is a success', async () => {
    const { session, appends, store } = await setup({
      async interfere(append, n) {
        await append()
        if (n === 1) throw lost
      },
    })
    session.append(turnStart())
    session.append(turnEnd())
    await session.flush()
    expect(session.failed.aborted).toBe(false)
    expect(appends).toHaveLength(2)
    expect(types(await collect(store.read('s')))).toEqual(['turn/start', 'turn/end'])
  })

  test('that only took commands is asked again', async () => {
    const { session, store } = await setup({
      async interfere(append, n) {
        if (n === 1) throw lost
        await append()
      },
    })
    await store.post('s', { id: 'c1', kind: 'wake' })
    session.take('c1', { kind: 'taken' })
    await session.flush()
    expect(await store.outcome('s', 'c1', new AbortController().signal)).toEqual({ kind: 'taken' })
  })

  test('whose events are not there ends the session: all that waits is rejected, and nothing is written again', async () => {
    const gate = latch()
    const { session, appends } = await setup({ interfere: () => gate.opened.then(() => Promise.reject(lost)) })
    session.append(turnStart())
    session.append(entered('a'))
    const waiting = [session.flush(), session.durable(0), session.durable(1)]
    gate.open()
    expect((await Promise.allSettled(waiting)).map((each) => each.status === 'rejected' && each.reason)).toEqual([
      lost,
      lost,
      lost,
    ])
    expect(session.failed.reason).toBe(lost)
    expect(() => session.append(turnEnd())).toThrow(lost)
    expect(() => session.take('c1', { kind: 'taken' })).toThrow(lost)
    for (const late of [session.flush(), session.ready(), session.durable(7)]) await expect(late).rejects.toBe(lost)
    expect(types(session.unflushed())).toEqual(['turn/start', 'user/message'])
    expect([session.head, appends.length]).toEqual([0, 1])
  })

  test('with another event in the place of its own is no success', async () => {
    const other: SessionEvent = { type: 'session/suspended', seq: 0, time: 999, data: {} }
    const { session } = await setup({
      async interfere(append) {
        await append([other])
        throw lost
      },
    })
    session.append(turnStart())
    await expect(session.flush()).rejects.toBe(lost)
    expect(session.head).toBe(0)
  })

  test('with an error that is not ours becomes a StoreFailure around it', async () => {
    const cause = new Error('disk on fire')
    const { session } = await setup({ interfere: () => Promise.reject(cause) })
    session.append(turnStart())
    await expect(session.flush()).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'io', cause })
  })

  test('that nobody awaits brings nothing down', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => {
      unhandled.push(reason)
    }
    process.on('unhandledRejection', note)
    onTestFinished(() => {
      process.off('unhandledRejection', note)
    })
    const { session } = await setup({ interfere: () => Promise.reject(lost) })
    session.append(turnStart())
    void [
      session.flush(),
      session.durable(0),
      session.ready(),
      session.close(),
      session.events$.subscribe({ error() {} }),
    ]
    await settled()
    await settled()
    expect(session.failed.aborted).toBe(true)
    expect(unhandled).toEqual([])
  })
})

describe('losing the ownership', () => {
  test('ends the session, with the reason', async () => {
    const { session, store } = await setup()
    session.append(turnStart())
    await session.flush()
    await store.acquire('s', { steal: true })
    expect(session.failed.reason).toBeInstanceOf(Fenced)
    expect(() => session.append(turnEnd())).toThrow(Fenced)
    await session.durable(0)
  })

  test('while an append is in flight leaves its events in doubt, whatever is answered later', async () => {
    const gate = latch()
    const told: number[] = []
    const { session, store } = await setup({
      interfere: (append) => append().then(() => gate.opened),
      onDurable: (events) => told.push(events.length),
    })
    session.append(turnStart())
    await settled()
    await store.acquire('s', { steal: true })
    gate.open()
    await settled()
    expect([told, session.head, session.unflushed().length]).toEqual([[], 0, 1])
  })
})

describe('closing', () => {
  test('[persist-022] flushes, releases, and is the same twice; nothing is recorded any more', async () => {
    const { session, store } = await setup()
    session.record([turnStart()])
    const closing = session.close()
    expect(session.close()).toBe(closing)
    expect(() => session.append(turnEnd())).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED' }))
    await closing
    expect(session.failed.aborted).toBe(false)
    const next = await store.acquire('s')
    expect(next.head).toBe(1)
    await next.release()
  })

  test('who waits for an event that never comes is let go', async () => {
    const { session } = await setup()
    const waiting = session.durable(3)
    await session.close()
    await expect(waiting).rejects.toMatchObject({ code: 'AGENT_CLOSED' })
  })

  test('of a failed session rejects with the failure, and releases all the same', async () => {
    const failure = new StoreFailure('full', 'disk full')
    const { session, store } = await setup({ interfere: () => Promise.reject(failure) })
    session.record([call('a'), result('a')])
    await expect(session.close()).rejects.toBe(failure)
    await (await store.acquire('s')).release()
  })
})
