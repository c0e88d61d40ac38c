import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { Fenced, StoreFailure } from '../../src/log/errors.ts'
import { call, collect, latch, result, settled, setup, turnEnd, turnStart } from './session-setup.ts'

describe('losing the ownership', () => {
  test('ends the session, with the reason', async () => {
    const { session, store } = await setup()
    session.append(turnStart())
    await session.flush()
    await store.acquire('s', { steal: true })
    expect(session.failed.reason).toBeInstanceOf(Fenced)
    expect(() => session.append(turnEnd())).toThrow(Fenced)
    await session.durable(0)
    await expect(session.flush()).rejects.toThrow(Fenced)
  })

  test('is told once, right after the signal, whoever waits', async () => {
    const told: unknown[] = []
    const { session, store } = await setup({
      interfere: (append) => append().then(() => settled()),
      onFailed: (error) => told.push([error, session.failed.reason]),
    })
    session.append(turnStart())
    const flushes = Promise.allSettled([session.flush(), session.flush()])
    await store.acquire('s', { steal: true })
    await flushes
    expect(told).toEqual([[expect.any(Fenced), expect.any(Fenced)]])
  })

  test('for a reason that is not ours is a StoreFailure around it', async () => {
    const owner = new AbortController()
    const { session } = await setup({ owned: { lost: owner.signal } })
    const { failed } = session
    owner.abort(new Error('gone'))
    expect(failed.reason).toMatchObject({ code: 'STORE_FAILURE', message: 'Could not keep the session: gone' })
  })

  test('ends a live reader of a session that never recorded anything', async () => {
    const { session, store } = await setup()
    const reading = collect(session.events({ live: true }))
    await settled()
    await store.acquire('s', { steal: true })
    await expect(reading).rejects.toThrow(Fenced)
  })

  test('is listened for once, from when it matters until the close', async () => {
    const { session, ownership } = await setup()
    const listeners = (): number => getEventListeners(ownership.lost, 'abort').length
    await collect(session.events())
    expect(listeners()).toBe(0)
    for (const event of [turnStart(), turnEnd()]) session.append(event)
    expect([session.failed.aborted, listeners()]).toEqual([false, 1])
    await session.close()
    expect([session.failed.aborted, listeners()]).toEqual([false, 0])
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
    expect(() => session.append(turnEnd())).toThrow(
      expect.objectContaining({ code: 'AGENT_CLOSED', message: 'Session "s" is closed: open it again' }),
    )
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

  test('by an observer, in the middle of a close, is that close', async () => {
    let releases = 0
    const { session } = await setup({
      onSealed: () => void session.close(),
      owned: {
        async release() {
          releases += 1
        },
      },
    })
    session.record([turnStart()])
    await session.close()
    expect([session.head, releases]).toEqual([1, 1])
  })

  test('ends all watching: what becomes of the ownership later is no failure', async () => {
    const owner = new AbortController()
    const { session } = await setup({ owned: { lost: owner.signal } })
    await session.close()
    owner.abort(new Fenced(1))
    session.checkOwner()
    expect(session.failed.aborted).toBe(false)
  })

  test('rejects when the store cannot release the session', async () => {
    const cause = new Error('gone')
    const { session } = await setup({ owned: { release: () => Promise.reject(cause) } })
    await expect(session.close()).rejects.toMatchObject({
      code: 'STORE_FAILURE',
      message: 'Could not release the session: gone',
      cause,
    })
  })

  test('of a failed session rejects with the failure, and releases all the same', async () => {
    const failure = new StoreFailure('full', 'disk full')
    const { session, store } = await setup({ interfere: () => Promise.reject(failure) })
    session.record([call('a'), result('a')])
    await expect(session.close()).rejects.toBe(failure)
    await (await store.acquire('s')).release()
  })
})
