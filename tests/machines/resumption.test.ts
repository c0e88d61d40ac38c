import { describe, expect, test } from 'vitest'
import type { AgentContext } from '../../src/machines/evolve.ts'
import type { AgentSnapshot } from '../../src/machines/fold.ts'
import { resumption } from '../../src/machines/resumption.ts'
import { call, idle, inStep, item, queues } from '../kit/contexts.ts'

const options = { recovery: 'continue', maxResumes: 3 } as const
const opened = (value: AgentSnapshot['value'], context: AgentContext = inStep) =>
  resumption({ value, context }, options)

describe('opening a log', () => {
  test('at rest with nothing owed records nothing, whatever is parked', () => {
    expect(opened('idle', idle)).toBeUndefined()
    expect(opened('idle', { ...idle, inbox: queues([], [item('m1')]) })).toBeUndefined()
  })

  test('at rest with work owed starts it, and counts nothing', () => {
    const context = { ...idle, inbox: queues([], [item('m1')]), drain: true, resumes: 1 }
    expect(opened('idle', context)).toEqual({ recovery: 'continue', resumes: 1 })
  })

  test.each(['preStep', 'turnStopping', { stepRequest: 'streaming' }] as const)(
    'in %j finds work cut short',
    (value) => {
      expect(opened(value, { ...inStep, resumes: 1 })).toEqual({ recovery: 'continue', resumes: 2 })
    },
  )

  test.each(['called', 'dispatched'] as const)('with a call that is %s finds work cut short', (status) => {
    expect(opened('toolExec', { ...inStep, calls: [call('c1', { status })] })?.resumes).toBe(1)
  })

  test('finds work cut short if one call of many was under way', () => {
    const calls = [call('c1', { status: 'settled' }), call('c2', { status: 'dispatched' }), call('c3')]
    expect(opened('toolExec', { ...inStep, calls })?.resumes).toBe(1)
  })

  test('loses nothing by a wait for a retry or an approval, or after a clean close', () => {
    expect(opened({ stepRequest: 'waiting' })?.resumes).toBe(0)
    expect(opened('toolExec', { ...inStep, calls: [call('c1', { status: 'awaiting' })] })?.resumes).toBe(0)
    expect(opened('preStep', { ...inStep, suspended: true })?.resumes).toBe(0)
  })

  test('closes the turn as configured', () => {
    expect(resumption({ value: 'preStep', context: inStep }, { ...options, recovery: 'interrupt' })).toEqual({
      recovery: 'interrupt',
      resumes: 1,
    })
  })

  test('closes the turn beyond the limit, and says why', () => {
    expect(opened('preStep', { ...inStep, resumes: 2 })).toEqual({ recovery: 'continue', resumes: 3 })
    expect(opened('preStep', { ...inStep, resumes: 3 })).toEqual({
      recovery: 'interrupt',
      cause: 'recovery-limit',
      resumes: 4,
    })
  })
})
