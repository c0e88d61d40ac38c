import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Recordable } from '../../src/log/events.ts'
import type { SummaryUpdate } from '../../src/log/store.ts'
import {
  entered,
  fail,
  holding,
  latch,
  settled,
  setup,
  turnEnd,
  turnStart,
  types,
  useFakeTimers,
  user,
} from './session-setup.ts'

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

  test('an append says no more than there is to say', async () => {
    const { session, appends } = await setup()
    session.append(turnStart())
    expect(appends[0]?.options).toStrictEqual({ expectedSeq: 0 })
  })

  test('a command that was taken at an event of another batch keeps its seq', async () => {
    const { session, appends } = await setup()
    session.record([turnStart()])
    session.take('c1', { kind: 'taken', seq: 7 })
    session.seal()
    expect(appends[0]?.options.takes).toEqual([{ id: 'c1', outcome: { kind: 'taken', seq: 7 } }])
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
    const told: unknown[] = []
    const { session, store } = await setup({ onDurable: (events) => told.push(events) })
    await store.post('s', { id: 'c1', kind: 'wake' })
    session.take('c1', { kind: 'taken' })
    await session.flush()
    expect(await store.outcome('s', 'c1', new AbortController().signal)).toEqual({ kind: 'taken' })
    expect(told).toEqual([])
  })

  test('what observers throw is uncaught, and stops nothing: all is stored, with the last summary there was', async () => {
    const uncaught: unknown[] = []
    vi.stubGlobal('queueMicrotask', (rethrow: () => void) => {
      expect(() => rethrow()).toThrow(expect.toSatisfy((error) => uncaught.push(error) > 0))
    })
    onTestFinished(() => {
      vi.unstubAllGlobals()
    })
    const gate = latch()
    let turns = 0
    const { session, appends } = await setup({
      interfere: (append) => gate.opened.then(() => append()),
      onSealed: () => fail('sealed'),
      summary: () => (++turns === 3 ? fail('summary') : { turns }),
    })
    for (const event of [turnStart(), entered('a'), turnEnd()]) session.append(event)
    gate.open()
    await session.flush()
    expect(appends.map(({ events, options }) => [types(events), options.summary])).toEqual([
      [['turn/start'], { turns: 1 }],
      [['user/message', 'turn/end'], { turns: 2 }],
    ])
    expect(uncaught).toEqual(['sealed', 'sealed', 'sealed', 'summary'].map((what) => new Error(what)))
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

  test('what is not acknowledged is told, oldest first: in flight, queued, being sealed and in hand', async () => {
    const told: string[][] = []
    const { session } = await setup({
      interfere: () => new Promise(() => {}),
      storeTimeoutMs: 10,
      onSealed(events) {
        if (events[0]?.type !== 'turn/end') return
        session.record([turnStart(2)])
        told.push(types(session.unflushed()))
      },
    })
    for (const event of [turnStart(), entered('a'), turnEnd()]) session.append(event)
    session.record([entered('b')])
    told.push(types(session.unflushed()))
    const all = ['turn/start', 'user/message', 'turn/end', 'turn/start']
    expect(told).toEqual([all, [...all, 'user/message']])
  })

  test('flush in the middle of a batch waits for all of it', async () => {
    const gate = latch()
    let held = true
    const { session } = await setup({ held: () => held, interfere: (append) => gate.opened.then(() => append()) })
    let done = false
    const flushed = session.flush().then(() => {
      done = true
    })
    session.record([turnStart()])
    held = false
    session.seal()
    await settled()
    expect(done).toBe(false)
    gate.open()
    await flushed
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
    expect(session.queuedBytes).toBeGreaterThan(0)
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

  test.each([
    { what: 'numbers', data: Array(2_000).fill(1_234_567) },
    { what: 'texts', data: Array(500).fill('x'.repeat(20)) },
    { what: 'long keys', data: { ['k'.repeat(5_000)]: null, ['l'.repeat(5_000)]: true } },
    { what: 'nested objects', data: { list: Array(500).fill({ key: { deeper: 'x'.repeat(20) } }) } },
  ])('they are about those of the JSON text, for $what', async ({ data }) => {
    const { session } = await setup({ interfere: () => new Promise(() => {}), storeTimeoutMs: 10 })
    const bytes = JSON.stringify(session.note('a/b', data)).length
    expect(session.queuedBytes / bytes).toBeGreaterThan(0.8)
    expect(session.queuedBytes / bytes).toBeLessThan(1.2)
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
    await expect(flushed).rejects.toMatchObject({
      code: 'STORE_FAILURE',
      reason: 'timeout',
      message: expect.stringMatching(/did not append to session "s" within 500 ms: open the session again/),
    })
    expect(session.failed.aborted).toBe(true)
    expect(types(session.unflushed())).toEqual(['turn/start'])
  })
})

test('only while somebody flushes does waiting for the store hold the process', async () => {
  const gate = latch()
  const { session } = await setup({ interfere: (append) => gate.opened.then(() => append()) })
  const before = holding()
  session.append(turnStart())
  expect(holding()).toBe(before)
  const flushed = session.flush()
  expect(holding()).toBe(before + 1)
  gate.open()
  await flushed
  expect(holding()).toBe(before)
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
