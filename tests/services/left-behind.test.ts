/**
 * A cancelled turn begins nothing new, and what is left behind when its time to settle is over does nothing to the
 * turns that follow: it is not asked again, it runs no body, and it writes nothing.
 */
import { describe, expect, test } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import { type Gate, gate, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, typesOf } from '../kit/agents.ts'
import { reasons, userTexts } from '../kit/conversation.ts'
import { manualClock } from '../kit/manual-clock.ts'

const user = { kind: 'user' } as const

/** Waits at the gate whatever the signal says. */
const ignoring = (held: Gate): Promise<void> => held.pass(new AbortController().signal)

/** Hooks that say when they are asked, and of which turn. */
function watching(asked: string[]): Partial<Hooks> {
  return {
    'system-prompt/assemble': ({ turn }, next) => {
      asked.push(`assemble ${turn}`)
      return next()
    },
    'agent/pre-step': ({ turn }, next) => {
      asked.push(`pre-step ${turn}`)
      return next()
    },
    'agent/request': ({ turn }, next) => {
      asked.push(`request ${turn}`)
      return next()
    },
    'agent/turn-stopping': ({ turn }) => {
      asked.push(`stopping ${turn}`)
    },
  }
}

describe('once a turn is cancelled', () => {
  test('a cancel in the tick of the message asks no hook', async () => {
    const asked: string[] = []
    await using started = await startAgent({ hooks: watching(asked) })
    started.agent.followup('m')
    await started.agent.cancel(user)
    expect(asked).toEqual([])
    expect(reasons(await started.log())).toEqual([{ kind: 'aborted', cause: user }])
  })

  test('a cancel while the prompt is assembled asks agent/pre-step no more', async () => {
    const asked: string[] = []
    const held = gate()
    const { 'agent/pre-step': preStep } = watching(asked)
    await using started = await startAgent({
      hooks: {
        ...(preStep === undefined ? {} : { 'agent/pre-step': preStep }),
        'system-prompt/assemble': async (_, next) => {
          await ignoring(held)
          return next()
        },
      },
    })
    started.agent.followup('m')
    await held.reached
    const cancelled = started.agent.cancel(user)
    held.release()
    await cancelled
    expect(asked).toEqual([])
  })

  test.each([
    { at: 'step/start', asked: ['assemble 1', 'pre-step 1'] },
    { at: 'step/end', asked: ['assemble 1', 'pre-step 1', 'request 1'] },
  ])('a cancel from an observer of $at asks no later hook', async ({ at, asked: expected }) => {
    const asked: string[] = []
    await using started = await startAgent({ hooks: watching(asked) })
    const { agent } = started
    agent.on('session/event', ({ type }) => {
      if (type === at) agent.cancel(user)
    })
    agent.followup('m')
    await agent.whenIdle()
    expect(asked).toEqual(expected)
    expect(reasons(await started.log())).toEqual([{ kind: 'aborted', cause: user }])
  })
})

/** An agent with something that hangs in its first turn, that was cancelled and left behind; its second turn is over. */
async function leftBehind(held: Gate, options: Partial<AgentOptions>) {
  const clock = simulatedClock()
  const started = await startAgent({ clock, settleTimeoutMs: 1_000, ...options })
  const { agent } = started
  agent.followup('left behind')
  await held.reached
  const cancelled = agent.cancel(user)
  clock.increment(1_000)
  await cancelled
  expect(reasons(await started.log())).toEqual([{ kind: 'aborted', cause: user }])
  return started
}

/** What the log says more once the hung one is let go. */
async function saysLate(started: Awaited<ReturnType<typeof leftBehind>>, held: Gate): Promise<readonly string[]> {
  const before = await started.log()
  held.release()
  await settle()
  return typesOf((await started.log()).slice(before.length))
}

describe('what was left behind', () => {
  test("an adapter's prepare writes no header into a later turn", async () => {
    const held = gate()
    const later = gate()
    const inner = scripted(() => 'ok')
    let prepared = 0
    const model: ModelAdapter = {
      ...inner,
      async prepare(config) {
        prepared += 1
        if (prepared > 1) return { config }
        await ignoring(held)
        return { config: { ...config, temperature: 1 } }
      },
    }
    await using started = await leftBehind(held, {
      model,
      hooks: {
        'agent/pre-step': async ({ turn }, next) => {
          if (turn === 2) await ignoring(later)
          return next()
        },
      },
    })
    started.agent.followup('next')
    await later.reached
    expect(await saysLate(started, held)).toEqual([])
    later.release()
    await started.agent.whenIdle()
    expect(ofType(await started.log(), 'request/header').map(({ data }) => data.header.config.temperature)).toEqual([
      undefined,
    ])
  })

  test('a prompt is not the prompt of a later turn', async () => {
    const held = gate()
    const later = gate()
    const model = scripted(() => 'ok')
    await using started = await leftBehind(held, {
      model,
      hooks: {
        'system-prompt/assemble': async ({ turn }) => {
          if (turn === 1) await ignoring(held)
          return { system: `of turn ${turn}`, tools: [] }
        },
        'agent/pre-step': async ({ turn }, next) => {
          if (turn === 2) await ignoring(later)
          return next()
        },
      },
    })
    started.agent.followup('next')
    await later.reached
    held.release()
    await settle()
    later.release()
    await started.agent.whenIdle()
    expect(model.requests.map(({ system }) => system)).toEqual(['of turn 2'])
  })

  test('the hooks after one of agent/turn-stopping are not asked', async () => {
    const held = gate()
    const later = gate()
    const asked: number[] = []
    await using started = await leftBehind(held, {
      hooks: {
        'agent/turn-stopping': async ({ turn }) => {
          if (turn === 1) await ignoring(held)
        },
        'agent/pre-step': async ({ turn }, next) => {
          if (turn === 2) await ignoring(later)
          return next()
        },
      },
      plugins: [(agent) => void agent.on('agent/turn-stopping', ({ turn }) => void asked.push(turn))],
    })
    started.agent.followup('next')
    await later.reached
    expect(await saysLate(started, held)).toEqual([])
    later.release()
    await started.agent.whenIdle()
    expect(asked).toEqual([2])
  })

  test('a hook around a call runs no body any more', async () => {
    const held = gate()
    const later = gate()
    let ran = 0
    const counts = tool({ name: 'counts', description: 'x', parameters: { type: 'object' }, execute: () => ++ran })
    await using started = await leftBehind(held, {
      model: scripted((_, n) => (n === 0 ? toolCall('counts', {}) : 'ok')),
      tools: [counts],
      hooks: {
        'tools/execute': async (_, next) => {
          await ignoring(held)
          return next()
        },
        'agent/pre-step': async ({ turn }, next) => {
          if (turn === 2) await ignoring(later)
          return next()
        },
      },
    })
    started.agent.followup('next')
    await later.reached
    expect(await saysLate(started, held)).toEqual(['tool/late-result'])
    expect(ran).toBe(0)
    later.release()
    await started.agent.whenIdle()
    expect(ofType(await started.log(), 'tool/late-result')[0]?.data.outcome).toMatchObject({
      content: [{ text: 'Not run: the turn was cancelled before this call began.' }],
      error: { code: 'ABORTED' },
    })
  })

  test.each(['agent/pre-step', 'agent/request', 'system-prompt/assemble'] as const)(
    'what %s throws then is nobody’s failure',
    async (hook) => {
      const held = gate()
      const throws = async (): Promise<never> => {
        await ignoring(held)
        throw new Error('too late')
      }
      await using started = await leftBehind(held, { hooks: { [hook]: throws } })
      expect(await saysLate(started, held)).toEqual([])
      expect(started.agent.status).toBe('idle')
      expect(userTexts(await started.log())).toEqual(hook === 'agent/request' ? ['left behind'] : [])
    },
  )
})

test('a body that hangs past a cancel leaves no timer of its own behind', async () => {
  const clock = manualClock()
  const hang = tool({
    name: 'hang',
    description: 'Hangs',
    parameters: { type: 'object' },
    timeoutMs: 3_600_000,
    execute: () => new Promise(() => {}),
  })
  await using started = await startAgent({
    model: scripted([toolCall('hang', {})]),
    tools: [hang],
    clock,
    settleTimeoutMs: 1_000,
  })
  started.agent.followup('m')
  await settle()
  expect(clock.pending).toBe(1)
  const cancelled = started.agent.cancel(user)
  clock.advance(1_000)
  await cancelled
  expect(clock.pending).toBe(0)
})
