/** Hibernation: an agent that sleeps is, for all that anybody can see, the one that stays awake. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Agent, type AgentOptions, createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { verify } from '../../src/machines/verify.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, settle, simulatedClock, stored } from '../kit/agents.ts'

const STORES: readonly (readonly [string, () => LogStore])[] = [
  ['memory', () => memoryStore()],
  [
    'SQLite',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'pawl-hibernation-'))
      const store = sqliteStore(join(folder, 'pawl.db'))
      onTestFinished(async () => {
        await store[Symbol.asyncDispose]()
        rmSync(folder, { recursive: true, force: true })
      })
      return store
    },
  ],
]

const pay = tool({
  name: 'pay',
  description: 'pays',
  parameters: { type: 'object' },
  needsApproval: true,
  approvalExpiresMs: 60_000,
  execute: () => 'paid',
})

/** The model asks to pay where it is told to, and else counts what it was asked. */
const model = () =>
  scripted(({ messages }, n) => {
    const said = JSON.stringify(messages.at(-1))
    return said.includes('pay please') ? toolCall('pay', { n }) : `answer ${n}`
  })

const start = (store: LogStore, more: Partial<AgentOptions> = {}): Promise<Agent> =>
  createAgent({
    ...{ store, model: model(), tools: [pay], clock: simulatedClock(), sessionId: 'session' },
    ...{ newId: countingIds(), random: () => 0.5, ...more },
  })

/** A life with messages, an approval, a cancel, a parked message and a fork. `rest` is called wherever it comes to rest. */
async function live(agent: Agent, rest: () => Promise<void>): Promise<readonly unknown[]> {
  const seen: unknown[] = []
  agent.status$.subscribe((status) => seen.push(status))
  await rest()
  const first = agent.followup('hello', { requestId: 'r1' })
  seen.push(await first.accepted, await first.entered, (await first.turn)?.reason)
  await rest()
  // The same once more is the same receipt, and another by its name is refused.
  seen.push(await agent.followup('hello', { requestId: 'r1' }).entered)
  expect(() => agent.followup('other', { requestId: 'r1' })).toThrow(
    expect.objectContaining({ code: 'DUPLICATE_MESSAGE' }),
  )
  await rest()
  seen.push(agent.session.messages().length, agent.session.head, agent.inbox.nextTurn.length)
  await rest()
  const paying = agent.followup('pay please')
  await agent.whenQuiet()
  await rest()
  const [asked] = agent.approvals()
  seen.push(asked?.name, agent.status)
  await rest()
  await agent.approve(asked?.callId ?? '', { digest: asked?.argumentsDigest ?? '' })
  seen.push((await paying.turn)?.reason)
  await rest()
  const parked = agent.inject('later')
  await parked.accepted
  await rest()
  seen.push(agent.inbox.nextStep.length)
  agent.wake()
  await agent.whenIdle()
  await rest()
  seen.push((await agent.run('and now')).text)
  await rest()
  seen.push(agent.session.note('acme/note', { a: 1 }).seq)
  await agent.session.flush()
  return seen
}

const timeless = (events: readonly SessionEvent[]) => events.filter(({ type }) => !SUSPENSION.has(type))
/** One that waits is suspended while it sleeps, and says so. */
const SUSPENSION = new Set<string>(['session/suspended', 'session/resumed'])

describe.each(STORES)('over %s', (_, open) => {
  test('an agent that hibernates at every rest leaves the log, and tells what, one that never does', async () => {
    const [awake, asleep] = [open(), open()]
    const one = await start(awake)
    const other = await start(asleep)
    const expected = await live(one, async () => {})
    let slept = 0
    const found = await live(other, async () => {
      await other.hibernate()
      slept += 1
    })
    expect(slept).toBeGreaterThan(8)
    expect(found.filter((each) => typeof each !== 'number')).toEqual(
      expected.filter((each) => typeof each !== 'number'),
    )
    await one.close()
    await other.close()
    const [log, again] = [await stored(awake, 'session'), await stored(asleep, 'session')]
    expect(verify(again)).toMatchObject({ ok: true })
    expect(timeless(again).map(({ type, data }) => [type, withoutSeqs(data)])).toEqual(
      timeless(log).map(({ type, data }) => [type, withoutSeqs(data)]),
    )
  })

  test('a command from elsewhere wakes it, and is taken once', async () => {
    const store = open()
    const agent = await start(store)
    await agent.run('hello')
    await agent.hibernate()
    const message = {
      id: 'posted',
      role: 'user',
      content: [{ type: 'text', text: 'from afar' }],
      source: { kind: 'user' },
    } as const
    await store.post('session', { id: 'c1', kind: 'followup', message })
    const outcome = await store.outcome('session', 'c1', AbortSignal.timeout(10_000))
    expect(outcome.kind).toBe('taken')
    await agent.whenIdle()
    expect(agent.session.messages().filter(({ id }) => id === 'posted')).toHaveLength(1)
    await agent.close()
  })

  test('a reader that follows gets each event once, whatever sleeps meanwhile', async () => {
    const store = open()
    const agent = await start(store)
    const seen: number[] = []
    const leaves = new AbortController()
    const reading = (async () => {
      for await (const { seq } of agent.session.events({ live: true, signal: leaves.signal })) seen.push(seq)
    })()
    for (let i = 0; i < 4; i++) {
      await agent.run(`hello ${i}`)
      await agent.hibernate()
    }
    await agent.close()
    await reading
    expect(seen).toEqual((await stored(store, 'session')).map(({ seq }) => seq))
  })

  test('an approval that runs out while it sleeps expires in time', async () => {
    const store = open()
    const clock = simulatedClock()
    const agent = await start(store, { clock })
    const { turn } = agent.followup('pay please')
    await agent.whenQuiet()
    await agent.hibernate()
    clock.increment(60_000)
    await turn
    const log = await stored(store, 'session')
    expect(log.filter(({ type }) => type === 'tool/approval-resolved')).toMatchObject([
      { data: { decision: 'expired' } },
    ])
    await agent.close()
  })

  test('asleep it keeps its session to itself, and closing gives it back', async () => {
    const store = open()
    const agent = await start(store)
    await agent.run('hello')
    await agent.hibernate()
    await expect(store.acquire('session')).rejects.toMatchObject({ code: 'SESSION_BUSY' })
    await agent.close()
    expect(agent.status).toBe('closed')
    await (await store.acquire('session')).release()
  })

  test('one that is robbed in its sleep has failed, as one awake would have', async () => {
    const store = open()
    const agent = await start(store)
    await agent.run('hello')
    await agent.hibernate()
    const thief = await store.acquire('session', { steal: true })
    const failed = new Promise<void>((resolve) => {
      agent.status$.subscribe((status) => status === 'failed' && resolve())
    })
    await failed
    expect(() => agent.followup('more')).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED' }))
    await agent.close().catch(() => {})
    await thief.release()
  })

  test('it sleeps by itself after `idleAfterMs` at rest, and reading its actor wakes it', async () => {
    const store = open()
    const clock = simulatedClock()
    const agent = await start(store, { clock, idleAfterMs: 5_000 })
    await agent.run('hello')
    const before = agent.actor
    clock.increment(4_999)
    await settle(20)
    expect(agent.actor).toBe(before)
    clock.increment(5_000)
    await settle(50)
    await agent.session.flush()
    expect(agent.actor).not.toBe(before)
    expect(agent.actor.getSnapshot().value).toBe('idle')
    expect((await agent.run('again')).reason).toEqual({ kind: 'completed' })
    await agent.close()
  })
})

/** Seqs differ by what the suspensions take. */
const withoutSeqs = (data: unknown): unknown =>
  JSON.parse(
    JSON.stringify(data, (key, value) => (key === 'start' || key === 'end' || key === 'seq' ? undefined : value)),
  )

test('an `idleAfterMs` that is no time is refused by its name', async () => {
  for (const idleAfterMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await expect(start(memoryStore(), { idleAfterMs })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  }
})
