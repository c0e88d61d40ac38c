/** The reducer, event by event: what each leaves behind, and what it takes away. */
import { describe, expect, test } from 'vitest'
import type { EventMap, Recordable } from '../../src/log/events.ts'
import type { ContentBlock } from '../../src/log/messages.ts'
import { type AgentContext, type Evolvable, evolve, evolveAll, initialContext } from '../../src/machines/evolve.ts'
import { answer, call, cancelled, idle, inStep, inTurn, item, message, owed, queues } from '../kit/contexts.ts'

const at = { turn: 1, step: 1 }
const splice = (more: Partial<EventMap['agent/inbox/spliced']>): Recordable => ({
  type: 'agent/inbox/spliced',
  data: { mutation: 'splice', queue: 'next-turn', start: 0, deleteCount: 0, inserted: [], ...more },
})
const stepEnd = (kind: 'completed' | 'interrupted' | 'tool-calls'): Recordable => ({
  type: 'step/end',
  data: { ...at, outcome: { kind } },
})
const resumed = (more: Partial<EventMap['session/resumed']> = {}): Evolvable => ({
  type: 'session/resumed',
  data: { recovery: 'continue', resumes: 2, version: '1.0.0', chart: 'sha256:0', ...more },
})
const result = (callId: string, code?: string): Recordable => ({
  type: 'tool/result',
  data: {
    ...at,
    message: {
      id: `result-${callId}`,
      role: 'user',
      source: { kind: 'tool', callId },
      content: [{ type: 'tool-result', toolCallId: callId, content: [] }],
    },
    ...(code === undefined ? {} : { error: { name: 'Error', code } }),
  },
})

test('before the first turn nothing is called, claimed or allowed', () => {
  expect(initialContext).toMatchObject({ turn: 0, calls: [], claimed: [], limits: { maxSteps: 0 } })
})

describe('the inbox', () => {
  test('what is claimed leaves its queue and is remembered with it', () => {
    const context = { ...inTurn, inbox: queues([], [item('t1'), item('t2')]) }
    const after = evolve(context, splice({ deleteCount: 1, outcome: 'claimed' }))
    expect(after.inbox).toEqual(queues([], [item('t2')]))
    expect(after.claimed).toEqual([{ queue: 'next-turn', item: item('t1') }])
  })

  test('what is canceled or only comes in is not claimed', () => {
    const context = { ...inTurn, inbox: queues([], [item('t1')]) }
    expect(evolve(context, splice({ deleteCount: 1, outcome: 'canceled' })).claimed).toEqual([])
    expect(evolve(context, splice({ inserted: [item('t2')] })).claimed).toEqual([])
  })

  test('a claimed message that is put back is no longer claimed; the others and the results are', () => {
    const claimed = [item('t1'), item('t2'), owed('c1')].map((each) => ({ queue: 'next-step', item: each }) as const)
    const put = splice({ queue: 'next-step', inserted: [item('t1'), owed('c1')] })
    expect(evolve({ ...inTurn, claimed }, put).claimed.map((entry) => entry.item)).toEqual([item('t2'), owed('c1')])
  })

  test('what wakes latches only while a cancel is in progress, and only by a message', () => {
    const waking = splice({ inserted: [item('t1')], wake: true })
    const quiet = splice({ inserted: [item('t1')] })
    expect(evolve({ ...inStep, ...cancelled() }, waking).latch).toBe(true)
    expect(evolve({ ...inStep, ...cancelled() }, quiet).latch).toBe(false)
    expect(evolve(inStep, waking).latch).toBe(false)
  })

  test('drain and latch stay while a message waits, and go with the last', () => {
    const waiting = { ...idle, drain: true, latch: true, inbox: queues([], [item('t1'), item('t2')]) }
    const drop = splice({ deleteCount: 1, outcome: 'canceled' })
    expect(evolve(waiting, drop)).toMatchObject({ drain: true, latch: true })
    expect(evolveAll(waiting, [drop, drop])).toMatchObject({ drain: false, latch: false })
    expect(evolve({ ...waiting, drain: false, latch: false }, drop)).toMatchObject({ drain: false, latch: false })
  })
})

describe('turns and steps', () => {
  const busy: AgentContext = {
    ...inStep,
    attempt: 2,
    claimed: [{ queue: 'next-turn', item: item('t1') }],
    calls: [call('c1', { status: 'settled' })],
    ...cancelled(),
    outcome: { kind: 'max-tokens' },
    maxTokens: true,
    interrupted: {},
    retry: { retryId: 'r1', provider: 'demo', policyKey: 'default', retry: 1, at: 0, delayMs: 1 },
  }

  test('a cancel says whether the inbox is kept', () => {
    const cancel = (more: object): Recordable => ({
      type: 'turn/cancel',
      data: { turn: 1, cause: { kind: 'user' }, ...more },
    })
    expect(evolve(inTurn, cancel({ keepInbox: true })).cancel).toEqual({ cause: { kind: 'user' }, keepInbox: true })
    expect(evolve(inTurn, cancel({})).cancel?.keepInbox).toBe(false)
  })

  test('a step begins with its first attempt and nothing of the one before', () => {
    const after = evolve(busy, { type: 'step/start', data: { turn: 1, step: 2 } })
    expect(after).toMatchObject({ step: 2, attempt: 1, claimed: [], calls: [], outcome: null, retry: null })
    expect(after.maxTokens).toBe(true)
  })

  test('a step ends with its calls, its retry and its outcome told', () => {
    expect(evolve(busy, stepEnd('completed'))).toMatchObject({ calls: [], retry: null, outcome: { kind: 'completed' } })
  })

  test('a turn ends with all that was its own', () => {
    const after = evolve(busy, { type: 'turn/end', data: { turn: 1, reason: { kind: 'completed' } } })
    expect(after).toEqual({ ...idle, turn: 1, step: 1, limits: inTurn.limits })
  })

  test('a step that was carried to its end is progress; one that was interrupted is none', () => {
    expect(evolve({ ...inStep, resumes: 2 }, stepEnd('completed')).resumes).toBe(0)
    expect(evolve({ ...inStep, resumes: 2 }, stepEnd('interrupted')).resumes).toBe(2)
  })

  test('a step one of whose calls was answered by recovery is none either', () => {
    const calls = [call('c1', { status: 'settled' }), call('c2', { status: 'settled', synthetic: true })]
    expect(evolve({ ...inStep, calls, resumes: 2 }, stepEnd('tool-calls')).resumes).toBe(2)
  })
})

describe('calls', () => {
  const answered = (content: readonly ContentBlock[], calls: readonly string[]) =>
    evolve(inStep, {
      type: 'assistant/message',
      data: {
        ...at,
        attempt: 1,
        message: { ...answer('').message, content },
        finish: { kind: 'tool-calls' },
        calls: calls.map((callId) => ({ callId, name: 'work', mode: 'parallel' })),
      },
    }).calls
  const block = (id: string): ContentBlock => ({ type: 'tool-call', id, name: 'work', arguments: '{"n":1}' })
  const withCall = (more: object): AgentContext => ({ ...inStep, calls: [call('c1', more), call('c2', more)] })
  const first = (context: AgentContext) => context.calls[0]

  test('are planned as the model wrote them, and there are none in plain text', () => {
    expect(answered([{ type: 'text', text: 'Hi' }, block('c1')], ['c1'])).toEqual([
      call('c1', { arguments: '{"n":1}' }),
    ])
    expect(answered([{ type: 'text', text: 'Hi' }], [])).toEqual([])
  })

  test('whose block is missing have no arguments', () => {
    expect(answered([], ['c1'])).toEqual([call('c1', { arguments: '' })])
  })

  const requested = (more: object = {}): Recordable => ({
    type: 'tool/approval-requested',
    data: { ...at, callId: 'c1', run: 0, name: 'work', argumentsDigest: 'sha256:0', purpose: 'run', ...more },
  })

  test('that wait for an approval know what was asked, and until when if there is an end', () => {
    const approval = { argumentsDigest: 'sha256:0', purpose: 'run' }
    expect(first(evolve(withCall({ status: 'called' }), requested()))).toStrictEqual(
      call('c1', { status: 'awaiting', approval: { ...approval, purpose: 'run' } }),
    )
    expect(first(evolve(withCall({ status: 'called' }), requested({ expiresAt: 5 })))?.approval).toStrictEqual({
      ...approval,
      expiresAt: 5,
    })
  })

  test('once approved are where they were before the question, and the others where they are', () => {
    const resolved = (run: number, decision: 'approved' | 'denied' | 'expired') => {
      const approval = { argumentsDigest: 'sha256:0', purpose: 'run' } as const
      const data = { ...at, callId: 'c1', run, decision }
      return evolve(withCall({ status: 'awaiting', run, approval }), { type: 'tool/approval-resolved', data }).calls
    }
    expect(resolved(0, 'approved')[0]).toStrictEqual(call('c1', { status: 'called' }))
    expect(resolved(1, 'approved')[0]).toStrictEqual(call('c1', { status: 'dispatched', run: 1 }))
    expect(resolved(0, 'approved')[1]?.status).toBe('awaiting')
    for (const decision of ['denied', 'expired'] as const) expect(resolved(0, decision)[0]?.status).toBe('awaiting')
  })

  test('that run again are no longer being recovered', () => {
    const data = { ...at, callId: 'c1', run: 2, onCrash: 'rerun' } as const
    const context = withCall({ status: 'dispatched', run: 1, recovering: true, onCrash: 'probe' })
    expect(first(evolve(context, { type: 'tool/dispatch', data }))).toStrictEqual(
      call('c1', { status: 'dispatched', run: 2, onCrash: 'rerun' }),
    )
  })

  test.each([undefined, 'TOOL_TIMEOUT'])('answered by their tool are progress: %s', (code) => {
    const after = evolve({ ...withCall({ status: 'dispatched' }), resumes: 2 }, result('c1', code))
    expect(after.resumes).toBe(0)
    expect(first(after)).toStrictEqual(call('c1', { status: 'settled' }))
  })

  test.each(['TOOL_OUTCOME_UNKNOWN', 'TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH'])(
    'answered by recovery or a cancel are none: %s',
    (code) => {
      const after = evolve({ ...withCall({ status: 'dispatched' }), resumes: 2 }, result('c1', code))
      expect(after.resumes).toBe(2)
      expect(first(after)).toStrictEqual(call('c1', { status: 'settled', synthetic: true }))
    },
  )
})

describe('opening again, and forking', () => {
  const calls = [call('c1', { status: 'called' }), call('c2', { status: 'dispatched', run: 1 })]

  test('only a body that ran is being recovered', () => {
    const after = evolve({ ...inStep, calls, suspended: true }, resumed())
    expect(after).toMatchObject({ suspended: false, resumes: 2, interrupted: null })
    expect(after.calls.map(({ recovering }) => recovering)).toEqual([undefined, true])
  })

  test('a turn that is closed knows why, if there is a reason beside the configuration', () => {
    expect(evolve(inStep, resumed({ recovery: 'interrupt' })).interrupted).toStrictEqual({})
    const limit = resumed({ recovery: 'interrupt', cause: 'recovery-limit' })
    expect(evolve(inStep, limit).interrupted).toStrictEqual({ cause: 'recovery-limit' })
  })

  test('a fork begins with the messages of neither queue, awake, and with a clean record', () => {
    const context = {
      ...inStep,
      inbox: queues([item('s1'), owed('c1')], [item('t1')]),
      drain: true,
      latch: true,
      resumes: 2,
      suspended: true,
    }
    expect(evolve(context, { type: 'session/end-seed', data: {} })).toEqual({ ...inStep, inbox: queues([owed('c1')]) })
  })

  test('what moves nothing changes nothing', () => {
    const event = { type: 'user/message', data: message('m1'), surfaceOp: 'append' } as const
    expect(evolve(inStep, event)).toBe(inStep)
  })
})
