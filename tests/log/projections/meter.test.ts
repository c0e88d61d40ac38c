import { describe, expect, test } from 'vitest'
import type { Price } from '../../../src/log/events.ts'
import type { StreamChunk, TokenUsage } from '../../../src/log/messages.ts'
import { createMeter } from '../../../src/log/projections/meter.ts'
import * as k from '../../kit/logs.ts'

/** Drafts, each with the epoch ms it was recorded at. */
type Timed = readonly [at: number, draft: k.Draft]

const meterOf = (timed: readonly Timed[]) => {
  const meter = createMeter()
  const log = k.logOf(timed.map(([, draft]) => draft))
  for (const [i, event] of log.entries()) meter.place({ ...event, time: timed[i]?.[0] ?? 0 })
  return meter
}
/** The meter of events that all happened at once: nothing but tokens and cost is spent. */
const meterAt = (...drafts: readonly k.Draft[]) => meterOf(drafts.map((draft) => [0, draft]))
const ofTurn = (...drafts: readonly k.Draft[]) => meterAt(...drafts).spent('turn', 0)
const ofSession = (...drafts: readonly k.Draft[]) => meterAt(...drafts).spent('session', 0)

const used = (usage: TokenUsage, at = {}) => k.chunk({ type: 'usage', usage }, at)
const priced = (price?: Price) =>
  k.ev('request/context', { provider: 'p', model: 'm', ...(price === undefined ? {} : { price }) })
const failure = { message: 'busy', code: 'SERVER' }
const retry = k.ev('llm/retry', {
  turn: 1,
  step: 1,
  attempt: 1,
  retryId: 'r',
  provider: 'p',
  policyKey: 'k',
  retry: 1,
  mode: 'always',
  delayMs: 1,
  failure,
})
const retryStarted = k.ev('llm/retry-started', { turn: 1, step: 1, attempt: 2, retryId: 'r', retry: 1 })

describe('what a provider told', () => {
  const all = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 1_000, cacheWriteTokens: 40, reasoningTokens: 7 }

  test('counts the tokens in, out, read from a cache and written to it; those of thinking are part of what came out', () => {
    expect(ofTurn(k.turnStart(), used(all), k.answer('x'))).toEqual({
      tokens: 1_160,
      timeMs: 0,
      cost: 0,
      estimated: false,
    })
  })

  test.each<[string, Price | undefined, number]>([
    // 100 * 2 + 20 * 8 + 1000 * 0.5 + 40 * 3
    ['each at its own price', { input: 2, output: 8, cacheRead: 0.5, cacheWrite: 3 }, 0.00098],
    // 100 * 2 + 20 * 8 + 1000 * 2 + 40 * 2
    ['those of a cache like any that went in, where no price of their own is known', { input: 2, output: 8 }, 0.00244],
    // 100 * 2 + 20 * 8
    [
      'those of a cache nothing, where that is their price',
      { input: 2, output: 8, cacheRead: 0, cacheWrite: 0 },
      0.00036,
    ],
    ['nothing, where no price is known', undefined, 0],
  ])('costs, per million, %s', (_, price, cost) => {
    const drafts = [k.turnStart(), priced(price), k.header(), used(all), k.answer('x')]
    expect(ofTurn(...drafts).cost).toBe(cost)
    expect(ofSession(...drafts).cost).toBe(cost)
  })

  test('is what it told last, and what it says twice is not spent twice', () => {
    const told = [used({ inputTokens: 100, outputTokens: 1 }), used({ inputTokens: 100, outputTokens: 5 })]
    expect(ofTurn(k.turnStart(), ...told).tokens).toBe(105)
    expect(ofTurn(k.turnStart(), ...told, k.answer('x')).tokens).toBe(105)
  })

  test('is charged at the price that was logged when the attempt was made', () => {
    const spent = used({ inputTokens: 1_000_000, outputTokens: 0 })
    const again = used({ inputTokens: 1_000_000, outputTokens: 0 }, { attempt: 2 })
    const cheap = [k.turnStart(), priced({ input: 3, output: 0 }), spent, retry]
    expect(ofTurn(...cheap, retryStarted, again).cost).toBe(6)
    expect(ofTurn(...cheap, priced({ input: 5, output: 0 }), again).cost).toBe(8)
    expect(ofTurn(...cheap, priced(), again).cost).toBe(3)
  })
})

describe('what a provider did not tell is estimated, at four bytes a token', () => {
  /** A message whose JSON is 88 + 12 characters, and what more is asked for. */
  const hundred = (more = '') => k.ev('user/message', k.message('m1', `twelve chars${more}`))
  const said: readonly StreamChunk[] = [
    { type: 'block-start', index: 0, blockType: 'text' },
    { type: 'text-delta', index: 0, text: 'abcd' },
    { type: 'reasoning-delta', index: 1, text: 'ef' },
    { type: 'tool-call-delta', index: 2, id: 'c1', name: 'look', argumentsDelta: '{"a":' },
    { type: 'tool-call-delta', index: 2, argumentsDelta: '1}' },
    { type: 'block-end', index: 0, block: { type: 'text', text: 'abcd' } },
  ]
  const chunks = (count: number) => said.slice(0, count).map((chunk) => k.chunk(chunk))

  test.each<[string, readonly k.Draft[], number]>([
    ['nothing but the conversation went in: 100', [hundred(), ...chunks(1)], 25],
    ['a part of four counts as a whole: 101', [hundred('.'), ...chunks(1)], 26],
    ['every message counts: 100 and 100', [hundred(), hundred(), ...chunks(1)], 50],
    ['text counts: 4', [hundred(), ...chunks(2)], 26],
    ['thinking counts: 4 and 2', [hundred(), ...chunks(3)], 27],
    ['calls count: 4 and 2 and 5', [hundred(), ...chunks(4)], 28],
    ['by their arguments: 4 and 2 and 5 and 2', [hundred(), ...chunks(5)], 29],
    ['a block that ends was counted as it came', [hundred(), ...chunks(6)], 29],
  ])('%s', (_, drafts, tokens) => {
    expect(ofTurn(k.turnStart(), k.header(), ...drafts)).toEqual({ tokens, timeMs: 0, cost: 0, estimated: true })
  })

  test('bytes are those of UTF-8, in and out', () => {
    // 88 + 4 * 3 went in, 5 * 2 and 3 * 3 came out
    const asked = k.ev('user/message', k.message('m1', '你好世界'))
    const text = k.chunk({ type: 'text-delta', index: 0, text: 'ééééé' })
    const call = k.chunk({ type: 'tool-call-delta', index: 1, argumentsDelta: '你好吗' })
    expect(ofTurn(k.turnStart(), asked, text).tokens).toBe(25 + 3)
    expect(ofTurn(k.turnStart(), asked, text, call).tokens).toBe(25 + 5)
  })

  test('what was replaced went in no more', () => {
    const replace = (start: number, end: number) =>
      k.ev('user/message', k.message('s1', 'twelve chars'), {
        surfaceOp: { op: 'replace', start, end },
        sourceEventSeqs: [start, end].filter((seq, i, all) => all.indexOf(seq) === i),
      })
    const three = [k.turnStart(), hundred(), hundred(), hundred()]
    const spent = (...more: readonly k.Draft[]) => ofTurn(...three, ...more, ...chunks(1)).tokens
    expect(spent()).toBe(75)
    expect(spent(replace(2, 2))).toBe(75)
    expect(spent(replace(1, 2))).toBe(50)
    // The first of them stands for 1 and 2 now, so that it stands before 3.
    expect(spent(replace(1, 2), replace(4, 3))).toBe(25)
    expect(spent(replace(1, 3), hundred())).toBe(50)
  })

  test('a replacement that cannot be only adds to it', () => {
    const wrong = (start: number, end: number) =>
      k.ev('user/message', k.message('s1', 'twelve chars'), {
        surfaceOp: { op: 'replace', start, end },
        sourceEventSeqs: [1, 2],
      })
    for (const draft of [wrong(0, 1), wrong(1, 9), wrong(2, 1)]) {
      expect(ofTurn(k.turnStart(), hundred(), hundred(), draft, ...chunks(1)).tokens).toBe(75)
    }
  })

  test('an estimate has its price as well', () => {
    // 25 in at 2, 4 out at 8
    const drafts = [k.turnStart(), priced({ input: 2, output: 8 }), hundred(), ...chunks(6)]
    expect(ofSession(...drafts)).toEqual({ tokens: 29, timeMs: 0, cost: 0.000082, estimated: true })
  })

  test('told after all, it is no estimate any more', () => {
    const drafts = [k.turnStart(), hundred(), ...chunks(6)]
    expect(ofTurn(...drafts, used({ inputTokens: 7, outputTokens: 1 }))).toMatchObject({ tokens: 8, estimated: false })
  })

  test('one estimate makes the sum one, until the next turn: the session’s stays', () => {
    const told = (turn: number) => used({ inputTokens: 7, outputTokens: 1 }, { turn, attempt: 2 })
    const first = [k.turnStart(), hundred(), ...chunks(6), retry, told(1), k.answer('x', { attempt: 2 })]
    expect(ofTurn(...first)).toMatchObject({ tokens: 37, estimated: true })
    const second = [...first, k.turnEnd(), k.turnStart(2), told(2)]
    expect(ofTurn(...second)).toMatchObject({ tokens: 8, estimated: false })
    expect(ofSession(...second)).toMatchObject({ tokens: 45, estimated: true })
  })

  test.each<[string, k.Draft]>([
    ['its answer', k.answer('a long answer')],
    ['a retry', retry],
    ['the end of its step', k.stepEnd('interrupted')],
    ['the end of its turn', k.turnEnd()],
    ['a resume', k.resumed()],
  ])('an attempt is over with %s: what comes later makes it no dearer', (_, end) => {
    const drafts = [k.turnStart(), hundred(), ...chunks(6), end, hundred(), priced({ input: 2, output: 8 })]
    const spent = { tokens: 29, timeMs: 0, cost: 0, estimated: true }
    expect(ofTurn(...drafts)).toEqual(spent)
    expect(ofSession(...drafts)).toEqual(spent)
  })

  test('an attempt is not over because something else happens meanwhile', () => {
    const queued = k.insert('next-step', [k.item('m2')])
    expect(ofTurn(k.turnStart(), hundred(), ...chunks(2), queued, ...chunks(2)).tokens).toBe(27)
  })

  test('attempts with nothing between them are two: each read the whole conversation', () => {
    const half = (at: object) => k.chunk({ type: 'text-delta', index: 0, text: 'abcd' }, at)
    const drafts = [k.turnStart(), hundred(), half({}), half({ attempt: 2 }), half({ step: 2 }), half({ turn: 2 })]
    expect(ofSession(...drafts).tokens).toBe(4 * 26)
    expect(ofSession(...drafts, k.turnEnd(), k.turnEnd()).tokens).toBe(4 * 26)
  })
})

describe('time', () => {
  /** ms of the turn and of the session, as of `now`. */
  const times = (now: number, ...timed: readonly Timed[]) => {
    const meter = meterOf(timed)
    return [meter.spent('turn', now).timeMs, meter.spent('session', now).timeMs]
  }
  const start: Timed = [1_000, k.turnStart()]

  test('is that of turns: it goes on while one is open, and stands between them', () => {
    const queued: Timed = [400, k.insert('next-turn', [k.item('m1')])]
    expect(times(900, queued)).toEqual([0, 0])
    expect(times(1_250, queued, start)).toEqual([250, 250])
    expect(times(1_250, queued, start, [1_200, k.stepStart()])).toEqual([250, 250])
    const ended: readonly Timed[] = [queued, start, [1_200, k.stepStart()], [1_300, k.turnEnd()]]
    expect(times(5_000, ...ended)).toEqual([300, 300])
    expect(times(9_070, ...ended, [9_000, k.turnStart(2)], [9_050, k.stepStart(2)])).toEqual([70, 370])
  })

  test('never goes back, though the clock of who asks does', () => {
    expect(times(999, start)).toEqual([0, 0])
    expect(times(0, start, [900, k.stepStart()])).toEqual([0, 0])
  })

  test('stands while a retry is waited for', () => {
    const waits: readonly Timed[] = [start, [1_010, retry]]
    expect(times(4_000, ...waits)).toEqual([10, 10])
    expect(times(4_005, ...waits, [4_000, retryStarted])).toEqual([15, 15])
    const canceled: readonly Timed[] = [...waits, [4_000, k.stepEnd('aborted')], [4_001, k.aborted()]]
    expect(times(8_000, ...canceled)).toEqual([11, 11])
    expect(times(8_030, ...canceled, [8_000, k.turnStart(2)])).toEqual([30, 41])
  })

  test('stands while nothing but an approval is waited for', () => {
    const asks: readonly Timed[] = [start, [1_010, k.toolCall('c1')], [1_020, k.approvalRequested('c1')]]
    expect(times(4_000, ...asks)).toEqual([20, 20])
    expect(times(4_005, ...asks, [4_000, k.dispatch('c1')])).toEqual([25, 25])
    expect(times(4_005, ...asks, [4_000, k.result('c1', 'DENIED')])).toEqual([25, 25])
    expect(times(4_005, ...asks, [4_000, k.stepEnd('aborted')])).toEqual([25, 25])
  })

  test('goes on while another call is at work, from when it is made to its result', () => {
    const both: readonly Timed[] = [
      start,
      [1_010, k.toolCall('c1')],
      [1_010, k.toolCall('c2')],
      [1_020, k.approvalRequested('c2')],
    ]
    expect(times(1_025, ...both)).toEqual([25, 25])
    const works: readonly Timed[] = [...both, [1_030, k.dispatch('c1')]]
    expect(times(1_035, ...works)).toEqual([35, 35])
    expect(times(4_000, ...works, [1_040, k.result('c1')])).toEqual([40, 40])
    const approved: readonly Timed[] = [...works, [1_040, k.result('c1')], [4_000, k.dispatch('c2')]]
    expect(times(4_007, ...approved)).toEqual([47, 47])
    const asksAgain = k.approvalRequested('c2', { run: 1, purpose: 'rerun' })
    expect(times(9_000, ...approved, [4_010, asksAgain])).toEqual([50, 50])
    expect(times(4_070, ...approved, [4_010, k.result('c2')], [4_060, k.stepEnd('tool-calls')])).toEqual([110, 110])
  })

  test('stood while the process was gone', () => {
    const back: readonly Timed[] = [start, [1_010, k.stepStart()], [60_000, k.resumed()]]
    expect(times(60_000, ...back)).toEqual([10, 10])
    expect(times(60_003, ...back)).toEqual([13, 13])
    expect(times(60_008, ...back, [60_005, k.stepEnd()])).toEqual([18, 18])
  })
})
