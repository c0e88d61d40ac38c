/** The conversation as a surface over the log: what stands in it, and what may stand in place of what. */
import { describe, expect, test } from 'vitest'
import { deriveMessages } from '../../src/log/derive.ts'
import { InvalidEvent } from '../../src/log/errors.ts'
import type { EventMap, Recordable, SessionEvent, SurfaceOp } from '../../src/log/events.ts'
import { createSurface } from '../../src/log/projections/surface.ts'
import { verify } from '../../src/machines/verify.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, stored } from '../kit/agents.ts'
import * as k from '../kit/logs.ts'
import {
  answer,
  call,
  chunk,
  collect,
  entered,
  result,
  setup,
  stepStart,
  turnStart,
  user,
} from '../log/session-setup.ts'

const surfaceOf = (events: Iterable<SessionEvent>) => {
  const surface = createSurface()
  for (const event of events) surface.place(event)
  return surface
}

type Replacing = { readonly start: number; readonly end: number; readonly sources?: readonly number[] }
const replacing = (id: string, { start, end, sources }: Replacing): Recordable => ({
  type: 'user/message',
  data: user(id),
  surfaceOp: { op: 'replace', start, end },
  ...(sources === undefined ? {} : { sourceEventSeqs: sources }),
})

/** A session whose surface has the nodes 0, 3, 5 and 8, and its log as it is stored. */
async function withNodes() {
  const { session, store } = await setup()
  for (const event of [entered('a'), turnStart(), stepStart(), entered('b'), chunk(), entered('c'), chunk(), chunk()]) {
    session.append(event)
  }
  session.append(entered('d'))
  const log = async () => {
    await session.flush()
    return stored(store, 's')
  }
  return { session, log, nodes: async () => surfaceOf(await log()).nodes() }
}

/** Nothing of what is refused stays: neither in the log, nor in the conversation, nor of its seq. */
async function expectRefused(event: unknown): Promise<void> {
  const { session, log } = await withNodes()
  const before = [await log(), session.messages()]
  expect(() => session.append(event as Recordable)).toThrow(InvalidEvent)
  expect([await log(), session.messages()]).toEqual(before)
  expect(session.append(chunk()).seq).toBe(9)
}

/** An event that was recorded all the same is found in the log, at its seq. */
function expectFound(log: readonly unknown[], seq: number): void {
  const verdict = verify(log as readonly SessionEvent[])
  expect(verdict.ok ? [] : verdict.violations.map((violation) => violation.seq)).toContain(seq)
}

describe('what stands in the conversation', () => {
  test('[surface-001] messages, answers and results, in the order they came; nothing else', async () => {
    const { session, store } = await setup()
    const events = [turnStart(), stepStart(), entered('m1'), chunk(), answer(['c1']), call('c1'), result('c1')]
    for (const event of events) session.append(event)
    await session.flush()
    const log = await collect(store.read('s'))
    expect(surfaceOf(log).nodes()).toEqual([2, 4, 6])
    expect(session.messages().map(({ id }) => id)).toEqual(['m1', 'answer', 'result-c1'])
  })

  test('[surface-009] each of them says how it came there', async () => {
    const { session, log } = await withNodes()
    expect(ofType(await log(), 'user/message').map(({ surfaceOp }) => surfaceOp)).toEqual(Array(4).fill('append'))
    // The session marks what it is given; a mark that is none, and a stored message without one, are refused.
    expect(() => session.append({ ...entered('e'), surfaceOp: 'prepend' } as unknown as Recordable)).toThrow(
      InvalidEvent,
    )
    const unmarked = (await log()).map(({ surfaceOp: _, ...event }) => event)
    expectFound(unmarked, 0)
  })

  test.each([
    ['surfaceOp', { surfaceOp: 'append' }],
    ['sourceEventSeqs', { sourceEventSeqs: [0] }],
  ])('[surface-010] nothing else has a place in it: turn/start with %s is refused', async (_, marks) => {
    await expectRefused({ type: 'turn/start', data: { turn: 2 }, ...marks })
    const log = k.logOf(k.textTurn())
    const start = log.findIndex(({ type }) => type === 'turn/start')
    expectFound(log.with(start, { ...log[start], ...marks } as SessionEvent), start)
  })

  test('[surface-019] an event of a plug-in changes nothing of it', async () => {
    await using started = await startAgent()
    const { session } = started.agent
    await started.agent.run('go')
    const before = session.messages()
    session.note('todo/write', { items: ['one'] })
    expect(session.messages()).toBe(before)
    expect(deriveMessages(await started.log())).toEqual(before)
  })
})

describe('a replacement', () => {
  test('[surface-002] stands where the range it replaces stood', async () => {
    const { session, nodes } = await withNodes()
    const { seq } = session.append(replacing('s', { start: 3, end: 5, sources: [3, 5] }))
    expect(await nodes()).toEqual([0, seq, 8])
    expect(session.messages().map(({ id }) => id)).toEqual(['a', 's', 'd'])
  })

  test('[surface-003] may replace a single message', async () => {
    const { session, nodes } = await withNodes()
    const { seq } = session.append(replacing('s', { start: 3, end: 3, sources: [3] }))
    expect(await nodes()).toEqual([0, seq, 5, 8])
  })

  test('[surface-004] names its range by places, not by numbers: the first seq may be the greater one', async () => {
    const { session, nodes } = await withNodes()
    session.append(replacing('s', { start: 0, end: 3, sources: [0, 3] }))
    expect(await nodes()).toEqual([9, 5, 8])
    session.append(replacing('t', { start: 9, end: 5, sources: [5, 9] }))
    expect(await nodes()).toEqual([10, 8])
    expect(() => session.append(replacing('u', { start: 8, end: 10, sources: [8, 10] }))).toThrow(InvalidEvent)
  })

  test.each([
    ['a start that is no message', { start: 4, end: 5, sources: [4, 5] }],
    ['an end that is no message', { start: 3, end: 6, sources: [3, 5, 6] }],
    ['a start that is not there yet', { start: 9, end: 9, sources: [8] }],
    ['the end before the start', { start: 5, end: 3, sources: [3, 5] }],
  ])('[surface-005] with %s is refused', async (_, range) => {
    await expectRefused(replacing('s', range))
  })

  test('[surface-005] of what was replaced before is refused', async () => {
    const { session, nodes } = await withNodes()
    const { seq } = session.append(replacing('s', { start: 3, end: 5, sources: [3, 5] }))
    for (const [start, end] of [
      [3, 3],
      [0, 5],
      [5, 8],
    ] as const) {
      expect(() => session.append(replacing('t', { start, end, sources: [0, 3, 5, 8] }))).toThrow(InvalidEvent)
    }
    expect(await nodes()).toEqual([0, seq, 8])
    expect(session.nextSeq).toBe(seq + 1)
  })

  test.each([
    ['one of two', [3]],
    ['none', undefined],
    ['others', [0, 8]],
  ])('[surface-007] must name all that it replaces: with %s it is refused', async (_, sources) => {
    await expectRefused(replacing('s', { start: 3, end: 5, ...(sources && { sources }) }))
  })

  test.each([
    ['twice the same', [3, 3]],
    ['a later one', [3, 99]],
    ['its own', [3, 9]],
    ['a negative one', [3, -1]],
    ['half of one', [3, 3.5]],
    ['an empty list', []],
  ])('[surface-008] sources must be earlier events, each once: %s is refused', async (_, sources) => {
    await expectRefused({ ...entered('s'), sourceEventSeqs: sources })
    const log = k.logOf(k.textTurn())
    const at = log.findIndex(({ type }) => type === 'user/message')
    expectFound(log.with(at, { ...log[at], sourceEventSeqs: sources } as SessionEvent), at)
  })

  test('[surface-008] a result names a source too, if it names any', async () => {
    await expectRefused({ ...result('c1'), sourceEventSeqs: [] })
  })

  test('[surface-015] a summary of a turn stands before what came after it', () => {
    const log = k.logOf(
      k.textTurn(),
      k.ev('user/message', k.message('s1'), {
        surfaceOp: { op: 'replace', start: 4, end: 12 },
        sourceEventSeqs: [4, 12],
      }),
      k.textTurn('m2', 2),
    )
    expect(deriveMessages(log).map(({ id }) => id)).toEqual(['s1', 'm2', 'a2-1'])
  })

  test('[surface-020] between turns changes what the next request begins with, and not its header', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model, system: 'Be brief.' })
    const { session } = started.agent
    await started.agent.run('one')
    await started.agent.run('two')
    const nodes = surfaceOf(await started.log()).nodes()
    session.replace({ start: nodes[0] ?? 0, end: nodes[3] ?? 0, message: 'what was said' })
    await started.agent.run('three')
    const texts = model.requests[2]?.messages.map(({ content }) => content)
    expect(texts).toEqual([[{ type: 'text', text: 'what was said' }], [{ type: 'text', text: 'three' }]])
    expect(model.requests[2]?.system).toBe('Be brief.')
    expect(ofType(await started.log(), 'request/header')).toHaveLength(1)
  })
})

describe('a result said anew', () => {
  /** A session with a message at 2 and the results of two calls, at 6 and 7. */
  async function withResults() {
    const { session } = await setup()
    const events = [turnStart(), stepStart(), entered('m1'), answer(['c1', 'c2']), call('c1'), call('c2')]
    for (const event of [...events, result('c1'), result('c2')]) session.append(event)
    return session
  }
  const at = (seq: number): SurfaceOp => ({ op: 'replace', start: seq, end: seq })
  type Result = EventMap['tool/result']
  const given = (result('c1') as { readonly data: Result }).data
  const [block] = given.message.content
  const content = [{ type: 'text', text: 'said anew' }] as const
  const anew: Result = { ...given, message: { ...given.message, content: [{ ...block, content }] } }
  const rewrite = (data: unknown, surfaceOp = at(6), sourceEventSeqs = [6]) =>
    ({ type: 'tool/result', data, surfaceOp, sourceEventSeqs }) as Recordable

  test('[surface-011] is the same result of the same call, with other content, in the same place', async () => {
    const session = await withResults()
    session.append(rewrite(anew))
    expect(session.messages().map(({ id }) => id)).toEqual(['m1', 'answer', 'result-c1', 'result-c2'])
    expect(session.messages()[2]).toEqual(anew.message)
  })

  test.each<[string, unknown]>([
    [
      'another call',
      {
        ...anew,
        message: {
          ...anew.message,
          source: { kind: 'tool', callId: 'c2' },
          content: [{ ...block, toolCallId: 'c2', content }],
        },
      },
    ],
    ['another id', { ...anew, message: { ...anew.message, id: 'other' } }],
    ['an error', { ...anew, message: { ...anew.message, content: [{ ...block, content, isError: true }] } }],
    ['other meta', { ...anew, meta: { n: 1 } }],
    ['an error code', { ...anew, error: { name: 'E', code: 'E' } }],
    ['another turn', { ...anew, turn: 2 }],
    ['another step', { ...anew, step: 2 }],
  ])('[surface-012] may not become %s', async (_, data) => {
    const session = await withResults()
    expect(() => session.append(rewrite(data))).toThrow(InvalidEvent)
    expect(session.nextSeq).toBe(8)
  })

  test('[surface-012] may not stand for two results, or for a message', async () => {
    const session = await withResults()
    expect(() => session.append(rewrite(anew, { op: 'replace', start: 6, end: 7 }, [6, 7]))).toThrow(InvalidEvent)
    expect(() => session.append(rewrite(anew, at(2), [2]))).toThrow(InvalidEvent)
    expect(session.nextSeq).toBe(8)
  })
})

describe('the conversation of a log', () => {
  const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })

  /** Two turns with a tool, a summary of the first, a third turn. */
  async function lived() {
    const model = scripted([toolCall('look', {}), 'one', toolCall('look', {}), 'two', 'three'])
    const started = await startAgent({ model, tools: [look] })
    await started.agent.run('go')
    const nodes = surfaceOf(await started.log()).nodes()
    await started.agent.run('on')
    started.agent.session.replace({ start: nodes[0] ?? 0, end: nodes[3] ?? 0, message: 'a summary' })
    await started.agent.run('last')
    return started
  }

  test('[surface-017] grown event by event is the one derived from scratch, at every point', async () => {
    await using started = await lived()
    const log = await started.log()
    const grown = createSurface()
    log.forEach((event, index) => {
      grown.place(event)
      const scratch = surfaceOf(log.slice(0, index + 1))
      expect(grown.messages()).toEqual(scratch.messages())
      expect(grown.nodes()).toEqual(scratch.nodes())
    })
    expect(grown.messages()).toHaveLength(7)
  })

  test('[surface-018] is the same when the log is opened again, and in a fork', async () => {
    let before: Awaited<ReturnType<typeof lived>>
    let said: readonly unknown[]
    let forked: string
    {
      await using started = await lived()
      before = started
      said = started.agent.session.messages()
      forked = (await started.agent.fork()).sessionId
    }
    const log = await stored(before.store, 'session')
    expect(said).toHaveLength(7)
    for (const sessionId of ['session', forked]) {
      await using reopened = await startAgent({ store: before.store, sessionId, tools: [look] })
      expect(reopened.agent.session.messages()).toEqual(said)
      expect(surfaceOf(await reopened.log()).nodes()).toEqual(surfaceOf(log).nodes())
    }
  })
})
