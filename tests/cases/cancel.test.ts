/** How a turn is ended early: what is recorded, what settles, what stays queued, and what runs afterwards. */
import { describe, expect, test } from 'vitest'
import type { CancelCause } from '../../src/log/events.ts'
import { fails, type Gate, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import type { ToolContext } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, stored, typesOf } from '../kit/agents.ts'
import {
  idsOf,
  message,
  reasons,
  splices,
  statusesOf,
  steps,
  toldTexts,
  turnOf,
  userTexts,
} from '../kit/conversation.ts'

const user = { kind: 'user' } as const
const aborted = (cause: CancelCause = user) => ({ kind: 'aborted', cause })
const completed = { kind: 'completed' }

/** Waits at the gate whatever the signal says. */
const ignoring = (held: Gate): Promise<void> => held.pass(new AbortController().signal)

/** A tool that runs until it is let go and then does as told, whatever its signal says. */
const stubborn = (held: Gate, body: (context: ToolContext) => void = () => {}) =>
  tool({
    name: 'stubborn',
    description: 'Takes its time',
    parameters: { type: 'object' },
    async execute(_, context) {
      await ignoring(held)
      body(context)
      return 'done at last'
    },
  })
const callsStubborn = toolCall('stubborn', {}, { id: 'c1' })

/** An agent whose first turn hangs after 'thinking'. */
async function streaming(rest: readonly string[] = []) {
  const held = gate()
  held.release()
  const signals: AbortSignal[] = []
  const model = scripted([[text('thinking'), pause(held), hangs()], ...rest])
  const watched: ModelAdapter = {
    ...model,
    stream(request, options) {
      signals.push(options.signal)
      return model.stream(request, options)
    },
  }
  const started = await startAgent({ model: watched })
  const receipt = started.agent.followup(message('active'))
  await held.reached
  await settle()
  return { ...started, model, signals, receipt }
}

/** An agent whose first turn is held in `agent/pre-step`, which heeds no signal. */
async function preparing(rest: readonly string[] = []) {
  const held = gate()
  const model = scripted(rest)
  const started = await startAgent({
    model,
    hooks: {
      'agent/pre-step': async ({ turn }, next) => {
        if (turn === 1) await ignoring(held)
        return next()
      },
    },
  })
  const statuses = statusesOf(started.agent)
  const receipt = started.agent.followup(message('a'))
  await held.reached
  return { ...started, model, held, statuses, receipt }
}

describe('before a step is open', () => {
  test('[cancel-003] in the same tick as the message: the turn was opened, and ends with no step and no request', async () => {
    const model = scripted([])
    await using started = await startAgent({ model })
    const { agent } = started
    const receipt = agent.followup(message('m'))
    const cancelled = agent.cancel(user)
    await cancelled
    const log = await started.log()
    expect(typesOf(log)).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
      'turn/cancel',
      'turn/end',
    ])
    expect(log[3]?.data).toEqual({ turn: 1, cause: user })
    expect(reasons(log)).toEqual([aborted()])
    expect(model.requests).toEqual([])
    expect(await receipt.entered).toEqual({ kind: 'dropped', turn: 1 })
  })

  test('[cancel-003] what is queued is cleared in the batch of the cancel, right after it', async () => {
    await using started = await preparing()
    const { agent } = started
    agent.followup(message('b'))
    agent.inject(message('i'))
    const batches: string[][] = []
    agent.on('session/event', ({ type }) => {
      if (type === 'turn/cancel') batches.push([])
      batches.at(-1)?.push(type)
    })
    const cancelled = agent.cancel(user)
    expect(batches).toEqual([['turn/cancel', 'agent/inbox/spliced', 'agent/inbox/spliced']])
    expect(splices(await started.log()).slice(-2)).toEqual(['next-step@0 -1 canceled', 'next-turn@0 -1 canceled'])
    started.held.release()
    await cancelled
  })

  test('[cancel-004] keeping the inbox puts a message that was claimed and did not enter back at the head', async () => {
    await using started = await preparing(['hello'])
    const { agent } = started
    agent.followup(message('b'))
    const cancelled = agent.cancel(user, { keepInbox: true })
    started.held.release()
    await cancelled
    expect(idsOf(agent.inbox.nextTurn)).toEqual(['a', 'b'])
    const log = await started.log()
    expect(ofType(log, 'turn/cancel')[0]?.data).toEqual({ turn: 1, cause: user, keepInbox: true })
    expect(splices(log).at(-1)).toBe('next-turn@0 +[a]')
    expect(reasons(log)).toEqual([aborted()])
    await settle()
    expect(agent.status).toBe('idle')
    agent.wake()
    expect(await started.receipt.entered).toMatchObject({ kind: 'entered', turn: 2 })
    await agent.whenIdle()
  })

  test('[cancel-008] from an observer of the running status the turn is open already, and ends at once', async () => {
    const model = scripted([])
    await using started = await startAgent({ model })
    const { agent } = started
    const statuses = statusesOf(agent)
    agent.on('agent/status', (status) => {
      if (status === 'running') agent.cancel(user)
    })
    agent.followup(message('m'))
    await agent.whenIdle()
    const log = await started.log()
    expect(typesOf(log).slice(3)).toEqual(['turn/cancel', 'turn/end'])
    expect(steps(log)).toEqual([])
    expect(model.requests).toEqual([])
    expect(statuses).toEqual(['running', 'idle'])
  })

  test('[cancel-009] while the prompt is assembled it is waited for, and nothing is asked', async () => {
    const held = gate()
    const model = scripted([])
    await using started = await startAgent({
      model,
      hooks: {
        'system-prompt/assemble': async (_, next) => {
          await ignoring(held)
          return next()
        },
      },
    })
    const { agent } = started
    agent.followup('m')
    await held.reached
    const cancelled = agent.cancel(user)
    await settle()
    expect(reasons(await started.log())).toEqual([])
    held.release()
    await cancelled
    const log = await started.log()
    expect(typesOf(log).slice(2)).toEqual(['agent/inbox/spliced', 'turn/cancel', 'turn/end'])
    expect(reasons(log)).toEqual([aborted()])
    expect(model.requests).toEqual([])
  })

  test('[cancel-011] who waited for rest since before the cancel is told', async () => {
    await using started = await preparing()
    const idle = started.agent.whenIdle()
    started.agent.cancel(user)
    started.held.release()
    await idle
    expect(started.agent.status).toBe('idle')
  })

  test('[cancel-012] from an observer of step/start: the message has entered, no header is written, nothing is asked', async () => {
    const model = scripted([])
    await using started = await startAgent({ model })
    const { agent } = started
    agent.on('session/event', ({ type }) => {
      if (type === 'step/start') agent.cancel(user)
    })
    agent.followup('m')
    await agent.whenIdle()
    const log = await started.log()
    expect(typesOf(log).slice(3)).toEqual(['step/start', 'user/message', 'turn/cancel', 'step/end', 'turn/end'])
    expect(ofType(log, 'step/end')[0]?.data.outcome).toEqual({ kind: 'aborted' })
    expect(reasons(log)).toEqual([aborted()])
    expect(model.requests).toEqual([])
  })

  test('[cancel-025] a message that comes while pre-step is cancelled runs by itself, in the same run', async () => {
    await using started = await preparing(['hello b'])
    const { agent } = started
    const cancelled = agent.cancel(user)
    agent.followup(message('b'))
    started.held.release()
    await cancelled
    await agent.whenIdle()
    const log = await started.log()
    expect(reasons(log)).toEqual([aborted(), completed])
    expect(userTexts(log)).toEqual(['b'])
    // The end of the one turn and the start of the next are one batch: nobody sees rest between them.
    expect(started.statuses).toEqual(['running', 'idle'])
  })
})

describe('while the model answers', () => {
  test('[cancel-005] what is kept stays queued and goes first with the next waking message', async () => {
    await using started = await streaming(['one', 'two'])
    const { agent } = started
    agent.followup(message('b'))
    await agent.cancel(user, { keepInbox: true })
    await settle()
    expect(agent.status).toBe('idle')
    expect(idsOf(agent.inbox.nextTurn)).toEqual(['b'])
    agent.followup(message('wake'))
    await agent.whenIdle()
    const log = await started.log()
    expect(reasons(log)).toEqual([aborted(), completed, completed])
    expect([2, 3].map((turn) => userTexts(turnOf(log, turn)))).toEqual([['b'], ['wake']])
  })

  test('[cancel-007] what was to steer the turn goes with it', async () => {
    await using started = await streaming()
    const { agent } = started
    const steer = agent.steer(message('s'))
    await agent.cancel(user)
    await settle()
    const log = await started.log()
    expect(ofType(log, 'turn/start')).toHaveLength(1)
    expect(userTexts(log)).toEqual(['active'])
    expect(await steer.entered).toMatchObject({ kind: 'canceled' })
    expect(await steer.turn).toBeNull()
  })

  test('[cancel-015] the request is aborted, and what was seen of the answer is kept as interrupted', async () => {
    await using started = await streaming()
    await started.agent.cancel(user)
    const log = await started.log()
    expect(started.signals.map(({ aborted: is }) => is)).toEqual([true])
    expect(typesOf(log).slice(-5)).toEqual([
      'assistant/chunk*',
      'turn/cancel',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    expect(ofType(log, 'assistant/message')[0]?.data).toMatchObject({
      message: { content: [{ type: 'text', text: 'thinking' }] },
      finish: { kind: 'aborted' },
      calls: [],
      interrupted: true,
    })
    expect(reasons(log)).toEqual([aborted()])
    expect(await started.receipt.turn).toMatchObject({ reason: aborted(), text: 'thinking' })
  })

  test('[cancel-020] a prefix of an attempt that failed is not kept when its recovery is cancelled', async () => {
    const held = gate()
    await using started = await startAgent({
      model: scripted([[text('visible'), fails('SERVER')]]),
      hooks: {
        'agent/request-error': async ({ signal }) => {
          await held.pass(signal)
          return undefined
        },
      },
    })
    const { agent } = started
    agent.followup('m')
    await held.reached
    await agent.cancel(user)
    const log = await started.log()
    expect(ofType(log, 'assistant/message')).toEqual([])
    expect(typesOf(log).slice(-4)).toEqual(['assistant/chunk*', 'turn/cancel', 'step/end', 'turn/end'])
    expect(reasons(log)).toEqual([aborted()])
  })

  test('[cancel-020] nor when that recovery hangs until its time to settle is over', async () => {
    const held = gate()
    const clock = simulatedClock()
    await using started = await startAgent({
      clock,
      settleTimeoutMs: 1_000,
      model: scripted([[text('visible'), fails('SERVER')]]),
      hooks: {
        'agent/request-error': async () => {
          await ignoring(held)
          return undefined
        },
      },
    })
    const { agent } = started
    agent.followup('m')
    await held.reached
    const cancelled = agent.cancel(user)
    clock.increment(999)
    await settle()
    expect(agent.status).toBe('running')
    clock.increment(1)
    await cancelled
    const log = await started.log()
    expect(ofType(log, 'assistant/message')).toEqual([])
    expect(reasons(log)).toEqual([aborted()])
    held.release()
    await settle()
    expect(await started.log()).toEqual(log)
  })

  test('[cancel-021] the first cause wins', async () => {
    const started = await streaming()
    const { agent } = started
    const first = { kind: 'hook', reason: 'a' } as const
    agent.cancel(first)
    agent.cancel(user)
    await agent.close({ cancel: { kind: 'disposed' } })
    const log = await stored(started.store, 'session')
    expect(ofType(log, 'turn/cancel').map(({ data }) => data.cause)).toEqual([first])
    expect(reasons(log)).toEqual([aborted(first)])
    await started[Symbol.asyncDispose]()
  })

  test('[cancel-023] a cancel is no error', async () => {
    await using started = await streaming()
    const errors: unknown[] = []
    started.agent.on('agent/error', (payload) => errors.push(payload))
    await started.agent.cancel(user)
    await settle()
    expect(errors).toEqual([])
    expect(ofType(await started.log(), 'agent/hook-failed')).toEqual([])
  })

  test('[cancel-024] the next turn is not aborted with the one before', async () => {
    await using started = await streaming(['hello'])
    await started.agent.cancel(user)
    await started.agent.whenIdle()
    expect(await started.agent.run('again')).toMatchObject({ turn: 2, reason: completed, text: 'hello' })
    expect(started.signals.map(({ aborted: is }) => is)).toEqual([true, false])
  })

  test('[cancel-026] the cause is told as it was given', async () => {
    await using started = await streaming()
    await started.agent.cancel({ kind: 'parent' })
    expect(reasons(await started.log())).toEqual([aborted({ kind: 'parent' })])
  })

  test('[cancel-027] from an observer of a chunk the cancel runs next, and clears what is queued', async () => {
    const held = gate()
    const model = scripted([[pause(held), text('never kept whole', { deltas: 4 }), hangs()]])
    await using started = await startAgent({ model })
    const { agent } = started
    agent.followup('m')
    await held.reached
    agent.steer(message('s'))
    let told = false
    agent.on('session/event', ({ type }) => {
      if (type !== 'assistant/chunk' || told) return
      told = true
      agent.cancel(user)
    })
    held.release()
    await agent.whenIdle()
    const log = await started.log()
    expect(reasons(log)).toEqual([aborted()])
    expect(ofType(log, 'assistant/chunk')).toHaveLength(1)
    expect(splices(log).at(-1)).toBe('next-step@0 -1 canceled')
    expect(agent.inbox.nextStep).toEqual([])
  })
})

describe('while tools run', () => {
  test('[cancel-016] from an observer of the answer: it is kept, and each of its calls is answered as not begun', async () => {
    let ran = 0
    const counts = tool({ name: 'counts', description: 'x', parameters: { type: 'object' }, execute: () => ++ran })
    const calls = [toolCall('counts', {}, { id: 'c1' }), toolCall('counts', {}, { id: 'c2' })]
    await using started = await startAgent({ model: scripted([calls, 'go on']), tools: [counts] })
    const { agent } = started
    const stop = agent.on('session/event', ({ type }) => {
      if (type !== 'assistant/message') return
      stop()
      agent.cancel(user)
    })
    agent.followup('m')
    await agent.whenIdle()
    const log = await started.log()
    const answered = log.findIndex(({ type }) => type === 'assistant/message')
    expect(typesOf(log.slice(answered))).toEqual([
      'assistant/message',
      'tool/call',
      'turn/cancel',
      'tool/result',
      'tool/call',
      'tool/result',
      'step/end',
      'turn/end',
    ])
    expect(ofType(log, 'tool/call').map(({ data }) => data.callId)).toEqual(['c1', 'c2'])
    const neverBegan = { name: 'AbortError', code: 'ABORTED_BEFORE_DISPATCH' }
    expect(
      ofType(log, 'tool/result').map(({ data }) => [
        data.message.source.callId,
        data.message.content[0].isError,
        data.error,
      ]),
    ).toEqual([
      ['c1', true, neverBegan],
      ['c2', true, neverBegan],
    ])
    expect(ran).toBe(0)
    expect(reasons(log)).toEqual([aborted()])
    expect((await agent.run('next')).reason).toEqual(completed)
  })

  test('[cancel-017] a body that heeds no signal is waited for, and its result says that it was aborted', async () => {
    const held = gate()
    const model = scripted([callsStubborn])
    await using started = await startAgent({ model, tools: [stubborn(held)] })
    const { agent } = started
    agent.followup('m')
    await held.reached
    const cancelled = agent.cancel(user)
    await settle()
    expect(agent.status).toBe('running')
    held.release()
    await cancelled
    const log = await started.log()
    expect(typesOf(log).slice(-4)).toEqual(['turn/cancel', 'tool/result', 'step/end', 'turn/end'])
    expect(ofType(log, 'tool/result')[0]?.data.error?.code).toBe('ABORTED')
    expect(reasons(log)).toEqual([aborted()])
    expect(model.requests).toHaveLength(1)
  })

  test('[cancel-017] but not for longer than its time to settle: then its outcome is unknown', async () => {
    const held = gate()
    const clock = simulatedClock()
    await using started = await startAgent({
      clock,
      settleTimeoutMs: 1_000,
      model: scripted([callsStubborn]),
      tools: [stubborn(held)],
    })
    const { agent } = started
    agent.followup('m')
    await held.reached
    const cancelled = agent.cancel(user)
    clock.increment(1_000)
    await cancelled
    expect(ofType(await started.log(), 'tool/result')[0]?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
    held.release()
    await settle()
    const log = await started.log()
    expect(typesOf(log).slice(-2)).toEqual(['turn/end', 'tool/late-result'])
    expect(agent.status).toBe('idle')
  })

  test('[cancel-018] a context that a tool leaves after the cancel is parked, and the next turn claims it first', async () => {
    const held = gate()
    const model = scripted([callsStubborn, 'hello'])
    const leaves = stubborn(held, (context) => context.addContext(message('left')))
    await using started = await startAgent({ model, tools: [leaves] })
    const { agent } = started
    agent.followup(message('m'))
    await held.reached
    agent.followup(message('queued'))
    const cancelled = agent.cancel(user)
    held.release()
    await cancelled
    await settle()
    expect(agent.status).toBe('idle')
    expect(splices(await started.log()).slice(-2)).toEqual(['next-turn@0 -1 canceled', 'next-step@0 +[left]'])
    await agent.run(message('p'))
    const log = await started.log()
    expect(userTexts(turnOf(log, 2))).toEqual(['left', 'p'])
    expect(toldTexts(model.requests[1])).toEqual(['m', 'left', 'p'])
  })

  test('[cancel-019] contexts of the calls before a cancel go with it, those after it stay', async () => {
    const cancels = tool({
      name: 'leaves',
      description: 'Leaves a context; the second call cancels first',
      parameters: { type: 'object' },
      execute(_, context) {
        if (context.callId === 'c2') cancelNow()
        context.addContext(message(`of ${context.callId}`))
        return 'left'
      },
    })
    const calls = [toolCall('leaves', {}, { id: 'c1' }), toolCall('leaves', {}, { id: 'c2' })]
    await using started = await startAgent({ model: scripted([calls]), tools: [cancels] })
    const { agent } = started
    const cancelNow = () => void agent.cancel(user)
    agent.followup(message('m'))
    await agent.whenIdle()
    const log = await started.log()
    const answered = log.findIndex(({ type }) => type === 'assistant/message')
    expect(typesOf(log.slice(answered))).toEqual([
      'assistant/message',
      'tool/call',
      'tool/dispatch',
      'tool/result',
      'agent/inbox/spliced',
      'tool/call',
      'tool/dispatch',
      'turn/cancel',
      'agent/inbox/spliced',
      'tool/result',
      'agent/inbox/spliced',
      'step/end',
      'turn/end',
    ])
    expect(splices(log).slice(-3)).toEqual(['next-step@0 +[of c1]', 'next-step@0 -1 canceled', 'next-step@0 +[of c2]'])
    expect(idsOf(agent.inbox.nextStep)).toEqual(['of c2'])
    expect(ofType(log, 'tool/result').map(({ data }) => data.error?.code)).toEqual([undefined, 'ABORTED'])
  })
})

describe('signals and attempts', () => {
  test('[cancel-028] one signal spans the hooks of a turn, and what the model and the tools get follows it', async () => {
    const seen: { turn: number; signal: AbortSignal }[] = []
    const given: AbortSignal[] = []
    const inner = scripted([toolCall('look', {}), 'done', [text('x'), hangs()]])
    const note = ({ turn, signal }: { turn: number; signal: AbortSignal }) => void seen.push({ turn, signal })
    const noted = <R>(payload: { turn: number; signal: AbortSignal }, next: () => Promise<R>): Promise<R> => {
      note(payload)
      return next()
    }
    const look = tool({
      name: 'look',
      description: 'x',
      parameters: { type: 'object' },
      execute: (_, { signal }) => void given.push(signal),
    })
    await using started = await startAgent({
      model: {
        ...inner,
        stream(request, options) {
          given.push(options.signal)
          return inner.stream(request, options)
        },
      },
      tools: [look],
      hooks: {
        'system-prompt/assemble': noted,
        'agent/pre-step': noted,
        'agent/request': noted,
        'tools/pre-execute': noted,
        'agent/turn-stopping': note,
      },
    })
    const { agent } = started
    await agent.run('one')
    agent.followup('two')
    await settle()
    const [first, second] = [1, 2].map(
      (turn) => new Set(seen.filter((one) => one.turn === turn).map((one) => one.signal)),
    )
    expect([first?.size, second?.size]).toEqual([1, 1])
    expect([...(first ?? [])][0]).not.toBe([...(second ?? [])][0])
    await agent.cancel(user)
    expect(given.map(({ aborted: is }) => is)).toEqual([false, false, false, true])
    expect([...(first ?? []), ...(second ?? [])].map(({ aborted: is }) => is)).toEqual([false, true])
  })

  test('[cancel-029] the answer of a later attempt cites its own chunks alone', async () => {
    await using started = await startAgent({
      model: scripted([[text('lost'), fails('SERVER')], 'kept']),
      hooks: { 'agent/request-error': async () => ({ kind: 'retry' }) },
    })
    await started.agent.run('m')
    const log = await started.log()
    const own = ofType(log, 'assistant/chunk').filter(({ data }) => data.attempt === 2)
    expect(own.length).toBeGreaterThan(0)
    expect(ofType(log, 'assistant/chunk').length).toBeGreaterThan(own.length)
    expect(ofType(log, 'assistant/message')[0]?.sourceEventSeqs).toEqual(own.map(({ seq }) => seq))
    expect(ofType(log, 'assistant/message')[0]?.data).toMatchObject({ attempt: 2 })
  })
})
