/** Two things at once: who comes too late is told so, and nothing happens to somebody else's turn or session. */
import { expect, test } from 'vitest'
import { createActor } from 'xstate'
import { agentActor, turnActor } from '../../src/agent/actor.ts'
import { createAgent } from '../../src/agent.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { hangs, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, typesOf } from '../kit/agents.ts'
import { manualClock } from '../kit/manual-clock.ts'

const guarded = (ran: string[]) =>
  tool({
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    needsApproval: true,
    execute: async () => {
      ran.push('ran')
      await settle()
      return 'done'
    },
  })

test('a signal of one run does not cancel the turn of the next', async () => {
  await using started = await startAgent()
  const leaving = new AbortController()
  started.agent.on('session/event', (event) => {
    if (event.type === 'turn/start' && event.data.turn === 2) leaving.abort()
  })
  const [first, second] = await Promise.all([
    started.agent.run('one', { signal: leaving.signal }),
    started.agent.run('two'),
  ])
  expect([first.reason.kind, second.reason.kind]).toEqual(['completed', 'completed'])
})

test('of two answers from one observer the second is refused', async () => {
  await using started = await startAgent({ model: scripted([toolCall('act', {}), 'ok']), tools: [guarded([])] })
  const answers: Promise<unknown>[] = []
  started.agent.on('session/event', (event) => {
    if (event.type !== 'tool/approval-requested') return
    const { callId, argumentsDigest: digest } = event.data
    answers.push(started.agent.approve(callId, { digest }))
    answers.push(started.agent.deny(callId, { digest }).catch((error: { code: string }) => error.code))
  })
  await started.agent.run('go')
  expect(await Promise.all(answers)).toEqual([undefined, 'APPROVAL_ALREADY_RESOLVED'])
})

test('what a plug-in approves at opening runs once, in the turn that is carried on', async () => {
  const ran: string[] = []
  const store = memoryStore()
  const tools = [guarded(ran)]
  {
    await using started = await startAgent({ store, tools, model: scripted([toolCall('act', {})]) })
    started.agent.followup('go')
    await started.agent.whenQuiet()
  }
  await using started = await startAgent({
    store,
    tools,
    plugins: [
      (agent) => {
        for (const { callId, argumentsDigest } of agent.approvals()) {
          agent.approve(callId, { digest: argumentsDigest }).catch(() => {})
        }
      },
    ],
  })
  await started.agent.whenIdle()
  const log = await started.log()
  expect(ran).toEqual(['ran'])
  expect(ofType(log, 'tool/result').map(({ data }) => data.error)).toEqual([undefined])
  expect(typesOf(log).indexOf('session/resumed')).toBeLessThan(typesOf(log).indexOf('tool/approval-resolved'))
})

test('a cancel between dispatch and body says that the call was aborted, not that it was never dispatched', async () => {
  await using started = await startAgent({
    model: scripted([toolCall('act', {}), 'ok']),
    tools: [tool({ name: 'act', description: 'Acts.', parameters: { type: 'object' }, execute: () => 'done' })],
  })
  started.agent.on('session/event', ({ type }) => {
    if (type === 'tool/dispatch') started.agent.cancel().catch(() => {})
  })
  await started.agent.run('go')
  expect(ofType(await started.log(), 'tool/result')[0]?.data.error?.code).toBe('ABORTED')
})

test('a waiting message cannot be replaced by one that another is being replaced by', async () => {
  await using started = await startAgent()
  const { agent } = started
  const same = { id: 'same', role: 'user', source: { kind: 'user' }, content: [] } as const
  const waiting = [agent.inject('one'), agent.inject('two')]
  const codes: string[] = []
  const stop = agent.on('agent/inbox/inserted', () => {
    stop()
    for (const { id } of waiting) {
      try {
        agent.inbox.replace(id, same)
      } catch (error) {
        codes.push((error as { code: string }).code)
      }
    }
  })
  agent.inject('three')
  await settle()
  expect(codes).toEqual(['DUPLICATE_MESSAGE'])
})

test('creation that is given up while the log is read leaves the session to others', async () => {
  const store = memoryStore()
  const leaving = new AbortController()
  const slow = Object.assign(Object.create(store) as typeof store, {
    read: (...asked: Parameters<typeof store.read>) => {
      leaving.abort(new Error('given up'))
      return store.read(...asked)
    },
  })
  const options = { model: scripted(() => 'ok'), sessionId: 's' }
  await expect(createAgent({ ...options, store: slow, signal: leaving.signal })).rejects.toThrow('given up')
  await using agent = await createAgent({ ...options, store })
  expect(agent.status).toBe('idle')
})

test('a turn actor that is stopped while it opens asks no model', async () => {
  const store = memoryStore()
  const model = scripted(() => 'ok')
  const actor = createActor(turnActor({ store, model, sessionId: 's', message: 'go' }))
  actor.start()
  await Promise.resolve()
  actor.stop()
  await settle()
  expect(model.requests).toEqual([])
  expect(await stored(store, 's')).toEqual([])
})

test('an agent actor started right after another of its session was stopped carries on', async () => {
  const logic = agentActor({ store: memoryStore(), model: scripted(() => hangs()) })
  const first = createActor(logic, { input: { sessionId: 's' } })
  first.start()
  first.send({ type: 'command.followup', message: 'go' })
  await settle()
  first.stop()
  const second = createActor(logic, { input: { sessionId: 's' } })
  second.start()
  await settle(20)
  expect(second.getSnapshot()).toMatchObject({ status: 'active', agent: { status: 'running', turn: 1 } })
  second.stop()
})

test('a grace without end waits for the tool', async () => {
  let finish = (_: string): void => {}
  const slow = tool({
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    execute: () => new Promise<string>((resolve) => (finish = resolve)),
  })
  await using started = await startAgent({ model: scripted([toolCall('act', {})]), tools: [slow] })
  started.agent.followup('go')
  await settle()
  const closed = started.agent.close({ graceMs: Number.POSITIVE_INFINITY })
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(started.agent.status).not.toBe('closed')
  finish('done')
  await closed
  expect(ofType(await stored(started.store, 'session'), 'tool/result')).toHaveLength(1)
})

test('a stream that hangs when it is told to end does not hang the turn', async () => {
  const finished = { done: false, value: { type: 'finish', reason: { kind: 'stop' } } } as const
  const stream = () => ({
    [Symbol.asyncIterator]: () => ({ next: async () => finished, return: () => new Promise<never>(() => {}) }),
  })
  await using started = await startAgent({
    model: scripted(() => 'unused'),
    hooks: { 'llm/stream': stream },
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
})

test('a command to an agent whose session was taken is refused, and the chart is not what fails', async () => {
  const store = memoryStore()
  const robbed = await createAgent({ model: scripted(() => 'ok'), store, sessionId: 'session' })
  const failures: unknown[] = []
  robbed.actor.subscribe({ error: (error) => failures.push(error) })
  // At once: a moment later it would have noticed.
  void store.acquire('session', { steal: true })
  expect(() => robbed.followup('too late')).toThrow(
    expect.objectContaining({ code: 'AGENT_CLOSED', cause: expect.objectContaining({ code: 'FENCED' }) }),
  )
  expect(failures).toEqual([])
  expect(robbed.status).toBe('failed')
})

test('a session that is taken while its agent opens is not opened', async () => {
  const store = memoryStore()
  const steals = (): void => void store.acquire('session', { steal: true })
  const opening = createAgent({ model: scripted(() => 'ok'), store, sessionId: 'session', plugins: [steals] })
  await expect(opening).rejects.toMatchObject({ code: 'FENCED' })
})

test('a cancel does not say that the turn is over when closing leaves it open', async () => {
  const stuck = tool({
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    execute: () => new Promise<string>(() => {}),
  })
  await using started = await startAgent({ model: scripted([toolCall('act', {})]), tools: [stuck] })
  started.agent.followup('go')
  await settle()
  const canceled = started.agent.cancel()
  await started.agent.close({ graceMs: 0 })
  await expect(canceled).rejects.toMatchObject({ code: 'AGENT_CLOSED' })
  expect(typesOf(await stored(started.store, 'session')).at(-1)).toBe('session/suspended')
})

test('an agent that is robbed while it closes leaves no timer behind', async () => {
  const stuck = tool({
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    execute: () => new Promise<string>(() => {}),
  })
  const clock = manualClock()
  const store = memoryStore()
  const model = scripted([toolCall('act', {})])
  const robbed = await createAgent({ model, tools: [stuck], store, sessionId: 'session', clock })
  robbed.followup('go')
  await settle()
  const closed = robbed.close()
  await settle()
  expect(clock.pending).toBe(1)
  void store.acquire('session', { steal: true })
  await expect(closed).rejects.toMatchObject({ code: 'FENCED' })
  expect(clock.pending).toBe(0)
})
