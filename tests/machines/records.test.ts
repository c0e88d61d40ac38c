import { describe, expect, test } from 'vitest'
import { type InboxItem, MAX_EVENT_BYTES } from '../../src/log/events.ts'
import { validateNew } from '../../src/log/validate.ts'
import { evolveAll } from '../../src/machines/evolve.ts'
import * as records from '../../src/machines/records.ts'
import { answer, cancelled, idle, inShort, inStep, inTurn, item, message, owed, queues } from '../kit/contexts.ts'

const LIMIT = { name: 'tokens', scope: 'turn', max: 10, spent: 11 } as const
const FAILURE = { code: 'SERVER', message: 'Down' }
const of = { turn: 1, step: 1, attempt: 1 }
const followup = { type: 'command.followup', message: message('m1') } as const
const steer = { type: 'command.steer', message: message('m1') } as const
const inject = { type: 'command.inject', message: message('m1') } as const

describe('waking', () => {
  test('a followup to an idle agent waits in next-turn and starts a turn in the same batch', () => {
    expect(inShort(records.deliverIdle(idle, followup))).toEqual(['next-turn@0 + m1 wake', 'turn/start'])
  })

  test('a steer to an idle agent starts a turn from next-step', () => {
    expect(inShort(records.deliverIdle(idle, steer))).toEqual(['next-step@0 + m1 wake', 'turn/start'])
  })

  test('an injected message waits for somebody else to wake the agent', () => {
    expect(inShort(records.deliverIdle(idle, inject))).toEqual(['next-step@0 + m1'])
  })

  test('turns are numbered one after the other', () => {
    expect(records.deliverIdle({ ...idle, turn: 7 }, followup).at(-1)?.data).toEqual({ turn: 8 })
  })

  test('a message goes behind those that wait', () => {
    const busy = { ...inStep, inbox: queues([item('s1')], [item('t1'), item('t2')]) }
    expect(inShort(records.deliver(busy, followup))).toEqual(['next-turn@2 + m1 wake'])
    expect(inShort(records.deliver(busy, steer))).toEqual(['next-step@1 + m1 wake'])
    expect(inShort(records.deliver(busy, inject))).toEqual(['next-step@1 + m1'])
  })

  test('while a cancel is in progress what wakes is for the turn after it, and latches', () => {
    const ending = { ...inStep, ...cancelled() }
    const events = records.deliver(ending, steer)
    expect(inShort(events)).toEqual(['next-turn@0 + m1 wake'])
    expect(evolveAll(ending, events).latch).toBe(true)
    expect(inShort(records.deliver(ending, inject))).toEqual(['next-step@0 + m1'])
  })

  test('idle starts what a drain or a latch owes, if a message is pending', () => {
    const waiting = { ...idle, inbox: queues([], [item('t1')]) }
    expect(inShort(records.startOwed({ ...waiting, drain: true }))).toEqual(['turn/start'])
    expect(inShort(records.startOwed({ ...waiting, latch: true }))).toEqual(['turn/start'])
    expect(records.startOwed(waiting)).toEqual([])
    expect(records.startOwed({ ...idle, drain: true, latch: true })).toEqual([])
  })

  test('idle starts nothing after an interrupting recovery', () => {
    const waiting = { ...idle, inbox: queues([], [item('t1')]), drain: true, interrupted: {} }
    expect(records.startOwed(waiting)).toEqual([])
  })

  test('wake starts what is parked, and nothing when nothing is', () => {
    expect(inShort(records.wake({ ...idle, inbox: queues([item('s1')]) }))).toEqual(['turn/start'])
    expect(records.wake(idle)).toEqual([])
  })
})

describe('drain and latch', () => {
  const waiting = { ...inStep, inbox: queues([], [item('t1')]) }
  const ended = (reason: 'completed' | 'max-tokens' | 'blocked', context = waiting) =>
    evolveAll(context, records.endTurn(context, { kind: reason }))

  test('a turn that had a step and ends well drains what it leaves', () => {
    expect(ended('completed').drain).toBe(true)
    expect(ended('max-tokens').drain).toBe(true)
  })

  test('any other end parks it, and so does a turn without a step', () => {
    expect(ended('blocked').drain).toBe(false)
    expect(ended('completed', { ...waiting, step: 0 }).drain).toBe(false)
    expect(ended('completed', { ...waiting, inbox: queues([]) }).drain).toBe(false)
  })

  test('both are cleared by empty queues and by the next turn', () => {
    const both = { ...idle, drain: true, latch: true, inbox: queues([], [item('t1')]) }
    expect(evolveAll(both, records.clear(both))).toMatchObject({ drain: false, latch: false })
    expect(evolveAll(both, records.wake(both))).toMatchObject({ drain: false, latch: false })
  })
})

describe('the inbox', () => {
  const full = { ...inStep, inbox: queues([owed('c1'), item('s1'), owed('c2'), item('s2')], [item('t1')]) }

  test('a removed message leaves its queue, wherever it is', () => {
    expect(inShort(records.remove(full, { type: 'command.remove', id: 's2' }))).toEqual(['next-step@3 canceled 1'])
    expect(inShort(records.remove(full, { type: 'command.remove', id: 't1' }))).toEqual(['next-turn@0 canceled 1'])
    expect(records.remove(full, { type: 'command.remove', id: 'gone' })).toEqual([])
  })

  test('a replacement takes the place of what it replaces', () => {
    const command = { type: 'command.remove', id: 's1', replacement: message('m1') } as const
    expect(inShort(records.remove(full, command))).toEqual(['next-step@1 canceled 1 + m1'])
  })

  test('clearing takes the messages, from the end, and leaves the results the model is owed', () => {
    const events = records.clear(full)
    expect(inShort(events)).toEqual(['next-step@3 canceled 1', 'next-step@1 canceled 1', 'next-turn@0 canceled 1'])
    expect(evolveAll(full, events).inbox).toEqual(queues([owed('c1'), owed('c2')]))
  })
})

describe('cancelling', () => {
  const user = { cause: { kind: 'user' } } as const
  const busy = { ...inStep, inbox: queues([item('s1')], [item('t1')]) }

  test('in idle it clears the queues, and writes nothing when they are empty or kept', () => {
    const command = { type: 'command.cancel', ...user } as const
    const parked = { ...idle, inbox: queues([item('s1')], [item('t1')]) }
    expect(inShort(records.cancelIdle(parked, command))).toEqual(['next-step@0 canceled 1', 'next-turn@0 canceled 1'])
    expect(records.cancelIdle(parked, { ...command, keepInbox: true })).toEqual([])
    expect(records.cancelIdle(idle, command)).toEqual([])
  })

  test('an open turn is cancelled once; a second cancel only clears', () => {
    const first = records.cancel(busy, { ...user, keepInbox: true })
    expect(inShort(first)).toEqual(['turn/cancel'])
    expect(inShort(records.cancel(evolveAll(busy, first), user))).toEqual([
      'next-step@0 canceled 1',
      'next-turn@0 canceled 1',
    ])
  })

  test('what follows from the cancel is in the same record', () => {
    expect(inShort(records.cancel(busy, user, records.abortStep))).toEqual([
      'turn/cancel',
      'next-step@0 canceled 1',
      'next-turn@0 canceled 1',
      'step/end aborted',
    ])
  })

  test('before a step it drops what was claimed, or puts it back at the head under keepInbox', () => {
    const claimed = [
      { queue: 'next-turn', item: item('t1') },
      { queue: 'next-step', item: item('s1') },
      { queue: 'next-step', item: owed('c1') },
    ] as const
    const opening = { ...inTurn, claimed, inbox: queues([item('s2')], [item('t2')]) }
    const dropping = { ...opening, ...cancelled() }
    expect(inShort(records.finishTurn(dropping))).toEqual(['turn/end aborted'])
    const keeping = { ...opening, ...cancelled(true) }
    const events = records.finishTurn(keeping)
    expect(inShort(events)).toEqual(['next-step@0 + s1', 'next-turn@0 + t1', 'turn/end aborted'])
    expect(evolveAll(keeping, events).inbox).toEqual(queues([item('s1'), item('s2')], [item('t1'), item('t2')]))
  })

  test('messages that do not fit one event together go back in order, as many to an event as fit', () => {
    const sized = (id: string, bytes: number): InboxItem => {
      const empty = JSON.stringify({ ...item(id), message: { ...message(id), content: [{ type: 'text', text: '' }] } })
      const text = 'x'.repeat(bytes - empty.length)
      return { kind: 'message', message: { ...message(id), content: [{ type: 'text', text }] } }
    }
    const putBack = (...sizes: readonly number[]) => {
      const items = sizes.map((bytes, index) => sized(`t${index}`, bytes))
      const claimed = items.map((each) => ({ queue: 'next-turn', item: each }) as const)
      const keeping = { ...inTurn, claimed, ...cancelled(true) }
      const events = records.finishTurn(keeping)
      for (const event of events) validateNew(event)
      expect(evolveAll(keeping, events).inbox).toEqual(queues([], items))
      return inShort(events).slice(0, -1)
    }
    const part = (share: number) => Math.floor(MAX_EVENT_BYTES * share)
    expect(putBack(part(0.4), part(0.4), part(0.4))).toEqual(['next-turn@0 + t0, t1', 'next-turn@2 + t2'])
    expect(putBack(part(0.3), part(0.3), part(0.3))).toEqual(['next-turn@0 + t0, t1, t2'])
    expect(putBack(part(0.6), part(0.6), part(0.3))).toEqual(['next-turn@0 + t0', 'next-turn@1 + t1, t2'])
    expect(putBack(part(0.5), part(0.5))).toEqual(['next-turn@0 + t0', 'next-turn@1 + t1'])
    expect(putBack(part(0.5), part(0.5) - 2 * 1_024)).toEqual(['next-turn@0 + t0, t1'])
  })

  test('by a limit it ends the turn with that limit', () => {
    const cancel = { cause: { kind: 'limit', limit: LIMIT }, keepInbox: true } as const
    expect(records.closeStep({ ...inStep, cancel }).at(-1)?.data).toEqual({
      turn: 1,
      reason: { kind: 'limit', limit: LIMIT },
    })
  })

  test('by a call repeated too often it ends the turn with that', () => {
    const cause = { kind: 'repeated-call', name: 'work', count: 6 } as const
    const events = records.closeStep({ ...inStep, cancel: { cause, keepInbox: true } })
    expect(events.at(-1)?.data).toEqual({ turn: 1, reason: cause })
  })

  test('posted while nobody owned the log, it stands before the resumption', () => {
    const resumed = { recovery: 'continue', resumes: 1, version: '1.0.0', chart: 'sha256:0' } as const
    const events = records.resume(inStep, { type: 'command.resume', resumed, cancel: user })
    expect(inShort(events)).toEqual(['turn/cancel', 'session/resumed'])
  })
})

describe('opening a turn and its steps', () => {
  test('a turn claims all of next-step and one of next-turn', () => {
    const context = { ...inTurn, inbox: queues([item('s1'), item('s2')], [item('t1'), item('t2')]) }
    expect(inShort(records.openTurn(context))).toEqual(['next-step@0 claimed 2', 'next-turn@0 claimed 1'])
  })

  test('a turn that finds nothing is over', () => {
    expect(inShort(records.openTurn(inTurn))).toEqual(['turn/end completed'])
  })

  test('the step opens, and the messages enter it', () => {
    const events = records.enterStep(inTurn, { kind: 'enter', messages: [message('m1'), message('m2')] })
    expect(inShort(events)).toEqual(['step/start', 'user/message', 'user/message'])
    expect(events[1]).toMatchObject({ data: message('m1'), surfaceOp: 'append' })
  })

  test('with no message it opens only for results that are owed', () => {
    const nothing = { kind: 'enter', messages: [] } as const
    expect(inShort(records.enterStep(inTurn, nothing))).toEqual(['turn/end completed'])
    const claimed = [{ queue: 'next-step', item: owed('c1') }] as const
    expect(inShort(records.enterStep({ ...inStep, claimed }, nothing))).toEqual(['step/start'])
  })

  test('a rejection blocks the turn with its reason, a failure ends it in error', () => {
    expect(records.enterStep(inTurn, { kind: 'reject', reason: 'No' }).at(-1)?.data).toEqual({
      turn: 1,
      reason: { kind: 'blocked', reason: 'No' },
    })
    expect(records.enterStep(inTurn, { kind: 'reject' }).at(-1)?.data).toStrictEqual({
      turn: 1,
      reason: { kind: 'blocked' },
    })
    const failed = records.enterStep(inTurn, { kind: 'failed', failure: FAILURE })
    expect(failed.at(-1)?.data).toEqual({ turn: 1, reason: { kind: 'error', error: FAILURE } })
  })

  test('a cancelled turn enters nothing, whatever the hooks say', () => {
    const decision = { kind: 'enter', messages: [message('m1')] } as const
    expect(inShort(records.enterStep({ ...inTurn, ...cancelled() }, decision))).toEqual(['turn/end aborted'])
  })
})

describe('asking the model', () => {
  const calls = [{ callId: 'c1', name: 'work', mode: 'parallel' }] as const
  const answered = (more: object = {}) =>
    ({ ...of, type: 'verdict.answered', answer: answer('Hi'), calls: [], ...more }) as const
  const cut = answer('Hi', { finish: { kind: 'max-tokens' } })

  test('an answer without calls ends the step, one with calls does not', () => {
    expect(inShort(records.answer(inStep, answered()))).toEqual(['assistant/message', 'step/end completed'])
    expect(inShort(records.answer(inStep, answered({ calls })))).toEqual(['assistant/message'])
  })

  test('an answer is told whole: its message, how it ended, its chunks, and its usage if there is one', () => {
    const usage = { inputTokens: 3, outputTokens: 2 }
    const told = (more: object) => records.answer(inStep, answered({ answer: answer('Hi', more) }))[0]
    const data = { turn: 1, step: 1, attempt: 1, message: answer('Hi').message, finish: { kind: 'stop' }, calls: [] }
    expect(told({ chunkSeqs: [4, 5] })).toStrictEqual({
      type: 'assistant/message',
      data,
      surfaceOp: 'append',
      sourceEventSeqs: [4, 5],
    })
    expect(told({ usage })?.data).toStrictEqual({ ...data, usage })
  })

  test('an answer cut by the token limit says so, and it sticks until the next turn', () => {
    const events = records.answer(inStep, answered({ answer: cut }))
    expect(inShort(events)).toEqual(['assistant/message', 'step/end max-tokens'])
    const after = evolveAll(inStep, [...events, { type: 'step/start', data: { turn: 1, step: 2 } }])
    expect(records.ownReason(after)).toEqual({ kind: 'max-tokens' })
    expect(evolveAll(after, [{ type: 'turn/start', data: { turn: 2 } }]).maxTokens).toBe(false)
  })

  test('a limit found with an answer cancels the turn before its calls, and not at all without any', () => {
    const events = records.answer(
      { ...inStep, inbox: queues([item('s1')]) },
      answered({ calls, bound: { kind: 'limit', limit: LIMIT } }),
    )
    expect(inShort(events)).toEqual(['turn/cancel', 'assistant/message'])
    expect(events[0]?.data).toMatchObject({ cause: { kind: 'limit' }, keepInbox: true })
    expect(inShort(records.answer(inStep, answered({ bound: { kind: 'limit', limit: LIMIT } })))).toEqual([
      'assistant/message',
      'step/end completed',
    ])
  })

  test('under a cancel what was visible stays: text and reasoning, no calls, no replay state', () => {
    const partial = answer('Hi')
    const source = { ...partial.message.source, replayState: { response: 'opaque' } }
    const content = [
      { type: 'text', text: 'Hi' },
      { type: 'tool-call', id: 'c1', name: 'work', arguments: '{' },
    ] as const
    const verdict = answered({ answer: { ...partial, message: { ...partial.message, content, source } }, calls })
    const [first, ...rest] = records.answer({ ...inStep, ...cancelled() }, verdict)
    expect(first?.data).toMatchObject({ interrupted: true, calls: [], message: { content: [content[0]] } })
    expect(JSON.stringify(first)).not.toContain('opaque')
    expect(inShort(rest)).toEqual(['step/end aborted'])
  })

  test('under a cancel reasoning stays as text does, and blocks of no words go', () => {
    const partial = answer('')
    const words = [
      { type: 'reasoning', text: 'Hm' },
      { type: 'text', text: 'Hi' },
    ] as const
    const content = [
      ...words,
      { type: 'reasoning', text: ' ' },
      { type: 'vendor/note', text: 'Not for people' },
      { type: 'tool-call', id: 'c1', name: 'work', arguments: '{' },
    ] as const
    const message = { ...partial.message, content }
    const [first] = records.abandon({ ...inStep, ...cancelled() }, { ...partial, message })
    expect(first?.data).toMatchObject({ message: { id: 'a1', role: 'assistant', content: words }, interrupted: true })
  })

  test('under a cancel nothing visible is no message', () => {
    const context = { ...inStep, ...cancelled() }
    expect(inShort(records.abandon(context, answer('  ')))).toEqual(['step/end aborted'])
    expect(inShort(records.abandon(context))).toEqual(['step/end aborted'])
    expect(inShort(records.failStep(context, FAILURE))).toEqual(['step/end aborted'])
  })

  test('a failure ends the step, and the turn after it', () => {
    const events = records.failStep(inStep, FAILURE)
    expect(inShort(events)).toEqual(['step/end error'])
    expect(inShort(records.closeStep(evolveAll(inStep, events)))).toEqual(['turn/end error'])
  })

  test('a request that stops of itself failed', () => {
    const events = records.abandon(inStep)
    expect(inShort(events)).toEqual(['step/end error'])
    expect(events[0]?.data).toMatchObject({ outcome: { error: { message: expect.stringMatching(/stopped/) } } })
  })

  test('a retry is planned, begins as the next attempt, and is not planned under a cancel', () => {
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
    const verdict = { ...of, type: 'verdict.retry', retry: planned } as const
    const waiting = evolveAll(inStep, records.retry(inStep, verdict))
    expect(waiting.retry).toMatchObject({ retryId: 'r1', delayMs: 500 })
    expect(records.startRetry(waiting)).toEqual([
      { type: 'llm/retry-started', data: { turn: 1, step: 1, attempt: 2, retryId: 'r1', retry: 1 } },
    ])
    expect(inShort(records.retry({ ...inStep, ...cancelled() }, verdict))).toEqual(['step/end aborted'])
    expect(records.startRetry(inStep)).toEqual([])
  })

  test('recovery ends an open step as interrupted, or as aborted if a cancel was under way', () => {
    expect(inShort(records.finishStep(inStep))).toEqual(['step/end interrupted'])
    expect(inShort(records.finishStep({ ...inStep, ...cancelled() }))).toEqual(['step/end aborted'])
  })
})

describe('going on, or ending the turn', () => {
  const closed = (kind: 'completed' | 'tool-calls' | 'concluded' | 'interrupted') => ({ ...inStep, outcome: { kind } })

  test('what waits for the next step is claimed, and next-turn is left alone', () => {
    const context = { ...closed('tool-calls'), inbox: queues([owed('c1'), item('s1')], [item('t1')]) }
    expect(inShort(records.closeStep(context))).toEqual(['next-step@0 claimed 2'])
  })

  test('a steer carries a turn on that would have ended', () => {
    expect(inShort(records.closeStep({ ...closed('completed'), inbox: queues([item('s1')]) }))).toEqual([
      'next-step@0 claimed 1',
    ])
  })

  test('the reason is max-steps only if the model was owed results', () => {
    expect(inShort(records.closeStep({ ...closed('tool-calls'), step: 3 }))).toEqual(['turn/end max-steps'])
    expect(inShort(records.closeStep({ ...closed('concluded'), step: 3 }))).toEqual(['turn/end completed'])
  })

  test('messages that wait when the steps are spent stay queued, and the next turn is drained from them', () => {
    const context = { ...closed('completed'), step: 3, inbox: queues([item('s1')]) }
    const events = records.closeStep(context)
    expect(inShort(events)).toEqual(['turn/end completed'])
    expect(evolveAll(context, events)).toMatchObject({ inbox: queues([item('s1')]), drain: true })
  })

  test('owed results never outlive their turn', () => {
    const context = { ...inStep, inbox: queues([item('s1'), owed('c1'), owed('c2'), item('s2'), owed('c3')]) }
    const events = records.endTurn(context, { kind: 'completed' })
    expect(inShort(events)).toEqual(['next-step@4 canceled 1', 'next-step@1 canceled 2', 'turn/end completed'])
    expect(evolveAll(context, events).inbox).toEqual(queues([item('s1'), item('s2')]))
  })

  test('a recovery that interrupts puts claimed messages back, keeps its cause and parks the rest', () => {
    const claimed = [{ queue: 'next-turn', item: item('t1') }] as const
    const context = { ...inTurn, claimed, interrupted: { cause: 'recovery-limit' } as const }
    const events = records.finishTurn(context)
    expect(inShort(events)).toEqual(['next-turn@0 + t1', 'turn/end interrupted'])
    expect(events.at(-1)?.data).toMatchObject({ reason: { cause: 'recovery-limit' } })
    expect(evolveAll(context, events).drain).toBe(false)
    expect(inShort(records.closeStep({ ...closed('interrupted'), interrupted: {} }))).toEqual(['turn/end interrupted'])
  })

  test('the stopping hooks may give a reason, fail, or be overruled by a message or a cancel', () => {
    const verdict = { turn: 1, step: 1, type: 'verdict.stopping' } as const
    const reason = { kind: 'stopped-by-policy', policy: 'budget' } as const
    expect(inShort(records.stop(inStep, verdict))).toEqual(['turn/end completed'])
    expect(inShort(records.stop(inStep, { ...verdict, reason }))).toEqual(['turn/end stopped-by-policy'])
    expect(inShort(records.stop(inStep, { ...verdict, failure: FAILURE }))).toEqual(['turn/end error'])
    const steered = { ...inStep, inbox: queues([item('s1')]) }
    expect(inShort(records.stop(steered, { ...verdict, reason }))).toEqual(['next-step@0 claimed 1'])
    expect(inShort(records.stop({ ...inStep, ...cancelled() }, { ...verdict, reason }))).toEqual(['turn/end aborted'])
  })

  test('a hook that always steers ends the turn when its steps are spent, and not a step before', () => {
    const verdict = { turn: 1, step: 1, type: 'verdict.stopping' } as const
    const steered = { ...inStep, inbox: queues([item('s1')]) }
    expect(inShort(records.stop({ ...steered, step: 3 }, verdict))).toEqual(['turn/end max-steps'])
    expect(inShort(records.stop({ ...steered, step: 2 }, verdict))).toEqual(['next-step@0 claimed 1'])
    expect(inShort(records.stop({ ...inStep, step: 3 }, verdict))).toEqual(['turn/end completed'])
  })
})
