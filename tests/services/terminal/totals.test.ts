import { expect, test } from 'vitest'
import { endingLine, runTotals } from '../../../src/services/terminal/totals.ts'
import { turnWithATool } from './given.ts'

function totalsOf(events: ReturnType<typeof turnWithATool>) {
  const totals = runTotals()
  for (const event of events) totals.add(event)
  return totals.current()
}

test('a turn adds up to its steps, calls, tokens and reason', () => {
  expect(totalsOf(turnWithATool())).toEqual({
    reason: { kind: 'completed' },
    steps: 1,
    calls: 1,
    inputTokens: 10,
    outputTokens: 4,
  })
})

test('a stretch in which no turn ended has no reason', () => {
  expect(totalsOf(turnWithATool().slice(0, 3))).not.toHaveProperty('reason')
})

test('the end reads in one line', () => {
  expect(endingLine({ kind: 'completed' }, totalsOf(turnWithATool()), 2300)).toBe(
    'completed · 1 step · 1 call · 10 tokens in, 4 out · 2.3 s',
  )
})
