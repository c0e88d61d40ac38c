/** What starts a turn, what parks the rest, and what a cancel in progress does to what comes in. */
import { describe, expect, test } from 'vitest'
import { AgentClosed, type Hooks } from '../../src/index.ts'
import { StoreFailure } from '../../src/log/errors.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { type Gate, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored } from '../kit/agents.ts'
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
import { faultyStore } from '../kit/faulty-store.ts'

const user = { kind: 'user' } as const
const aborted = { kind: 'aborted', cause: user }
const completed = { kind: 'completed' }

/** Refuses the messages with these ids, and the turn they came in. */
const rejects = (...ids: readonly string[]): Partial<Hooks> => ({
  'agent/pre-step': ({ messages }, next) =>
    messages.some(({ id }) => ids.includes(id)) ? { kind: 'reject', reason: 'refused' } : next(),
})

/** A tool that runs until it is let go, whatever its signal says. */
const stubborn = (held: Gate) =>
  tool({
    name: 'stubborn',
    description: 'Takes its time',
    parameters: { type: 'object' },
    execute: async () => {
      await held.pass(new AbortController().signal)
      return 'done at last'
    },
  })

/** An agent whose first turn streams and hangs, at the point where it hangs. */
async function hanging(rest: readonly string[] = []) {
  const held = gate()
  const model = scripted([[text('thinking'), pause(held), hangs()], ...rest])
  held.release()
  const started = await startAgent({ model })
  started.agent.followup(message('active'))
  await held.reached
  await settle()
  return { ...started, model }
}

describe('status and rest', () => {
  test('[driver-001] a turn is one transition to running and one to idle', async () => {
    await using started = await startAgent({ model: scripted(['ok']) })
    const statuses = statusesOf(started.agent)
    await started.agent.run('hi')
    await started.agent.whenIdle()
    expect(statuses).toEqual(['running', 'idle'])
  })

  test('[driver-003] rest is waited for as long as a model hangs, and comes with the cancel', async () => {
    await using started = await hanging()
    const { agent } = started
    let rested = false
    const idle = agent.whenIdle().then(() => {
      rested = true
    })
    await settle()
    expect(rested).toBe(false)
    await agent.cancel(user)
    await idle
    expect(agent.status).toBe('idle')
    expect(reasons(await started.log())).toEqual([aborted])
  })
})

describe('waking', () => {
  test('[driver-004] a steer while idle opens a turn at once, a second one joins its next step', async () => {
    const model = scripted(['one', 'two'])
    await using started = await startAgent({ model })
    started.agent.steer('a')
    expect(started.agent.status).toBe('running')
    started.agent.steer('b')
    await started.agent.whenIdle()
    expect(model.requests.map(toldTexts)).toEqual([['a'], ['a', 'b']])
    expect(steps(await started.log())).toEqual(['1.1', '1.2'])
  })

  test('[driver-006] after a rejected message what is queued waits for the next waking one, and goes before it', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model, hooks: rejects('secret') })
    const { agent } = started
    agent.followup(message('secret'))
    agent.followup(message('safe'))
    await agent.whenIdle()
    await settle()
    expect(reasons(await started.log())).toEqual([{ kind: 'blocked', reason: 'refused' }])
    expect(model.requests).toEqual([])
    expect(idsOf(agent.inbox.nextTurn)).toEqual(['safe'])
    agent.followup(message('wake'))
    await agent.whenIdle()
    expect(model.requests.map(toldTexts)).toEqual([['safe'], ['safe', 'wake']])
    expect(steps(await started.log())).toEqual(['2.1', '3.1'])
  })

  test('[driver-007] what was parked goes first: all of next-step, then the oldest of next-turn', async () => {
    const model = scripted(() => 'ok')
    const held = gate()
    await using started = await startAgent({
      model,
      hooks: {
        'agent/pre-step': async ({ messages, signal }, next) => {
          if (messages.every(({ id }) => id !== 'bad')) return next()
          await held.pass(signal)
          return { kind: 'reject' }
        },
      },
    })
    const { agent } = started
    agent.followup(message('bad'))
    await held.reached
    agent.followup(message('later'))
    agent.inject(message('x'))
    agent.inject(message('y'))
    held.release()
    await agent.whenIdle()
    expect([idsOf(agent.inbox.nextTurn), idsOf(agent.inbox.nextStep)]).toEqual([['later'], ['x', 'y']])
    agent.followup(message('wake'))
    await agent.whenIdle()
    const log = await started.log()
    expect([1, 2, 3].map((turn) => userTexts(turnOf(log, turn)))).toEqual([[], ['x', 'y', 'later'], ['wake']])
    expect(model.requests.map(toldTexts)).toEqual([
      ['x', 'y', 'later'],
      ['x', 'y', 'later', 'wake'],
    ])
  })

  test('[driver-006] wake() starts what is parked without a new message, and nothing where nothing is', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model, hooks: rejects('secret') })
    const { agent } = started
    agent.followup(message('secret'))
    agent.followup(message('safe'))
    await agent.whenIdle()
    agent.wake()
    await agent.whenIdle()
    expect(userTexts(await started.log())).toEqual(['safe'])
    const { length } = await started.log()
    agent.wake()
    await settle()
    expect(await started.log()).toHaveLength(length)
  })
})

describe('while a cancel is in progress', () => {
  test('[driver-009] what wakes runs once the cancelled turn is over, however slowly a tool gives in', async () => {
    const held = gate()
    const model = scripted([toolCall('stubborn', {}), 'hello B'])
    await using started = await startAgent({ model, tools: [stubborn(held)] })
    const { agent } = started
    agent.followup(message('A'))
    await held.reached
    const cancelled = agent.cancel(user, { keepInbox: true })
    await settle()
    agent.followup(message('B'))
    await settle()
    expect(model.requests).toHaveLength(1)
    held.release()
    await cancelled
    await agent.whenIdle()
    const log = await started.log()
    expect(reasons(log)).toEqual([aborted, completed])
    expect(userTexts(turnOf(log, 2))).toEqual(['B'])
    expect(model.requests).toHaveLength(2)
  })

  test('[driver-010] a clearing cancel takes along what was to run after the first one', async () => {
    await using started = await hanging(['hello C'])
    const { agent, model } = started
    const first = agent.cancel(user, { keepInbox: true })
    const b = agent.followup(message('B'))
    await Promise.all([first, agent.cancel(user)])
    await agent.whenIdle()
    agent.followup(message('C'))
    await agent.whenIdle()
    const log = await started.log()
    expect(userTexts(log)).toEqual(['active', 'C'])
    expect(ofType(log, 'turn/cancel')).toHaveLength(1)
    expect(await b.entered).toMatchObject({ kind: 'canceled' })
    expect(model.requests).toHaveLength(2)
  })

  test('[driver-011] what woke and was removed again opens no turn', async () => {
    await using started = await hanging()
    const { agent, model } = started
    const cancelled = agent.cancel(user, { keepInbox: true })
    agent.steer(message('s'))
    expect(agent.inbox.remove('s')).toBe(true)
    await cancelled
    await agent.whenIdle()
    await settle()
    expect(ofType(await started.log(), 'turn/start')).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
  })

  test('[driver-011] nor does what is injected after that', async () => {
    await using started = await hanging()
    const { agent, model } = started
    const cancelled = agent.cancel(user, { keepInbox: true })
    agent.steer(message('s'))
    agent.inbox.remove('s')
    agent.inject(message('i'))
    await cancelled
    await settle()
    expect(agent.status).toBe('idle')
    expect(idsOf(agent.inbox.nextStep)).toEqual(['i'])
    expect(model.requests).toHaveLength(1)
  })

  test('[driver-012] a steer goes to next-turn, since its step will not come', async () => {
    await using started = await hanging(['hello s'])
    const { agent } = started
    const cancelled = agent.cancel(user, { keepInbox: true })
    agent.steer(message('s'))
    await cancelled
    await agent.whenIdle()
    const log = await started.log()
    expect(splices(log).slice(2)).toEqual(['next-turn@0 +[s] wakes', 'next-turn@0 -1 claimed'])
    expect(userTexts(turnOf(log, 2))).toEqual(['s'])
  })

  test('[driver-012] an injection stays in next-step and starts nothing', async () => {
    await using started = await hanging()
    const { agent } = started
    const cancelled = agent.cancel(user, { keepInbox: true })
    agent.inject(message('i'))
    await cancelled
    await settle()
    expect(splices(await started.log()).slice(2)).toEqual(['next-step@0 +[i]'])
    expect(idsOf(agent.inbox.nextStep)).toEqual(['i'])
    expect(agent.status).toBe('idle')
  })

  test('[driver-014] what a cancel kept waits for the next waking message', async () => {
    await using started = await hanging(['one', 'two'])
    const { agent, model } = started
    agent.followup(message('preserved'))
    await agent.cancel(user, { keepInbox: true })
    await agent.whenIdle()
    await settle()
    expect(idsOf(agent.inbox.nextTurn)).toEqual(['preserved'])
    expect(model.requests).toHaveLength(1)
    agent.followup(message('wake'))
    await agent.whenIdle()
    const log = await started.log()
    expect([1, 2, 3].map((turn) => userTexts(turnOf(log, turn)))).toEqual([['active'], ['preserved'], ['wake']])
  })

  test('[driver-015] what comes while the agent is being closed is refused', async () => {
    const held = gate()
    const model = scripted([toolCall('stubborn', {})])
    const started = await startAgent({ model, tools: [stubborn(held)] })
    const { agent } = started
    agent.followup(message('A'))
    await held.reached
    const closed = agent.close({ cancel: { kind: 'disposed' } })
    await settle()
    expect(() => agent.followup(message('late'))).toThrow(AgentClosed)
    held.release()
    await closed
    const log = await stored(started.store, 'session')
    expect(userTexts(log)).toEqual(['A'])
    expect(reasons(log)).toEqual([{ kind: 'aborted', cause: { kind: 'disposed' } }])
    expect(model.requests).toHaveLength(1)
    await started[Symbol.asyncDispose]()
  })

  test('[driver-018] a message right after a cancel in the same tick runs by itself', async () => {
    const model = scripted(['one', 'two'])
    await using started = await startAgent({ model })
    const { agent } = started
    agent.followup(message('A'))
    agent.cancel(user)
    agent.followup(message('B'))
    await agent.whenIdle()
    const log = await started.log()
    expect(userTexts(log)).toEqual(['B'])
    expect(reasons(log)).toEqual([aborted, completed])
    expect(steps(log)).toEqual(['2.1'])
  })

  test('[driver-019] a replacement queued when the agent comes to rest runs, what was cancelled with it does not', async () => {
    const model = scripted(['one', 'two', 'three'])
    await using started = await startAgent({ model })
    const { agent } = started
    const stop = agent.on('agent/status', (status) => {
      if (status !== 'idle') return
      stop()
      agent.followup(message('x'))
      agent.cancel(user)
      agent.followup(message('y'))
    })
    agent.followup(message('first'))
    await agent.whenIdle()
    await settle()
    await agent.whenIdle()
    expect(userTexts(await started.log())).toEqual(['first', 'y'])
    expect(model.requests).toHaveLength(2)
  })
})

describe('the opening of a turn', () => {
  test('[driver-025] it is one batch with the claim: an observer of it comes too late to remove the message', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    const { agent } = started
    const removed: boolean[] = []
    agent.on('agent/status', (status) => {
      if (status === 'running') removed.push(agent.inbox.remove('m'))
    })
    agent.followup(message('m'))
    await agent.whenIdle()
    expect(removed).toEqual([false])
    expect(userTexts(await started.log())).toEqual(['m'])
  })

  test('[driver-026] when it cannot be appended its number is not used up: opening the log again starts at 1', async () => {
    const inner = memoryStore()
    const store = faultyStore(inner, { seed: 2 })
    const started = await startAgent({ store })
    store.script('append', 'fail')
    await expect(started.agent.followup(message('a')).turn).rejects.toThrow(StoreFailure)
    expect(started.agent.status).toBe('failed')
    expect(await stored(inner, 'session')).toEqual([])
    await started.agent.close().catch(() => {})

    await using again = await startAgent({ store: inner })
    expect(await again.agent.run(message('a'))).toMatchObject({ turn: 1, reason: completed })
  })
})
