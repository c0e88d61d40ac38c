/**
 * Known failures of statecharts that are persisted, restored, watched and walked. Most cannot happen to an agent,
 * because it is restored from its log and not from a snapshot; these tests hold it to that.
 */
import { describe, expect, test } from 'vitest'
import { createActor, setup } from 'xstate'
import { getShortestPaths } from 'xstate/graph'
import { agentActor, turnActor } from '../../src/agent/actor.ts'
import { createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { agentMachine } from '../../src/machines/agent.ts'
import { fold, stateName } from '../../src/machines/fold.ts'
import { verify } from '../../src/machines/verify.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, stored } from '../kit/agents.ts'
import { reasons } from '../kit/conversation.ts'
import * as k from '../kit/logs.ts'

const anything = { type: 'object' } as const

/** A tool that never ends, and a witness of its runs. */
function endless(witness: string[]) {
  return tool({
    name: 'work',
    description: 'Works',
    parameters: anything,
    execute: (_, { callId, run }) => {
      witness.push(`${callId} ${run}`)
      return new Promise(() => {})
    },
  })
}

const parentOf = (logic: ReturnType<typeof agentActor>) =>
  setup({ actors: { agent: logic }, types: { events: {} as { type: 'ASK' | 'LEAVE' } } }).createMachine({
    initial: 'asking',
    states: {
      asking: {
        invoke: { id: 'agent', src: 'agent', input: { sessionId: 'child' } },
        on: {
          ASK: {
            actions: ({ self }) => self.getSnapshot().children.agent?.send({ type: 'command.followup', message: 'go' }),
          },
          // Sends to the child in the very transition that stops it.
          LEAVE: {
            target: 'left',
            actions: ({ self }) => self.getSnapshot().children.agent?.send({ type: 'command.steer', message: 'and' }),
          },
        },
      },
      left: { on: { LEAVE: {} } },
    },
  })

/** A parent, its child the machine above, whose child is an agent. */
const grandparentOf = (logic: ReturnType<typeof agentActor>) =>
  setup({ actors: { middle: parentOf(logic) } }).createMachine({ invoke: { id: 'middle', src: 'middle' } })

async function until(store: LogStore, type: string, session = 'child'): Promise<void> {
  while ((await store.header(session)) === undefined) await settle(1)
  for await (const event of store.subscribe(session, { from: 0, signal: AbortSignal.timeout(5_000) })) {
    if (event.type === type) return
  }
  throw new Error(`no ${type}`)
}

const asJson = (snapshot: unknown) => JSON.parse(JSON.stringify(snapshot))

describe('persisted and restored', () => {
  test('[XST-01] [XST-07] a tool that was at work in a grandchild when the snapshot was taken is not run again by restoring it', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const first = agentActor({
      store,
      tools: [endless(witness)],
      model: scripted([toolCall('work', {}, { id: 'c1' })]),
    })
    const before = createActor(grandparentOf(first)).start()
    const fenced = new Promise((resolve) => before.subscribe({ error: resolve }))
    before.getSnapshot().children.middle?.send({ type: 'ASK' })
    await until(store, 'tool/dispatch')
    await settle()
    const persisted = asJson(before.getPersistedSnapshot())
    // A crash: nothing is stopped, the session is taken.
    const second = agentActor({ store, steal: true, tools: [endless(witness)], model: scripted(['carried on']) })
    const after = createActor(grandparentOf(second), { snapshot: persisted }).start()
    await until(store, 'turn/end')
    expect(witness).toEqual(['c1 1'])
    const log = await stored(store, 'child')
    expect(ofType(log, 'tool/result')).toMatchObject([{ data: { error: { code: 'TOOL_OUTCOME_UNKNOWN' } } }])
    expect(reasons(log)).toEqual([{ kind: 'completed' }])
    expect(stateName(fold(log))).toBe('idle')
    expect(await fenced).toMatchObject({ code: 'FENCED' })
    after.stop()
    await settle()
  })

  test('[XST-02] a wait that was over before the restart is over at once after it', async () => {
    const store = memoryStore()
    const clock = simulatedClock()
    const retry = { backoff: { initialDelayMs: 1_000, jitterRatio: 0 } }
    const first = await startAgent({ store, clock, retry, model: scripted([fails('SERVER')]) })
    first.agent.followup('go')
    await first.agent.whenQuiet()
    clock.increment(10)
    await first.agent.close()
    clock.increment(86_400_000)
    await using again = await startAgent({ store, clock, retry, model: scripted(['there']) })
    clock.increment(0)
    await settle()
    clock.increment(0)
    await again.agent.whenIdle()
    expect(again.agent.session.messages().at(-1)).toMatchObject({ content: [{ text: 'there' }] })
  })

  test('[XST-03] every actor of the chart is one that the machine names, so its snapshot can be taken at any time', async () => {
    const named = Object.keys(agentMachine.implementations.actors)
    const invoked = [
      ...Object.values(agentMachine.states),
      ...Object.values(agentMachine.states.stepRequest?.states ?? {}),
    ]
      .flatMap(({ invoke }) => invoke)
      .map(({ src }) => src)
    expect(invoked.length).toBeGreaterThan(3)
    for (const src of invoked) expect(named).toContain(src)
    await using started = await startAgent({
      tools: [endless([])],
      model: scripted([toolCall('work', {})]),
      settleTimeoutMs: 1,
    })
    started.agent.followup('go')
    await settle()
    expect(() => started.agent.actor.getPersistedSnapshot()).not.toThrow()
    await started.agent.cancel()
  })

  test('[XST-05] an agent that was stopped first is persisted as one that can be opened again', async () => {
    const store = memoryStore()
    const make = (model: ReturnType<typeof scripted>) => agentActor({ store, model })
    const before = createActor(make(scripted([[text('half'), hangs()]])), { input: { sessionId: 'child' } }).start()
    before.send({ type: 'command.followup', message: 'go' })
    await until(store, 'assistant/chunk')
    before.stop()
    await until(store, 'session/suspended')
    await settle()
    const after = createActor(make(scripted(['whole'])), {
      input: { sessionId: 'child' },
      snapshot: asJson(before.getPersistedSnapshot()),
    }).start()
    await until(store, 'turn/end')
    expect(reasons(await stored(store, 'child'))).toEqual([{ kind: 'completed' }])
    after.stop()
    await settle()
  })

  test('[XST-06] whatever state the log was left in, opening it goes on: nothing waits for an entry that never runs', async () => {
    const logs: readonly (readonly SessionEvent[])[] = [
      k.logOf(k.opened().slice(0, 3)),
      k.logOf(k.opened()),
      k.logOf(k.opened(), k.textChunks('half')),
      k.logOf(k.opened(), k.asksFor([{ id: 'c1' }])),
      k.logOf(k.opened(), k.asksFor([{ id: 'c1' }]), k.toolCall('c1')),
      k.logOf(k.opened(), k.asksFor([{ id: 'c1' }]), k.toolCall('c1'), k.dispatch('c1')),
      k.logOf(k.opened(), k.textChunks('hello'), k.answer('hello'), k.stepEnd()),
    ]
    const states = new Set<string>()
    for (const events of logs) {
      states.add(stateName(fold(events)))
      const store = memoryStore()
      const owner = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
      await owner.append(events, { expectedSeq: 0 })
      await owner.release()
      const look = tool({ name: 'look', description: 'Looks', parameters: anything, execute: () => 'seen' })
      const agent = await createAgent({ store, sessionId: 's', tools: [look], model: scripted(() => 'ok') })
      await agent.whenIdle()
      await agent.close()
      const log = await stored(store, 's')
      expect(verify(log)).toMatchObject({ ok: true, state: 'idle', turns: 1 })
      expect(log[events.length]?.type).toBe('session/resumed')
    }
    expect([...states].sort()).toEqual(['preStep', 'stepRequest.streaming', 'toolExec', 'turnStopping'])
  })

  test('[XST-14] a snapshot or a summary taken by an observer is of between two steps, never of within one', async () => {
    const store = memoryStore()
    const states = new Set<string>()
    await using started = await startAgent({ store, model: scripted([toolCall('nowhere', {}), 'ok']) })
    const { agent } = started
    agent.on('session/event', () => {
      states.add(stateName(agent.actor.getSnapshot()))
      agent.actor.getPersistedSnapshot()
    })
    agent.actor.subscribe((snapshot) => states.add(stateName(snapshot)))
    await agent.run('go')
    // These two exist only inside a macrostep.
    expect([...states]).not.toContain('turnOpen')
    expect([...states]).not.toContain('stepClosed')
  })
})

describe('errors and late words', () => {
  test('[XST-08] what an observer, a hook, a plug-in or a tool throws ends neither the process nor, but for a hook, the turn', async () => {
    const thrower = tool({
      name: 'thrower',
      description: 'Throws',
      parameters: anything,
      execute: () => Promise.reject('no'),
    })
    await using started = await startAgent({
      tools: [thrower],
      model: scripted([toolCall('thrower', {}), 'ok', 'never']),
      plugins: [
        () => {
          throw new Error('a plug-in')
        },
      ],
    })
    const { agent } = started
    agent.on('session/event', () => {
      throw new Error('an observer')
    })
    agent.on('agent/status', () => {
      throw new Error('an observer of the status')
    })
    expect(await agent.run('go')).toMatchObject({ text: 'ok', reason: { kind: 'completed' } })
    const off = agent.on('agent/turn-stopping', () => {
      throw new Error('a hook')
    })
    agent.on('agent/pre-step', () => {
      throw Object.assign(Object.create(null), { odd: true })
    })
    expect((await agent.run('go')).reason).toMatchObject({ kind: 'error', error: { code: 'UNKNOWN' } })
    off()
  })

  test('[XST-09] a command sent in the transition that stops the agent throws nothing; the session is left in order', async () => {
    const store = memoryStore()
    const held = gate()
    const parent = createActor(parentOf(agentActor({ store, model: scripted([[text('half'), pause(held)]]) }))).start()
    parent.send({ type: 'ASK' })
    await held.reached
    expect(() => parent.send({ type: 'LEAVE' })).not.toThrow()
    await until(store, 'session/suspended')
    await settle()
    expect(parent.getSnapshot().status).toBe('active')
    const log = await stored(store, 'child')
    expect(verify(log)).toMatchObject({ ok: true, turns: 1 })
    parent.send({ type: 'LEAVE' })
  })

  test('[XST-10] what a tool says after its turn is over is kept beside the conversation and moves nothing', async () => {
    const clock = simulatedClock()
    const held = gate()
    const slow = tool({
      name: 'slow',
      description: 'Takes its time',
      parameters: anything,
      execute: async () => {
        await held.pass(new AbortController().signal)
        const said: Record<string, unknown> = { late: true }
        said.self = said
        return said
      },
    })
    await using started = await startAgent({ clock, tools: [slow], model: scripted([toolCall('slow', {}), 'next']) })
    const { agent } = started
    agent.followup('go')
    await held.reached
    const stopped = agent.cancel()
    await settle()
    clock.increment(10_000)
    await stopped
    const before = agent.session.messages()
    held.release()
    await settle()
    const log = await started.log()
    expect(ofType(log, 'tool/late-result')).toMatchObject([{ data: { turn: 1, run: 1 } }])
    expect(agent.session.messages()).toEqual(before)
    expect((await agent.run('next')).text).toBe('next')
  })

  test('[XST-10] an agent that is stopped while it opens throws nothing and holds nothing', async () => {
    const store = memoryStore()
    const once = createActor(turnActor({ store, sessionId: 'child', message: 'go', model: scripted(['ok']) })).start()
    once.stop()
    for (let turns = 0; turns < 20; turns++) await settle()
    if ((await store.header('child')) === undefined) return
    const owner = await store.acquire('child')
    await owner.release()
  })
})

describe('tools around the chart', () => {
  test('[XST-11] paths through the chart are finite: they are walked by its durable events, by state and not by context', () => {
    const events = k.logOf(k.toolTurn()).filter((event) => event.type !== 'assistant/chunk')
    const paths = getShortestPaths(agentMachine, {
      events: events as never,
      serializeState: ({ value }) => JSON.stringify(value),
      limit: 10_000,
    })
    expect(paths.length).toBeGreaterThan(4)
    // A counter in the context would make states without end of them.
    expect(() =>
      getShortestPaths(agentMachine, {
        events: events as never,
        serializeState: () => String(Math.random()),
        limit: 2_000,
      }),
    ).toThrow(/limit/i)
  })

  test('[XST-12] an inspector is told no more than an event and the state it led to, and nothing unless it was asked for', async () => {
    const large = 'x'.repeat(500_000)
    let bytes = 0
    await using started = await startAgent({
      model: scripted(() => 'ok'),
      inspect: (event) => {
        if (event.type === '@xstate.snapshot') bytes = Math.max(bytes, JSON.stringify(event.snapshot).length)
      },
    })
    for (let i = 0; i < 8; i++) await started.agent.run(large)
    // What was said is in the log, not in the context: the state stays small however long the conversation.
    expect(bytes).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(2 * large.length)
  })

  test('[XST-13] an inspector of a session opened again begins where its log stood', async () => {
    const store = memoryStore()
    const first = await startAgent({ store, model: scripted([[text('half'), hangs()]]) })
    first.agent.followup('go')
    await settle()
    await first.agent.close()
    const states: string[] = []
    let turn = 0
    await using again = await startAgent({
      store,
      model: scripted(['whole']),
      inspect: (event) => {
        if (event.type !== '@xstate.snapshot') return
        states.push(stateName(event.snapshot as ReturnType<typeof fold>))
        turn ||= (event.snapshot as ReturnType<typeof fold>).context.turn
      },
    })
    await again.agent.whenIdle()
    expect(states[0]).toBe('stepRequest.streaming')
    expect(turn).toBe(1)
    expect(states.at(-1)).toBe('idle')
  })
})
