/** The chart with its effects, state by state: what each input records there, and what the actors are told. */
import { describe, expect, test } from 'vitest'
import { createActor } from 'xstate'
import type { EventMap } from '../../src/log/events.ts'
import type { AgentEvent } from '../../src/machines/agent.ts'
import type { CallResult, Verdict } from '../../src/services/verdicts.ts'
import { type Chart, openChart } from '../kit/chart.ts'
import { answer, message } from '../kit/contexts.ts'
import { simulatedMachine } from '../kit/simulator/machine.ts'

const FAILURE = { code: 'SERVER', message: 'Down' }
const at = { turn: 1, step: 1 }
const attempt = { ...at, attempt: 1 }
const followup = (id = 'm1') => ({ type: 'command.followup', message: message(id) }) as const
const steer = (id = 's1') => ({ type: 'command.steer', message: message(id) }) as const
const inject = (id = 'i1') => ({ type: 'command.inject', message: message(id) }) as const
const cancel = (more: object = {}) => ({ type: 'command.cancel', cause: { kind: 'user' }, ...more }) as const
const entered: Verdict = { ...at, type: 'verdict.prepared', decision: { kind: 'enter', messages: [message('m1')] } }
const said: Verdict = { ...attempt, type: 'verdict.answered', answer: answer('Hi'), calls: [] }
const planned = {
  retryId: 'r1',
  provider: 'demo',
  policyKey: 'default',
  retry: 1,
  delayMs: 500,
  failure: FAILURE,
  mode: 'normal',
  maxRetries: 2,
} as const
const retried: Verdict = { ...attempt, type: 'verdict.retry', retry: planned }
const waited: Verdict = { ...attempt, type: 'verdict.waited' }
const settle: Verdict = { type: 'verdict.settle', turn: 1 }
const stopping: Verdict = { ...at, type: 'verdict.stopping' }
const done: CallResult = { content: [{ type: 'text', text: 'Done' }], isError: false }

/** The model asks for these calls. */
const asks = (...ids: readonly string[]): Verdict => ({
  ...attempt,
  type: 'verdict.answered',
  answer: {
    ...answer(''),
    finish: { kind: 'tool-calls' },
    message: {
      ...answer('').message,
      content: ids.map((id) => ({ type: 'tool-call', id, name: 'work', arguments: '{"n":1}' })),
    },
  },
  calls: ids.map((callId) => ({ callId, name: 'work', mode: 'parallel' })),
})
const authorizing = (callId = 'c1') => ({ callId, run: 0, phase: 'authorizing' }) as const
const authorized = (callId = 'c1', onCrash: 'rerun' | 'unknown' | 'ask' = 'rerun'): Verdict => ({
  ...authorizing(callId),
  type: 'verdict.authorized',
  onCrash,
})
const question: Verdict = { ...authorizing(), type: 'verdict.ask', argumentsDigest: 'sha256:0', expiresAt: 2_000 }
const settled = (callId = 'c1'): Verdict => ({
  callId,
  run: 1,
  phase: 'executing',
  type: 'verdict.settled',
  result: done,
  contexts: [],
})
const approve = { type: 'command.approve', callId: 'c1', run: 0, onCrash: 'ask' } as const
const deny = { type: 'command.deny', callId: 'c1', run: 0 } as const
const resume = (more: Partial<EventMap['session/resumed']> = {}): AgentEvent => ({
  type: 'command.resume',
  resumed: { recovery: 'continue', resumes: 1, version: '1.0.0', chart: 'sha256:0', ...more },
})
const interrupt = resume({ recovery: 'interrupt' })
const threw = (id: string, error: unknown = new Error('Oops')): AgentEvent => ({
  type: `xstate.error.actor.${id}`,
  error,
  actorId: id,
})

const after = (...inputs: readonly AgentEvent[]): Chart => {
  const chart = openChart()
  for (const input of inputs) chart.send(input)
  return chart
}

/** A chart in each state that a log may be left in. */
const IN = {
  idle: () => openChart(),
  preStep: () => after(followup()),
  'stepRequest.streaming': () => after(followup(), entered),
  'stepRequest.waiting': () => after(followup(), entered, retried),
  toolExec: () => after(followup(), entered, asks('c1', 'c2')),
  turnStopping: () => after(followup(), entered, said),
} as const
type State = keyof typeof IN
const BUSY = ['preStep', 'stepRequest.streaming', 'stepRequest.waiting', 'toolExec', 'turnStopping'] as const

describe('an actor is told what its work needs', () => {
  test.each(Object.keys(IN) as State[])('the chart can be brought to %s', (state) => {
    expect(IN[state]().state()).toBe(state)
  })

  test('at rest nothing runs', () => {
    expect(openChart().running()).toEqual([])
  })

  test('the step that is proposed, and the messages claimed for it', () => {
    expect(IN.preStep().running()).toEqual([{ kind: 'prepareStep', turn: 1, step: 1, messages: [message('m1')] }])
  })

  test('only messages are proposed: results are the model’s already', () => {
    const chart = IN.toolExec()
    chart.send(steer())
    for (const input of [authorized('c1'), authorized('c2'), settled('c1'), settled('c2')]) chart.send(input)
    expect(chart.running()).toEqual([{ kind: 'prepareStep', turn: 1, step: 2, messages: [message('s1')] }])
    expect(chart.context().claimed.map(({ item }) => item.kind)).toEqual(['message', 'tool-result', 'tool-result'])
  })

  test('the attempt, and the chain of retries it belongs to', () => {
    expect(IN['stepRequest.streaming']().running()).toEqual([{ kind: 'askModel', ...attempt, chain: null }])
    const chart = IN['stepRequest.waiting']()
    chart.send(waited)
    expect(chart.running()).toMatchObject([{ kind: 'askModel', attempt: 2, chain: { retryId: 'r1', retry: 1 } }])
  })

  test('when to ask again: counted from the retry’s own time', () => {
    expect(IN['stepRequest.waiting']().running()).toEqual([{ kind: 'wait', ...attempt, at: 1_000, delayMs: 500 }])
  })

  test('the call, its run, and what it is to do', () => {
    const chart = IN.toolExec()
    const call = { kind: 'call', ...at, name: 'work', arguments: '{"n":1}' }
    const authorizing = { ...call, phase: 'authorizing', run: 0 }
    expect(chart.running()).toStrictEqual([
      { ...authorizing, callId: 'c1' },
      { ...authorizing, callId: 'c2' },
    ])
    chart.send(authorized('c1'))
    expect(chart.running()).toEqual([
      { ...authorizing, callId: 'c2' },
      { ...call, callId: 'c1', phase: 'executing', run: 1, onCrash: 'rerun' },
    ])
    chart.send(settled('c1'))
    expect(chart.running()).toEqual([{ ...authorizing, callId: 'c2' }])
  })

  test('until when a question may be answered', () => {
    const chart = IN.toolExec()
    chart.send(question)
    expect(chart.running()).toMatchObject([{ callId: 'c2' }, { callId: 'c1', phase: 'awaiting', expiresAt: 2_000 }])
    chart.send(approve)
    expect(chart.running()).toMatchObject([{ callId: 'c2' }, { callId: 'c1', phase: 'executing', run: 1 }])
    expect(chart.running()[1]).not.toHaveProperty('expiresAt')
  })

  test('how the turn would end', () => {
    expect(IN.turnStopping().running()).toEqual([{ kind: 'stopTurn', ...at, reason: { kind: 'completed' } }])
  })
})

test('is made before it has a log to write to, and writes nothing', () => {
  expect(createActor(simulatedMachine).getSnapshot()).toMatchObject({ status: 'active', value: 'idle' })
})

describe('a message', () => {
  test.each([
    [followup(), ['next-turn@0 + m1 wake', 'turn/start', 'next-turn@0 claimed 1'], 'preStep'],
    [steer(), ['next-step@0 + s1 wake', 'turn/start', 'next-step@0 claimed 1'], 'preStep'],
    [inject(), ['next-step@0 + i1'], 'idle'],
  ])('to an agent at rest: $type', (command, recorded, state) => {
    const chart = openChart()
    expect(chart.send(command)).toEqual(recorded)
    expect(chart.state()).toBe(state)
  })

  test.each(BUSY)('waits its turn in %s', (state) => {
    const chart = IN[state]()
    expect(chart.send(followup('t1'))).toEqual(['next-turn@0 + t1 wake'])
    expect(chart.send(steer())).toEqual(['next-step@0 + s1 wake'])
    expect(chart.send(inject())).toEqual(['next-step@1 + i1'])
    expect(chart.send({ type: 'command.remove', id: 's1' })).toEqual(['next-step@0 canceled 1'])
    expect(chart.send({ type: 'command.clear' })).toEqual(['next-step@0 canceled 1', 'next-turn@0 canceled 1'])
    expect(chart.state()).toBe(state)
  })

  test('that waits starts a turn when somebody says so, and not while one is open', () => {
    const chart = openChart()
    chart.send(inject())
    expect(chart.send({ type: 'command.wake' })).toEqual(['turn/start', 'next-step@0 claimed 1'])
    expect(chart.send({ type: 'command.wake' })).toEqual([])
  })

  test('of each queue enters a turn that opens, next-step first', () => {
    const chart = openChart()
    chart.send(inject())
    expect(chart.send(followup())).toEqual([
      'next-turn@0 + m1 wake',
      'turn/start',
      'next-step@0 claimed 1',
      'next-turn@0 claimed 1',
    ])
    expect(chart.running()).toMatchObject([{ kind: 'prepareStep', messages: [message('i1'), message('m1')] }])
    expect(chart.started()).toBe(1)
  })

  test('left by a turn that ended well opens the next one, in the same batch', () => {
    const chart = IN.turnStopping()
    chart.send(followup('m2'))
    expect(chart.send(stopping)).toEqual(['turn/end completed', 'turn/start', 'next-turn@0 claimed 1'])
    expect(chart.state()).toBe('preStep')
    expect(chart.context().turn).toBe(2)
  })
})

describe('a step', () => {
  test('begins with its messages, asks the model, and ends with its answer', () => {
    const chart = IN.preStep()
    expect(chart.send(entered)).toEqual(['step/start', 'user/message'])
    expect(chart.send(said)).toEqual(['assistant/message', 'step/end completed'])
    expect(chart.send(stopping)).toEqual(['turn/end completed'])
    expect(chart.state()).toBe('idle')
  })

  test('that is refused ends its turn', () => {
    const decision = { kind: 'reject', reason: 'No' } as const
    const chart = IN.preStep()
    expect(chart.send({ ...at, type: 'verdict.prepared', decision })).toEqual(['turn/end blocked'])
    expect(chart.state()).toBe('idle')
  })

  test('that fails ends its turn without asking the hooks', () => {
    const chart = IN['stepRequest.streaming']()
    expect(chart.send({ ...attempt, type: 'verdict.failed', failure: FAILURE })).toEqual([
      'step/end error',
      'turn/end error',
    ])
  })

  test('whose request stops of itself failed', () => {
    expect(IN['stepRequest.streaming']().send({ ...attempt, type: 'verdict.aborted' })).toEqual([
      'step/end error',
      'turn/end error',
    ])
  })

  test('that is retried waits, and then asks again', () => {
    const chart = IN['stepRequest.streaming']()
    expect(chart.send(retried)).toEqual(['llm/retry'])
    expect(chart.state()).toBe('stepRequest.waiting')
    expect(chart.send(waited)).toEqual(['llm/retry-started'])
    expect(chart.state()).toBe('stepRequest.streaming')
    expect(chart.send({ ...said, attempt: 2 })).toEqual(['assistant/message', 'step/end completed'])
  })

  test('cut by the token limit, or concluded by a tool, lets the hooks have their say', () => {
    const cut = IN['stepRequest.streaming']()
    cut.send({
      ...attempt,
      type: 'verdict.answered',
      answer: answer('Hi', { finish: { kind: 'max-tokens' } }),
      calls: [],
    })
    expect(cut.running()).toEqual([{ kind: 'stopTurn', ...at, reason: { kind: 'max-tokens' } }])
    const concluded = after(followup(), entered, asks('c1'), authorized())
    const result = { ...done, concludesTurn: true } as const
    expect(concluded.send({ ...settled(), result } as Verdict)).toEqual(['tool/result c1 ok', 'step/end concluded'])
    expect(concluded.state()).toBe('turnStopping')
  })

  test('after which a message waits is followed by another, without asking the hooks', () => {
    const chart = IN['stepRequest.streaming']()
    chart.send(steer())
    expect(chart.send(said)).toEqual(['assistant/message', 'step/end completed', 'next-step@0 claimed 1'])
    expect(chart.running()).toMatchObject([{ kind: 'prepareStep', step: 2 }])
  })

  test('with tools hands their results to the next one', () => {
    const chart = after(followup(), entered, asks('c1'), authorized())
    expect(chart.send(settled())).toEqual([
      'tool/result c1 ok',
      'next-step@0 + result of c1',
      'step/end tool-calls',
      'next-step@0 claimed 1',
    ])
    expect(chart.state()).toBe('preStep')
  })

  test('the hooks may steer on at the end of a turn', () => {
    const chart = IN.turnStopping()
    chart.send(steer())
    expect(chart.send(stopping)).toEqual(['next-step@0 claimed 1'])
    expect(chart.running()).toMatchObject([{ kind: 'prepareStep', step: 2, messages: [message('s1')] }])
  })

  test('more of them than the turn may have are not begun', () => {
    const chart = openChart([], { limits: { maxSteps: 1, maxParallelToolCalls: 2 } })
    for (const input of [followup(), entered, asks('c1'), authorized()]) chart.send(input)
    expect(chart.send(settled())).toEqual(['tool/result c1 ok', 'step/end tool-calls', 'turn/end max-steps'])
  })
})

describe('a verdict on something else', () => {
  const elsewhere = <V extends Verdict>(verdict: V, ...others: readonly object[]) =>
    others.map((other) => ({ ...verdict, ...other }))

  test.each<readonly [State, readonly Verdict[]]>([
    ['preStep', elsewhere(entered, { turn: 2 }, { step: 2 }, { turn: 0, step: 0 })],
    [
      'stepRequest.streaming',
      [
        said,
        retried,
        { ...attempt, type: 'verdict.failed', failure: FAILURE } as const,
        {
          ...attempt,
          type: 'verdict.aborted',
        } as const,
      ].flatMap((verdict) => elsewhere(verdict, { turn: 2 }, { step: 2 }, { attempt: 2 })),
    ],
    ['stepRequest.waiting', elsewhere(waited, { turn: 2 }, { step: 2 }, { attempt: 2 })],
    [
      'toolExec',
      [
        ...elsewhere(authorized(), { callId: 'c9' }, { run: 1 }, { phase: 'executing' }),
        ...elsewhere(question, { callId: 'c9' }, { run: 1 }, { phase: 'awaiting' }),
        ...elsewhere(
          { ...settled(), run: 0, phase: 'authorizing' },
          { callId: 'c9' },
          { run: 1 },
          { phase: 'executing' },
        ),
        { ...authorizing(), phase: 'awaiting', type: 'verdict.expired' },
        {
          ...authorizing(),
          phase: 'recovering',
          type: 'verdict.recovered',
          decision: { kind: 'rerun' },
          onCrash: 'rerun',
        },
      ],
    ],
    ['turnStopping', elsewhere(stopping, { turn: 2 }, { step: 2 }, { turn: 0, step: 0 })],
  ])('records nothing in %s', (state, verdicts) => {
    const chart = IN[state]()
    const running = chart.running()
    for (const verdict of verdicts) expect([verdict, chart.send(verdict)]).toEqual([verdict, []])
    expect([chart.state(), chart.running()]).toEqual([state, running])
  })

  test.each(BUSY)('nor does one whose state is over, in %s', (state) => {
    const own: Readonly<Record<(typeof BUSY)[number], string>> = {
      preStep: 'verdict.prepared',
      'stepRequest.streaming': 'verdict.answered',
      'stepRequest.waiting': 'verdict.waited',
      toolExec: 'verdict.authorized',
      turnStopping: 'verdict.stopping',
    }
    const chart = IN[state]()
    const late = [entered, { ...entered, step: 2 } as const, said, waited, authorized(), settled(), stopping]
    for (const verdict of late) if (verdict.type !== own[state]) expect(chart.send(verdict)).toEqual([])
    expect(chart.state()).toBe(state)
  })

  test('the time to settle is over only for a turn that is being cancelled', () => {
    for (const state of BUSY) expect(IN[state]().send(settle)).toEqual([])
  })
})

describe('an actor that throws', () => {
  test.each([
    ['prepareStep', [], ['turn/end error']],
    ['askModel', [entered], ['step/end error', 'turn/end error']],
    ['wait', [entered, retried], ['step/end error', 'turn/end error']],
    ['stopTurn', [entered, said], ['turn/end error']],
  ] as const)('as it begins, such as %s, fails the turn', (throwing, inputs, recorded) => {
    const chart = openChart([], { throwing })
    const all = [followup(), ...inputs].flatMap((input) => chart.send(input))
    expect(all.slice(-recorded.length)).toEqual(recorded)
    expect(chart.log.at(-1)?.data).toMatchObject({ reason: { error: { message: `${throwing} broke` } } })
  })

  test('as it begins fails its call', () => {
    const chart = openChart([], { throwing: 'call' })
    for (const input of [followup(), entered, asks('c1')]) chart.send(input)
    expect(chart.log.find((event) => event.type === 'tool/result')?.data).toMatchObject({ error: { code: 'UNKNOWN' } })
  })

  test.each([
    ['preStep', 'prepareStep', ['turn/end error']],
    ['stepRequest.streaming', 'askModel', ['step/end error', 'turn/end error']],
    ['stepRequest.waiting', 'wait', ['step/end error', 'turn/end error']],
    ['turnStopping', 'stopTurn', ['turn/end error']],
  ] as const)('in %s ends the turn in error, with its message', (state, id, recorded) => {
    const chart = IN[state]()
    expect(chart.send(threw(id))).toEqual(recorded)
    expect(chart.log.at(-1)?.data).toMatchObject({ reason: { error: { code: 'UNKNOWN', message: 'Oops' } } })
  })

  test.each([new Error(''), 'a string', null])('is said to have failed when it does not say why: %s', (error) => {
    const chart = IN.preStep()
    chart.send(threw('prepareStep', error))
    expect(chart.log.at(-1)?.data).toMatchObject({ reason: { error: { message: 'An actor failed' } } })
  })

  test('fails its call, and no other', () => {
    const chart = IN.toolExec()
    chart.send(authorized('c2'))
    expect(chart.send(threw('tool.c2.executing.1'))).toEqual(['tool/result c2 UNKNOWN'])
    expect(chart.running()).toMatchObject([{ callId: 'c1' }])
  })

  test('while it waits for a person counts as nobody answering', () => {
    const chart = IN.toolExec()
    chart.send(question)
    expect(chart.send(threw('tool.c1.awaiting.0'))).toEqual([
      'tool/approval-resolved c1 expired',
      'tool/result c1 failed',
    ])
  })

  test('and was stopped before is nobody’s failure', () => {
    const chart = IN.toolExec()
    chart.send(authorized())
    for (const id of [
      'tool.c1.authorizing.0',
      'tool.c1.executing.0',
      'tool.c1.none.1',
      'tool.c9.executing.1',
      'askModel',
    ])
      expect(chart.send(threw(id))).toEqual([])
    chart.send(settled())
    expect(chart.send(threw('tool.c1.none.1'))).toEqual([])
    for (const state of ['idle', 'preStep', 'turnStopping'] as const)
      expect(IN[state]().send(threw('askModel'))).toEqual([])
  })
})

describe('a cancel', () => {
  const ends: Readonly<Record<(typeof BUSY)[number], readonly string[]>> = {
    preStep: [],
    'stepRequest.streaming': [],
    'stepRequest.waiting': ['step/end aborted', 'turn/end aborted'],
    toolExec: [
      'tool/result c1 ABORTED_BEFORE_DISPATCH',
      'tool/result c2 ABORTED_BEFORE_DISPATCH',
      'step/end aborted',
      'turn/end aborted',
    ],
    turnStopping: [],
  }

  test.each(BUSY)('in %s is recorded once, aborts the signal and does not wait where nothing runs', (state) => {
    const chart = IN[state]()
    expect(chart.send(cancel())).toEqual(['turn/cancel', ...ends[state]])
    expect(chart.signals.slice(0, 2)).toEqual(['open', 'abort'])
    expect(chart.send(cancel())).toEqual([])
  })

  test.each(BUSY)('that names another turn is not for the one open in %s', (state) => {
    const chart = IN[state]()
    expect(chart.send(cancel({ turn: 2 }))).toEqual([])
    expect(chart.signals).toEqual(['open'])
    expect(chart.send(cancel({ turn: 1 }))).toEqual(['turn/cancel', ...ends[state]])
  })

  test('at rest clears what waits, unless it names a turn, which is over', () => {
    const chart = openChart()
    chart.send(inject())
    expect(chart.send(cancel({ turn: 1 }))).toEqual([])
    expect(chart.send(cancel())).toEqual(['next-step@0 canceled 1'])
    expect(chart.signals).toEqual([])
  })

  test.each([
    ['preStep', ['turn/end aborted']],
    ['stepRequest.streaming', ['step/end aborted', 'turn/end aborted']],
    ['turnStopping', ['turn/end aborted']],
  ] as const)('in %s ends the turn when the time to settle is over, and not before', (state, recorded) => {
    const chart = IN[state]()
    chart.send(cancel())
    expect(chart.send({ ...settle, turn: 2 })).toEqual([])
    expect(chart.state()).toBe(state)
    expect(chart.send(settle)).toEqual(recorded)
    expect(chart.signals).toEqual(['open', 'abort', 'close'])
    expect(chart.running()).toEqual([])
  })

  test('keeps what the model had said when the time to settle was over', () => {
    const chart = IN['stepRequest.streaming']()
    chart.send(cancel())
    expect(chart.send({ ...settle, partial: answer('Hal') })).toEqual([
      'assistant/message',
      'step/end aborted',
      'turn/end aborted',
    ])
  })

  test('lets a body that runs finish, and answers for it when it does not', () => {
    const cancelled = () => {
      const chart = IN.toolExec()
      chart.send(authorized('c1'))
      expect(chart.send(cancel())).toEqual(['turn/cancel', 'tool/result c2 ABORTED_BEFORE_DISPATCH'])
      return chart
    }
    expect(cancelled().send(settled('c1'))).toEqual(['tool/result c1 ok', 'step/end aborted', 'turn/end aborted'])
    expect(cancelled().send({ ...settle, turn: 2 })).toEqual([])
    expect(cancelled().send(settle)).toEqual([
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'step/end aborted',
      'turn/end aborted',
    ])
  })

  test('begins no call that only waited for its slot', () => {
    const chart = after(followup(), entered, asks('c1', 'c2', 'c3'), authorized('c1'))
    const before = chart.started()
    expect(chart.send(cancel())).toEqual([
      'turn/cancel',
      'tool/result c2 ABORTED_BEFORE_DISPATCH',
      'tool/call c3',
      'tool/result c3 ABORTED_BEFORE_DISPATCH',
    ])
    expect(chart.started()).toBe(before)
    expect(chart.running()).toMatchObject([{ callId: 'c1' }])
  })

  test('whatever the actors then say, the turn is aborted', () => {
    const ended = (state: State, ...inputs: readonly AgentEvent[]) => {
      const chart = IN[state]()
      chart.send(cancel())
      return inputs.flatMap((input) => chart.send(input))
    }
    expect(ended('preStep', entered)).toEqual(['turn/end aborted'])
    expect(ended('preStep', threw('prepareStep'))).toEqual(['turn/end aborted'])
    expect(ended('stepRequest.streaming', said)).toEqual(['assistant/message', 'step/end aborted', 'turn/end aborted'])
    expect(ended('stepRequest.streaming', { ...attempt, type: 'verdict.aborted', partial: answer('Hal') })).toEqual([
      'assistant/message',
      'step/end aborted',
      'turn/end aborted',
    ])
    expect(ended('stepRequest.streaming', retried)).toEqual(['step/end aborted', 'turn/end aborted'])
    expect(ended('turnStopping', stopping)).toEqual(['turn/end aborted'])
    expect(ended('turnStopping', threw('stopTurn'))).toEqual(['turn/end aborted'])
  })

  test('what wakes during one opens the turn after it', () => {
    const chart = IN['stepRequest.streaming']()
    chart.send(cancel())
    chart.send(steer())
    expect(chart.send(settle)).toEqual(['step/end aborted', 'turn/end aborted', 'turn/start', 'next-turn@0 claimed 1'])
    expect(chart.signals).toEqual(['open', 'abort', 'close', 'open'])
  })
})

describe('a question about a call', () => {
  const asked = () => {
    const chart = IN.toolExec()
    chart.send(question)
    return chart
  }

  test('is answered by a person, once', () => {
    const chart = asked()
    expect(chart.send(approve)).toEqual(['tool/approval-resolved c1 approved', 'tool/dispatch c1 run 1 ask'])
    expect(chart.send(approve)).toEqual([])
    expect(chart.send(deny)).toEqual([])
    expect(asked().send(deny)).toEqual(['tool/approval-resolved c1 denied', 'tool/result c1 failed'])
  })

  test.each([
    ['another call', { callId: 'c2' }],
    ['a call nobody knows', { callId: 'c9' }],
    ['another run', { run: 1 }],
  ])('is not answered by a word on %s', (_, other) => {
    const chart = asked()
    expect(chart.send({ ...approve, ...other })).toEqual([])
    expect(chart.send({ ...deny, ...other })).toEqual([])
    expect(chart.running()).toMatchObject([{ callId: 'c2' }, { callId: 'c1', phase: 'awaiting' }])
  })

  test('expires when its time is over', () => {
    const expired: Verdict = { ...authorizing(), phase: 'awaiting', type: 'verdict.expired' }
    expect(asked().send(expired)).toEqual(['tool/approval-resolved c1 expired', 'tool/result c1 failed'])
  })

  test('stops its actor when it is answered', () => {
    const chart = asked()
    chart.send(deny)
    expect(chart.running()).toMatchObject([{ callId: 'c2' }])
  })
})

describe('a log that is opened again', () => {
  test.each(BUSY)('in %s runs nothing until it is resumed', (state) => {
    const chart = IN[state]().reopen()
    expect([chart.state(), chart.running()]).toEqual([state, []])
  })

  test.each([
    ['preStep', [{ kind: 'prepareStep', turn: 1, step: 1, messages: [message('m1')] }]],
    ['stepRequest.streaming', [{ kind: 'askModel', ...at, attempt: 2, chain: null }]],
    ['stepRequest.waiting', [{ kind: 'wait', ...attempt, at: 1_000, delayMs: 500 }]],
    ['turnStopping', [{ kind: 'stopTurn', ...at, reason: { kind: 'completed' } }]],
  ] as const)('in %s is carried on by its actor', (state, running) => {
    const chart = IN[state]().reopen()
    expect(chart.send(resume())).toEqual(['session/resumed'])
    expect([chart.state(), chart.running()]).toEqual([state, running])
  })

  test.each([
    ['preStep', ['next-turn@0 + m1', 'turn/end interrupted']],
    ['stepRequest.streaming', ['step/end interrupted', 'turn/end interrupted']],
    ['stepRequest.waiting', ['step/end interrupted', 'turn/end interrupted']],
    [
      'toolExec',
      [
        'tool/result c1 TOOL_NOT_STARTED',
        'tool/result c2 TOOL_NOT_STARTED',
        'step/end interrupted',
        'turn/end interrupted',
      ],
    ],
    ['turnStopping', ['turn/end interrupted']],
  ] as const)('to be interrupted in %s is at rest at once, and starts nothing', (state, recorded) => {
    const chart = IN[state]().reopen()
    expect(chart.send(interrupt)).toEqual(['session/resumed', ...recorded])
    expect([chart.state(), chart.started()]).toEqual(['idle', 0])
  })

  test.each(['preStep', 'stepRequest.streaming', 'turnStopping'] as const)(
    'finishes the cancel that the crash cut short in %s',
    (state) => {
      const chart = IN[state]()
      chart.send(cancel())
      const reopened = chart.reopen()
      expect(reopened.send(resume()).at(-1)).toBe('turn/end aborted')
      expect([reopened.state(), reopened.started()]).toEqual(['idle', 0])
    },
  )

  test('answers every body that ran when a cancel was under way, whatever its tool allows', () => {
    const chart = after(followup(), entered, asks('c1'), authorized('c1', 'rerun'), cancel()).reopen()
    expect(chart.send(resume())).toEqual([
      'session/resumed',
      'tool/result c1 TOOL_OUTCOME_UNKNOWN',
      'step/end aborted',
      'turn/end aborted',
    ])
    expect(chart.started()).toBe(0)
  })

  test('takes a cancel that was posted meanwhile before anything runs', () => {
    for (const state of BUSY) {
      const chart = IN[state]().reopen()
      const posted = { ...resume(), cancel: { cause: { kind: 'user' } } } as AgentEvent
      const recorded = chart.send(posted)
      expect([recorded[0], recorded.at(-1)]).toEqual(['turn/cancel', 'turn/end aborted'])
      expect([chart.state(), chart.started()]).toEqual(['idle', 0])
    }
  })

  test('asks each call that may go on, and answers at once the one that may not', () => {
    const chart = after(followup(), entered, asks('c1', 'c2'), authorized('c1', 'unknown'), authorized('c2', 'rerun'))
    const reopened = chart.reopen()
    expect(reopened.send(resume())).toEqual(['session/resumed', 'tool/result c1 TOOL_OUTCOME_UNKNOWN'])
    expect(reopened.running()).toEqual([
      {
        kind: 'call',
        ...at,
        callId: 'c2',
        name: 'work',
        arguments: '{"n":1}',
        phase: 'recovering',
        run: 1,
        onCrash: 'rerun',
      },
    ])
    const verdict = { callId: 'c2', run: 1, phase: 'recovering', type: 'verdict.recovered', onCrash: 'rerun' } as const
    expect(reopened.send({ ...verdict, decision: { kind: 'rerun' } })).toEqual(['tool/dispatch c2 run 2 rerun'])
    expect(reopened.running()).toMatchObject([{ callId: 'c2', phase: 'executing', run: 2 }])
  })

  test('gives calls that were being authorised or approved their actor, and planned ones none', () => {
    const chart = after(followup(), entered, asks('c1', 'c2', 'c3'), question).reopen()
    expect(chart.send(resume())).toEqual(['session/resumed'])
    expect(chart.running()).toMatchObject([
      { callId: 'c1', phase: 'awaiting', expiresAt: 2_000 },
      { callId: 'c2', phase: 'authorizing' },
    ])
    expect(chart.started()).toBe(2)
  })

  test('gives no actor to a call that was answered', () => {
    const chart = after(followup(), entered, asks('c1', 'c2'), authorized(), settled()).reopen()
    chart.send(resume())
    expect(chart.running()).toMatchObject([{ callId: 'c2' }])
  })

  test('starts the turn that it owes, but not after an interrupting recovery', () => {
    const owing = () => {
      const chart = IN.turnStopping()
      chart.send(followup('m2'))
      chart.send(stopping)
      const end = chart.log.findIndex((event) => event.type === 'turn/end')
      return openChart(chart.log.slice(0, end + 1))
    }
    expect(owing().send(resume({ resumes: 0 }))).toEqual(['session/resumed', 'turn/start', 'next-turn@0 claimed 1'])
    expect(owing().send(interrupt)).toEqual(['session/resumed'])
  })

  test('is carried on from the two places a batch only passes through', () => {
    const opening = IN.preStep().log.findIndex((event) => event.type === 'turn/start')
    const cutAt = (log: Chart['log'], index: number) => openChart(log.slice(0, index + 1))
    const opened = cutAt(IN.preStep().log, opening)
    expect(opened.state()).toBe('turnOpen')
    expect(opened.send(followup('m2'))).toEqual(['next-turn@1 + m2 wake'])
    expect(opened.state()).toBe('turnOpen')
    expect(opened.send(resume())).toEqual(['session/resumed', 'next-turn@0 claimed 1'])
    expect(cutAt(IN.preStep().log, opening).send(interrupt)).toEqual(['session/resumed', 'turn/end interrupted'])
    const stepped = after(followup(), entered, asks('c1'), authorized(), settled()).log
    const closing = stepped.findIndex((event) => event.type === 'step/end')
    const closed = cutAt(stepped, closing)
    expect(closed.state()).toBe('stepClosed')
    expect(closed.send(resume())).toEqual(['session/resumed', 'next-step@0 claimed 1'])
    expect(cutAt(stepped, closing).send(interrupt)).toEqual([
      'session/resumed',
      'next-step@0 canceled 1',
      'turn/end interrupted',
    ])
  })
})

describe('closing', () => {
  test.each(BUSY)('in %s is noted, and nothing moves', (state) => {
    const chart = IN[state]()
    expect(chart.send({ type: 'command.suspend' })).toEqual(['session/suspended'])
    expect([chart.state(), chart.context().suspended]).toEqual([state, true])
    const reopened = chart.reopen()
    reopened.send(resume())
    expect(reopened.context().suspended).toBe(false)
  })

  test('at rest leaves nothing open, and notes nothing', () => {
    expect(openChart().send({ type: 'command.suspend' })).toEqual([])
  })
})
