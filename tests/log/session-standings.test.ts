import { describe, expect, test } from 'vitest'
import type { InboxItem, Queue, Recordable } from '../../src/log/events.ts'
import { entered, setup, stepEnd, stepStart, turnStart, user } from './session-setup.ts'

interface Splice {
  readonly queue?: Queue
  readonly start?: number
  readonly deleteCount?: number
  readonly outcome?: 'claimed' | 'canceled'
}

const splice = (ids: readonly string[], { outcome, ...rest }: Splice = {}): Recordable => ({
  type: 'agent/inbox/spliced',
  data: {
    mutation: 'splice',
    queue: 'next-turn',
    start: 0,
    deleteCount: 0,
    inserted: ids.map((id): InboxItem => ({ kind: 'message', message: user(id) })),
    ...rest,
    ...(outcome === undefined ? {} : { outcome }),
  },
})
const claim = (deleteCount = 1, queue: Queue = 'next-turn'): Recordable =>
  splice([], { queue, deleteCount, outcome: 'claimed' })

async function standing(id: string, events: readonly Recordable[]) {
  const { session } = await setup()
  session.record(events)
  return session.standingOf(id)?.standing
}

describe('a message of the inbox', () => {
  test('is pending from its splice on, and known by its id', async () => {
    const { session } = await setup()
    session.record([splice(['a'])])
    expect(session.messageOf('a')).toEqual(user('a'))
    expect(session.hasMessageId('a')).toBe(true)
    expect(session.standingOf('a')).toMatchObject({ seq: 0, standing: { kind: 'pending', queue: 'next-turn', seq: 0 } })
    expect(session.standingOf('b')).toBeUndefined()
  })

  test('is claimed by its turn', async () => {
    const events = [splice(['a', 'b']), turnStart(), claim()]
    expect(await standing('a', events)).toEqual({ kind: 'claimed', turn: 1, seq: 2 })
    expect(await standing('b', events)).toEqual({ kind: 'pending', queue: 'next-turn', seq: 0 })
  })

  test('enters the step that took it in', async () => {
    const found = await standing('a', [splice(['a']), turnStart(), claim(), stepStart(), entered('a')])
    expect(found).toEqual({ kind: 'entered', turn: 1, step: 1, seq: 4 })
  })

  test('is dropped when the step leaves it out, and stays so', async () => {
    const events = [splice(['a', 'b']), turnStart(), claim(2), stepStart(), entered('b')]
    expect(await standing('a', events)).toStrictEqual({ kind: 'dropped', turn: 1 })
    expect(await standing('a', [...events, stepEnd(), stepStart(2), entered('c')])).toEqual({
      kind: 'dropped',
      turn: 1,
    })
    expect(await standing('b', [...events, stepEnd(), stepStart(2)])).toMatchObject({ kind: 'entered', step: 1 })
  })

  test('is dropped with the reason when its turn is blocked, unless a step had left it out before', async () => {
    const end: Recordable = { type: 'turn/end', data: { turn: 1, reason: { kind: 'blocked', reason: 'no' } } }
    const events = [splice(['a', 'b']), turnStart(), claim(), stepStart(), stepEnd(), claim(), end]
    expect(await standing('a', events)).toEqual({ kind: 'dropped', turn: 1 })
    expect(await standing('b', events)).toEqual({ kind: 'dropped', turn: 1, reason: 'no' })
  })

  test('is dropped without a reason when its turn ended in another way than blocked', async () => {
    const end: Recordable = {
      type: 'turn/end',
      data: { turn: 1, reason: { kind: 'stopped-by-policy', policy: 'p', reason: 'no' } },
    }
    expect(await standing('a', [splice(['a']), turnStart(), claim(), end])).toStrictEqual({ kind: 'dropped', turn: 1 })
  })

  test('that was put back at the head of its queue is pending again', async () => {
    const end: Recordable = { type: 'turn/end', data: { turn: 1, reason: { kind: 'interrupted' } } }
    const found = await standing('a', [splice(['a']), turnStart(), claim(), splice(['a']), end])
    expect(found).toEqual({ kind: 'pending', queue: 'next-turn', seq: 3 })
  })

  test('is canceled when it is removed, and not when it is replaced in its place', async () => {
    const removed = await standing('a', [splice(['a']), splice([], { deleteCount: 1, outcome: 'canceled' })])
    expect(removed).toEqual({ kind: 'canceled', seq: 1 })
    const replaced = await standing('a', [splice(['a']), splice(['a'], { deleteCount: 1 })])
    expect(replaced).toEqual({ kind: 'pending', queue: 'next-turn', seq: 1 })
    const remove = splice([], { deleteCount: 1, outcome: 'canceled' })
    const duringTurn = [splice(['a', 'b']), turnStart(), claim(), remove, stepStart(), stepEnd()]
    expect(await standing('b', duringTurn)).toEqual({ kind: 'canceled', seq: 3 })
  })

  test('stands as it did whatever becomes of the tool results beside it', async () => {
    const item: InboxItem = { kind: 'tool-result', turn: 1, callId: 'c1' }
    const owe: Recordable = {
      type: 'agent/inbox/spliced',
      data: { mutation: 'splice', queue: 'next-step', start: 0, deleteCount: 0, inserted: [item] },
    }
    const events = [turnStart(), splice(['a'], { queue: 'next-step' }), owe, claim(1, 'next-step')]
    expect(await standing('a', events)).toMatchObject({ kind: 'pending' })
  })

  test('that waits in a fork of its session is canceled there; one that was claimed is not', async () => {
    const events = [splice(['a', 'b']), turnStart(), claim(), { type: 'session/end-seed', data: {} }] as const
    expect(await standing('a', events)).toMatchObject({ kind: 'claimed' })
    expect(await standing('b', events)).toEqual({ kind: 'canceled', seq: 3 })
  })
})

test('a message that never was in the inbox has used its id and stands where it entered', async () => {
  const { session } = await setup()
  session.record([turnStart(), stepStart(), entered('context')])
  expect(session.hasMessageId('context')).toBe(true)
  expect(session.messageOf('context')).toBeUndefined()
  expect(session.standingOf('context')?.standing).toEqual({ kind: 'entered', turn: 1, step: 1, seq: 2 })
  session.record([stepEnd(), stepStart(2), entered('context')])
  expect(session.standingOf('context')?.standing).toMatchObject({ step: 1, seq: 2 })
})

test('where messages stand survives closing and opening again', async () => {
  const { session, store } = await setup()
  session.record([splice(['a', 'b', 'c']), turnStart(), claim(2), stepStart(), entered('b')])
  await session.close()
  const { session: again } = await setup({ store })
  for (const id of ['a', 'b', 'c']) expect(again.standingOf(id)).toEqual(session.standingOf(id))
})
