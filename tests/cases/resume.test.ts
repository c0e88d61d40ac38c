/** Sessions opened again: what goes on from the stored log, and what opening leaves alone. */
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, gate, pause, scripted, text } from '../../src/services/adapters/scripted.ts'
import { ofType, simulatedClock, startAgent, stored, typesOf } from '../kit/agents.ts'

async function finishedTurn() {
  const store = memoryStore()
  const first = await startAgent({ store, model: scripted(['One.']) })
  await first.agent.run('one')
  return { store, first }
}

test('[resume-001] a session opened again counts on and tells the model what was said before', async () => {
  const { store, first } = await finishedTurn()
  await first[Symbol.asyncDispose]()
  const model = scripted(['Two.'])
  await using again = await startAgent({ store, model })
  expect((await again.agent.run('two')).turn).toBe(2)
  expect((await again.log()).map(({ seq }, i) => seq - i).every((gap) => gap === 0)).toBe(true)
  expect(model.requests[0]?.messages.map(({ content }) => content)).toMatchObject([
    [{ text: 'one' }],
    [{ text: 'One.' }],
    [{ text: 'two' }],
  ])
})

test('[resume-002] the first request after opening records its header as resumed, and no route that is the same', async () => {
  const { store, first } = await finishedTurn()
  await first[Symbol.asyncDispose]()
  await using again = await startAgent({ store })
  await again.agent.run('two')
  const log = await again.log()
  const [initial, resumed] = ofType(log, 'request/header')
  expect([initial?.data.reason, resumed?.data.reason]).toEqual(['initial', 'resume'])
  expect(resumed?.data.header).toEqual(initial?.data.header)
  expect(ofType(log, 'request/context').length).toBeLessThanOrEqual(1)
})

test('[resume-003] [resume-006] an injected message waits on without a turn, nothing is written, and the next turn takes it first', async () => {
  const { store, first } = await finishedTurn()
  first.agent.inject('by the way')
  await first[Symbol.asyncDispose]()
  const before = await stored(store, 'session')
  const model = scripted(['Two.'])
  await using again = await startAgent({ store, model })
  expect([again.agent.status, again.agent.inbox.nextStep.length]).toEqual(['idle', 1])
  expect(await again.log()).toEqual(before)
  await again.agent.run('two')
  const said = model.requests[0]?.messages.slice(-2).map(({ content }) => content)
  expect(said).toMatchObject([[{ text: 'by the way' }], [{ text: 'two' }]])
})

test('[resume-005] a message that was claimed and not entered goes back to its queue when recovery interrupts', async () => {
  const store = memoryStore()
  const held = gate()
  const hooks = { 'agent/pre-step': () => held.reached.then(() => ({ kind: 'enter' as const, messages: [] })) }
  const dead = await startAgent({ store, hooks })
  dead.agent.followup('hi')
  await dead.agent.session.flush()
  expect(typesOf(await stored(store, 'session')).at(-1)).toBe('agent/inbox/spliced')
  await using again = await startAgent({ store, steal: true, recovery: 'interrupt' })
  const log = await again.log()
  expect(ofType(log, 'turn/end')).toMatchObject([{ data: { reason: { kind: 'interrupted' } } }])
  expect([again.agent.inbox.nextTurn.length, again.agent.session.messages()]).toEqual([1, []])
})

test('[resume-009] an opening that is given up leaves the session free', async () => {
  const { store, first } = await finishedTurn()
  await first[Symbol.asyncDispose]()
  for (const reason of [new Error('never mind'), 'never mind']) {
    await expect(startAgent({ store, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  }
  await using again = await startAgent({ store })
  expect(again.agent.status).toBe('idle')
})

test('[resume-010] a child opened again names its parent and its seed as it did', async () => {
  const { store, first } = await finishedTurn()
  const { sessionId } = await first.agent.fork()
  const header = await store.header(sessionId)
  for (let opening = 0; opening < 2; opening++) {
    const child = await startAgent({ store, sessionId })
    expect(child.agent.session.header).toEqual(header)
    await child[Symbol.asyncDispose]()
  }
  await first[Symbol.asyncDispose]()
})

test('[resume-012] retries of another turn begin to count anew after opening', async () => {
  const store = memoryStore()
  const clock = simulatedClock()
  const retry = { backoff: { initialDelayMs: 1_000, jitterRatio: 0 } }
  const first = await startAgent({ store, clock, retry, model: scripted([fails({ code: 'SERVER' }), 'One.']) })
  const turn = first.agent.run('one')
  await first.agent.whenQuiet()
  clock.increment(1_000)
  await turn
  await first[Symbol.asyncDispose]()
  await using again = await startAgent({ store, clock, retry, model: scripted([fails({ code: 'SERVER' }), 'Two.']) })
  const next = again.agent.run('two')
  await again.agent.whenQuiet()
  clock.increment(1_000)
  await next
  expect(ofType(await again.log(), 'llm/retry').map(({ data }) => [data.turn, data.retry])).toEqual([
    [1, 1],
    [2, 1],
  ])
})

test('[repair-011] [repair-012] a request cut short is closed under interrupt: no answer, and nothing stored is rewritten', async () => {
  const store = memoryStore()
  const held = gate()
  const dead = await startAgent({ store, model: scripted([[text('half'), pause(held)]]) })
  dead.agent.followup('hi')
  await held.reached
  await dead.agent.session.flush()
  const before = await stored(store, 'session')
  await using again = await startAgent({ store, steal: true, recovery: 'interrupt' })
  const log = await again.log()
  expect(log.slice(0, before.length)).toEqual(before)
  expect(typesOf(log.slice(before.length))).toEqual(['session/resumed', 'step/end', 'turn/end'])
  expect(again.agent.session.messages().map(({ role }) => role)).toEqual(['user'])
})

test('[repair-014] a session with a living owner is not repaired: it is refused, and its log stays', async () => {
  const store = memoryStore()
  const held = gate()
  await using first = await startAgent({ store, model: scripted([[text('half'), pause(held)]]) })
  first.agent.followup('hi')
  await held.reached
  const before = await first.log()
  await expect(startAgent({ store })).rejects.toMatchObject({ code: 'SESSION_BUSY' })
  expect(await stored(store, 'session')).toEqual(before)
})

test('[resume-011] a session opened again remembers the runtime context the model was told: only another one is told', async () => {
  const store = memoryStore()
  const snapshots = async (text: string) => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ store, model, context: [{ name: 'place', text }] })
    await started.agent.run('hi')
    await started.agent.run('again')
    const own = ofType(await started.log(), 'user/message').filter(({ data }) => data.source.kind === 'plugin')
    return own.length
  }
  expect([await snapshots('home'), await snapshots('home'), await snapshots('away')]).toEqual([1, 1, 2])
})
