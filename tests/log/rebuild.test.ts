import { describe, expect, test } from 'vitest'
import { PawlError } from '../../src/log/errors.ts'
import { rebuildRequest } from '../../src/log/rebuild.ts'
import * as k from '../kit/logs.ts'

const failure = { message: 'busy', code: 'SERVER' }
const retry = (attempt: number) => [
  k.ev('llm/retry', {
    turn: 1,
    step: 1,
    attempt,
    retryId: 'r',
    provider: 'p',
    policyKey: 'k',
    retry: 1,
    mode: 'always',
    delayMs: 1,
    failure,
  }),
]
const started = (attempt: number) => k.ev('llm/retry-started', { turn: 1, step: 1, attempt, retryId: 'r', retry: 1 })
const first = { turn: 1, step: 1, attempt: 1 }
const ids = (log: Parameters<typeof rebuildRequest>[0], at = first) => rebuildRequest(log, at).messages.map((m) => m.id)

describe('a request rebuilt from the log', () => {
  test('has the header in force, the history up to the messages that entered, and the id it is told', () => {
    const log = k.logOf(k.textTurn())
    const request = rebuildRequest(log, first, { sessionId: 's1' })
    expect(request).toEqual({
      provider: 'p',
      model: 'm',
      system: 'be brief',
      messages: [k.message('m1')],
      sessionId: 's1',
    })
    expect(Object.isFrozen(request) && Object.isFrozen(request.messages)).toBe(true)
    expect(rebuildRequest(log, first).sessionId).toBe('')
  })

  test('of a later step has the results, in the model’s order', () => {
    expect(ids(k.logOf(k.toolTurn()), { turn: 1, step: 2, attempt: 1 })).toEqual(['m1', 'a1-1', 'r-c1', 'r-c2'])
  })

  test('of a later turn has all that was said', () => {
    expect(ids(k.logOf(k.textTurn(), k.textTurn('m2', 2)), { turn: 2, step: 1, attempt: 1 })).toEqual([
      'm1',
      'a1-1',
      'm2',
    ])
  })

  test('has all the messages that entered its step', () => {
    expect(ids(k.logOf(k.stepStart(), k.entered('m1'), k.entered('m2'), k.header()))).toEqual(['m1', 'm2'])
    expect(ids(k.logOf(k.header(), k.stepStart(), k.entered('m1'), k.entered('m2')))).toEqual(['m1', 'm2'])
  })

  test('of a retry has the header logged for it', () => {
    const log = k.logOf(k.opened(), k.textChunks('x').slice(0, 1), retry(1), started(2), k.header('be kind'))
    expect(rebuildRequest(log, first).system).toBe('be brief')
    expect(rebuildRequest(log, { ...first, attempt: 2 }).system).toBe('be kind')
  })

  test('is not touched by a header logged after its first chunk', () => {
    const log = k.logOf(k.opened(), k.textChunks('x').slice(0, 2), k.header('be kind'), k.textChunks('x').slice(2))
    expect(rebuildRequest(log, first).system).toBe('be brief')
  })

  test('is not touched by a message that enters, or replaces others, while it is answered', () => {
    const summary = k.ev('user/message', k.message('s1'), {
      surfaceOp: { op: 'replace', start: 4, end: 4 },
      sourceEventSeqs: [4],
    })
    const half = k.textChunks('x').slice(0, 2)
    expect(ids(k.logOf(k.opened(), half, k.entered('m2'), summary, half))).toEqual(['m1'])
  })

  test('has the tools of its header, and no system or tools where the header has none', () => {
    const tools = [{ name: 'look', description: 'Looks', parameters: { type: 'object' } }]
    const asked = (more: object) => {
      const header = { config: { provider: 'p', model: 'm' }, ...more }
      return rebuildRequest(
        k.logOf(k.stepStart(), k.entered('m1'), k.ev('request/header', { header, reason: 'initial' })),
        first,
      )
    }
    const bare = { provider: 'p', model: 'm', messages: [k.message('m1')], sessionId: '' }
    expect(asked({ tools })).toStrictEqual({ ...bare, tools })
    expect(asked({})).toStrictEqual(bare)
  })

  test('keeps its history though a summary has replaced it since', () => {
    const summary = k.ev('user/message', k.message('s1'), {
      surfaceOp: { op: 'replace', start: 4, end: 12 },
      sourceEventSeqs: [4, 12],
    })
    const log = k.logOf(k.textTurn(), summary, k.textTurn('m2', 2))
    expect(ids(log)).toEqual(['m1'])
    expect(ids(log, { turn: 2, step: 1, attempt: 1 })).toEqual(['s1', 'm2'])
  })
})

describe('attempts', () => {
  const has = (attempt: number, ...drafts: readonly k.Drafts[]) => {
    try {
      return rebuildRequest(k.logOf(...drafts), { ...first, attempt }).messages.length > 0
    } catch (error) {
      if (error instanceof PawlError && error.code === 'ATTEMPT_NOT_FOUND') return false
      throw error
    }
  }
  const half = k.textChunks('x').slice(0, 1)

  test('each resume that finds the step asking begins one', () => {
    expect(has(3, k.opened(), half, k.resumed(), k.resumed())).toBe(true)
    expect(has(4, k.opened(), half, k.resumed(), k.resumed())).toBe(false)
  })

  test('a retry begins the one it names, also after a resume', () => {
    expect(has(3, k.opened(), k.resumed(), retry(2), started(3))).toBe(true)
  })

  test('none begins with a resume that waits for a retry, interrupts, finishes a cancel, or finds the answer there', () => {
    expect(has(2, k.opened(), retry(1), k.resumed())).toBe(false)
    expect(has(2, k.opened(), k.resumed({ recovery: 'interrupt' }))).toBe(false)
    expect(has(2, k.opened(), k.turnCancel(), k.resumed())).toBe(false)
    expect(has(2, k.opened(), k.asksFor([{ id: 'c1' }]), k.resumed())).toBe(false)
    expect(has(2, k.opened(), half, k.stepEnd('interrupted'), k.resumed())).toBe(false)
    expect(has(2, k.opened(), half, k.turnEnd(1, { kind: 'interrupted' }), k.resumed())).toBe(false)
  })

  test('a resume begins one in a turn that is not cancelled, whatever became of the turn before', () => {
    const before = [k.opened(), half, k.turnCancel(), k.stepEnd('aborted'), k.aborted()]
    const log = k.logOf(before, k.opened('m2', 2), k.resumed())
    expect(ids(log, { turn: 2, step: 1, attempt: 2 })).toEqual(['m1', 'm2'])
  })

  test('one that never was, or asked nothing yet, is said to be missing', () => {
    const missing = 'The log has no attempt 2 of step 1 in turn 1'
    expect(() => rebuildRequest(k.logOf(k.textTurn()), { ...first, attempt: 2 })).toThrow(missing)
    const asksNothing = k.logOf(k.opened().slice(0, 5))
    expect(() => rebuildRequest(asksNothing, first)).toThrow('it asked nothing')
    expect(() => rebuildRequest(asksNothing, first)).toThrow(expect.objectContaining({ code: 'ATTEMPT_NOT_FOUND' }))
  })
})
