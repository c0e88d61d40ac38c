import { expect, test } from 'vitest'
import type { AgentOptions, Plugin } from '../../src/agent.ts'
import { PawlError } from '../../src/log/errors.ts'
import { fails, gate, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { LlmError } from '../../src/services/errors.ts'
import type { Hooks, Prompt } from '../../src/services/hooks/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, typesOf } from '../kit/agents.ts'

const echo = tool({
  name: 'echo',
  description: 'Says it again',
  parameters: { type: 'object', properties: { say: { type: 'string' } } },
  execute: (args) => String((args as { say?: string }).say ?? ''),
})
const calls = () => scripted([toolCall('echo', { say: 'hi' }, { id: 'c1' }), 'done'])

test('handlers wrap each other in the order of registration, and a disposed one is gone', async () => {
  const told: string[] = []
  await using started = await startAgent()
  const { agent } = started
  agent.on('agent/pre-step', async (_, next) => {
    told.push('outer in')
    const decided = await next()
    told.push('outer out')
    return decided
  })
  const dispose = agent.on('agent/pre-step', (_, next) => {
    told.push('inner')
    return next()
  })
  await agent.run('one')
  dispose()
  dispose()
  await agent.run('two')
  expect(told).toEqual(['outer in', 'inner', 'outer out', 'outer in', 'outer out'])
})

test('next() a second time is the hook’s misuse: it is in the log, the turn fails and the loop lives', async () => {
  await using started = await startAgent()
  const dispose = started.agent.on('agent/request', async (_, next) => {
    await next()
    return next()
  })
  expect((await started.agent.run('one')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
  dispose()
  expect((await started.agent.run('two')).reason).toEqual({ kind: 'completed' })
  const [failed] = ofType(await started.log(), 'agent/hook-failed')
  expect(failed?.data).toMatchObject({ hook: 'agent/request', turn: 1, step: 1, error: { code: 'HOOK_MISUSE' } })
})

test('an LlmError of a hook ends the turn with its failure, word for word', async () => {
  const failure = { message: 'not on Sundays', code: 'CLOSED', status: 503 }
  await using started = await startAgent({
    hooks: {
      'agent/pre-step': () => {
        throw new LlmError(failure)
      },
    },
  })
  expect((await started.agent.run('hi')).reason).toEqual({ kind: 'error', error: failure })
})

test('a policy denies a call: the body does not run, and the model reads the reason', async () => {
  const ran: string[] = []
  const spy = { ...echo, execute: () => void ran.push('ran') }
  await using started = await startAgent({
    model: calls(),
    tools: [spy],
    hooks: { 'tools/pre-execute': ({ name, args }) => ({ kind: 'deny', reason: `${name} ${JSON.stringify(args)}` }) },
  })
  await started.agent.run('go')
  const [result] = ofType(await started.log(), 'tool/result')
  expect(result?.data.error).toBeUndefined()
  expect(result?.data.message.content[0]).toMatchObject({
    isError: true,
    content: [{ text: 'Not run: denied: echo {"say":"hi"}' }],
  })
  expect(ran).toEqual([])
})

test('a policy may ask: the call waits for an approval like one whose tool asks', async () => {
  await using started = await startAgent({
    model: calls(),
    tools: [echo],
    hooks: { 'tools/pre-execute': () => ({ kind: 'ask' }) },
  })
  const { agent } = started
  const running = agent.run('go')
  await agent.whenQuiet()
  const [approval] = agent.approvals()
  expect(approval).toMatchObject({ callId: 'c1', name: 'echo', purpose: 'run' })
  await agent.deny('c1', { digest: approval?.argumentsDigest ?? '', reason: 'not today' })
  expect((await running).text).toBe('done')
  const [result] = ofType(await started.log(), 'tool/result')
  expect(result?.data.message.content[0].content).toEqual([{ type: 'text', text: 'Not run: denied: not today' }])
})

test.each(['tools/pre-execute', 'tools/execute', 'tools/post-execute'] as const)(
  'what %s throws is the call’s result and a trace in the log, never the turn’s end',
  async (hook) => {
    const fail = () => {
      throw new Error('hook down')
    }
    await using started = await startAgent({ model: calls(), tools: [echo], hooks: { [hook]: fail } })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(ofType(log, 'tool/result')[0]?.data.message.content[0]).toMatchObject({
      isError: true,
      content: [{ text: 'Error: hook down' }],
    })
    expect(ofType(log, 'agent/hook-failed').map(({ data }) => data.hook)).toEqual([hook])
  },
)

test('around a body a hook may answer instead of it, and after it one may rewrite or block what it gave', async () => {
  const outcome = { kind: 'ok', value: 'cached', content: [{ type: 'text', text: 'cached' }] } as const
  const model = scripted((_, n) => (n < 3 ? toolCall('echo', { say: `n${n}` }, { id: `c${n}` }) : 'done'))
  await using started = await startAgent({
    model,
    tools: [echo],
    hooks: {
      'tools/execute': async ({ callId }, next) => (callId === 'c0' ? outcome : next()),
      'tools/post-execute': async ({ callId }, next) => {
        if (callId === 'c1') return { kind: 'accept', value: 'rewritten', contexts: ['look at this'] }
        return callId === 'c2' ? { kind: 'block', feedback: 'blocked' } : next()
      },
    },
  })
  await started.agent.run('go')
  const log = await started.log()
  const results = ofType(log, 'tool/result').map(({ data }) => data.message.content[0])
  expect(results).toMatchObject([
    { content: [{ text: 'cached' }] },
    { content: [{ text: 'rewritten' }] },
    { isError: true, content: [{ text: 'blocked' }] },
  ])
  expect(ofType(log, 'user/message').map(({ data }) => data.content)).toContainEqual([
    { type: 'text', text: 'look at this' },
  ])
})

test('a hook around the stream sees and may change every chunk before it is logged', async () => {
  await using started = await startAgent({
    model: scripted([text('shout', { deltas: 2 })]),
    hooks: {
      async *'llm/stream'(_, next) {
        for await (const chunk of next()) {
          if (chunk.type === 'text-delta') yield { ...chunk, text: chunk.text.toUpperCase() }
          else if (chunk.type === 'block-end' && chunk.block.type === 'text') {
            yield { ...chunk, block: { type: 'text', text: 'SHOUT' } }
          } else yield chunk
        }
      },
    },
  })
  expect((await started.agent.run('hi')).text).toBe('SHOUT')
})

test('a hook may take a failed attempt over: it is asked again at once, and the log says by whom', async () => {
  const model = scripted([fails({ code: 'AUTH', message: 'no' }), 'second try'])
  await using started = await startAgent({ model, hooks: { 'agent/request-error': () => ({ kind: 'retry' }) } })
  expect((await started.agent.run('hi')).text).toBe('second try')
  expect(ofType(await started.log(), 'llm/retry')).toMatchObject([{ data: { retry: 1, delayMs: 0, mode: 'always' } }])
})

test('a hook that hangs past a cancel is left behind after the time to settle, and what it says then moves nothing', async () => {
  const clock = simulatedClock()
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await using started = await startAgent({
    clock,
    settleTimeoutMs: 1_000,
    hooks: {
      'agent/pre-step': async (_, next) => {
        await held
        return next()
      },
    },
  })
  const { agent } = started
  const running = agent.run('hi')
  await settle()
  const cancelled = agent.cancel()
  clock.increment(999)
  await settle()
  expect(agent.status).toBe('running')
  clock.increment(1)
  await cancelled
  expect((await running).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
  const before = await started.log()
  expect(ofType(before, 'agent/hook-failed')).toMatchObject([
    { data: { hook: 'agent/pre-step', turn: 1, step: 1, error: { code: 'TIMEOUT' } } },
  ])
  release()
  await settle()
  expect(await started.log()).toEqual(before)
  expect(typesOf(before).at(-1)).toBe('turn/end')
})

test('a tool that hangs past a cancel is answered without its result; what it says later stands beside the conversation', async () => {
  const clock = simulatedClock()
  let finish = (_: string): void => {}
  let begun = (): void => {}
  const begins = new Promise<void>((resolve) => {
    begun = resolve
  })
  const slow = tool({
    name: 'echo',
    description: 'Slow',
    parameters: {},
    execute: () => {
      begun()
      return new Promise<string>((resolve) => {
        finish = resolve
      })
    },
  })
  const hooks: AgentOptions['hooks'] = { 'tools/execute': (_, next) => next() }
  await using started = await startAgent({ clock, model: calls(), tools: [slow], hooks, settleTimeoutMs: 50 })
  const { agent } = started
  const running = agent.run('go')
  await begins
  const cancelled = agent.cancel()
  clock.increment(50)
  await cancelled
  expect((await running).reason.kind).toBe('aborted')
  finish('too late')
  await settle()
  const log = await started.log()
  expect(ofType(log, 'agent/hook-failed')).toEqual([])
  expect(ofType(log, 'tool/result')[0]?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
  expect(ofType(log, 'tool/late-result')).toMatchObject([{ data: { callId: 'c1', run: 1 } }])
  expect(log.at(-1)?.type).toBe('tool/late-result')
  expect((await agent.run('still there?')).reason).toEqual({ kind: 'completed' })
})

test('turn-stopping may name a policy, which a steer of the same hook wins over', async () => {
  let times = 0
  const model = scripted(['one', 'two'])
  await using started = await startAgent({ model })
  const { agent } = started
  agent.on('agent/turn-stopping', ({ reason }) => {
    expect(reason).toEqual({ kind: 'completed' })
    times += 1
    if (times === 1) agent.steer('not yet')
    return { kind: 'stopped-by-policy', policy: 'p', reason: 'enough' }
  })
  expect((await agent.run('hi')).reason).toEqual({ kind: 'stopped-by-policy', policy: 'p', reason: 'enough' })
  expect(model.requests).toHaveLength(2)
})

test('turn-stopping may not end a turn in a way that only the loop can', async () => {
  await using started = await startAgent({ hooks: { 'agent/turn-stopping': () => ({ kind: 'max-tokens' }) } })
  expect((await started.agent.run('hi')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
  expect(ofType(await started.log(), 'agent/hook-failed')).toHaveLength(1)
})

test('every observer is told whatever the others do, and a plug-in is disposed of with its agent', async () => {
  const told: string[] = []
  const warned: string[] = []
  const onWarning = (warning: Error): void => void warned.push(warning.message)
  process.on('warning', onWarning)
  const started = await startAgent({
    plugins: [
      (agent) => {
        agent.on('session/event', () => {
          throw new Error('bad observer')
        })
        agent.on('session/event', async () => Promise.reject(new Error('bad promise')))
        agent.on('session/event', ({ type }) => void told.push(type))
        return () => void told.push('disposed')
      },
      () => {
        throw new Error('bad plug-in')
      },
      (async () => {
        throw new Error('bad late plug-in')
      }) as unknown as Plugin,
    ],
  })
  expect((await started.agent.run('hi')).reason).toEqual({ kind: 'completed' })
  await started.agent.close()
  expect(told.slice(-2)).toEqual(['turn/end', 'disposed'])
  await settle()
  process.off('warning', onWarning)
  for (const name of ['bad observer', 'bad promise', 'bad plug-in', 'bad late plug-in']) {
    expect(warned.some((message) => message.includes(name))).toBe(true)
  }
})

test('a model that is streaming is left when the turn is cancelled, even if it heeds no signal', async () => {
  const held = gate()
  const deaf = scripted([[text('partial'), pause(held)]])
  await using started = await startAgent({
    model: { ...deaf, stream: (request) => deaf.stream(request, { signal: new AbortController().signal }) },
  })
  const running = started.agent.run('hi')
  await held.reached
  await started.agent.cancel()
  expect((await running).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
  expect(ofType(await started.log(), 'assistant/message')).toMatchObject([{ data: { interrupted: true } }])
})

test('a hook that heeds its signal by throwing has not failed', async () => {
  let asked = (): void => {}
  const begun = new Promise<void>((resolve) => {
    asked = resolve
  })
  await using started = await startAgent({
    hooks: {
      'agent/pre-step': ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          asked()
        }),
    },
  })
  const running = started.agent.run('hi')
  await begun
  await started.agent.cancel()
  expect((await running).reason.kind).toBe('aborted')
  expect(ofType(await started.log(), 'agent/hook-failed')).toEqual([])
})

test('a tool left behind by its turn cannot steer the agent any more', async () => {
  let leak: ((text: string) => unknown) | undefined
  const leaky = tool({
    name: 'echo',
    description: 'Leaks',
    parameters: {},
    execute: (_, { steer }) => {
      leak = steer
      return 'ok'
    },
  })
  await using started = await startAgent({ model: calls(), tools: [leaky] })
  await started.agent.run('go')
  expect(() => leak?.('psst')).toThrow(expect.objectContaining({ code: 'TURN_OVER' }))
  expect(started.agent.inbox.nextStep).toEqual([])
})

test('a cancel that an idle observer gives right after a message resolves when that turn is over and durable', async () => {
  await using started = await startAgent()
  const { agent } = started
  const cancelled = new Promise<number>((resolve) => {
    const dispose = agent.on('agent/status', (status) => {
      if (status !== 'idle') return
      dispose()
      agent.followup('second')
      void agent.cancel().then(() => resolve(agent.session.head))
    })
  })
  await agent.run('first')
  const head = await cancelled
  const log = await started.log()
  expect(ofType(log, 'turn/end').map(({ data }) => data.reason.kind)).toEqual(['completed', 'aborted'])
  expect(head).toBe(log.length)
})

const ended = { type: 'finish', reason: { kind: 'stop' } } as const

test.each<[string, NonNullable<AgentOptions['hooks']>]>([
  ['system-prompt/assemble', { 'system-prompt/assemble': () => ({}) as Prompt }],
  ['agent/request', { 'agent/request': () => ({ provider: 'p', model: 'm', temperature: 'hot' }) as never }],
  ['agent/request-error', { 'agent/request-error': () => ({ kind: 'again' }) as never }],
  ['llm/stream', { 'llm/stream': () => undefined as never }],
  [
    'llm/stream',
    {
      async *'llm/stream'() {
        yield { type: 'wink' } as never
        yield ended
      },
    },
  ],
])('an answer of %s that is none is its misuse: it is in the log, and the turn fails (%#)', async (hook, hooks) => {
  const model = scripted(hook === 'agent/request-error' ? [fails({ code: 'AUTH', message: 'no' })] : ['ok'])
  await using started = await startAgent({ model, hooks })
  expect((await started.agent.run('hi')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
  expect(ofType(await started.log(), 'agent/hook-failed')).toMatchObject([{ data: { hook, turn: 1, step: 1 } }])
})

test('a hook around the stream that throws, or asks the model twice, fails the turn and leaves its trace', async () => {
  const model = scripted(() => 'ok')
  await using started = await startAgent({ model })
  const { agent } = started
  const dispose = agent.on('llm/stream', (_, next) => {
    next()
    return next()
  })
  expect((await agent.run('one')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
  dispose()
  const disposeThrower = agent.on('llm/stream', () => {
    throw new Error('broken')
  })
  expect((await agent.run('two')).reason).toEqual({ kind: 'error', error: { code: 'UNKNOWN', message: 'broken' } })
  disposeThrower()
  expect((await agent.run('three')).reason).toEqual({ kind: 'completed' })
  expect(ofType(await started.log(), 'agent/hook-failed').map(({ data }) => [data.hook, data.turn])).toEqual([
    ['llm/stream', 1],
    ['llm/stream', 2],
  ])
})

test('what the model itself says wrong is not the failure of a hook that passes it on', async () => {
  const model = {
    ...scripted([]),
    stream: async function* () {
      yield { type: 'wink' } as never
    },
  }
  await using started = await startAgent({ model, hooks: { 'llm/stream': (_, next) => next() } })
  expect((await started.agent.run('hi')).reason).toMatchObject({ kind: 'error', error: { code: 'INVALID_EVENT' } })
  expect(ofType(await started.log(), 'agent/hook-failed')).toEqual([])
})

test('all that a hook is shown is frozen, to the bottom, and so is what next() gives', async () => {
  const loose = new Set<string>()
  const look = (value: unknown, place: string): void => {
    if (typeof value !== 'object' || value === null || value instanceof AbortSignal) return
    if (!Object.isFrozen(value)) loose.add(place)
    for (const [key, item] of Object.entries(value)) look(item, `${place}.${key}`)
  }
  const shown = new Set<string>()
  const watching = (name: keyof Hooks) => (payload: unknown, next?: () => unknown) => {
    shown.add(name)
    look(payload, name)
    const given = next?.()
    if (given instanceof Promise) given.then((answer) => look(answer, `${name}.next()`))
    return given
  }
  const names: readonly (keyof Hooks)[] = [
    'system-prompt/assemble',
    'agent/pre-step',
    'agent/request',
    'llm/stream',
    'agent/request-error',
    'tools/pre-execute',
    'tools/execute',
    'tools/post-execute',
    'agent/turn-stopping',
    'agent/error',
    'session/event',
    'agent/inbox/inserted',
    'agent/inbox/claimed',
    'agent/inbox/discarded',
  ]
  await using started = await startAgent({
    model: scripted([
      toolCall('echo', { say: 'hi', in: [{ depth: 2 }] }),
      'done',
      fails({ code: 'AUTH', message: 'no' }),
    ]),
    tools: [echo],
    system: 'be brief',
    context: [{ name: 'place', text: 'here' }],
    hooks: Object.fromEntries(names.map((name) => [name, watching(name)])),
  })
  const { agent } = started
  await agent.run('one')
  agent.inject('dropped')
  agent.inbox.clear()
  await agent.run('two')
  expect([...loose]).toEqual([])
  expect([...shown].sort()).toEqual([...names].sort())
})

test('a hook that changes the arguments it is shown fails, and the body gets what the log has', async () => {
  const got: unknown[] = []
  const spy = tool({ name: 'echo', description: '', parameters: {}, execute: (args) => void got.push(args) })
  await using started = await startAgent({
    model: scripted([toolCall('echo', { say: 'hi' }), toolCall('echo', { say: 'ho' }), 'done']),
    tools: [spy],
    hooks: {
      'tools/execute': ({ args }, next) => {
        if ((args as { say: string }).say === 'ho') (args as { say: string }).say = 'rm -rf'
        return next()
      },
    },
  })
  await started.agent.run('go')
  expect(got).toEqual([{ say: 'hi' }])
  expect(ofType(await started.log(), 'agent/hook-failed')).toMatchObject([{ data: { hook: 'tools/execute' } }])
})

test('what the log says of a call without its tool no tool can say: its error has no code then', async () => {
  class Lies extends PawlError {}
  const lying = tool({
    name: 'echo',
    description: 'Lies about itself',
    parameters: {},
    execute: () => {
      throw new Lies('never ran', 'ABORTED_BEFORE_DISPATCH')
    },
  })
  await using started = await startAgent({ model: calls(), tools: [lying] })
  await started.agent.run('go')
  const [result] = ofType(await started.log(), 'tool/result')
  expect(result?.data.message.content[0].isError).toBe(true)
  expect(result?.data.error).toBeUndefined()
})
