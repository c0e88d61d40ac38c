import { describe, expect, test } from 'vitest'
import type { NewEvent, SessionEvent } from '../../../src/log/events.ts'
import { inbox } from '../../../src/log/projections/inbox.ts'
import { project } from '../../../src/log/projections/projection.ts'
import { requestContext } from '../../../src/log/projections/request-context.ts'
import { requestHeader } from '../../../src/log/projections/request-header.ts'
import { summary } from '../../../src/log/projections/summary.ts'
import { addUsage, usage } from '../../../src/log/projections/usage.ts'
import * as k from '../../kit/logs.ts'

test.each([
  ['inbox', inbox],
  ['requestHeader', requestHeader],
  ['requestContext', requestContext],
  ['usage', usage],
  ['summary', summary],
])('%s: an event that does not concern it gives the very same state', (_, projection) => {
  const data = { a: 1, usage: { inputTokens: 1, outputTokens: 1 } }
  const [note] = k.logOf({ type: 'todo/write', data, ignorable: true })
  expect(projection.evolve(projection.initial as never, note as SessionEvent)).toBe(projection.initial)
})

describe('inbox', () => {
  const waiting = (...drafts: readonly k.Drafts[]) => {
    const state = project(inbox, k.logOf(...drafts))
    const names = (queue: 'next-turn' | 'next-step') =>
      state[queue].map((item) => (item.kind === 'message' ? item.message.id : item.callId))
    return { turn: names('next-turn'), step: names('next-step') }
  }
  const three = k.insert('next-turn', [k.item('a'), k.item('b'), k.item('c')])

  test('follows the splices of each queue', () => {
    expect(waiting(three, k.insert('next-step', [k.item('s')]))).toEqual({ turn: ['a', 'b', 'c'], step: ['s'] })
    expect(waiting(three, k.claim('next-turn'))).toEqual({ turn: ['b', 'c'], step: [] })
    const replace = k.spliced({ start: 1, deleteCount: 1, inserted: [k.item('x')], outcome: 'canceled' })
    expect(waiting(three, replace)).toEqual({ turn: ['a', 'x', 'c'], step: [] })
    expect(waiting(three, k.spliced({ start: 3, inserted: [k.item('d')] })).turn).toEqual(['a', 'b', 'c', 'd'])
  })

  test('in a fork loses the messages and keeps the results of the open turn', () => {
    const both = k.insert('next-step', [k.item('s'), k.resultItem(1, 'c1')])
    expect(waiting(three, both, k.endSeed)).toEqual({ turn: [], step: ['c1'] })
  })

  test('is the same one whenever it is empty', () => {
    expect(project(inbox, k.logOf(three, k.claim('next-turn', 3)))).toBe(inbox.initial)
    expect(project(inbox, k.logOf(three, k.endSeed))).toBe(inbox.initial)
  })

  test('takes a splice beyond its end for what is there', () => {
    expect(waiting(three, k.claim('next-turn', 9))).toEqual({ turn: [], step: [] })
  })

  test('never changes a state it gave before', () => {
    const log = k.logOf(three, k.claim('next-turn'))
    const before = project(inbox, log.slice(0, 1))
    inbox.evolve(before, log[1] as SessionEvent)
    expect(before['next-turn']).toHaveLength(3)
  })
})

test('the header is the last one logged, and null before the first', () => {
  expect(project(requestHeader, k.logOf(k.opened().slice(0, 4)))).toBe(null)
  expect(project(requestHeader, k.logOf(k.header(), k.header('be kind')))).toMatchObject({ system: 'be kind' })
})

test('the context is the last one logged: a later unknown window clears it', () => {
  const context = (contextWindow?: number) =>
    k.ev('request/context', { provider: 'p', model: 'm', ...(contextWindow ? { contextWindow } : {}) })
  expect(project(requestContext, [])).toBe(null)
  expect(project(requestContext, k.logOf(context(10), context()))).toEqual({ provider: 'p', model: 'm' })
})

describe('usage', () => {
  const { usage: _, ...answerWithoutUsage } = (k.answer('x') as NewEvent<'assistant/message'>).data
  const spends = (spent: object, turn = 1) =>
    k.answer('x', { turn, usage: { inputTokens: 1, outputTokens: 1, ...spent } })

  test('adds up over the session and begins anew with each turn', () => {
    const log = k.logOf(k.turnStart(), spends({}), spends({ cacheReadTokens: 5 }), k.turnStart(2), spends({}, 2))
    expect(project(usage, log)).toEqual({
      session: { inputTokens: 3, outputTokens: 3, cacheReadTokens: 5 },
      turn: { inputTokens: 1, outputTokens: 1 },
    })
  })

  test('of a turn stays after its end, until the next one', () => {
    expect(project(usage, k.logOf(k.textTurn())).turn).toEqual({ inputTokens: 3, outputTokens: 2 })
  })

  test('a count that is nowhere given stays absent', () => {
    const none = { inputTokens: 0, outputTokens: 0 }
    expect(addUsage(none, { ...none, reasoningTokens: 2 })).toEqual({ ...none, reasoningTokens: 2 })
    expect(addUsage({ ...none, cacheWriteTokens: 1 }, { ...none, cacheWriteTokens: 2 })).toEqual({
      ...none,
      cacheWriteTokens: 3,
    })
  })

  test('is left as it was by an answer that told none', () => {
    const [untold] = k.logOf(k.ev('assistant/message', answerWithoutUsage))
    expect(usage.evolve(usage.initial, untold as SessionEvent)).toBe(usage.initial)
  })
})

test('the summary tells how many turns there were, whether one is open, and how the last one ended', () => {
  expect(project(summary, [])).toEqual({ turns: 0, open: false, lastReason: null })
  expect(project(summary, k.logOf(k.textTurn(), k.opened('m2', 2)))).toEqual({
    turns: 2,
    open: true,
    lastReason: 'completed',
  })
  expect(project(summary, k.logOf(k.turnStart(), k.aborted()))).toMatchObject({ open: false, lastReason: 'aborted' })
})
