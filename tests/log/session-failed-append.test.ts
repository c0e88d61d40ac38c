import { describe, expect, onTestFinished, test } from 'vitest'
import { Fenced, SeqConflict, StoreFailure } from '../../src/log/errors.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { collect, entered, fail, latch, settled, setup, turnEnd, turnStart, types } from './session-setup.ts'

describe('a failed append', () => {
  const lost = new StoreFailure('io', 'connection reset')

  test('whose events are there after all is a success', async () => {
    const { session, appends, store } = await setup({
      async interfere(append) {
        await append()
        throw lost
      },
    })
    session.append(turnStart())
    session.append(turnEnd())
    await session.flush()
    expect(session.failed.aborted).toBe(false)
    expect(appends).toHaveLength(2)
    expect(types(await collect(store.read('s')))).toEqual(['turn/start', 'turn/end'])
  })

  test('is a success also where another wrote on after its events', async () => {
    const { session, appends } = await setup({
      async interfere(append) {
        await append([...(appends[0]?.events ?? []), { type: 'session/suspended', seq: 1, time: 2_000, data: {} }])
        throw lost
      },
    })
    session.append(turnStart())
    await session.flush()
    expect(session.head).toBe(1)
  })

  test('of a store that throws where it should reject ends the session like any other', async () => {
    const { session } = await setup({
      interfere: () => {
        throw lost
      },
    })
    session.append(turnStart())
    await expect(session.flush()).rejects.toBe(lost)
    expect(session.failed.reason).toBe(lost)
  })

  test('that was fenced never is one, whatever stands in the log now', async () => {
    const fenced = new Fenced(1)
    const { session } = await setup({
      async interfere(append) {
        await append()
        throw fenced
      },
    })
    session.append(turnStart())
    await expect(session.flush()).rejects.toBe(fenced)
    expect([session.head, session.failed.reason]).toEqual([0, fenced])
  })

  test('that cannot be read back ends the session with its own error', async () => {
    const store = memoryStore()
    let reads = 0
    const { session } = await setup({
      store: { ...store, read: (id) => (++reads > 1 ? fail('unreadable') : store.read(id)) },
      interfere: () => Promise.reject(lost),
    })
    session.append(turnStart())
    await expect(session.flush()).rejects.toBe(lost)
    expect([reads, session.head]).toEqual([2, 0])
  })

  test("that only took commands, at a head that is not the log's, is asked no second time", async () => {
    const conflict = new SeqConflict(0, 1)
    const { session, appends } = await setup({ interfere: () => Promise.reject(conflict) })
    session.take('c1', { kind: 'taken' })
    await expect(session.flush()).rejects.toBe(conflict)
    expect(appends).toHaveLength(1)
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
    await expect(session.flush()).rejects.toMatchObject({
      code: 'STORE_FAILURE',
      reason: 'io',
      cause,
      message: 'Could not append to the log: disk on fire',
    })
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
