import { describe, expect, test } from 'vitest'
import { Fenced } from '../../src/log/errors.ts'
import type { Recordable, SessionEvent } from '../../src/log/events.ts'
import { openSession, type Session } from '../../src/log/session.ts'
import type { Ownership, SessionHeader } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { answer, call, entered, LIMITS, result, setup, stepEnd, stepStart, turnStart, user } from './session-setup.ts'

describe('opening a log that breaks a rule', () => {
  const start = { type: 'turn/start', seq: 0, time: 1, data: { turn: 1, limits: LIMITS } } as const
  const broken: { name: string; events: unknown[]; error: unknown }[] = [
    { name: 'a gap', events: [start, { ...start, seq: 2 }], error: { name: 'InvalidLog', seq: 1 } },
    { name: 'time going back', events: [start, { ...start, seq: 1, time: 0 }], error: { name: 'InvalidLog', seq: 1 } },
    { name: 'a bad shape', events: [{ ...start, data: { turn: 'one' } }], error: { name: 'InvalidLog', seq: 0 } },
    { name: 'an unknown type', events: [{ ...start, type: 'turn/paused' }], error: { name: 'LogTooNew' } },
    {
      name: 'a replacement of what is not there',
      events: [
        { type: 'user/message', seq: 0, time: 1, data: user('a'), surfaceOp: 'append' },
        {
          ...{ type: 'user/message', seq: 1, time: 1, data: user('b'), sourceEventSeqs: [0] },
          surfaceOp: { op: 'replace', start: 0, end: 9 },
        },
      ],
      error: { name: 'InvalidLog', seq: 1, rule: 'SURFACE' },
    },
    {
      name: 'events the head does not count',
      events: [start, { ...start, seq: 1 }, { ...start, seq: 2 }],
      error: { rule: 'HEAD', seq: 3, message: expect.stringContaining('says 2 events are here, and 3 are') },
    },
  ]

  test.each(broken)('$name is refused', async ({ events, error }) => {
    const store = memoryStore()
    const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
    async function* read() {
      yield* events as SessionEvent[]
    }
    const opening = openSession({ ...store, read }, { ...real, head: 2 }, { now: () => 1, limits: LIMITS })
    await expect(opening).rejects.toMatchObject(error as object)
  })

  test('a log that a thief wrote to while it was being opened is not broken: its opener is fenced', async () => {
    const store = memoryStore()
    const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
    const thief = await store.acquire('s', { steal: true })
    await thief.append([{ type: 'step/start', seq: 0, time: 1, data: { turn: 1, step: 1 } }], {
      expectedSeq: 0,
    })
    const asked: unknown[] = []
    const owner: Ownership = {
      ...real,
      lost: new AbortController().signal, // The word of it is still on its way.
      append(...given) {
        asked.push(given)
        return real.append(...given)
      },
    }
    await expect(openSession(store, owner, { now: () => 1, limits: LIMITS })).rejects.toThrow(Fenced)
    expect(asked).toEqual([[[], { expectedSeq: 0 }]])
  })

  test('[persist-015] a header of a later format is refused', async () => {
    const store = memoryStore()
    const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
    const header = { ...real.header, format: 2 as unknown as 1 }
    const opening = openSession(store, { ...real, header }, { now: () => 1, limits: LIMITS })
    await expect(opening).rejects.toMatchObject({ code: 'LOG_TOO_NEW', format: 2 })
  })
})

describe('opening a fork', () => {
  async function fork(events: number): Promise<Session> {
    const store = memoryStore()
    const header: SessionHeader = { format: 1, id: 's', createdAt: 1, parentSession: 'p', seedLength: 2 }
    const owner = await store.acquire('s', { create: header })
    const log = [0, 1, 2].map((seq): SessionEvent => ({ type: 'session/suspended', seq, time: 1, data: {} }))
    await owner.append(log.slice(0, events), { expectedSeq: 0 })
    await owner.release()
    return (await setup({ store })).session
  }

  test.each([1, 2])(
    'that was cut off after %i of its two inherited events is refused, with the way out',
    async (head) => {
      await expect(fork(head)).rejects.toMatchObject({
        rule: 'SEED',
        seq: head,
        message: expect.stringContaining('delete "s" and fork again'),
      })
    },
  )

  test('that holds all it inherited and its end goes on', async () => {
    expect((await fork(3)).nextSeq).toBe(3)
  })
})

describe('opening a log whose calls have no results', () => {
  const asked = [turnStart(), stepStart(), answer(['a', 'b'])]

  async function reopened(events: readonly Recordable[]): Promise<Session> {
    const { session, store } = await setup()
    session.record(events)
    await session.close()
    return (await setup({ store })).session
  }

  test.each([
    { name: 'of a step that ended', events: [...asked, result('a'), stepEnd()] },
    { name: 'of no step at all', events: [turnStart(), stepStart(), stepEnd(), answer(['a', 'b']), result('a')] },
  ])('$name is refused: no provider would take the history', async ({ events }) => {
    await expect(reopened(events)).rejects.toMatchObject({
      code: 'INVALID_LOG',
      rule: 'HISTORY-PAIRING',
      seq: events.length - 1,
      message: expect.stringContaining('the call b has no result; verify the log'),
    })
  })

  test('of the open step goes on: they are answered yet', async () => {
    const session = await reopened([...asked, call('a'), call('b'), result('b')])
    session.append(result('a'))
    expect(session.messages().map(({ id }) => id)).toEqual(['answer', 'result-a', 'result-b'])
  })

  test('of a step before the open one is refused', async () => {
    const events = [...asked, result('a'), stepEnd(), stepStart(2), entered('m')]
    await expect(reopened(events)).rejects.toMatchObject({ rule: 'HISTORY-PAIRING' })
    await expect(reopened([...events, answer([], 2)])).rejects.toMatchObject({ rule: 'HISTORY-PAIRING' })
    await expect(reopened([...events, answer(['c'], 2)])).rejects.toMatchObject({ rule: 'HISTORY-PAIRING' })
  })
})

test('opening a log with the result of no call is refused, in an open step, too', async () => {
  const { session, store } = await setup()
  session.record([turnStart(), stepStart(), answer(), result('a')])
  await session.close()
  await expect(setup({ store })).rejects.toMatchObject({ rule: 'HISTORY-PAIRING', seq: 3 })
})

describe('opening for an owner that is lost meanwhile', () => {
  test.each([
    { reason: new Fenced(1), told: { code: 'FENCED' } },
    { reason: new Error('gone'), told: { code: 'STORE_FAILURE', message: 'Could not keep the session: gone' } },
  ])('is refused with why: $reason.name', async ({ reason, told }) => {
    await expect(setup({ owned: { lost: AbortSignal.abort(reason) } })).rejects.toMatchObject(told)
  })
})
