/** What observers and plug-ins do wrong, and how little comes of it: the log is the one it would have been. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { fails, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { LlmError } from '../../src/services/errors.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, simulatedClock, startAgent } from '../kit/agents.ts'
import { reasons, statusesOf, steps } from '../kit/conversation.ts'

const work = tool({ name: 'work', description: 'Works', parameters: { type: 'object' }, execute: () => 'worked' })
const completed = { kind: 'completed' } as const

/** What the process was warned of, instead of warning it. */
function warnings(): readonly string[] {
  const heard: string[] = []
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation((warning) => void heard.push(`${warning}`))
  onTestFinished(() => spy.mockRestore())
  return heard
}

type Failing = Partial<NonNullable<AgentOptions['hooks']>>

/** Two turns, the first with a tool, under a clock that stands still: the same log each time. */
async function twoTurns(hooks: Failing = {}): Promise<readonly SessionEvent[]> {
  const model = scripted([toolCall('work', {}, { id: 'c1' }), 'one', 'two'])
  await using started = await startAgent({ model, tools: [work], hooks, clock: simulatedClock() })
  await started.agent.run('first')
  await started.agent.run('second')
  return started.log()
}

const throwsOn = (...types: readonly SessionEvent['type'][]): Failing => ({
  'session/event': ({ type }) => {
    if (types.includes(type)) throw new Error(`no ${type}`)
  },
})

describe('an observer that throws', () => {
  test('[containment-001] at the start of a turn leaves the log of this turn and the next as it is', async () => {
    const heard = warnings()
    const log = await twoTurns(throwsOn('turn/start'))
    expect(log).toEqual(await twoTurns())
    expect(reasons(log)).toEqual([completed, completed])
    expect(heard).toEqual([expect.stringContaining('no turn/start')])
  })

  test('[containment-002] at the boundaries of a step changes neither what follows a tool nor how the turn ends', async () => {
    warnings()
    const log = await twoTurns(throwsOn('step/start', 'step/end'))
    expect(log).toEqual(await twoTurns())
    expect(steps(log)).toEqual(['1.1', '1.2', '2.1'])
  })

  test('[containment-004] when a step has failed does not take the place of the failure', async () => {
    warnings()
    const failure = { code: 'AUTH', message: 'who are you' }
    const hooks = throwsOn('step/end')
    await using started = await startAgent({ model: scripted([fails(failure)]), hooks })
    expect((await started.agent.run('hi')).reason).toEqual({ kind: 'error', error: failure })
    expect(reasons(await started.log())).toEqual([{ kind: 'error', error: failure }])
  })

  test('[containment-009] at each change of status keeps no other listener from being told', async () => {
    const heard = warnings()
    const listener = () => {
      throw new Error('no status')
    }
    await using started = await startAgent({ hooks: { 'agent/status': listener } })
    const told = statusesOf(started.agent)
    expect((await started.agent.run('hi')).reason).toEqual(completed)
    expect(told).toEqual(['running', 'idle'])
    expect(heard).toEqual([expect.stringContaining('no status')])
  })
})

test('[containment-011] the error is told after its batch, step and turn ended in it, and before the agent is idle', async () => {
  await using started = await startAgent({ model: scripted([fails({ code: 'AUTH', message: 'no' })]) })
  const { agent } = started
  const told: unknown[] = []
  agent.on('session/event', ({ type }) => {
    if (type === 'step/end' || type === 'turn/end') told.push(type)
  })
  agent.on('agent/error', (payload) => told.push(payload))
  agent.on('agent/status', (status) => told.push(status))
  await agent.run('hi')
  const error = { turn: 1, step: 1, error: expect.objectContaining({ code: 'AUTH', message: 'no' }) }
  expect(told).toEqual(['running', 'step/end', 'turn/end', error, 'idle'])
})

/** Values that cannot be put into words. */
const unspeakable: readonly (readonly [string, () => unknown])[] = [
  ['has no prototype', () => Object.create(null)],
  [
    'throws when it is read',
    () => ({
      get message(): string {
        throw new Error('not that')
      },
      toString() {
        throw new Error('nor that')
      },
    }),
  ],
  [
    'is a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      return proxy
    },
  ],
]

describe.each(unspeakable)('[containment-014] a thrown value that %s', (_, value) => {
  const fail = (): never => {
    throw value()
  }

  test.each(['system-prompt/assemble', 'agent/pre-step', 'agent/request', 'agent/turn-stopping'] as const)(
    'from %s ends the turn with a placeholder, and the agent goes on',
    async (hook) => {
      await using started = await startAgent()
      const { agent } = started
      const remove = agent.on(hook, fail)
      const { reason } = await agent.run('one')
      expect(reason).toEqual({ kind: 'error', error: { code: 'UNKNOWN', message: expect.stringMatching(/./) } })
      await agent.whenIdle()
      remove()
      expect((await agent.run('two')).reason).toEqual(completed)
    },
  )

  test('from a tool is its result', async () => {
    const broken = { ...work, execute: fail }
    await using started = await startAgent({ model: scripted([toolCall('work', {}), 'done']), tools: [broken] })
    expect((await started.agent.run('go')).text).toBe('done')
    expect(ofType(await started.log(), 'tool/result')[0]?.data.message.content[0].isError).toBe(true)
  })

  test.each(['session/event', 'agent/status', 'agent/inbox/inserted', 'agent/inbox/claimed'] as const)(
    'from an observer of %s is a warning, in whichever way it is thrown',
    async (name) => {
      const heard = warnings()
      await using started = await startAgent()
      started.agent.on(name, () => fail())
      started.agent.on(name, async () => fail())
      expect((await started.agent.run('hi')).reason).toEqual(completed)
      expect(heard).toHaveLength(2)
    },
  )

  test('from a plug-in, or from what disposes of it, is a warning', async () => {
    const heard = warnings()
    await using started = await startAgent({ plugins: [fail, () => fail] })
    expect((await started.agent.run('hi')).reason).toEqual(completed)
    await started.agent.close()
    expect(heard).toHaveLength(2)
  })

  test('from an inspector is a warning', async () => {
    const heard = warnings()
    await using started = await startAgent({ inspect: fail })
    expect((await started.agent.run('hi')).reason).toEqual(completed)
    expect(heard).toHaveLength(1)
  })
})

describe('[containment-015] what a plug-in throws for a request', () => {
  async function requestThrows(thrown: unknown) {
    const model = scripted(['never'])
    const asked: unknown[] = []
    await using started = await startAgent({
      model,
      hooks: {
        'agent/request': () => {
          throw thrown
        },
        'agent/request-error': (payload, next) => {
          asked.push(payload)
          return next()
        },
      },
    })
    const { reason } = await started.agent.run('hi')
    expect([asked, model.requests, ofType(await started.log(), 'llm/retry')]).toEqual([[], [], []])
    return reason
  }

  test('is the reason word for word if it states a failure, also one that a model would be asked again for', async () => {
    const failure = { message: 'server overloaded', code: 'RATE_LIMIT' }
    expect(await requestThrows(new LlmError(failure))).toEqual({ kind: 'error', error: failure })
  })

  test('is told with what caused it otherwise, and a code of somebody else’s is none of ours', async () => {
    const cause = Object.assign(new Error('connection reset'), { code: 'ECONNRESET' })
    const thrown = Object.assign(new Error('lookup failed', { cause }), { code: 'RATE_LIMIT' })
    const error = { message: 'lookup failed: connection reset', code: 'UNKNOWN' }
    expect(await requestThrows(thrown)).toEqual({ kind: 'error', error })
  })
})

test('[containment-016] a turn that failed is over like any other for whoever waits', async () => {
  await using started = await startAgent({ model: scripted([fails('AUTH')]) })
  const { agent } = started
  agent.followup('hi')
  await agent.whenIdle()
  expect(agent.status).toBe('idle')
  expect(reasons(await started.log())).toMatchObject([{ kind: 'error', error: { code: 'AUTH' } }])
})
