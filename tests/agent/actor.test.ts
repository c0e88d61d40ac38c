import { afterEach, expect, test, vi } from 'vitest'
import { assign, createActor, setup, waitFor } from 'xstate'
import { type AgentEmitted, agentActor, turnActor } from '../../src/agent/actor.ts'
import { StoreFailure } from '../../src/log/errors.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { verify } from '../../src/machines/verify.ts'
import { gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored } from '../kit/agents.ts'

afterEach(() => void vi.restoreAllMocks())

const parentOf = (logic: ReturnType<typeof agentActor>) =>
  setup({
    types: { context: {} as { sessionId: string; seen: string[] }, events: {} as { type: 'ASK'; text: string } },
    actors: { agent: logic },
  }).createMachine({
    context: { sessionId: 'child', seen: [] },
    invoke: {
      id: 'agent',
      src: 'agent',
      input: ({ context }) => ({ sessionId: context.sessionId }),
      onSnapshot: { actions: assign({ seen: ({ context, event }) => [...context.seen, event.snapshot.agent.status] }) },
    },
    on: {
      ASK: {
        actions: ({ self, event }) => {
          self.getSnapshot().children.agent?.send({ type: 'command.followup', message: event.text })
        },
      },
    },
  })

test('a parent machine runs an agent: commands sent while it opens are queued, what it emits is durable', async () => {
  const store = memoryStore()
  const parent = createActor(parentOf(agentActor({ model: scripted(['Hello there']), store })))
  const emitted: AgentEmitted[] = []
  parent.start()
  const child = parent.getSnapshot().children.agent
  child?.on('*', (event) => emitted.push(event))
  const ended = new Promise((resolve) => child?.on('turn.ended', resolve))
  parent.send({ type: 'ASK', text: 'hi' })
  await ended
  expect(emitted.map(({ type }) => type)).toEqual(['text.delta', 'turn.ended'])
  expect(emitted.at(-1)).toMatchObject({ turn: 1, reason: { kind: 'completed' }, text: 'Hello there' })
  const log = await stored(store, 'child')
  expect(log.at(-1)).toMatchObject({ type: 'turn/end' })
  await waitFor(parent, ({ context }) => context.seen.at(-1) === 'idle')
  expect(parent.getSnapshot().context.seen).toContain('running')
  parent.stop()
  await settle()
})

test('the parent persists an agent as its session id alone, and a restored one carries the log on', async () => {
  const store = memoryStore()
  const held = gate()
  const logic = parentOf(agentActor({ model: scripted([[text('never said'), pause(held)], 'Back again']), store }))
  const first = createActor(logic).start()
  first.send({ type: 'ASK', text: 'hi' })
  await held.reached
  const persisted = first.getPersistedSnapshot()
  const { children } = persisted as unknown as { children: Record<string, { snapshot: object }> }
  expect(children.agent?.snapshot).toEqual({
    status: 'active',
    agent: { sessionId: 'child', state: 'idle', status: 'opening', turn: 0 },
  })
  first.stop()
  await waitForSuspended()

  const second = createActor(logic, { snapshot: JSON.parse(JSON.stringify(persisted)) })
  const ended = new Promise<AgentEmitted>((resolve) => {
    second.getSnapshot().children.agent?.on('turn.ended', resolve)
  })
  second.start()
  expect(await ended).toMatchObject({ turn: 1, text: 'Back again' })
  const log = await stored(store, 'child')
  expect(ofType(log, 'session/suspended')).toHaveLength(1)
  expect(ofType(log, 'session/resumed')).toHaveLength(1)
  expect(ofType(log, 'assistant/message')).toHaveLength(1)
  expect(verify(log)).toMatchObject({ ok: true, turns: 1 })
  second.stop()
  await settle()

  async function waitForSuspended(): Promise<void> {
    for await (const event of store.subscribe('child', { from: 0, signal: AbortSignal.timeout(5_000) })) {
      if (event.type === 'session/suspended') break
    }
    await settle()
  }
})

test('an approval is asked through the actor and answered through it; a wrong digest is refused by name', async () => {
  const store = memoryStore()
  const pay = tool({
    name: 'pay',
    description: 'Pays',
    parameters: { type: 'object' },
    needsApproval: true,
    execute: () => 'paid',
  })
  const model = scripted([toolCall('pay', { amount: 5 }), 'Done'])
  const actor = createActor(agentActor({ model, store, tools: [pay] }), { input: { sessionId: 's' } })
  const emitted: AgentEmitted[] = []
  actor.on('*', (event) => emitted.push(event))
  actor.start()
  actor.send({ type: 'command.followup', message: 'pay 5' })
  const asked = await waitForEmitted('approval.requested')
  actor.send({ type: 'command.approve', callId: asked.callId, digest: 'sha256:other' })
  expect(await waitForEmitted('command.refused')).toMatchObject({ code: 'APPROVAL_DIGEST_MISMATCH' })
  actor.send({ type: 'command.approve', callId: asked.callId, digest: asked.argumentsDigest })
  expect(await waitForEmitted('turn.ended')).toMatchObject({ text: 'Done' })
  actor.stop()
  await settle()

  async function waitForEmitted<T extends AgentEmitted['type']>(type: T): Promise<Extract<AgentEmitted, { type: T }>> {
    for (;;) {
      const found = emitted.find((event): event is Extract<AgentEmitted, { type: T }> => event.type === type)
      if (found !== undefined) return found
      await settle(1)
    }
  }
})

test('a session that is in use makes the actor fail, with the reason', async () => {
  const store = memoryStore()
  const owner = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
  const actor = createActor(agentActor({ model: scripted([]), store }), { input: { sessionId: 's' } })
  const failed = new Promise((resolve) => actor.subscribe({ error: resolve }))
  actor.start()
  expect(await failed).toMatchObject({ code: 'SESSION_BUSY' })
  await owner.release()
})

test.each([
  ['as it begins', false],
  ['while it carries a turn on', true],
])('a store that fails an agent %s makes its actor fail, and what its plug-ins hold is let go of', async (_, owed) => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const inner = memoryStore()
  if (owed) {
    const { agent } = await startAgent({ store: inner, model: scripted([hangs()]) })
    agent.followup('go')
    await settle()
    await agent.close()
  }
  const append = (): Promise<never> => Promise.reject(new StoreFailure('io', 'The disk is gone'))
  const store: LogStore = {
    ...inner,
    acquire: async (id, options) => ({ ...(await inner.acquire(id, options)), append }),
  }
  const told: string[] = []
  const logic = agentActor({ model: scripted([hangs()]), store, plugins: [() => () => void told.push('disposed')] })
  const actor = createActor(logic, { input: { sessionId: 'session' } })
  actor.subscribe({ error: (error) => void told.push(String(error)) })
  actor.start()
  actor.send({ type: 'command.followup', message: 'go' })
  await settle(20)
  expect(actor.getSnapshot()).toMatchObject({ status: 'error', agent: { status: 'failed' } })
  expect(told).toEqual(['StoreFailure: The disk is gone', 'disposed'])
  await (await inner.acquire('session')).release()
})

test('two agents in one parent share a system and nothing else', async () => {
  const store = memoryStore()
  const logic = agentActor({ model: scripted((request) => `in ${request.sessionId}`), store })
  const parent = createActor(
    setup({ actors: { agent: logic } }).createMachine({
      invoke: [
        { id: 'a', src: 'agent', input: { sessionId: 'a' } },
        { id: 'b', src: 'agent', input: { sessionId: 'b' } },
      ],
    }),
  ).start()
  const ends = (['a', 'b'] as const).map(
    (id) =>
      new Promise<AgentEmitted>((resolve) => {
        const child = parent.getSnapshot().children[id]
        if (child === undefined) throw new Error(`no child ${id}`)
        child.on('turn.ended', resolve)
        child.send({ type: 'command.followup', message: 'hi' })
      }),
  )
  expect(await Promise.all(ends)).toMatchObject([{ text: 'in a' }, { text: 'in b' }])
  parent.stop()
  await settle()
})

test('turnActor asks once and gives the turn’s result; stopping it cancels the turn with cause parent', async () => {
  const store = memoryStore()
  const once = createActor(turnActor({ model: scripted(['42']), store, sessionId: 'once', message: 'what?' })).start()
  const done = await waitFor(once, ({ status }) => status === 'done')
  expect(done.output).toMatchObject({ turn: 1, text: '42', reason: { kind: 'completed' } })

  const held = gate()
  const model = scripted([[text('thinking'), pause(held)]])
  const stopped = createActor(turnActor({ model, store, sessionId: 'stopped', message: 'what?' })).start()
  await held.reached
  stopped.stop()
  for await (const event of store.subscribe('stopped', { from: 0, signal: AbortSignal.timeout(5_000) })) {
    if (event.type !== 'turn/end') continue
    expect(event.data.reason).toEqual({ kind: 'aborted', cause: { kind: 'parent' } })
    break
  }
})
