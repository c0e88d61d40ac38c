/** Hibernation: an agent at rest is next to nothing in memory, and nobody who holds it or reads it sees a difference. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Agent, AgentOptions } from '../../src/agent.ts'
import { createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { verify } from '../../src/machines/verify.ts'
import { fails, gate, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { AgentClosed, DuplicateMessage, InvalidOption } from '../../src/services/errors.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, ofType, settle, simulatedClock, stored, typesOf } from '../kit/agents.ts'
import { manualClock } from '../kit/manual-clock.ts'
import { type SleepingStore, sleepingStore } from '../kit/sleeping-store.ts'
import { command, turn } from '../kit/store-contract/fixtures.ts'
import { newFile } from '../log/stores/sqlite-fixtures.ts'

interface Held {
  readonly agent: Agent
  readonly store: SleepingStore
  /** It is asleep from here on. */
  sleep(): Promise<void>
  readonly isAsleep: () => boolean
}

async function hold(options: Partial<AgentOptions> = {}, inner: LogStore = memoryStore()): Promise<Held> {
  const store = sleepingStore(inner)
  const agent = await createAgent({
    model: scripted(() => 'ok'),
    newId: countingIds(),
    random: () => 0.5,
    sessionId: 's',
    store,
    ...options,
  })
  onTestFinished(() => agent.close().catch(() => {}))
  const isAsleep = () => store.asleep.has('s')
  return {
    agent,
    store,
    isAsleep,
    async sleep() {
      await agent.hibernate()
      expect(isAsleep()).toBe(true)
    },
  }
}

const asks = {
  name: 'ask',
  description: 'Asks first',
  parameters: { type: 'object' },
  needsApproval: true,
  execute: () => 'done',
} as const
const ask = tool(asks)

const stores = [
  { name: 'memory', open: () => memoryStore() },
  {
    name: 'sqlite',
    open: () => {
      const store = sqliteStore(newFile())
      onTestFinished(async () => store[Symbol.asyncDispose]())
      return store
    },
  },
]

describe.each(stores)('on $name, an agent that sleeps', ({ open }) => {
  test('runs what it is given next, in the same conversation', async () => {
    const { agent, store, sleep } = await hold({ model: scripted(['one', 'two', 'three']) }, open())
    await agent.run('a')
    await sleep()
    expect((await agent.run('b')).text).toBe('two')
    await sleep()
    expect((await agent.run('c')).text).toBe('three')
    expect(agent.session.messages().map(({ role }) => role)).toEqual(
      Array.from({ length: 3 }, () => ['user', 'assistant']).flat(),
    )
    expect([store.rests(), store.wakes()]).toEqual([2, 2])
    expect(verify(await stored(store, 's'))).toMatchObject({ ok: true, turns: 3 })
  })

  test('is at work the moment it is told something, and its observers are told as always', async () => {
    const { agent, sleep } = await hold({}, open())
    const seen: string[] = []
    await agent.run('a')
    agent.on('session/event', ({ type }) => seen.push(type))
    agent.on('agent/status', (status) => seen.push(status))
    await sleep()
    expect([agent.status, seen]).toEqual(['idle', []])
    const receipt = agent.followup('b')
    expect(agent.status).toBe('running')
    expect(seen.slice(0, 3)).toEqual(['agent/inbox/spliced', 'turn/start', 'agent/inbox/spliced'])
    expect(await receipt.entered).toMatchObject({ kind: 'entered', turn: 2, step: 1 })
    await agent.whenIdle()
    expect(seen.at(-1)).toBe('idle')
  })

  test('answers what it is asked: its conversation, what waits, its place', async () => {
    const { agent, store, sleep, isAsleep } = await hold({}, open())
    await agent.run('a')
    agent.inject('for later')
    await agent.session.flush()
    const { head } = agent.session
    const messages = agent.session.messages()
    const waiting = agent.inbox.nextStep
    await sleep()
    expect([agent.id, agent.status, agent.session.id, agent.session.head]).toEqual(['s', 'idle', 's', head])
    expect(agent.session.header).toEqual(await store.header('s'))
    await agent.session.flush()
    await agent.whenIdle()
    expect(isAsleep()).toBe(true)
    expect(agent.inbox.nextStep).toEqual(waiting)
    expect(isAsleep()).toBe(false)
    await sleep()
    expect(agent.session.messages()).toEqual(messages)
    await sleep()
    expect(agent.approvals()).toEqual([])
    await sleep()
    expect(agent.actor.getSnapshot().value).toBe('idle')
    expect(agent.session.head).toBe(head)
    expect(agent.inbox.remove(waiting[0]?.kind === 'message' ? waiting[0].message.id : '')).toBe(true)
  })

  test('knows the ids of messages that were sent before', async () => {
    const { agent, sleep } = await hold({}, open())
    const first = agent.followup('the same', { requestId: 'r' })
    const result = await first.turn
    await sleep()
    expect(await agent.followup('the same', { requestId: 'r' }).turn).toEqual(result)
    await sleep()
    expect(() => agent.followup('another', { requestId: 'r' })).toThrow(DuplicateMessage)
    expect(agent.session.messages()).toHaveLength(2)
  })

  test('keeps its promises: the receipt of a message that waits is kept when its time comes', async () => {
    const held = gate()
    const { agent, sleep } = await hold({ model: scripted([[pause(held), text('late')], 'ok', 'ok']) }, open())
    const running = agent.followup('a')
    await held.reached
    const waiting = agent.followup('b')
    const run = agent.run('c')
    await agent.cancel(undefined, { keepInbox: true })
    await running.turn
    await sleep()
    agent.wake()
    expect(await waiting.turn).toMatchObject({ reason: { kind: 'completed' } })
    expect(await run).toMatchObject({ reason: { kind: 'completed' } })
  })

  test('has its live readers go on, without a gap or a repetition', async () => {
    const { agent, store, sleep } = await hold({}, open())
    const before: SessionEvent[] = []
    agent.session.events$.subscribe((event) => void before.push(event))
    await agent.run('a')
    await sleep()
    const during: SessionEvent[] = []
    agent.session.events$.subscribe((event) => void during.push(event))
    const late: SessionEvent[] = []
    const reading = (async () => {
      for await (const event of agent.session.events({ from: 5, live: true })) late.push(event)
    })()
    await settle()
    await agent.run('b')
    await sleep()
    await agent.run('c')
    await settle()
    await sleep()
    await agent.close()
    await reading
    const log = await stored(store, 's')
    expect(before).toEqual(log)
    expect(during).toEqual(log)
    expect(late).toEqual(log.slice(5))
  })

  test('is read, as far as its log goes, without being woken', async () => {
    const { agent, store, sleep, isAsleep } = await hold({}, open())
    await agent.run('a')
    await sleep()
    const events: SessionEvent[] = []
    for await (const event of agent.session.events({ from: 2 })) events.push(event)
    expect(events).toEqual((await stored(store, 's')).slice(2))
    expect(isAsleep()).toBe(true)
  })

  test('is woken by a command that is posted, also by one that waits already', async () => {
    const { agent, store, sleep } = await hold({}, open())
    await agent.run('a')
    await sleep()
    await store.post('s', command('c1'))
    const outcome = await store.outcome('s', 'c1', new AbortController().signal)
    expect(outcome.kind).toBe('taken')
    await agent.whenIdle()
    await sleep()
    // Left by somebody while it falls asleep.
    const asleep = agent.hibernate()
    await store.post('s', command('c2'))
    await asleep
    expect((await store.outcome('s', 'c2', new AbortController().signal)).kind).toBe('taken')
    await agent.whenIdle()
    expect(verify(await stored(store, 's'))).toMatchObject({ ok: true, turns: 3 })
  })

  test('whose session is taken fails as one that is awake', async () => {
    const { agent, store, sleep } = await hold({}, open())
    await agent.run('a')
    agent.inject('for later')
    const statuses: string[] = []
    agent.on('agent/status', (status) => statuses.push(status))
    const reading = (async () => {
      for await (const _ of agent.session.events({ live: true }));
    })()
    const parked = agent.inject('and this')
    await agent.session.flush()
    await sleep()
    const thief = await store.acquire('s', { steal: true })
    await expect(reading).rejects.toMatchObject({ code: 'FENCED' })
    await expect(parked.entered).rejects.toMatchObject({ code: 'FENCED' })
    expect([agent.status, statuses]).toEqual(['failed', ['failed']])
    expect(() => agent.followup('b')).toThrow(
      expect.objectContaining({ code: 'AGENT_CLOSED', cause: expect.objectContaining({ code: 'FENCED' }) }),
    )
    await expect(agent.whenIdle()).rejects.toMatchObject({ code: 'FENCED' })
    // What it was is still there to be read.
    expect(agent.session.messages()).toHaveLength(2)
    expect(agent.inbox.nextStep).toHaveLength(2)
    await expect(agent.close()).rejects.toMatchObject({ code: 'FENCED' })
    await thief.release()
  })

  test('whose store is closed fails', async () => {
    const { agent, store, sleep } = await hold({}, open())
    await agent.run('a')
    await sleep()
    await store[Symbol.asyncDispose]()
    await settle()
    expect(agent.status).toBe('failed')
    expect(() => agent.followup('b')).toThrow(AgentClosed)
    expect(() => agent.session.messages()).toThrow(AgentClosed)
    await expect(agent.session.flush()).rejects.toBeInstanceOf(Error)
  })

  test('is closed without being woken, gives its session back, and can still be read', async () => {
    const { agent, store, sleep } = await hold({}, open())
    const statuses: string[] = []
    agent.status$.subscribe({ next: (status) => statuses.push(status), complete: () => statuses.push('complete') })
    await agent.run('a')
    agent.inject('for later')
    await agent.session.flush()
    await sleep()
    await agent.close()
    expect(store.wakes()).toBe(0)
    expect(statuses).toEqual(['idle', 'running', 'idle', 'closed', 'complete'])
    await (await store.acquire('s')).release()
    expect(() => agent.followup('b')).toThrow(AgentClosed)
    expect(() => agent.session.note('me/note', 1)).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED' }))
    expect(agent.session.messages()).toHaveLength(2)
    expect(agent.inbox.nextStep).toHaveLength(1)
    expect(agent.actor.getSnapshot()).toMatchObject({ value: 'idle', status: 'stopped' })
    await agent.whenIdle()
  })

  test('disposes of its plug-ins, and their handlers are asked as before', async () => {
    const told: string[] = []
    const plugin = (agent: Agent) => {
      agent.on('agent/pre-step', (_, next) => {
        told.push('pre-step')
        return next()
      })
      return () => void told.push('disposed')
    }
    const { agent, sleep } = await hold({ plugins: [plugin] }, open())
    await sleep()
    await agent.run('a')
    await sleep()
    await agent.close()
    expect(told).toEqual(['pre-step', 'disposed'])
  })
})

describe('an agent that waits', () => {
  const waits = () => hold({ tools: [ask], model: scripted([toolCall('ask', {}, { id: 'c1' }), 'done']) })

  test('for an approval sleeps until it is given, and loses nothing', async () => {
    const { agent, store, sleep, isAsleep } = await waits()
    const run = agent.run('go')
    await agent.whenQuiet()
    const [asked] = agent.approvals()
    await sleep()
    expect(agent.status).toBe('waiting')
    // Looking at it wakes it and records nothing.
    const { head } = agent.session
    expect(agent.approvals()).toEqual([asked])
    expect([isAsleep(), agent.session.head, agent.status]).toEqual([false, head, 'waiting'])
    await sleep()
    await agent.approve('c1', { digest: asked?.argumentsDigest ?? '' })
    expect(await run).toMatchObject({ text: 'done', reason: { kind: 'completed' } })
    const log = await stored(store, 's')
    expect(log.filter(({ type }) => type === 'session/suspended')).toHaveLength(1)
    expect(ofType(log, 'session/resumed').map(({ data }) => data.resumes)).toEqual([0])
    expect(verify(log)).toMatchObject({ ok: true, state: 'idle' })
  })

  test('is answered by another process, whose command is what it took', async () => {
    const { agent, store, sleep } = await waits()
    const run = agent.run('go')
    await agent.whenQuiet()
    const [asked] = agent.approvals()
    await sleep()
    await store.post('s', { id: 'x', kind: 'approve', callId: 'c1', run: 0, digest: asked?.argumentsDigest ?? '' })
    const outcome = await store.outcome('s', 'x', new AbortController().signal)
    expect((await run).text).toBe('done')
    const log = await stored(store, 's')
    expect(outcome.kind === 'taken' && log[outcome.seq ?? -1]?.type).toBe('tool/approval-resolved')
  })

  test('is cancelled, and closed with a cancel, as one that is awake', async () => {
    for (const end of ['cancel', 'close'] as const) {
      const { agent, store, sleep } = await waits()
      const run = agent.run('go')
      await agent.whenQuiet()
      const idle = agent.whenIdle()
      await sleep()
      if (end === 'cancel') await agent.cancel()
      else await agent.close({ cancel: { kind: 'disposed' } })
      expect((await run).reason.kind).toBe('aborted')
      await idle
      await agent.close()
      expect(verify(await stored(store, 's'))).toMatchObject({ ok: true, state: 'idle' })
    }
  })

  test('is left to the next opening when it is closed asleep', async () => {
    const { agent, store, sleep } = await waits()
    const run = agent.run('go')
    run.catch(() => {})
    await agent.whenQuiet()
    await sleep()
    await agent.close()
    await expect(run).rejects.toBeInstanceOf(AgentClosed)
    const again = await hold({ tools: [ask], model: scripted(['done']) }, store)
    const [asked] = again.agent.approvals()
    await again.agent.approve('c1', { digest: asked?.argumentsDigest ?? '' })
    await again.agent.whenIdle()
    expect(verify(await stored(store, 's'))).toMatchObject({ ok: true, state: 'idle' })
  })

  test('is carried on when it wakes, also where a crash would close its turn', async () => {
    const { agent, sleep } = await hold({
      tools: [ask],
      recovery: 'interrupt',
      maxResumes: 0,
      model: scripted([toolCall('ask', {}, { id: 'c1' }), 'done']),
    })
    const run = agent.run('go')
    await agent.whenQuiet()
    for (let i = 0; i < 3; i++) {
      await sleep()
      agent.steer(`and ${i}`)
      await agent.session.flush()
    }
    const [asked] = agent.approvals()
    await agent.deny('c1', { digest: asked?.argumentsDigest ?? '' })
    expect((await run).reason.kind).toBe('completed')
  })

  test('for a retry is woken in time', async () => {
    const clock = manualClock(1_000)
    const { agent, sleep, isAsleep } = await hold({
      clock,
      model: scripted([fails('SERVER'), 'after all'], { retry: { maxRetries: 1, backoff: { initialDelayMs: 500 } } }),
    })
    const run = agent.run('go')
    await agent.whenQuiet()
    await sleep()
    expect(clock.pending).toBe(1)
    clock.advance(499)
    expect(isAsleep()).toBe(true)
    clock.advance(1)
    expect((await run).text).toBe('after all')
    expect(clock.pending).toBe(0)
  })

  test('for a retry is woken in time also when somebody looked at it meanwhile', async () => {
    const clock = simulatedClock()
    const { agent, sleep, isAsleep } = await hold({
      clock: {
        now: () => clock.now(),
        setTimeout: clock.setTimeout.bind(clock),
        clearTimeout: clock.clearTimeout.bind(clock),
      },
      model: scripted([fails('SERVER'), 'after all'], { retry: { maxRetries: 1, backoff: { initialDelayMs: 500 } } }),
    })
    const run = agent.run('go')
    await agent.whenQuiet()
    await sleep()
    expect(agent.session.messages()).toHaveLength(1)
    expect(isAsleep()).toBe(false)
    clock.increment(500)
    expect((await run).text).toBe('after all')
  })

  test('for an answer that comes too late is woken when it is', async () => {
    const clock = manualClock(1_000)
    const soon = tool({ ...asks, approvalExpiresMs: 60_000 })
    const { agent, store, sleep, isAsleep } = await hold({
      clock,
      tools: [soon],
      model: scripted([toolCall('ask', {}, { id: 'c1' }), 'done']),
    })
    const run = agent.run('go')
    await agent.whenQuiet()
    await sleep()
    clock.advance(59_999)
    expect(isAsleep()).toBe(true)
    clock.advance(1)
    expect((await run).text).toBe('done')
    expect(ofType(await stored(store, 's'), 'tool/approval-resolved').map(({ data }) => data.decision)).toEqual([
      'expired',
    ])
  })
})

describe('hibernate()', () => {
  test('does nothing while something runs, or when something begins meanwhile', async () => {
    const held = gate()
    const { agent, store } = await hold({ model: scripted([[pause(held), text('ok')], 'ok']) })
    const run = agent.run('a')
    await held.reached
    await agent.hibernate()
    expect(store.rests()).toBe(0)
    held.release()
    await run
    const asleep = agent.hibernate()
    const second = agent.run('b')
    await asleep
    expect(store.rests()).toBe(0)
    await second
  })

  test('waits for what is being stored', async () => {
    const { agent, store } = await hold()
    agent.session.note('me/note', 1)
    await agent.hibernate()
    expect([store.rests(), (await stored(store, 's')).length]).toEqual([1, 1])
  })

  test('twice is once, and of a closed or failed agent is nothing', async () => {
    const { agent, store } = await hold()
    await Promise.all([agent.hibernate(), agent.hibernate()])
    await agent.hibernate()
    expect(store.rests()).toBe(1)
    await agent.close()
    await agent.hibernate()
    const failed = await hold()
    await (await failed.store.acquire('s', { steal: true })).release()
    await settle()
    await failed.agent.hibernate()
    expect(failed.store.rests()).toBe(0)
  })

  test('leaves an agent awake whose store cannot read without waiting', async () => {
    const { readNow: _, ...inner } = memoryStore()
    const { agent, store } = await hold({}, inner)
    await agent.run('a')
    await agent.hibernate()
    expect(store.rests()).toBe(0)
    await agent.run('b')
  })

  test('keeps the ownership of a store that lets nobody rest, and serves its commands', async () => {
    const { rest: _, ...inner } = memoryStore()
    const agent = await createAgent({ model: scripted(() => 'ok'), store: inner, sessionId: 's' })
    onTestFinished(() => agent.close().catch(() => {}))
    const { actor } = agent
    await agent.run('a')
    await agent.hibernate()
    expect(actor.getSnapshot().status).toBe('stopped')
    await inner.post('s', command('c'))
    expect((await inner.outcome('s', 'c', new AbortController().signal)).kind).toBe('taken')
    await agent.whenIdle()
    await agent.hibernate()
    await (await inner.acquire('s', { steal: true })).release()
    await settle()
    expect(agent.status).toBe('failed')
  })

  test('gives the chart another actor: subscribers of the one before are completed', async () => {
    const { agent, sleep } = await hold()
    const { actor } = agent
    let completed = false
    actor.subscribe({ complete: () => (completed = true) })
    await agent.run('a')
    expect(agent.actor).toBe(actor)
    await sleep()
    expect(completed).toBe(true)
    expect(agent.actor).not.toBe(actor)
    expect(agent.actor).toBe(agent.actor)
  })

  test('tells the inspector nothing of its own', async () => {
    const told: string[] = []
    const { agent, sleep } = await hold({ inspect: ({ type }) => told.push(type) })
    await agent.run('a')
    const turns = told.length
    await sleep()
    await agent.run('b')
    expect(told.filter((type) => type === '@xstate.actor')).toHaveLength(1)
    // The header is logged once a process.
    expect(told.length - turns).toBe(turns - 1 - 2 * 2)
  })

  test('leaves the log as it would be', async () => {
    const logs = await Promise.all(
      [false, true].map(async (sleeps) => {
        const { agent, store, sleep } = await hold({
          clock: { now: () => 1_000, setTimeout: () => 0, clearTimeout() {} },
          context: [{ name: 'who', text: 'You are tested' }],
          tools: [tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })],
          model: scripted((_, n) => (n % 2 === 0 ? toolCall('look', { n }) : 'done')),
          limits: { session: { tokens: 1_000_000 } },
        })
        for (let turns = 0; turns < 4; turns++) {
          if (sleeps) await sleep()
          await agent.run(`turn ${turns}`)
        }
        return stored(store, 's')
      }),
    )
    expect(logs[1]).toEqual(logs[0])
  })
})

describe('idleAfterMs', () => {
  test('is how long an agent rests before it hibernates, each time anew', async () => {
    const clock = manualClock()
    const { agent, store, isAsleep } = await hold({ clock, idleAfterMs: 1_000 })
    const sleeps = async (): Promise<boolean> => {
      await settle()
      return isAsleep()
    }
    clock.advance(999)
    expect(await sleeps()).toBe(false)
    await agent.run('a')
    clock.advance(999)
    expect(await sleeps()).toBe(false)
    clock.advance(1)
    expect(await sleeps()).toBe(true)
    expect(clock.pending).toBe(0)
    expect(agent.session.messages()).toHaveLength(2)
    expect(await sleeps()).toBe(false)
    clock.advance(1_000)
    expect(await sleeps()).toBe(true)
    await agent.close()
    expect([clock.pending, store.rests()]).toEqual([0, 2])
  })

  test('lets no agent sleep at work, nor for a retry that is nearer', async () => {
    const clock = manualClock()
    const retry = { maxRetries: 1, backoff: { initialDelayMs: 500, jitterRatio: 0 } }
    const held = gate()
    const model = scripted([[pause(held), text('slow')], fails('SERVER'), 'ok'], { retry })
    const { agent, store } = await hold({ clock, idleAfterMs: 600, model })
    const slow = agent.run('a')
    await held.reached
    clock.advance(10_000)
    await settle()
    held.release()
    await slow
    const run = agent.run('b')
    await agent.whenQuiet()
    clock.advance(500)
    await run
    expect(store.rests()).toBe(0)
  })

  test('keeps no process from ending', async () => {
    const unref = vi.fn()
    const clock = { now: () => 0, setTimeout: () => ({ unref }), clearTimeout() {} }
    await hold({ clock, idleAfterMs: 600 })
    expect(unref).toHaveBeenCalledOnce()
  })

  test('must be a time', async () => {
    for (const idleAfterMs of [0, -1, Number.NaN, 2 ** 31]) {
      await expect(hold({ idleAfterMs })).rejects.toThrow(InvalidOption)
    }
  })
})

test('a tool that was left behind says its late word to the agent that sleeps', async () => {
  let finish = (_: string): void => {}
  const slow = tool({
    name: 'slow',
    description: 'Heeds no signal',
    parameters: { type: 'object' },
    execute: () => new Promise<string>((resolve) => (finish = resolve)),
  })
  const clock = manualClock()
  const { agent, store, sleep } = await hold({ clock, tools: [slow], model: scripted([toolCall('slow', {}), 'ok']) })
  const run = agent.run('go')
  while (ofType(await stored(store, 's'), 'tool/dispatch').length === 0) await turn()
  const canceled = agent.cancel()
  await settle()
  clock.advance(10_000)
  await canceled
  await run
  await sleep()
  finish('at last')
  await settle()
  await agent.session.flush()
  expect(typesOf(await stored(store, 's')).at(-1)).toBe('tool/late-result')
})
