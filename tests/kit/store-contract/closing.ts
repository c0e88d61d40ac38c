/** Closing a store: nothing hangs, every owner is told, and later calls are refused with a reason. */
import { expect, test } from 'vitest'
import { PawlError } from '../../../src/log/errors.ts'
import {
  aborted,
  anyRefusal,
  chunk,
  collect,
  command,
  fill,
  header,
  logOf,
  type OpenStore,
  openedStore,
  own,
  turn,
  whileTesting,
} from './fixtures.ts'

export function closing(open: OpenStore): void {
  test('closing a store takes its sessions from their owners', async () => {
    const store = await openedStore(open)
    const owners = [await own(store, 'a'), await own(store, 'b')]
    await store[Symbol.asyncDispose]()
    for (const owner of owners) {
      expect(await aborted(owner.lost)).toBeInstanceOf(PawlError)
      await anyRefusal(fill(owner, 0, 1))
      expect(await collect(owner.commands(whileTesting()))).toEqual([])
      await owner.release()
    }
  })

  test('every call after closing is refused with an error of ours', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    await fill(await own(store), 0, 2)
    await store[Symbol.asyncDispose]()
    const calls = [
      store.acquire('s', { create: header('s'), steal: true }),
      logOf(store),
      collect(store.subscribe('s', { from: 0, signal })),
      store.post('s', command('c')),
      store.outcome('s', 'c', signal),
      collect(store.list()),
      store.header('s'),
      store.delete('s'),
    ]
    // A session that was not found would be a lie: the store can no longer look.
    for (const refused of await Promise.all(calls.map(anyRefusal))) expect(refused.code).not.toBe('SESSION_NOT_FOUND')
  })

  test('whoever waits when a store closes is let go', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    const owner = await own(store)
    await store.post('s', command('c'))
    const waiting = Promise.allSettled([
      store.outcome('s', 'c', signal),
      collect(store.subscribe('s', { from: 0, signal })),
      collect(owner.commands(signal)),
    ])
    await turn()
    await store[Symbol.asyncDispose]()
    const [outcome, subscriber, commands] = await waiting
    expect(outcome.status === 'rejected' && outcome.reason).toBeInstanceOf(PawlError)
    expect(subscriber.status === 'rejected' && subscriber.reason).toBeInstanceOf(PawlError)
    expect(commands.status).toBe('fulfilled')
  })

  test('closing waits for appends in flight: each has an answer', async () => {
    const store = await openedStore(open)
    const owners = await Promise.all(['a', 'b', 'c'].map((id) => own(store, id)))
    const appends = Promise.allSettled(owners.map((owner) => owner.append([chunk(0)], { expectedSeq: 0 })))
    await store[Symbol.asyncDispose]()
    for (const result of await appends) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(PawlError)
    }
  })

  test('closing twice is closing once', async () => {
    const store = await openedStore(open)
    await own(store)
    await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()])
    await store[Symbol.asyncDispose]()
  })
}
