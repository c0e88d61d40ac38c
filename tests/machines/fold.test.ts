import { describe, expect, test } from 'vitest'
import { createActor } from 'xstate'
import type { Recordable, SessionEvent } from '../../src/log/events.ts'
import { agentMachine } from '../../src/machines/agent.ts'
import { initialContext } from '../../src/machines/evolve.ts'
import { createFold, fold, stateName } from '../../src/machines/fold.ts'
import { answer, item, message, owed, queues } from '../kit/contexts.ts'
import { roundFork } from '../kit/simulator/fork.ts'

const limits = { maxSteps: 3, maxParallelToolCalls: 2 }

/** The events in their places, a millisecond each. */
const logOf = (events: readonly Recordable[]): readonly SessionEvent[] =>
  events.map((event, seq) =>
    event.type === 'turn/start'
      ? { ...event, data: { ...event.data, limits }, seq, time: seq }
      : { ...event, seq, time: seq },
  )

/** The state after each event. */
const path = (events: readonly Recordable[]): readonly string[] => {
  const folded = createFold()
  return logOf(events).map((event) => {
    expect(folded.accepts(event)).toBe(true)
    folded.push(event)
    return stateName(folded.snapshot())
  })
}

const at = { turn: 1, step: 1 }
const splice = (more: object): Recordable => ({
  type: 'agent/inbox/spliced',
  data: { mutation: 'splice', queue: 'next-turn', start: 0, deleteCount: 0, inserted: [], ...more },
})
const sent = splice({ inserted: [item('m1')], wake: true })
const claimed = splice({ deleteCount: 1, outcome: 'claimed' })
const opened: readonly Recordable[] = [sent, { type: 'turn/start', data: { turn: 1 } }, claimed]
const asking: readonly Recordable[] = [
  ...opened,
  { type: 'step/start', data: at },
  { type: 'user/message', data: message('m1'), surfaceOp: 'append' },
]
const answered = (calls: readonly string[], step = 1): Recordable => ({
  type: 'assistant/message',
  data: {
    turn: 1,
    step,
    attempt: 1,
    message: {
      ...answer('Hi').message,
      content: calls.map((id) => ({ type: 'tool-call', id, name: 'work', arguments: '{"n":1}' })),
    },
    finish: { kind: 'stop' },
    calls: calls.map((callId) => ({ callId, name: 'work', mode: 'parallel' })),
  },
})
const called = (callId: string): Recordable => ({
  type: 'tool/call',
  data: { ...at, callId, name: 'work', arguments: '{"n":1}' },
})
const dispatched = (callId: string): Recordable => ({
  type: 'tool/dispatch',
  data: { ...at, callId, run: 1, onCrash: 'rerun' },
})
const resulted = (callId: string): Recordable => ({
  type: 'tool/result',
  data: {
    ...at,
    message: {
      id: `result-${callId}`,
      role: 'user',
      source: { kind: 'tool', callId },
      content: [{ type: 'tool-result', toolCallId: callId, content: [] }],
    },
  },
})
const endStep = (kind: 'completed' | 'tool-calls', step = 1): Recordable => ({
  type: 'step/end',
  data: { turn: 1, step, outcome: { kind } },
})
const endTurn: Recordable = { type: 'turn/end', data: { turn: 1, reason: { kind: 'completed' } } }
const owes = splice({ queue: 'next-step', inserted: [owed('c1')] })
const endSeed: Recordable = { type: 'session/end-seed', data: {} }
const cancel: Recordable = { type: 'turn/cancel', data: { turn: 1, cause: { kind: 'user' } } }

describe('the state a log leaves', () => {
  test('no log leaves an agent at rest', () => {
    expect(fold([]).value).toBe('idle')
    expect(fold([]).context).toEqual(initialContext)
  })

  test('a plain turn goes once around', () => {
    expect(path([...asking, answered([]), endStep('completed'), endTurn])).toEqual([
      'idle',
      'turnOpen',
      'preStep',
      'stepRequest.streaming',
      'stepRequest.streaming',
      'stepRequest.streaming',
      'turnStopping',
      'idle',
    ])
  })

  test('a turn with a tool asks the model again before it ends', () => {
    const states = path([
      ...asking,
      answered(['c1']),
      called('c1'),
      dispatched('c1'),
      resulted('c1'),
      owes,
      endStep('tool-calls'),
      splice({ queue: 'next-step', deleteCount: 1, outcome: 'claimed' }),
      { type: 'step/start', data: { turn: 1, step: 2 } },
      answered([], 2),
      endStep('completed', 2),
      endTurn,
    ])
    expect(states.slice(5)).toEqual([
      ...Array.from({ length: 5 }, () => 'toolExec'),
      'stepClosed',
      'preStep',
      'stepRequest.streaming',
      'stepRequest.streaming',
      'turnStopping',
      'idle',
    ])
  })

  test('a turn claims both queues before its first step, and the last claim moves it on', () => {
    const both = [
      splice({ queue: 'next-step', inserted: [item('s1')] }),
      ...opened.slice(0, 2),
      splice({ queue: 'next-step', deleteCount: 1, outcome: 'claimed' }),
      claimed,
    ]
    expect(path(both)).toEqual(['idle', 'idle', 'turnOpen', 'turnOpen', 'preStep'])
    expect(fold(logOf(both)).context.claimed.map(({ queue }) => queue)).toEqual(['next-step', 'next-turn'])
  })

  test('a retry waits for its time, counted from the event’s own', () => {
    const retry = { ...at, retryId: 'r1', retry: 1 }
    const planned: Recordable = {
      type: 'llm/retry',
      data: {
        ...retry,
        attempt: 1,
        provider: 'demo',
        policyKey: 'default',
        delayMs: 500,
        failure: { code: 'SERVER', message: 'Down' },
        mode: 'always',
      },
    }
    const log = [...asking, planned]
    expect(path([...log, { type: 'llm/retry-started', data: { ...retry, attempt: 2 } }]).slice(-2)).toEqual([
      'stepRequest.waiting',
      'stepRequest.streaming',
    ])
    expect(fold(logOf(log)).context.retry).toMatchObject({ at: 5, delayMs: 500 })
  })

  test('calls carry their arguments as the model wrote them, and how far they came', () => {
    const { calls } = fold(logOf([...asking, answered(['c1', 'c2']), called('c1'), dispatched('c1')])).context
    expect(calls).toMatchObject([
      { callId: 'c1', arguments: '{"n":1}', status: 'dispatched', run: 1, onCrash: 'rerun' },
      { callId: 'c2', status: 'planned', run: 0 },
    ])
  })

  test('asking again after a crash is another attempt, and what was dispatched is being recovered', () => {
    const resumed: Recordable = {
      type: 'session/resumed',
      data: { recovery: 'continue', resumes: 1, version: '1.0.0', chart: 'sha256:0' },
    }
    expect(fold(logOf([...asking, resumed])).context).toMatchObject({ attempt: 2, resumes: 1 })
    const [call] = fold(logOf([...asking, answered(['c1']), called('c1'), dispatched('c1'), resumed])).context.calls
    expect(call).toMatchObject({ status: 'dispatched', recovering: true })
  })
})

describe('folding', () => {
  const log = logOf([...asking, answered(['c1', 'c2']), called('c1'), called('c2'), dispatched('c1')])

  test('piece by piece gives what the whole gives', () => {
    const folded = createFold()
    for (const [index, event] of log.entries()) {
      folded.push(event)
      const { value, context } = fold(log.slice(0, index + 1))
      expect([folded.snapshot().value, folded.snapshot().context]).toEqual([value, context])
    }
  })

  test('runs nothing: the snapshot has no children, though calls are under way', () => {
    expect(fold(log).children).toEqual({})
  })

  test('gives a snapshot that an agent starts from', () => {
    const agent = createActor(agentMachine, { snapshot: fold(log) }).start()
    expect(agent.getSnapshot()).toMatchObject({ status: 'active', value: 'toolExec', children: {} })
    expect(agent.getSnapshot().context).toEqual(fold(log).context)
  })

  test('passes over events that do not move', () => {
    const beside: readonly Recordable[] = [
      { type: 'request/context', data: { provider: 'demo', model: 'demo' } },
      { type: 'assistant/chunk', data: { ...at, attempt: 1, chunk: { type: 'text-delta', index: 0, text: 'H' } } },
    ]
    expect(fold(logOf([...asking, ...beside])).context).toEqual(fold(logOf(asking)).context)
  })

  test('knows which events its state awaits', () => {
    const folded = createFold()
    const [first, , , step] = logOf(asking)
    expect(first && folded.accepts(first)).toBe(true)
    expect(step && folded.accepts(step)).toBe(false)
  })
})

describe('a fork', () => {
  const tools = [...asking, answered(['c1', 'c2']), called('c1'), called('c2'), dispatched('c1')]

  test('leaves queued messages, and what they owe, to its parent', () => {
    const { context } = fold(logOf([...asking, splice({ inserted: [item('m2')], wake: true }), endSeed]))
    expect(context).toMatchObject({ inbox: queues([]), drain: false, latch: false, resumes: 0 })
  })

  test('keeps the results that its open turn is owed, what was claimed, and a cancel', () => {
    expect(
      fold(logOf([...asking, answered(['c1']), called('c1'), resulted('c1'), owes, endSeed])).context.inbox,
    ).toEqual(queues([owed('c1')]))
    const { context, value } = fold(logOf([...opened, cancel, endSeed]))
    expect(value).toBe('preStep')
    expect(context.claimed.map(({ item }) => item)).toEqual([item('m1')])
    expect(context.cancel).toEqual({ cause: { kind: 'user' }, keepInbox: false })
  })

  test('marks the calls its parent had under way, and no others', () => {
    const { calls } = fold(logOf([...tools, endSeed])).context
    expect(calls.map(({ callId, forked }) => [callId, forked])).toEqual([
      ['c1', true],
      ['c2', undefined],
    ])
  })

  test('is cut behind the messages of an opening step, behind a closing step, and never in passing', () => {
    const log = logOf([...asking, answered([]), endStep('completed'), endTurn])
    expect(log.map((_, index) => roundFork(log, index + 1))).toEqual([1, 3, 3, 5, 5, 7, 7, 8])
  })
})
