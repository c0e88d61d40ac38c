/** The mailbox: commands wait for an owner, are taken once, in the append's own transaction, and senders learn how. */
import { expect, test } from 'vitest'
import { SeqConflict, SessionNotFound } from '../../../src/log/errors.ts'
import type { CommandOutcome, Ownership } from '../../../src/log/store.ts'
import {
  chunk,
  collect,
  command,
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

const TAKEN: CommandOutcome = { kind: 'taken', seq: 0 }
const REFUSED: CommandOutcome = { kind: 'refused', code: 'TURN_OVER', message: 'Turn 3 is over' }

/** Takes commands without an event. */
const settle = (owner: Ownership, head: number, outcome: CommandOutcome, ...ids: string[]): Promise<void> =>
  owner.append([], { expectedSeq: head, takes: ids.map((id) => ({ id, outcome })) })

const nextIds = async (owner: Ownership, count: number): Promise<string[]> =>
  (await take(owner.commands(whileTesting()), count)).map(({ id }) => id)

export function mailbox(open: OpenStore): void {
  test('commands posted before anybody owned the session come first, oldest first, whole', async () => {
    const store = await openedStore(open)
    await (await own(store)).release()
    const approve = { id: 'b', kind: 'approve', callId: 'c1', run: 0, digest: 'sha256:00', by: 'me' } as const
    await store.post('s', command('z'))
    await store.post('s', approve)
    await store.post('s', { id: 'a', kind: 'cancel', turn: 2, cause: { kind: 'user' }, keepInbox: true })
    const owner = await own(store)
    const commands = take(owner.commands(whileTesting()), 4)
    await store.post('s', { id: 'later', kind: 'wake' })
    expect(await commands).toEqual([
      command('z'),
      approve,
      { id: 'a', kind: 'cancel', turn: 2, cause: { kind: 'user' }, keepInbox: true },
      { id: 'later', kind: 'wake' },
    ])
  })

  test('a waiting owner gets each command once, as it is posted', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const ids = range(0, 30).map((i) => `c${i}`)
    const got = nextIds(owner, ids.length)
    for (const id of ids) {
      await store.post('s', command(id))
      await store.post('s', command(id))
    }
    expect(await got).toEqual(ids)
  })

  test('many senders at once: every command is yielded once', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const got = nextIds(owner, 50)
    await Promise.all(range(0, 100).map((i) => store.post('s', command(`c${i % 50}`))))
    expect((await got).sort()).toEqual(
      range(0, 50)
        .map((i) => `c${i}`)
        .sort(),
    )
  })

  test('the same id twice is the same command: the first stays', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await store.post('s', command('c'))
    await store.post('s', { id: 'c', kind: 'wake' })
    await store.post('s', command('end'))
    expect(await take(owner.commands(whileTesting()), 2)).toEqual([command('c'), command('end')])
  })

  test('what a sender does to its command after posting changes nothing', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const mine = { id: 'c', kind: 'cancel', turn: 1, cause: { kind: 'user' } } as const
    const posted = { ...mine, turn: 1 }
    await store.post('s', posted)
    posted.turn = 99
    expect(await take(owner.commands(whileTesting()), 1)).toEqual([mine])
  })

  test('a taken command is never yielded again, also when it is posted again, and its outcome stays', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    const first = await own(store)
    await store.post('s', command('c'))
    await first.append([chunk(0)], { expectedSeq: 0, takes: [{ id: 'c', outcome: TAKEN }] })
    await settle(first, 1, REFUSED, 'c')
    await store.post('s', command('c'))
    await store.post('s', command('end'))
    expect(await nextIds(first, 1)).toEqual(['end'])
    await first.release()
    expect(await nextIds(await own(store), 1)).toEqual(['end'])
    expect(await store.outcome('s', 'c', signal)).toEqual(TAKEN)
  })

  test('a command that is taken while its owner is busy with another is not yielded', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    for (const id of ['a', 'b', 'c']) await store.post('s', command(id))
    const commands = owner.commands(whileTesting())[Symbol.asyncIterator]()
    expect((await commands.next()).value).toMatchObject({ id: 'a' })
    await owner.append([], { expectedSeq: 0, takes: [{ id: 'b', outcome: { kind: 'taken' } }] })
    expect((await commands.next()).value).toMatchObject({ id: 'c' })
  })

  test('a taking of what was never posted is passed over', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await settle(owner, 0, TAKEN, 'never')
    await store.post('s', command('c'))
    await settle(owner, 0, REFUSED, 'never', 'c')
    expect(await store.outcome('s', 'c', whileTesting())).toEqual(REFUSED)
  })

  test('what a store says was posted, when it was acquired, is what nobody has taken, oldest first', async () => {
    const store = await openedStore(open)
    const first = await own(store)
    expect(first.posted ?? []).toEqual([])
    for (const id of ['c', 'b', 'a']) await store.post('s', command(id))
    await settle(first, 0, TAKEN, 'b')
    await first.release()
    const left = [command('c'), command('a')]
    expect((await own(store)).posted ?? left).toEqual(left)
  })

  test('a command yielded but not taken is yielded again to the next owner', async () => {
    const store = await openedStore(open)
    await store.post((await own(store)).header.id, command('a'))
    const first = await store.acquire('s', { steal: true })
    await store.post('s', command('b'))
    await store.post('s', command('c'))
    expect(await nextIds(first, 3)).toEqual(['a', 'b', 'c'])
    await settle(first, 0, TAKEN, 'b')
    await first.release()
    const second = await own(store)
    expect(await nextIds(second, 2)).toEqual(['a', 'c'])
    expect(await nextIds(await store.acquire('s', { steal: true }), 2)).toEqual(['a', 'c'])
  })

  test('commands end when their signal aborts', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await store.post('s', command('c'))
    const done = new AbortController()
    const seen: string[] = []
    for await (const { id } of owner.commands(done.signal)) {
      seen.push(id)
      setImmediate(() => done.abort())
    }
    expect(seen).toEqual(['c'])
    expect(await collect(owner.commands(done.signal))).toEqual([])
  })

  test('commands that were left give nothing more', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await store.post('s', command('c'))
    const commands = owner.commands(whileTesting())[Symbol.asyncIterator]()
    expect(await commands.return?.()).toEqual({ done: true, value: undefined })
    expect(await commands.next()).toEqual({ done: true, value: undefined })
    expect(await nextIds(owner, 1)).toEqual(['c'])
  })

  test("an owner may listen until it is lost, by its ownership's own signal", async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const commands = owner.commands(owner.lost)[Symbol.asyncIterator]()
    const first = commands.next()
    await turn()
    await store.post('s', command('c'))
    expect((await first).value).toEqual(command('c'))
    const next = commands.next()
    await turn()
    await store.acquire('s', { steal: true })
    expect((await next).done).toBe(true)
  })

  test.each(['release', 'steal'])('commands end when the ownership ends by %s', async (how) => {
    const store = await openedStore(open)
    const owner = await own(store)
    const waiting = collect(owner.commands(whileTesting()))
    await turn()
    if (how === 'release') await owner.release()
    else await store.acquire('s', { steal: true })
    await store.post('s', command('c'))
    expect(await waiting).toEqual([])
    expect(await collect(owner.commands(whileTesting()))).toEqual([])
  })

  test('senders that wait and senders that ask late get the same outcome', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    const owner = await own(store)
    await store.post('s', command('b'))
    const early = store.outcome('s', 'a', signal)
    await turn()
    await store.post('s', command('a'))
    const waiting = [store.outcome('s', 'a', signal), store.outcome('s', 'b', signal)]
    await turn()
    await owner.append([chunk(0)], {
      expectedSeq: 0,
      takes: [
        { id: 'a', outcome: TAKEN },
        { id: 'b', outcome: REFUSED },
      ],
    })
    expect(await Promise.all([early, ...waiting])).toEqual([TAKEN, TAKEN, REFUSED])
    await owner.release()
    expect(await store.outcome('s', 'a', signal)).toEqual(TAKEN)
    expect(await store.outcome('s', 'b', signal)).toEqual(REFUSED)
  })

  test("a sender that stops waiting gets its signal's reason", async () => {
    const store = await openedStore(open)
    await own(store)
    await store.post('s', command('c'))
    const reason = new Error('enough')
    const leaving = new AbortController()
    const asked = expect(store.outcome('s', 'c', leaving.signal)).rejects.toBe(reason)
    await turn()
    leaving.abort(reason)
    await asked
    await expect(store.outcome('s', 'c', AbortSignal.abort(reason))).rejects.toBe(reason)
  })

  test('a sender that waits at a session that is deleted is told so', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await store.post('s', command('c'))
    const told = refusal(store.outcome('s', 'c', whileTesting()), SessionNotFound)
    await turn()
    await owner.release()
    await store.delete('s')
    await told
  })

  test('an append that fails takes nothing', async () => {
    const store = await openedStore(open)
    const signal = whileTesting()
    const owner = await own(store)
    await fill(owner, 0, 2)
    await store.post('s', command('c'))
    const outcome = store.outcome('s', 'c', signal)
    const wrong = { expectedSeq: 5, takes: [{ id: 'c', outcome: REFUSED }], summary: { turns: 8 } }
    await refusal(owner.append([chunk(5)], wrong), SeqConflict)
    await refusal(owner.append([], wrong), SeqConflict)
    expect(await nextIds(owner, 1)).toEqual(['c'])
    expect(await collect(store.list())).toMatchObject([{ turns: 0, head: 2 }])
    await settle(owner, 2, TAKEN, 'c')
    expect(await outcome).toEqual(TAKEN)
  })

  test('an append without events takes commands and leaves the log alone', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 1)
    await store.post('s', command('a'))
    await store.post('s', command('b'))
    await settle(owner, 1, REFUSED, 'a', 'b')
    expect(await store.outcome('s', 'b', whileTesting())).toEqual(REFUSED)
    expect(await seqsOf(store.read('s'))).toEqual([0])
    await fill(owner, 1, 1)
  })

  test('each session has its own mailbox', async () => {
    const store = await openedStore(open)
    const [a, b] = [await own(store, 'a'), await own(store, 'b')]
    await store.post('a', command('same'))
    await store.post('b', { id: 'same', kind: 'wake' })
    await settle(a, 0, TAKEN, 'same')
    expect(await take(b.commands(whileTesting()), 1)).toEqual([{ id: 'same', kind: 'wake' }])
    await settle(b, 0, REFUSED, 'same')
    expect(await store.outcome('a', 'same', whileTesting())).toEqual(TAKEN)
    expect(await logOf(store, 'a')).toEqual([])
  })
}
