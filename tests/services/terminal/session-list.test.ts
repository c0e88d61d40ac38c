import pc from 'picocolors'
import { expect, test } from 'vitest'
import type { SessionSummary } from '../../../src/log/store.ts'
import { sessionLines, sessionTotals } from '../../../src/services/terminal/session-list.ts'

const plain = pc.createColors(false)
const time = new Date(2026, 2, 1, 14, 3).getTime()

const summary = (over: Partial<SessionSummary>): SessionSummary => ({
  id: 's',
  createdAt: time,
  updatedAt: time,
  head: 42,
  turns: 2,
  state: 'idle',
  owed: false,
  owned: false,
  ...over,
})

test('sessions stand in a table, the one changed last at the end', () => {
  const sessions = [
    summary({ id: 'newer', updatedAt: time + 60_000, state: 'waiting', waitingFor: 'approval', owed: true }),
    summary({ id: 'older', lastReason: 'completed' }),
  ]
  expect(sessionLines(sessions, plain)).toEqual([
    'SESSION  STATE            TURNS  EVENTS  CHANGED           LAST END',
    'older    idle             2      42      2026-03-01 14:03  completed',
    'newer    waits: approval  2      42      2026-03-01 14:04  -',
  ])
})

test('work that nobody does is told apart from work in progress', () => {
  const state = (over: Partial<SessionSummary>) => sessionLines([summary(over)], plain)[1]?.split(/\s+/)[1]
  expect(state({ state: 'running', owned: true, owed: true })).toBe('running')
  expect(state({ state: 'running', owned: false, owed: true })).toBe('stopped')
  expect(state({ state: 'idle', owned: false, owed: true })).toBe('stopped')
})

test('the totals say what can be carried on', () => {
  expect(sessionTotals([summary({}), summary({ owed: true })])).toBe(
    '2 sessions, 1 to carry on with `pawl resume SESSION`',
  )
  expect(sessionTotals([])).toBe('0 sessions')
})

test('no sessions are no table', () => {
  expect(sessionLines([], plain)).toEqual([])
})
