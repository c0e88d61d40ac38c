import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deriveMessages } from '../../../src/log/derive.ts'
import { InvalidEvent } from '../../../src/log/errors.ts'
import type { KnownEvent, SessionEvent } from '../../../src/log/events.ts'
import type { Message } from '../../../src/log/messages.ts'
import { beginsWith, callIds, createSurface } from '../../../src/log/projections/surface.ts'
import * as k from '../../kit/logs.ts'

const surfaceOf = (events: readonly SessionEvent[]) => {
  const surface = createSurface()
  for (const event of events) surface.place(event)
  return surface
}
const ids = (events: readonly SessionEvent[]) => deriveMessages(events).map((message) => message.id)
const summary = (start: number, end: number, sourceEventSeqs: readonly number[], id = 's1') =>
  k.ev('user/message', k.message(id), { surfaceOp: { op: 'replace', start, end }, sourceEventSeqs })
const five = ['m0', 'm1', 'm2', 'm3', 'm4'].map(k.entered)
const replaced = (...drafts: readonly k.Draft[]) => surfaceOf(k.logOf(five, ...drafts)).nodes()

describe('the surface', () => {
  test('holds messages and results in the order they came, and nothing else', () => {
    const log = k.logOf(k.toolTurn(), { type: 'todo/write', data: {}, ignorable: true })
    const types = surfaceOf(log)
      .nodes()
      .map((seq) => log[seq]?.type)
    expect(types).toEqual(['user/message', 'assistant/message', 'tool/result', 'tool/result', 'assistant/message'])
  })

  test('puts a replacement where what it replaces stood', () => {
    expect(replaced(summary(1, 2, [1, 2]))).toEqual([0, 5, 3, 4])
    expect(replaced(summary(3, 3, [3]))).toEqual([0, 1, 2, 5, 4])
  })

  test('tells ranges by position: after a replacement a later node may stand first', () => {
    expect(replaced(summary(0, 3, [0, 1, 2, 3]), summary(5, 4, [5, 4], 's2'))).toEqual([6])
  })

  test.each<[string, k.Draft, string]>([
    ['a start that is not there', summary(9, 2, [1, 2]), 'seq 9: it is not on the surface'],
    ['an end that is not there', summary(1, 9, [1, 2]), 'seq 9: it is not on the surface'],
    ['an end that is not there, from the first on', summary(0, 9, [0, 1]), 'seq 9: it is not on the surface'],
    ['ends the wrong way round', summary(2, 1, [1, 2]), 'seq 2 stands after seq 1'],
    ['a node not cited', summary(1, 3, [1, 3]), 'it replaces seq 2, which its sources do not name'],
    ['no sources', k.ev('user/message', k.message('s1'), { surfaceOp: { op: 'replace', start: 1, end: 1 } }), 'seq 1'],
  ])('refuses a replacement with %s, and stays as it was', (_, draft, why) => {
    const surface = surfaceOf(k.logOf(five))
    const before = surface.messages()
    expect(() => surface.check(draft as SessionEvent)).toThrow(why)
    expect(() => surface.place({ ...draft, seq: 5, time: 0 } as SessionEvent)).toThrow(InvalidEvent)
    expect(surface.nodes()).toEqual([0, 1, 2, 3, 4])
    expect(surface.messages()).toBe(before)
  })

  test('refuses what was replaced already', () => {
    const surface = surfaceOf(k.logOf(five, summary(1, 2, [1, 2])))
    expect(() => surface.check(summary(2, 2, [2], 's2') as SessionEvent)).toThrow('seq 2: it is not on the surface')
  })

  test('refuses to part a call from its result: both go, or both stay', () => {
    const asked = [k.entered('m0'), k.asksFor([{ id: 'c1' }, { id: 'c2' }]).slice(-1), k.result('c1'), k.result('c2')]
    const surface = surfaceOf(k.logOf(asked, k.entered('m4'), k.answer('done', { step: 2 })))
    const check = (start: number, end: number) => {
      const sources = Array.from({ length: end - start + 1 }, (_, i) => start + i)
      return () => surface.check(summary(start, end, sources) as SessionEvent)
    }
    expect(surface.nodes()).toEqual([0, 1, 2, 3, 4, 5])
    expect(check(0, 1)).toThrow('user/message: it would part call c1 from its result: replace both, or neither')
    expect(check(1, 2)).toThrow('it would part call c2')
    expect(check(2, 2)).toThrow('it would part call c1')
    expect(check(3, 4)).toThrow('it would part call c2')
    for (const whole of [check(1, 3), check(0, 5), check(0, 0), check(4, 4), check(4, 5)]) expect(whole).not.toThrow()
  })

  test('lets every other event pass', () => {
    const surface = createSurface()
    for (const event of k.logOf(k.toolTurn())) expect(() => surface.check(event)).not.toThrow()
  })
})

describe('a result rewritten', () => {
  const log = k.logOf(k.toolTurn())
  const seq = log.find((event) => event.type === 'tool/result')?.seq ?? -1
  const rewrite = (data: object, end = seq, sourceEventSeqs = [seq]) =>
    ({
      type: 'tool/result',
      data: { turn: 1, step: 1, message: k.resultMessage('c2', 'shorter'), ...data },
      surfaceOp: { op: 'replace', start: seq, end },
      sourceEventSeqs,
      seq: log.length,
      time: 9_999,
    }) as unknown as SessionEvent

  test('says another thing in the same place', () => {
    expect(() => surfaceOf(log).check(rewrite({}))).not.toThrow()
    const history = deriveMessages([...log, rewrite({})])
    expect(history.map(({ id }) => id)).toEqual(['m1', 'a1-1', 'r-c1', 'r-c2', 'a1-2'])
    expect(history[3]?.content).toMatchObject([{ content: [{ text: 'shorter' }] }])
  })

  test.each<[string, SessionEvent]>([
    ['its call', rewrite({ message: k.resultMessage('c1') })],
    ['its id', rewrite({ message: { ...k.resultMessage('c2'), id: 'other' } })],
    ['whether it failed', rewrite({ message: k.resultMessage('c2', 'shorter', true) })],
    ['its error', rewrite({ error: { name: 'E', code: 'E' } })],
    ['its meta', rewrite({ meta: 1 })],
    ['its turn', rewrite({ turn: 2 })],
    ['its step', rewrite({ step: 2 })],
  ])('may not change %s', (_, event) => {
    expect(() => surfaceOf(log).check(event)).toThrow('may change what the result says, and nothing else')
  })

  test('may not stand for two, or for a message', () => {
    expect(() => surfaceOf(log).check(rewrite({}, seq + 1, [seq, seq + 1]))).toThrow('exactly one tool/result')
    const overMessage = { ...rewrite({}), surfaceOp: { op: 'replace', start: 4, end: 4 }, sourceEventSeqs: [4] }
    expect(() => surfaceOf(log).check(overMessage as SessionEvent)).toThrow('exactly one tool/result')
  })
})

describe('the history', () => {
  test('has results in the model’s order, whatever order they were recorded in', () => {
    expect(ids(k.logOf(k.toolTurn()))).toEqual(['m1', 'a1-1', 'r-c1', 'r-c2', 'a1-2'])
  })

  test('has results right after their answer, before a message recorded between them', () => {
    const asked = k.asksFor([{ id: 'c1' }, { id: 'c2' }, { id: 'c3' }])
    const log = k.logOf(asked, k.result('c3'), k.entered('m2'), k.result('c1'), k.result('c2'), k.entered('m3'))
    expect(ids(log)).toEqual(['a1-1', 'r-c1', 'r-c2', 'r-c3', 'm2', 'm3'])
  })

  test('has a result that answers no call of the last answer where it came, and the others as if it were not there', () => {
    const asked = k.asksFor([{ id: 'c1' }, { id: 'c2' }]).slice(-1)
    const stray = (id: string) => k.result(id)
    expect(ids(k.logOf(asked, stray('c9'), k.result('c2'), k.result('c1')))).toEqual(['a1-1', 'r-c1', 'r-c2', 'r-c9'])
    expect(ids(k.logOf(asked, k.result('c2'), stray('c9'), k.result('c1')))).toEqual(['a1-1', 'r-c1', 'r-c2', 'r-c9'])
    expect(ids(k.logOf(asked, k.result('c1'), k.entered('m1'), stray('c1'), k.result('c2')))).toEqual([
      'a1-1',
      'r-c1',
      'r-c2',
      'm1',
      'r-c1',
    ])
    expect(ids(k.logOf(k.answer('x'), stray('c9'), k.entered('m1'), stray('c8'), stray('c9')))).toEqual([
      'a1-1',
      'r-c9',
      'm1',
      'r-c8',
      'r-c9',
    ])
  })

  test('begins with one that it grew from, and with no other', () => {
    const surface = createSurface()
    const [one, two, three] = k.logOf(k.entered('m1'), k.entered('m2'), k.entered('m3')).map((event) => {
      surface.place(event)
      return surface.messages()
    }) as [readonly Message[], readonly Message[], readonly Message[]]
    expect(beginsWith(two, one) && beginsWith(three, one) && beginsWith(two, two)).toBe(true)
    expect(beginsWith(one, two)).toBe(false)
    expect(beginsWith([...two], one) && beginsWith(two, [...one]) && beginsWith(one, [])).toBe(true)
    expect(beginsWith([...one], [...two])).toBe(false)
    expect(beginsWith(three, two.slice(1))).toBe(false)
    expect(beginsWith(two, [k.message('m1')])).toBe(false)
  })

  test('asks for the calls of an answer in its order, whatever it says between them', () => {
    const call = (id: string) => ({ type: 'tool-call', id, name: 'look', arguments: '{}' }) as const
    const content = [{ type: 'text', text: 'hm' }, call('c2'), { type: 'reasoning', text: 'hm' }, call('c1')] as const
    const source = { kind: 'model', provider: 'p', model: 'm' } as const
    expect(callIds({ id: 'a1', role: 'assistant', content, source })).toEqual(['c2', 'c1'])
  })

  test('leaves out an answer that says nothing, which still stands on the surface', () => {
    const log = k.logOf(k.entered('m1'), k.answer(''), k.entered('m2'))
    expect(ids(log)).toEqual(['m1', 'm2'])
    expect(surfaceOf(log).nodes()).toEqual([0, 1, 2])
  })

  test('begins with the summary that stands for what was', () => {
    const log = k.logOf(k.textTurn(), summary(4, 12, [4, 12]), k.textTurn('m2', 2))
    expect(ids(log)).toEqual(['s1', 'm2', 'a2-1'])
  })

  test('is frozen, made of the log’s own messages, and the same array until something changes', () => {
    const log = k.logOf(k.textTurn())
    const surface = createSurface()
    const seen = new Set(
      log.map((event) => {
        surface.place(event)
        return surface.messages()
      }),
    )
    expect(seen.size).toBe(3)
    expect([...seen].map((messages) => messages.length)).toEqual([0, 1, 2])
    expect(Object.isFrozen(surface.messages())).toBe(true)
    expect(surface.messages()[0]).toBe(log[4]?.data)
  })

  const names = (messages: readonly Message[]) => messages.map(({ id }) => id).join(' ')

  /** The same by other means: the whole log, walked without memory. */
  const naive = (log: readonly SessionEvent[]) => {
    const nodes: SessionEvent[] = []
    for (const event of log) {
      const op = event.surfaceOp
      if (op === 'append') nodes.push(event)
      if (typeof op !== 'object') continue
      const at = nodes.findIndex(({ seq }) => seq === op.start)
      nodes.splice(at, nodes.findIndex(({ seq }) => seq === op.end) - at + 1, event)
    }
    const taken = new Set<SessionEvent>()
    return nodes.flatMap((node, i): readonly Message[] => {
      if (node.type === 'user/message') return [node.data]
      if (node.type === 'tool/result') return taken.has(node) ? [] : [node.data.message]
      if (node.type !== 'assistant/message') return []
      const rest = nodes.slice(i + 1)
      const next = rest.findIndex(({ type }) => type === 'assistant/message')
      const mine = next < 0 ? rest : rest.slice(0, next)
      const results = node.data.calls.flatMap(({ callId }) =>
        mine.filter((each) => each.type === 'tool/result' && each.data.message.source.callId === callId),
      )
      for (const result of results) taken.add(result)
      const said = node.data.message.content.length > 0 ? [node.data.message] : []
      return [...said, ...results.map((each) => (each as KnownEvent<'tool/result'>).data.message)]
    })
  }

  const step = (n: number) =>
    fc.oneof(
      fc.constant([k.entered(`m${n}`)]),
      fc.constant([k.answer(n % 2 ? 'text' : '', { step: n + 1 })]),
      fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1 }).chain((order) =>
        fc.constant([
          ...k.asksFor(
            [...order].sort().map((c) => ({ id: `c${n}-${c}` })),
            { step: n + 1 },
          ),
          ...order.flatMap((c, i) => [k.result(`c${n}-${c}`), ...(i === 1 ? [k.entered(`n${n}`)] : [])]),
        ]),
      ),
      fc.record({ from: fc.nat(), length: fc.nat(3) }),
    )

  test('grown event by event it equals the one derived from scratch, at every point, also after replacements', () => {
    fc.assert(
      fc.property(fc.tuple(...Array.from({ length: 6 }, (_, n) => step(n))), (steps) => {
        const log: SessionEvent[] = []
        const grown = createSurface()
        const add = (event: SessionEvent) => {
          log.push(event)
          grown.place(event)
          const history = names(grown.messages())
          expect(history).toBe(names(deriveMessages(log)))
          expect(history).toBe(names(naive(log)))
        }
        for (const [n, each] of steps.entries()) {
          if (!('from' in each)) {
            for (const event of k.logOf(each)) add({ ...event, seq: log.length } as SessionEvent)
            continue
          }
          const nodes = grown.nodes()
          if (nodes.length === 0) continue
          const first = each.from % nodes.length
          const range = nodes.slice(first, first + each.length + 1)
          const draft = summary(range[0] ?? 0, range.at(-1) ?? 0, range, `s${n}`)
          add({ ...draft, seq: log.length, time: 0 } as SessionEvent)
        }
      }),
      { numRuns: 40 },
    )
  })

  test('a replay of a replay is the same', () => {
    const log = k.logOf(k.toolTurn(), k.textTurn('m2', 2))
    const again = JSON.parse(JSON.stringify(log)) as SessionEvent[]
    expect(deriveMessages(again)).toEqual(deriveMessages(log))
  })
})
