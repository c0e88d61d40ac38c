import { describe, expect, test } from 'vitest'
import { InvalidEvent, NotJson } from '../../src/log/errors.ts'
import type { Recordable, SessionEvent } from '../../src/log/events.ts'
import {
  answer,
  call,
  chunk,
  collect,
  entered,
  LIMITS,
  result,
  setup,
  stepEnd,
  stepStart,
  turnEnd,
  turnStart,
  types,
  user,
} from './session-setup.ts'

describe('recording', () => {
  test('gives each event the next seq and a time that never goes back', async () => {
    const times = [5, 9.7, 3]
    const { session } = await setup({ now: () => times.shift() ?? 0 })
    const events = [turnStart(), stepStart(), entered('a')].flatMap((event) => session.record([event]))
    expect(events.map(({ seq, time }) => [seq, time])).toEqual([
      [0, 5],
      [1, 9],
      [2, 9],
    ])
    expect(session.nextSeq).toBe(3)
    expect(session.head).toBe(0)
  })

  test('freezes a copy, which later changes of the given object do not reach', async () => {
    const { session } = await setup()
    const content = [{ type: 'text', text: 'before' } as const]
    const [event] = session.record([{ type: 'user/message', data: { ...user('a'), content } }])
    content.push({ type: 'text', text: 'before' })
    expect(event?.data).toMatchObject({ content: [{ text: 'before' }] })
    expect(Object.isFrozen(event)).toBe(true)
    expect(session.messages()).toHaveLength(1)
    expect(session.messages()[0]?.content).toHaveLength(1)
  })

  test('one bad event and none is recorded; the next one takes the seq it would have had', async () => {
    const { session } = await setup()
    const bad = { type: 'step/start', data: { turn: 1, step: Number.NaN } } as const
    expect(() => session.record([turnStart(), entered('a'), bad])).toThrow(NotJson)
    expect(session.unflushed()).toEqual([])
    expect(session.messages()).toEqual([])
    expect(session.hasMessageId('a')).toBe(false)
    expect(session.append(turnStart()).seq).toBe(0)
  })

  test('stamps the limits on turn/start and a place on what is said', async () => {
    const { session } = await setup()
    const [start, message] = session.record([turnStart(), entered('a')])
    expect(start?.data).toEqual({ turn: 1, limits: LIMITS })
    expect(message?.surfaceOp).toBe('append')
  })

  test('a result comes from its call in the open step, recorded before or along with it', async () => {
    const { session } = await setup()
    session.record([turnStart(), stepStart(), answer(['a', 'b']), call('a')])
    const [first] = session.record([result('a')])
    const [second, third] = session.record([call('b'), result('b')])
    expect(first?.sourceEventSeqs).toEqual([3])
    expect(third?.sourceEventSeqs).toEqual([second?.seq])
  })

  test('a result that is recorded along with several calls comes from its own', async () => {
    const { session } = await setup()
    session.record([turnStart(), stepStart(), answer(['a', 'b'])])
    const dispatch: Recordable = {
      type: 'tool/dispatch',
      data: { turn: 1, step: 1, callId: 'a', run: 1, onCrash: 'unknown' },
    }
    const recorded = session.record([call('a'), call('b'), dispatch, result('a')])
    expect(recorded.at(-1)?.sourceEventSeqs).toEqual([3])
  })

  test('a result that names its sources keeps them', async () => {
    const { session } = await setup()
    session.record([turnStart(), stepStart(), answer(['a']), call('a')])
    const [event] = session.record([{ ...result('a'), sourceEventSeqs: [2] } as Recordable])
    expect(event?.sourceEventSeqs).toEqual([2])
  })

  test('what an event is masked as is recorded in its place, if it still is one', async () => {
    const { session } = await setup({
      masked: (type, data) => (type === 'user/message' ? { ...user('a', '***'), id: Object(data).id } : data),
    })
    const [event] = session.record([{ type: 'user/message', data: user('a', 'secret') }])
    expect(event).toMatchObject({ data: user('a', '***'), surfaceOp: 'append' })
    expect(session.messages()).toEqual([user('a', '***')])
    const { session: spoilt } = await setup({ masked: () => '***' })
    expect(() => spoilt.append(turnStart())).toThrow(InvalidEvent)
    expect(spoilt.nextSeq).toBe(0)
  })

  test('a result whose call was never scheduled in this step names no source', async () => {
    const { session } = await setup()
    session.record([turnStart(), stepStart(), answer(['a']), call('a'), stepEnd()])
    for (const events of [[result('a')], [stepStart(2), result('a', 2)]]) {
      expect(session.record(events).at(-1)).not.toHaveProperty('sourceEventSeqs')
    }
  })

  test('tells observers of a batch as a whole, once it is sealed', async () => {
    const seen: string[][] = []
    const { session } = await setup({ onSealed: (events) => seen.push(types(events)) })
    session.record([turnStart()])
    session.record([stepStart()])
    expect(seen).toEqual([])
    session.seal()
    session.seal()
    expect(seen).toEqual([['turn/start', 'step/start']])
  })

  test('what an observer records is the next batch, sealed right after the current one', async () => {
    const seen: string[][] = []
    const { session, appends } = await setup({
      onSealed(events) {
        seen.push(types(events))
        if (seen.length === 1) session.append(turnEnd())
      },
    })
    session.append(turnStart())
    await session.flush()
    expect(seen).toEqual([['turn/start'], ['turn/end']])
    expect(appends.flatMap((append) => types(append.events))).toEqual(['turn/start', 'turn/end'])
  })

  test('while a batch is being made neither a note nor a flush closes it', async () => {
    let held = true
    const { session, appends } = await setup({ held: () => held })
    session.record([turnStart()])
    session.note('todo/write', {})
    const flushed = session.flush()
    session.record([turnEnd()])
    expect(appends).toEqual([])
    held = false
    session.seal()
    await flushed
    expect(appends.map(({ events }) => types(events))).toEqual([['turn/start', 'todo/write', 'turn/end']])
  })

  test('flush from an observer waits for the batch that is being sealed', async () => {
    let flushed: Promise<void> | undefined
    const { session } = await setup({
      onSealed() {
        flushed ??= session.flush()
      },
    })
    session.append(chunk())
    session.append(chunk())
    await flushed
    expect(session.head).toBeGreaterThanOrEqual(1)
  })
})

describe('notes and replacements', () => {
  test('a note is a plug-in event, ignorable, and never one of our types', async () => {
    const { session } = await setup()
    expect(session.note('todo/write', { items: [1] })).toMatchObject({ data: { items: [1] }, ignorable: true })
    expect(() => session.note('turn/start', { turn: 1, limits: LIMITS })).toThrow(
      new InvalidEvent('turn/start: only Pawl records it; name a plug-in\'s event "owner/name"'),
    )
    expect(() => session.note('unowned', {})).toThrow(InvalidEvent)
    expect(() => session.note('todo/write', undefined)).toThrow(NotJson)
    expect(session.nextSeq).toBe(1)
  })

  test('a replacement puts one message in place of a range and names what it shadows', async () => {
    const { session } = await setup()
    session.record([entered('a'), turnStart(), entered('b'), entered('c')])
    const event = session.replace({ start: 0, end: 2, message: user('summary') })
    expect(event).toMatchObject({ surfaceOp: { op: 'replace', start: 0, end: 2 }, sourceEventSeqs: [0, 2] })
    expect(session.messages().map(({ id }) => id)).toEqual(['summary', 'c'])
  })

  test('one message may be replaced alone', async () => {
    const { session } = await setup()
    session.record([entered('a'), entered('b')])
    session.replace({ start: 1, end: 1, message: user('c') })
    expect(session.messages().map(({ id }) => id)).toEqual(['a', 'c'])
  })

  test('a range that is not on the surface, or an open step, is refused and leaves everything as it was', async () => {
    let open = false
    const { session } = await setup({ mayReplace: () => !open })
    session.record([entered('a'), turnStart(), entered('b')])
    for (const [start, end] of [
      [0, 1],
      [1, 2],
      [2, 0],
    ] as const) {
      expect(() => session.replace({ start, end, message: user('s') })).toThrow(
        new InvalidEvent(`user/message: cannot replace seq ${start} to ${end}: no such range is on the surface`),
      )
    }
    open = true
    expect(() => session.replace({ start: 0, end: 0, message: user('s') })).toThrow(/while a step is open/)
    expect(session.nextSeq).toBe(3)
    expect(session.messages().map(({ id }) => id)).toEqual(['a', 'b'])
  })

  test('what replaces part of the surface is recorded alone', async () => {
    const { session } = await setup()
    session.record([entered('a')])
    const replace: Recordable = {
      type: 'user/message',
      data: user('s'),
      surfaceOp: { op: 'replace', start: 0, end: 0 },
      sourceEventSeqs: [0],
    }
    expect(() => session.record([replace, { ...replace, data: user('t') }])).toThrow(/recorded alone/)
    expect(session.nextSeq).toBe(1)
  })
})

describe('what a session knows of its log', () => {
  test('the ids of calls and messages, the last header and context, and what was spent', async () => {
    const { session } = await setup()
    const header = { config: { provider: 'p', model: 'm' } }
    session.record([
      turnStart(),
      stepStart(),
      entered('a'),
      { type: 'request/header', data: { header, reason: 'initial' } },
      { type: 'request/context', data: { provider: 'p', model: 'm', contextWindow: 100 } },
      answer(['c1']),
    ])
    expect([session.hasCallId('c1'), session.hasCallId('c2')]).toEqual([true, false])
    expect([session.hasMessageId('a'), session.hasMessageId('b')]).toEqual([true, false])
    expect(session.requestHeader).toEqual(header)
    expect(session.requestContext).toMatchObject({ contextWindow: 100 })
    expect(session.usage.turn).toEqual({ inputTokens: 3, outputTokens: 4 })
    expect(session.summary).toEqual({ turns: 1, open: true, lastReason: null })
  })

  test('a session that is new has used no ids', async () => {
    const { session } = await setup()
    expect([session.hasCallId('c1'), session.hasMessageId('a'), session.messageOf('a')]).toEqual([
      false,
      false,
      undefined,
    ])
  })

  test('opened again, it is the same', async () => {
    const { session, store } = await setup()
    session.record([turnStart(), stepStart(), entered('a'), answer(['c1']), call('c1')])
    await session.close()
    const loaded: SessionEvent[] = []
    const { session: again } = await setup({ store, onLoaded: (event) => loaded.push(event) })
    expect(loaded).toEqual(await collect(store.read('s')))
    expect(again.messages()).toEqual(session.messages())
    expect(again.usage).toEqual(session.usage)
    expect(again.summary).toEqual(session.summary)
    expect(again.hasCallId('c1')).toBe(true)
    expect([again.head, again.nextSeq]).toEqual([5, 5])
    expect(again.record([result('c1')])[0]).toMatchObject({ seq: 5, time: 1_000, sourceEventSeqs: [4] })
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -5])(
    'a clock that says %d leaves the time as it was',
    async (now) => {
      const { session, store } = await setup({ now: () => now })
      session.append({ type: 'user/message', data: user('a') })
      await session.flush()
      expect((await collect(store.read('s'))).map(({ time }) => time)).toEqual([0])
    },
  )

  test('time goes on from the stored log, also under a clock that was set back', async () => {
    const { session, store } = await setup({ now: () => 7_000 })
    session.append(turnStart())
    await session.close()
    const { session: again } = await setup({ store, now: () => 10 })
    expect(again.append(turnEnd()).time).toBe(7_000)
  })

  test('at rest, opening and closing writes nothing', async () => {
    const { session, store } = await setup()
    session.append(turnStart())
    await session.close()
    const { session: again, appends } = await setup({ store })
    await again.close()
    expect(appends).toEqual([])
  })
})
