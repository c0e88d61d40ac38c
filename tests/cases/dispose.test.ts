/** Closing an agent for good: `close({ cancel: { kind: 'disposed' } })` ends its turn first. And how agents come to be. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Agent } from '../../src/agent.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { gate, hangs, pause, scripted, text } from '../../src/services/adapters/scripted.ts'
import { AgentClosed } from '../../src/services/errors.ts'
import { ofType, settle, startAgent, stored, typesOf } from '../kit/agents.ts'
import { message, reasons, statusesOf, steps, userTexts } from '../kit/conversation.ts'

const disposed = { kind: 'disposed' } as const
const aborted = { kind: 'aborted', cause: disposed } as const
const dispose = (agent: Agent): Promise<void> => agent.close({ cancel: disposed })

/** An observer's throw is a warning of the process: not here. */
function quiet(): void {
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => spy.mockRestore())
}

describe('disposing of an agent', () => {
  test('[dispose-003] as its first message sets it to work ends the turn that the message opened, without a step or a hook', async () => {
    const model = scripted(['never'])
    const asked: string[] = []
    const started = await startAgent({
      model,
      hooks: {
        'system-prompt/assemble': (_, next) => {
          asked.push('assemble')
          return next()
        },
        'agent/pre-step': (_, next) => {
          asked.push('pre-step')
          return next()
        },
      },
    })
    const { agent } = started
    const closed = new Promise<void>((resolve) => {
      agent.on('agent/status', (status) => {
        if (status === 'running') resolve(dispose(agent))
      })
    })
    const receipt = agent.followup('hi')
    await closed
    const log = await stored(started.store, 'session')
    expect(typesOf(log)).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
      'turn/cancel',
      'turn/end',
    ])
    expect([reasons(log), asked, model.requests]).toEqual([[aborted], [], []])
    expect(await receipt.entered).toEqual({ kind: 'dropped', turn: 1 })
    await started[Symbol.asyncDispose]()
  })

  describe.each(['system-prompt/assemble', 'agent/pre-step'] as const)('[dispose-004] while %s is at it', (hook) => {
    test.each(['release', 'throw'])('waits for it to %s; the turn has no step and no model is asked', async (how) => {
      const held = gate()
      const model = scripted(['never'])
      const started = await startAgent({ model })
      const { agent } = started
      agent.on(hook, async (_: unknown, next: () => Promise<never>) => {
        await held.pass(new AbortController().signal)
        if (how === 'throw') throw new Error('gone wrong')
        return next()
      })
      agent.followup('hi')
      await held.reached
      const closed = dispose(agent)
      await settle()
      expect(agent.status).toBe('running')
      held.release()
      await closed
      const log = await stored(started.store, 'session')
      expect([reasons(log), steps(log), userTexts(log)]).toEqual([[aborted], [], []])
      expect([ofType(log, 'assistant/chunk'), model.requests]).toEqual([[], []])
      await started[Symbol.asyncDispose]()
    })
  })

  test('[dispose-005] as a step opens ends step and turn; neither a hook nor the model is asked', async () => {
    const model = scripted(['never'])
    let asked = 0
    const started = await startAgent({
      model,
      hooks: {
        'agent/request': (_, next) => {
          asked += 1
          return next()
        },
      },
    })
    const { agent } = started
    const closed = new Promise<void>((resolve) => {
      agent.on('session/event', ({ type }) => {
        if (type === 'step/start') resolve(dispose(agent))
      })
    })
    agent.followup('hi')
    await closed
    const log = await stored(started.store, 'session')
    expect(typesOf(log).slice(-3)).toEqual(['turn/cancel', 'step/end', 'turn/end'])
    expect(ofType(log, 'step/end').map(({ data }) => data.outcome.kind)).toEqual(['aborted'])
    expect([reasons(log), asked, model.requests]).toEqual([[aborted], 0, []])
    await started[Symbol.asyncDispose]()
  })

  test('[dispose-006] twice is once, also from its own observer: one cancel, one end, each told once', async () => {
    const told: string[] = []
    const started = await startAgent({
      model: scripted([[text('x'), hangs()]]),
      plugins: [() => () => void told.push('plug-in disposed')],
    })
    const { agent } = started
    const fromObserver: Promise<void>[] = []
    agent.on('session/event', ({ type }) => {
      if (type === 'turn/cancel') fromObserver.push(dispose(agent))
    })
    agent.on('agent/status', (status) => told.push(status))
    agent.followup('hi')
    await settle()
    const first = dispose(agent)
    expect([agent.close(), ...fromObserver].map((other) => other === first)).toEqual([true, true])
    await first
    expect(told).toEqual(['running', 'idle', 'closed', 'plug-in disposed'])
    const log = await stored(started.store, 'session')
    expect(ofType(log, 'turn/cancel')).toHaveLength(1)
    expect(reasons(log)).toEqual([aborted])
    await started[Symbol.asyncDispose]()
  })

  test('[dispose-008] takes what waits for its turn out, and no message after it', async () => {
    const model = scripted(() => [text('x'), hangs()])
    const started = await startAgent({ model })
    const { agent } = started
    agent.followup('first')
    await settle()
    void agent.cancel()
    agent.followup(message('latched'))
    agent.followup(message('waiting'))
    const closed = dispose(agent)
    for (const send of ['followup', 'steer', 'inject'] as const) {
      expect(() => agent[send]('late')).toThrow(AgentClosed)
    }
    await closed
    const log = await stored(started.store, 'session')
    expect([userTexts(log), model.requests.length]).toEqual([['first'], 1])
    expect(reasons(log)).toHaveLength(1)
    await started[Symbol.asyncDispose]()
    await using again = await startAgent({ store: started.store })
    await again.agent.whenIdle()
    expect([again.agent.inbox.nextTurn, again.agent.inbox.nextStep]).toEqual([[], []])
  })

  test('[dispose-009] gives its session free: the same id goes on in its log, and anew once it is deleted', async () => {
    const store = memoryStore()
    const first = await startAgent({ store })
    await first.agent.run('one')
    await dispose(first.agent)
    await first[Symbol.asyncDispose]()
    const second = await startAgent({ store })
    expect((await second.agent.run('two')).turn).toBe(2)
    await second[Symbol.asyncDispose]()
    await store.delete('session')
    await using third = await startAgent({ store })
    expect((await third.agent.run('three')).turn).toBe(1)
    expect(userTexts(await third.log())).toEqual(['three'])
    expect(() => first.agent.followup('late')).toThrow(AgentClosed)
  })

  test('[dispose-010] is final: a message that an observer sends as the agent comes to rest is refused, and nothing follows', async () => {
    quiet()
    const model = scripted(() => [text('x'), hangs()])
    const started = await startAgent({ model })
    const { agent } = started
    const thrown: unknown[] = []
    agent.on('agent/status', (status) => {
      if (status === 'running') return
      try {
        agent.followup('again')
      } catch (error) {
        thrown.push(error)
      }
    })
    const told: string[] = []
    agent.on('session/event', ({ type }) => void told.push(type))
    agent.followup('hi')
    await settle()
    await dispose(agent)
    const { length } = told
    await settle()
    expect(thrown.map((error) => error instanceof AgentClosed)).toEqual([true, true])
    expect([told.length, told.at(-1), model.requests.length]).toEqual([length, 'turn/end', 1])
    await started[Symbol.asyncDispose]()
  })

  test('right after a message ends the turn that it opens, from an idle observer too', async () => {
    const model = scripted(['one', 'never'])
    const started = await startAgent({ model })
    const { agent } = started
    const closed = new Promise<void>((resolve) => {
      const stop = agent.on('agent/status', (status) => {
        if (status !== 'idle') return
        stop()
        agent.followup('two')
        resolve(dispose(agent))
      })
    })
    agent.followup('one')
    await closed
    const log = await stored(started.store, 'session')
    expect([reasons(log), model.requests.length]).toEqual([[{ kind: 'completed' }, aborted], 1])
    await started[Symbol.asyncDispose]()
  })

  test('at rest writes nothing, and leaves what is parked', async () => {
    const store = memoryStore()
    const first = await startAgent({ store })
    first.agent.inject('later')
    const before = await first.log()
    await dispose(first.agent)
    expect(await stored(store, 'session')).toEqual(before)
    await first[Symbol.asyncDispose]()
  })
})

describe('making an agent', () => {
  test('[dispose-012] fails as a whole: whatever it fails of, its session is free and nothing runs', async () => {
    const store = memoryStore()
    const reason = new Error('never mind')
    const giveUp = new AbortController()
    const slow = {
      ...store,
      acquire: async (...args: Parameters<typeof store.acquire>) => {
        const owner = await store.acquire(...args)
        giveUp.abort(reason)
        return owner
      },
    }
    await expect(startAgent({ store: slow, signal: giveUp.signal })).rejects.toBe(reason)
    const unreadable = {
      ...store,
      // biome-ignore lint/correctness/useYield: it fails before it has anything to yield
      async *read() {
        throw reason
      },
    }
    await expect(startAgent({ store: unreadable })).rejects.toBe(reason)
    await using started = await startAgent({ store })
    expect(await started.log()).toEqual([])
    expect((await started.agent.run('hi')).turn).toBe(1)
  })

  test('[dispose-014] its plug-ins are called once, before anything runs: what they put in is in the first request', async () => {
    quiet()
    const model = scripted(['ok', 'ok'])
    let calls = 0
    await using started = await startAgent({
      model,
      plugins: [
        () => {
          throw new Error('broken')
        },
        (agent) => {
          calls += 1
          expect(agent.status).toBe('idle')
          agent.inject('be kind')
        },
      ],
    })
    const told = statusesOf(started.agent)
    await settle()
    expect(told).toEqual([])
    await started.agent.run('one')
    await started.agent.run('two')
    expect(calls).toBe(1)
    expect(userTexts(await started.log())).toEqual(['be kind', 'one', 'two'])
    expect(model.requests[0]?.messages.map(({ content }) => content)).toMatchObject([
      [{ text: 'be kind' }],
      [{ text: 'one' }],
    ])
  })

  test('[dispose-015] its signal means nothing once it is there', async () => {
    const held = gate()
    const creation = new AbortController()
    await using started = await startAgent({
      signal: creation.signal,
      model: scripted([[text('a'), pause(held), text('b')], 'two']),
    })
    const running = started.agent.run('one')
    await held.reached
    creation.abort()
    held.release()
    expect((await running).reason).toEqual({ kind: 'completed' })
    expect((await started.agent.run('two')).text).toBe('two')
  })

  test('[dispose-016] twice at once for one session makes one: the other is refused and leaves nothing behind', async () => {
    const store = memoryStore()
    const made = await Promise.allSettled([startAgent({ store }), startAgent({ store })])
    const [winner, ...others] = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(others).toEqual([])
    expect(made.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))).toMatchObject([
      { code: 'SESSION_BUSY' },
    ])
    await winner?.agent.run('hi')
    expect(userTexts((await winner?.log()) ?? [])).toEqual(['hi'])
    await winner?.[Symbol.asyncDispose]()
  })
})
