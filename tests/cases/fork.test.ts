/** Forks: what a child inherits at any seq, what it answers for, and what stays its parent's. */
import { describe, expect, test } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore, SessionSummary } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { stateName } from '../../src/machines/fold.ts'
import { fold, verify } from '../../src/machines.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, stored, typesOf } from '../kit/agents.ts'
import { faultyStore } from '../kit/faulty-store.ts'

type Options = Partial<AgentOptions>

/** Bodies that began, as `callId run key`. */
let bodies: string[] = []
const body = (name: string, more: { hangs?: true; asks?: true; mode?: 'parallel' } = {}) =>
  tool({
    name,
    description: name,
    parameters: { type: 'object' },
    mode: more.mode ?? 'exclusive',
    onCrash: 'rerun',
    ...(more.asks ? { needsApproval: true } : {}),
    execute(_, { callId, run, idempotencyKey, signal }) {
      bodies.push(`${callId} ${run} ${idempotencyKey}`)
      if (!more.hangs) return `${name} is done`
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  })
const tools = [
  body('look', { mode: 'parallel' }),
  body('wait', { mode: 'parallel', hangs: true }),
  body('write'),
  body('pay', { asks: true }),
]

async function summaryOf(store: LogStore, id: string): Promise<SessionSummary | undefined> {
  for await (const summary of store.list()) if (summary.id === id) return summary
  return undefined
}

/** Each leaves a live parent whose log is worth forking at every place. */
const scenarios: Record<
  string,
  (store: LogStore) => Promise<AsyncDisposable & { agent: Awaited<ReturnType<typeof startAgent>>['agent'] }>
> = {
  async 'a plain turn, and a message that waits'(store) {
    const parent = await startAgent({ store, tools, model: scripted([[text('Hello.'), text('You.')], 'Again.']) })
    await parent.agent.run('one')
    await parent.agent.run('two')
    parent.agent.inject('for later')
    return parent
  },
  async 'tools side by side, one of them at work'(store) {
    const model = scripted([
      [text('I do.'), toolCall('look', { n: 1 }, { id: 'c1' }), toolCall('wait', {}, { id: 'c2' })],
    ])
    const parent = await startAgent({ store, tools, model })
    parent.agent.followup('go')
    parent.agent.followup('and then')
    await settle(20)
    return {
      agent: parent.agent,
      async [Symbol.asyncDispose]() {
        await parent.agent.close({ graceMs: 0 })
        await parent[Symbol.asyncDispose]()
      },
    }
  },
  async 'approvals: one given, one denied, one asked'(store) {
    const model = scripted((_, n) => [toolCall('pay', { n }, { id: `p${n}` })])
    const parent = await startAgent({ store, tools, model })
    parent.agent.followup('pay')
    for (const way of ['approve', 'deny'] as const) {
      await parent.agent.whenQuiet()
      const [asked] = parent.agent.approvals()
      await parent.agent[way](asked?.callId ?? '', { digest: asked?.argumentsDigest ?? '' })
    }
    await parent.agent.whenQuiet()
    return parent
  },
  async 'a cancel that still waits for a tool'(store) {
    const model = scripted([[toolCall('wait', {}, { id: 'c1' }), toolCall('write', {}, { id: 'c2' })]])
    const stubborn = tool({
      name: 'wait',
      description: 'Waits whatever happens',
      parameters: { type: 'object' },
      onCrash: 'rerun',
      execute: (_, { callId, run, idempotencyKey }) => {
        bodies.push(`${callId} ${run} ${idempotencyKey}`)
        return new Promise(() => {})
      },
    })
    const clock = simulatedClock()
    const parent = await startAgent({
      store,
      clock,
      tools: [...tools.filter(({ name }) => name !== 'wait'), stubborn],
      model,
    })
    parent.agent.followup('go')
    await settle(20)
    void parent.agent.cancel({ kind: 'user' }).catch(() => {})
    parent.agent.followup('next')
    await settle()
    return {
      agent: parent.agent,
      async [Symbol.asyncDispose]() {
        clock.increment(10_000)
        await parent[Symbol.asyncDispose]()
      },
    }
  },
  async 'a retry that waits for its time'(store) {
    const parent = await startAgent({
      store,
      tools,
      clock: simulatedClock(),
      model: scripted([fails({ code: 'SERVER' })]),
    })
    parent.agent.followup('go')
    await parent.agent.whenQuiet()
    return parent
  },
  async 'a turn interrupted by a crash, and the next one'(store) {
    const held = gate()
    const crashed = await startAgent({
      store,
      tools,
      model: scripted([toolCall('look', {}), [text('half'), pause(held)]]),
    })
    crashed.agent.followup('one')
    await held.reached
    await crashed.agent.session.flush()
    const parent = await startAgent({ store, tools, steal: true, recovery: 'interrupt', model: scripted(['Two.']) })
    await parent.agent.run('two')
    return parent
  },
}

describe.each(Object.entries(scenarios))('[fork-004] a fork at any place of %s', (_, record) => {
  test('opens, answers for what was under way, does nothing twice and carries on', async () => {
    bodies = []
    const store = memoryStore()
    await using parent = await record(store)
    await parent.agent.session.flush()
    const log = await stored(store, 'session')
    const begunByParent = [...bodies]
    for (let at = 0; at <= log.length; at++) {
      const { sessionId } = await parent.agent.fork({ at, sessionId: `child-${at}` })
      const seed = await stored(store, sessionId)
      const { seedLength = -1, parentSession } = (await store.header(sessionId)) ?? {}
      expect([parentSession, seed.length, seed.at(-1)?.type]).toEqual(['session', seedLength + 1, 'session/end-seed'])
      expect(seed.slice(0, -1)).toEqual(log.slice(0, seedLength))
      // Rounded on, never back, and only within what was recorded at once.
      expect(seedLength).toBeGreaterThanOrEqual(at)
      const folded = fold(seed)
      expect(['turnOpen', 'stepClosed']).not.toContain(stateName(folded))
      expect(
        Object.values(folded.context.inbox)
          .flat()
          .filter(({ kind }) => kind === 'message'),
      ).toEqual([])
      const open = folded.value !== 'idle'
      const summary = await summaryOf(store, sessionId)
      expect(summary).toMatchObject({ turns: folded.context.turn, state: open ? expect.any(String) : 'idle' })
      expect(summary?.owed || summary?.waitingFor === 'retry').toBe(open)

      bodies = []
      const model = scripted(() => 'Carried on.')
      const child = await startAgent({ store, sessionId, tools: tools.filter(({ name }) => name !== 'wait'), model })
      for (await child.agent.whenQuiet(); child.agent.status === 'waiting'; await child.agent.whenQuiet()) {
        // A call that its parent was never asked about, or not yet, is asked about here.
        for (const { callId, argumentsDigest: digest, run } of child.agent.approvals()) {
          expect(folded.context.calls.find((call) => call.callId === callId)?.status).not.toBe('awaiting')
          await child.agent.deny(callId, { digest, run })
        }
        await settle(1)
      }
      await child.agent.run('more')
      const after = await child.log()
      const dispatched = new Set(ofType(seed, 'tool/dispatch').map(({ data }) => data.callId))
      expect(
        ofType(after.slice(seed.length), 'tool/dispatch').filter(({ data }) => dispatched.has(data.callId)),
      ).toEqual([])
      for (const began of bodies) {
        expect(dispatched).not.toContain(began.split(' ')[0])
        expect(began).toContain(` ${sessionId}:`)
      }
      for (const { callId, status } of folded.context.calls) {
        const [result] = ofType(after, 'tool/result').filter(({ data }) => data.message.source.callId === callId)
        if (status === 'dispatched') expect(result?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
        if (status === 'awaiting') expect(result?.data.error?.code).not.toBe('TOOL_OUTCOME_UNKNOWN')
      }
      expect(ofType(after, 'turn/end').at(-1)?.data).toMatchObject({
        turn: folded.context.turn + 1,
        reason: { kind: 'completed' },
      })
      expect(verify(after)).toMatchObject({ ok: true, state: 'idle' })
      await child[Symbol.asyncDispose]()
    }
    expect(await stored(store, 'session')).toEqual(log)
    expect(begunByParent).toEqual([...new Set(begunByParent)])
  }, 60_000)
})

const turnEnds = (log: readonly SessionEvent[]): readonly number[] =>
  log.flatMap((event, i) => (event.type === 'turn/end' ? [i] : []))

test('[fork-002] a fork of an empty session inherits nothing and names its parent', async () => {
  await using parent = await startAgent()
  const { sessionId } = await parent.agent.fork()
  expect(await parent.store.header(sessionId)).toMatchObject({ parentSession: 'session', seedLength: 0 })
  expect(typesOf(await stored(parent.store, sessionId))).toEqual(['session/end-seed'])
  await using child = await startAgent({ store: parent.store, sessionId })
  expect((await child.agent.run('hi')).turn).toBe(1)
})

test('[fork-003] a fork before an open turn has the finished turn only', async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store, model: scripted(['One.', [text('half'), hangs()]]) })
  await parent.agent.run('one')
  parent.agent.followup('two')
  await settle(10)
  const [end = -1] = turnEnds(await parent.log())
  const { sessionId } = await parent.agent.fork({ at: end + 1 })
  expect((await stored(store, sessionId)).at(-2)?.type).toBe('turn/end')
  await using child = await startAgent({ store, sessionId })
  expect(child.agent.status).toBe('idle')
  expect(child.agent.session.messages()).toHaveLength(2)
})

test.each<[string, Options, string]>([
  ['completed', {}, 'hi'],
  ['blocked', { hooks: { 'agent/pre-step': () => ({ kind: 'reject', reason: 'no' }) } }, 'hi'],
  ['max-tokens', { model: scripted([[text('x'), { kind: 'finish', reason: { kind: 'max-tokens' } }]]) }, 'hi'],
  ['error', { model: scripted([fails({ code: 'AUTH' })]) }, 'hi'],
  ['aborted', { model: scripted([hangs()]) }, 'hi'],
])('[fork-005] a turn that ended as %s is a place to fork, and is not opened again', async (kind, options, input) => {
  const store = memoryStore()
  await using parent = await startAgent({ store, ...options })
  const { turn } = parent.agent.followup(input)
  if (kind === 'aborted') await parent.agent.cancel()
  expect((await turn)?.reason.kind).toBe(kind)
  const [end = -1] = turnEnds(await parent.log())
  const { sessionId } = await parent.agent.fork({ at: end + 1 })
  await using child = await startAgent({ store, sessionId })
  expect(child.agent.status).toBe('idle')
  expect((await child.agent.run('more')).turn).toBe(2)
})

test('[fork-006] an event beside the machine that follows a turn is inherited', async () => {
  await using parent = await startAgent()
  await parent.agent.run('hi')
  parent.agent.session.note('acme/mark', { n: 1 })
  const { sessionId } = await parent.agent.fork()
  expect((await stored(parent.store, sessionId)).at(-2)).toMatchObject({ type: 'acme/mark', data: { n: 1 } })
})

test.each([-1, 1.5, 1_000, Number.NaN, 2 ** 60])('[fork-007] a fork at %s is refused and makes nothing', async (at) => {
  await using parent = await startAgent()
  await parent.agent.run('hi')
  await expect(parent.agent.fork({ at, sessionId: 'child' })).rejects.toMatchObject({ code: 'INVALID_BOUNDARY' })
  expect(await parent.store.header('child')).toBeUndefined()
})

test('[fork-008] [fork-009] a fork is asked of an agent, so its source is there; a closed one forks nothing', async () => {
  const store = memoryStore()
  const parent = await startAgent({ store })
  await parent.agent.run('hi')
  await parent[Symbol.asyncDispose]()
  await expect(parent.agent.fork({ sessionId: 'child' })).rejects.toMatchObject({ code: 'AGENT_CLOSED' })
  expect(await store.header('child')).toBeUndefined()
})

test("[fork-011] what the parent does later is not the child's, and events cannot be changed", async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store })
  await parent.agent.run('one')
  const { sessionId } = await parent.agent.fork()
  const before = await stored(store, sessionId)
  await parent.agent.run('two')
  expect(await stored(store, sessionId)).toEqual(before)
  expect(before.every((event) => Object.isFrozen(event) && Object.isFrozen(event.data))).toBe(true)
})

test('[fork-012] the child counts on, says that it resumes its header, and tells the model of the inherited turn', async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store, model: scripted(['One.']) })
  await parent.agent.run('one')
  const { sessionId } = await parent.agent.fork()
  const model = scripted(['Two.'])
  await using child = await startAgent({ store, sessionId, model })
  expect((await child.agent.run('two')).turn).toBe(2)
  expect(ofType(await child.log(), 'request/header').map(({ data }) => data.reason)).toEqual(['initial', 'resume'])
  expect(model.requests[0]?.messages.map(({ content }) => content)).toMatchObject([
    [{ text: 'one' }],
    [{ text: 'One.' }],
    [{ text: 'two' }],
  ])
})

test("[fork-013] what waited in the parent's inbox waits there still, and not in the child's", async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store })
  await parent.agent.run('one')
  parent.agent.inject('later')
  const { sessionId } = await parent.agent.fork()
  await using child = await startAgent({ store, sessionId })
  expect([child.agent.inbox.nextStep, child.agent.inbox.nextTurn]).toEqual([[], []])
  expect(parent.agent.inbox.nextStep).toHaveLength(1)
  child.agent.wake()
  expect(child.agent.status).toBe('idle')
})

test('[fork-016] parent and child go different ways from the same beginning', async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store, model: scripted(['One.', 'Parent.']) })
  await parent.agent.run('one')
  const { sessionId } = await parent.agent.fork()
  await using child = await startAgent({ store, sessionId, model: scripted(['Child.']) })
  await Promise.all([parent.agent.run('two'), child.agent.run('zwei')])
  const [mine, theirs] = [await parent.log(), await child.log()]
  const { seedLength = 0 } = (await store.header(sessionId)) ?? {}
  expect(theirs.slice(0, seedLength)).toEqual(mine.slice(0, seedLength))
  for (const log of [mine, theirs]) expect(ofType(log, 'turn/start').map(({ data }) => data.turn)).toEqual([1, 2])
  expect(JSON.stringify(mine)).not.toContain('Child.')
  expect(JSON.stringify(theirs)).not.toContain('Parent.')
})

test("a fork of a fork has the whole line, and each is its own parent's", async () => {
  const store = memoryStore()
  await using first = await startAgent({ store, tools, model: scripted([toolCall('wait', {}, { id: 'c1' })]) })
  first.agent.followup('go')
  await settle(20)
  await first.agent.fork({ sessionId: 'second' })
  await using second = await startAgent({ store, sessionId: 'second', model: scripted(['Two.']) })
  await second.agent.fork({ sessionId: 'third' })
  await using third = await startAgent({ store, sessionId: 'third', model: scripted(['Three.']) })
  await Promise.all([second.agent.whenIdle(), third.agent.whenIdle()])
  expect((await store.header('third'))?.parentSession).toBe('second')
  for (const one of [second, third]) {
    const log = await one.log()
    expect(ofType(log, 'tool/result').map(({ data }) => data.error?.code)).toEqual(['TOOL_OUTCOME_UNKNOWN'])
    expect(verify(log).ok).toBe(true)
  }
  expect(first.agent.status).toBe('running')
  await first.agent.close({ graceMs: 0 })
})

test('an id that is taken is refused, also when it is taken while the fork is under way', async () => {
  const store = memoryStore()
  await using parent = await startAgent({ store })
  await parent.agent.run('hi')
  await expect(parent.agent.fork({ sessionId: 'session' })).rejects.toMatchObject({ code: 'SESSION_ALREADY_EXISTS' })
  const forks = await Promise.allSettled([1, 2, 3].map(() => parent.agent.fork({ sessionId: 'child' })))
  expect(forks.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const fork of forks) {
    if (fork.status === 'rejected') expect(fork.reason).toMatchObject({ code: 'SESSION_ALREADY_EXISTS' })
  }
  await using child = await startAgent({ store, sessionId: 'child' })
  expect(child.agent.session.messages()).toHaveLength(2)
})

/** A parent whose log takes several appends to copy. */
async function longParent(store: LogStore) {
  const parent = await startAgent({ store, model: scripted(() => [text('x'.repeat(1_600), { deltas: 1_600 })]) })
  await parent.agent.run('go')
  return parent
}

test('a fork that the store fails leaves no child', async () => {
  const inner = memoryStore()
  const store = faultyStore(inner, { seed: 1, maxTurns: 0 })
  await using parent = await longParent(store)
  store.script('append', 'fail', 1)
  await expect(parent.agent.fork({ sessionId: 'child' })).rejects.toMatchObject({ code: 'STORE_FAILURE' })
  expect(await inner.header('child')).toBeUndefined()
  await parent.agent.fork({ sessionId: 'child' })
  expect((await stored(inner, 'child')).length).toBe((await stored(inner, 'session')).length + 1)
})

test('a fork whose process died while it was made is refused by name when it is opened, however little is missing', async () => {
  const store = memoryStore()
  await (await longParent(store))[Symbol.asyncDispose]()
  const log = await stored(store, 'session')
  for (const planted of [0, 500, log.length]) {
    const id = `cut-${planted}`
    const header = { format: 1, id, createdAt: 1, parentSession: 'session', seedLength: log.length } as const
    const owner = await store.acquire(id, { create: header })
    await owner.append(log.slice(0, planted), { expectedSeq: 0 })
    await owner.release()
    await expect(startAgent({ store, sessionId: id })).rejects.toMatchObject({ code: 'INVALID_LOG', rule: 'SEED' })
    expect(await stored(store, id)).toHaveLength(planted)
    await store.delete(id)
  }
})
