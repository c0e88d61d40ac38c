import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { verify } from '../../src/machines/verify.ts'
import { endSeed, ev, insert, item, logOf, opened, stepStart, textTurn, turnStart } from '../kit/logs.ts'

/** What is wrong with a log: rule and seq of each. */
const wrong = (events: Iterable<unknown>) => {
  const verified = verify(events as Iterable<SessionEvent>)
  return verified.ok ? [] : verified.violations.map(({ rule, seq }) => `${rule}@${seq}`)
}

describe('a log this chart could have written', () => {
  test('is counted, and told where it ends', () => {
    const log = logOf(...textTurn())
    expect(verify(log)).toEqual({ ok: true, events: log.length, turns: 1, state: 'idle' })
    expect(verify([])).toEqual({ ok: true, events: 0, turns: 0, state: 'idle' })
    expect(verify(logOf(opened()))).toMatchObject({ ok: true, state: 'stepRequest.streaming' })
  })
})

describe('a log it could not have written', () => {
  test('has an event that its state does not await', () => {
    const verified = verify(logOf(opened(), turnStart(2)))
    expect(verified).toMatchObject({
      ok: false,
      violations: expect.arrayContaining([
        { seq: 7, rule: 'CHART', message: 'turn/start cannot happen in stepRequest.streaming' },
      ]),
    })
  })

  test('is told of in the order of its events, whoever found what', () => {
    const log = logOf(insert('next-turn', []), stepStart(), endSeed, stepStart(1, 2))
    const violations = wrong(log)
    const seqs = violations.map((each) => Number(each.split('@')[1]))
    expect(violations).toContain('SPLICE-EMPTY@0')
    expect(violations).toContain('CHART@1')
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
  })

  test.each<[string, (log: readonly SessionEvent[]) => readonly unknown[], string]>([
    ['has a gap', (log) => [...log.slice(0, 2), ...log.slice(3)], 'SEQ-CONTIGUOUS@2'],
    [
      'goes back in time',
      (log) => log.map((each) => (each.seq === 4 ? { ...each, time: 1_002 } : each)),
      'TIME-MONOTONE@4',
    ],
    ['holds something else', (log) => [...log.slice(0, 2), 'what is this'], 'ENVELOPE@2'],
  ])('%s, and is read no further', (_, broken, violation) => {
    expect(wrong([...broken(logOf(...textTurn())), 'and this'])).toEqual([violation])
  })

  test('was written by a later version', () => {
    const [first, second] = logOf(insert('next-turn', [item('m1')]), ev('session/suspended', {}))
    const later = { ...second, type: 'session/teleported' }
    expect(wrong([first, later])).toHaveLength(1)
    expect(wrong([first, later])[0]).toMatch(/@1$/)
  })
})
