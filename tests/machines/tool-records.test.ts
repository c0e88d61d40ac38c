import { describe, expect, test } from 'vitest'
import type { Recordable } from '../../src/log/events.ts'
import { type AgentContext, type Call, evolveAll } from '../../src/machines/evolve.ts'
import * as tools from '../../src/machines/tool-records.ts'
import type { CallResult } from '../../src/services/verdicts.ts'
import { call, cancelled, inShort, inStep, item, message, owed, queues } from '../kit/contexts.ts'

const withCalls = (...calls: readonly Call[]): AgentContext => ({ ...inStep, calls })
const done: CallResult = { content: [{ type: 'text', text: 'Done' }], isError: false }
const running = (callId: string, more: Partial<Call> = {}) => call(callId, { status: 'dispatched', run: 1, ...more })
const asked = (callId: string, more: Partial<Call> = {}) =>
  call(callId, { status: 'awaiting', approval: { argumentsDigest: 'sha256:0', purpose: 'run' }, ...more })
const settled = (callId: string) => call(callId, { status: 'settled', run: 1 })
/** What the first result among the events says, and its error. */
const toldBy = (events: readonly Recordable[]) => {
  const event = events.find((each) => each.type === 'tool/result')
  if (event?.type !== 'tool/result') return undefined
  const [block] = event.data.message.content[0].content
  return { text: block?.type === 'text' ? block.text : undefined, error: event.data.error }
}
const executing = (callId: string) => ({ callId, run: 1, phase: 'executing' }) as const

describe('scheduling', () => {
  test('calls begin in the model’s order, up to the cap', () => {
    expect(inShort(tools.proceed(withCalls(call('c1'), call('c2'), call('c3'))))).toEqual([
      'tool/call c1',
      'tool/call c2',
    ])
  })

  test('a call that waits for an approval keeps its slot', () => {
    expect(inShort(tools.proceed(withCalls(asked('c1'), call('c2'), call('c3'))))).toEqual(['tool/call c2'])
  })

  test('an exclusive call waits for those before it, and those after wait for it', () => {
    const exclusive = call('c2', { mode: 'exclusive' })
    expect(inShort(tools.proceed(withCalls(call('c1'), exclusive, call('c3'))))).toEqual(['tool/call c1'])
    expect(inShort(tools.proceed(withCalls(settled('c1'), exclusive, call('c3'))))).toEqual(['tool/call c2'])
    const alone = running('c2', { mode: 'exclusive' })
    expect(tools.proceed(withCalls(settled('c1'), alone, call('c3')))).toEqual([])
  })

  test('the actor’s word dispatches the call with what the live tool says of a crash', () => {
    const verdict = {
      callId: 'c1',
      run: 0,
      phase: 'authorizing',
      type: 'verdict.authorized',
      onCrash: 'rerun',
    } as const
    expect(inShort(tools.authorize(withCalls(call('c1', { status: 'called' })), verdict))).toEqual([
      'tool/dispatch c1 run 1 rerun',
    ])
  })
})

describe('results', () => {
  const verdict = (callId: string, result = done, contexts = [] as const) =>
    ({ ...executing(callId), type: 'verdict.settled', result, contexts }) as const

  test('a result is recorded the moment its tool settles, and makes room for the next call', () => {
    expect(inShort(tools.settle(withCalls(running('c1'), running('c2'), call('c3')), verdict('c1')))).toEqual([
      'tool/result c1 ok',
      'tool/call c3',
    ])
  })

  test('when all have settled the model is owed each result, through the end of next-step', () => {
    const context = { ...withCalls(settled('c1'), running('c2')), inbox: queues([item('s1')]) }
    expect(inShort(tools.settle(context, verdict('c2')))).toEqual([
      'tool/result c2 ok',
      'next-step@1 + result of c1, result of c2',
      'step/end tool-calls',
    ])
  })

  test('none is owed when a result concludes the turn, or when the steps are spent', () => {
    const concluding = verdict('c1', { ...done, concludesTurn: true })
    expect(inShort(tools.settle(withCalls(running('c1')), concluding))).toEqual([
      'tool/result c1 ok',
      'step/end concluded',
    ])
    const last = { ...withCalls(running('c1')), step: 3 }
    expect(inShort(tools.settle(last, verdict('c1')))).toEqual(['tool/result c1 ok', 'step/end tool-calls'])
  })

  test('contexts follow their result, one splice each', () => {
    const contexts = [message('x1'), message('x2')]
    const events = tools.settle(withCalls(running('c1'), running('c2')), { ...verdict('c1'), contexts })
    expect(inShort(events)).toEqual(['tool/result c1 ok', 'next-step@0 + x1', 'next-step@1 + x2'])
  })

  test('a result names its call, and its message is the call’s', () => {
    const [result] = tools.settle(withCalls(running('c1'), running('c2')), verdict('c1'))
    expect(result).toMatchObject({
      data: {
        message: { id: 'result-c1', source: { kind: 'tool', callId: 'c1' }, content: [{ toolCallId: 'c1' }] },
      },
      surfaceOp: 'append',
    })
  })

  test('a result the model reads is a message of its own kind, and says that it failed only if it did', () => {
    const content = (given: CallResult) => {
      const [event] = tools.settle(withCalls(running('c1'), running('c2')), verdict('c1', given))
      return event?.type === 'tool/result' ? event.data.message : undefined
    }
    const block = { type: 'tool-result', toolCallId: 'c1', content: done.content }
    const message = { id: 'result-c1', role: 'user', source: { kind: 'tool', callId: 'c1' } }
    expect(content(done)).toStrictEqual({ ...message, content: [block] })
    expect(content({ ...done, isError: true })).toStrictEqual({ ...message, content: [{ ...block, isError: true }] })
  })

  test('one that concludes is enough, whatever the others say', () => {
    const context = withCalls(call('c1', { status: 'settled', concludes: true }), running('c2'))
    expect(inShort(tools.settle(context, verdict('c2')))).toEqual(['tool/result c2 ok', 'step/end concluded'])
  })

  test('of a call that is not open, or of none, records nothing', () => {
    const context = withCalls(settled('c1'), running('c2'))
    for (const callId of ['c1', 'c9']) expect(tools.settle(context, verdict(callId))).toEqual([])
  })

  test('are not owed again when a fork’s cut left all of them in next-step', () => {
    const context = { ...withCalls(settled('c1')), inbox: queues([item('s1'), owed('c1')]) }
    expect(inShort(tools.proceed(context))).toEqual(['step/end tool-calls'])
  })

  test('results that a fork’s cut left in next-step are not owed twice', () => {
    const context = { ...withCalls(settled('c1'), settled('c2')), inbox: queues([owed('c1')]) }
    expect(inShort(tools.proceed(context))).toEqual(['next-step@1 + result of c2', 'step/end tool-calls'])
  })

  test('an actor that throws is a result with the code UNKNOWN', () => {
    const context = withCalls(running('c1'), running('c2'))
    const events = tools.crash(context, running('c1'), { code: 'UNKNOWN', message: 'Oops' })
    expect(inShort(events)).toEqual(['tool/result c1 UNKNOWN'])
    expect(toldBy(events)).toEqual({ text: 'Error: Oops', error: { name: 'Error', code: 'UNKNOWN' } })
  })

  test('of a call that recovery was asking about, nobody knows when the asking throws', () => {
    const lost = running('c1', { recovering: true })
    const events = tools.crash(withCalls(lost, running('c2')), lost, { code: 'UNKNOWN', message: 'Oops' })
    expect(inShort(events)).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
  })
})

describe('approvals', () => {
  test('the question names the run, and what it is for', () => {
    const verdict = {
      callId: 'c1',
      run: 0,
      phase: 'authorizing',
      type: 'verdict.ask',
      argumentsDigest: 'sha256:0',
    } as const
    const events = tools.ask(withCalls(call('c1', { status: 'called' })), verdict)
    expect(inShort(events)).toEqual(['tool/approval-requested c1 run 0'])
    expect(events[0]?.data).not.toHaveProperty('expiresAt')
    const [until] = tools.ask(withCalls(call('c1', { status: 'called' })), { ...verdict, expiresAt: 5 })
    expect(until?.data).toMatchObject({ expiresAt: 5 })
  })

  test('an approved call is dispatched in the same batch', () => {
    const command = { type: 'command.approve', callId: 'c1', run: 0, onCrash: 'ask', by: 'Ann' } as const
    const events = tools.approve(withCalls(asked('c1')), command)
    expect(inShort(events)).toEqual(['tool/approval-resolved c1 approved', 'tool/dispatch c1 run 1 ask'])
    expect(events[0]?.data).toMatchObject({ by: 'Ann', run: 0 })
  })

  test('denied and expired are one batch with the result, which tells the model', () => {
    const context = withCalls(asked('c1'), running('c2'))
    const denied = tools.deny(context, { type: 'command.deny', callId: 'c1', run: 0, reason: 'Too late' })
    expect(inShort(denied)).toEqual(['tool/approval-resolved c1 denied', 'tool/result c1 failed'])
    expect(JSON.stringify(denied)).toContain('denied: Too late')
    const expired = tools.expire(context, { callId: 'c1', run: 0, phase: 'awaiting', type: 'verdict.expired' })
    expect(inShort(expired)).toEqual(['tool/approval-resolved c1 expired', 'tool/result c1 failed'])
  })
})

describe('a call answered without its own result', () => {
  const again = asked('c2', { run: 1, onCrash: 'ask' })

  test('tells the model in words what is known of it', () => {
    const deny = (reason?: string) =>
      toldBy(
        tools.deny(withCalls(asked('c1'), running('c2')), {
          type: 'command.deny',
          callId: 'c1',
          run: 0,
          ...(reason === undefined ? {} : { reason }),
        }),
      )
    expect(deny()).toEqual({ text: 'Not run: denied.', error: undefined })
    expect(deny('Too late')).toEqual({ text: 'Not run: denied: Too late', error: undefined })
    const expired = { callId: 'c1', run: 0, phase: 'awaiting', type: 'verdict.expired' } as const
    expect(toldBy(tools.expire(withCalls(asked('c1'), running('c2')), expired))).toEqual({
      text: expect.stringMatching(/^Not run: nobody approved/),
      error: undefined,
    })
    expect(toldBy(tools.settleTools(withCalls(call('c1', { status: 'called' }))))).toEqual({
      text: expect.stringMatching(/^Not run: the turn was cancelled/),
      error: { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' },
    })
    expect(toldBy(tools.settleTools(withCalls(running('c1'))))).toEqual({
      text: expect.stringMatching(/^Outcome unknown: .*\(run 1\).* Verify before calling it again/),
      error: { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' },
    })
  })

  test('goes by its run: refused before the first it never began, after it nobody knows', () => {
    const deny = (callId: string, run: number) =>
      inShort(tools.deny(withCalls(asked('c1'), again, running('c3')), { type: 'command.deny', callId, run }))
    expect(deny('c1', 0)).toContain('tool/result c1 failed')
    expect(deny('c2', 1)).toContain('tool/result c2 TOOL_OUTCOME_UNKNOWN')
  })

  test('goes by its run when the time to settle is over', () => {
    const context = { ...withCalls(call('c1', { status: 'called' }), again, running('c3'), call('c4')), ...cancelled() }
    expect(inShort(tools.settleTools(context))).toEqual([
      'tool/result c1 ABORTED_BEFORE_DISPATCH',
      'tool/result c2 TOOL_OUTCOME_UNKNOWN',
      'tool/result c3 TOOL_OUTCOME_UNKNOWN',
      'tool/call c4',
      'tool/result c4 ABORTED_BEFORE_DISPATCH',
      'step/end aborted',
    ])
  })

  test('under a cancel is answered at once, while what was dispatched may settle', () => {
    const context = { ...withCalls(running('c1'), call('c2', { status: 'called' }), call('c3')), ...cancelled() }
    expect(inShort(tools.proceed(context))).toEqual([
      'tool/result c2 ABORTED_BEFORE_DISPATCH',
      'tool/call c3',
      'tool/result c3 ABORTED_BEFORE_DISPATCH',
    ])
    const last = { ...withCalls(running('c1')), ...cancelled() }
    const verdict = { ...executing('c1'), type: 'verdict.settled', result: done, contexts: [] } as const
    expect(inShort(tools.settle(last, verdict))).toEqual(['tool/result c1 ok', 'step/end aborted'])
  })
})

describe('after a crash', () => {
  const resumed = (time = 100) =>
    ({
      type: 'session/resumed',
      seq: 9,
      time,
      data: { recovery: 'continue', resumes: 1, version: '1.0.0', chart: 'sha256:0' },
    }) as const
  const resume = (context: AgentContext, time?: number) => inShort(tools.resumeTools(context, resumed(time)))

  test('a body whose tool promises nothing is unknown, the others are asked about, planned calls begin', () => {
    const context = withCalls(running('c1', { onCrash: 'unknown' }), running('c2', { onCrash: 'rerun' }), call('c3'))
    expect(resume(context)).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN', 'tool/call c3'])
  })

  test('a call that never began is told so, and that it may be called again', () => {
    const context = { ...withCalls(call('c1', { status: 'called' })), interrupted: {} }
    expect(toldBy(tools.resumeTools(context, resumed()))).toEqual({
      text: expect.stringMatching(/^Not run: the process stopped .*may be called again/),
      error: { name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' },
    })
  })

  test('a body of which the log says nothing more than that it ran is unknown', () => {
    expect(resume(withCalls(running('c1'), running('c2', { onCrash: 'ask' })))).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
    ])
  })

  test('what was answered before the crash is not answered again, however late it is', () => {
    const approval = { argumentsDigest: 'sha256:0', purpose: 'run', expiresAt: 50 } as const
    const denied = call('c1', { status: 'settled', approval })
    expect(resume(withCalls(denied, running('c2', { onCrash: 'ask' })))).toEqual([])
  })

  test('an approval that is overdue by the event’s own time expires first', () => {
    const approval = { argumentsDigest: 'sha256:0', purpose: 'run', expiresAt: 100 } as const
    const context = withCalls(asked('c1', { approval }), asked('c2'))
    expect(resume(context, 99)).toEqual([])
    expect(resume(context, 100)).toEqual(['tool/approval-resolved c1 expired', 'tool/result c1 failed'])
  })

  test('an interrupting recovery answers all by their run and ends the step', () => {
    const context = { ...withCalls(running('c1'), asked('c2'), call('c3')), interrupted: {} }
    expect(resume(context)).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'tool/result c2 TOOL_NOT_STARTED',
      'tool/result c3 TOOL_NOT_STARTED',
      'step/end interrupted',
    ])
  })

  test('a cancel that a crash cut short is finished', () => {
    expect(resume({ ...withCalls(settled('c0'), running('c1', { onCrash: 'rerun' })), ...cancelled() })).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'step/end aborted',
    ])
    expect(resume({ ...withCalls(running('c1'), call('c2')), ...cancelled() })).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'tool/call c2',
      'tool/result c2 ABORTED_BEFORE_DISPATCH',
      'step/end aborted',
    ])
  })

  test('a fork answers what its parent had under way, whatever the tool would allow', () => {
    const forked = evolveAll(
      withCalls(running('c1', { onCrash: 'rerun' }), asked('c2'), asked('c3', { run: 1, onCrash: 'ask' })),
      [{ type: 'session/end-seed', data: {} }],
    )
    expect(resume(forked).slice(0, 3)).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'tool/result c2 TOOL_NOT_STARTED',
      'tool/result c3 TOOL_OUTCOME_UNKNOWN',
    ])
  })

  const cut = (onCrash: Call['onCrash']) =>
    withCalls(running('c1', { recovering: true, ...(onCrash === undefined ? {} : { onCrash }) }), running('c2'))
  const recover = (context: AgentContext, decision: Parameters<typeof tools.recover>[1]['decision']) =>
    inShort(
      tools.recover(context, {
        callId: 'c1',
        run: 1,
        phase: 'recovering',
        type: 'verdict.recovered',
        decision,
        onCrash: 'ask',
      }),
    )

  test('a call runs again only if the log and the live tool both say so', () => {
    expect(recover(cut('rerun'), { kind: 'rerun' })).toEqual(['tool/dispatch c1 run 2 ask'])
    expect(recover(cut('unknown'), { kind: 'rerun' })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
    expect(recover(cut(undefined), { kind: 'rerun' })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
    expect(recover(cut('ask'), { kind: 'rerun' })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
    expect(recover(cut('rerun'), { kind: 'unknown' })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
  })

  test('a person is asked before a rerun, naming the run that was cut short', () => {
    expect(recover(cut('ask'), { kind: 'ask', argumentsDigest: 'sha256:0' })).toEqual([
      'tool/approval-requested c1 rerun 1',
    ])
  })

  test('a probe brings the result, or says that the call may run again', () => {
    expect(recover(cut('probe'), { kind: 'done', result: done })).toEqual(['tool/result c1 ok'])
    expect(recover(cut('probe'), { kind: 'not-done' })).toEqual(['tool/dispatch c1 run 2 ask'])
    expect(recover(cut('rerun'), { kind: 'done', result: done })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
  })

  test('under a cancel nothing runs again; what a probe knows is told', () => {
    const ending = (onCrash: Call['onCrash']) => ({ ...cut(onCrash), ...cancelled() })
    expect(recover(ending('rerun'), { kind: 'rerun' })).toEqual(['tool/result c1 TOOL_OUTCOME_UNKNOWN'])
    expect(recover(ending('probe'), { kind: 'not-done' })).toEqual(['tool/result c1 ABORTED_BEFORE_DISPATCH'])
    expect(recover(ending('probe'), { kind: 'done', result: done })).toEqual(['tool/result c1 ok'])
  })

  test('what recovery answered is no progress; what a tool said is', () => {
    const context = { ...withCalls(running('c1', { onCrash: 'unknown' }), running('c2')), resumes: 2 }
    expect(evolveAll(context, tools.resumeTools(context, resumed())).resumes).toBe(2)
    const verdict = { ...executing('c2'), type: 'verdict.settled', result: done, contexts: [] } as const
    expect(evolveAll(context, tools.settle(context, verdict)).resumes).toBe(0)
  })
})
