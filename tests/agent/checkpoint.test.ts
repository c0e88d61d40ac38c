/** Checkpoints: a session that is opened from one is the session that is opened from its whole log. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { decodeCheckpoint, encodeCheckpoint } from '../../src/log/session/checkpoint.ts'
import type { Checkpoint, LogStore, SessionHeader } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { verify } from '../../src/machines/verify.ts'
import { hangs, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, settle, simulatedClock, stored } from '../kit/agents.ts'
import { checkpointOf, checkpointStore, createFolds, HEADER, plainContent } from '../kit/checkpoints.ts'
import { livedLogs } from '../kit/lived-logs.ts'

const LIMITED = { limits: { session: { tokens: 1e9 } } }

const lives: (readonly [string, readonly SessionEvent[]])[] = []
for await (const life of livedLogs()) lives.push(life)

test('the lives that are cut have turns of every kind in them', () => {
  expect(lives.length).toBeGreaterThan(20)
})

describe.each(lives)('a life: %s', (_, events) => {
  test('whatever its beginning, what a checkpoint of it and the rest leave is what the whole log leaves', async () => {
    const whole = createFolds(undefined, LIMITED)
    for (const event of events) whole.push(event)
    const expected = plainContent(whole.content())
    const growing = createFolds(undefined, LIMITED)
    for (const cut of range(events.length + 1)) {
      const { maker } = growing.living
      const body = await encodeCheckpoint({ header: HEADER, maker }, growing.content())
      const found = decodeCheckpoint({ header: HEADER, maker }, { seq: cut, body })
      expect(found).toBeDefined()
      const restored = createFolds(found, LIMITED)
      for (const event of events.slice(cut)) restored.push(event)
      expect(plainContent(restored.content())).toEqual(expected)
      expect(restored.folded.surface.messages()).toEqual(whole.folded.surface.messages())
      const event = events[cut]
      if (event !== undefined) growing.push(event)
    }
  })

  test('an agent opened from a checkpoint does what one does that read the log', async () => {
    const expected = await goOn(events, undefined)
    for (const cut of someCuts(events.length)) {
      const found = await goOn(events, await checkpointOf(events.slice(0, cut)))
      expect(found.from).toBe(cut)
      expect(found.log).toEqual(expected.log)
      expect(found.requests).toEqual(expected.requests)
    }
  })
})

describe('what is no checkpoint of the log costs nothing but time', () => {
  const life = lives.find(([name]) => name.includes('crash')) ?? lives[0]
  const events = life?.[1] ?? []
  const cut = Math.floor(events.length / 2)
  const good = (): Promise<Checkpoint> => checkpointOf(events.slice(0, cut))
  const edited = async (edit: (line: Line) => void): Promise<Checkpoint> => {
    const { seq, body } = await good()
    const bytes = Buffer.from(body)
    const end = bytes.indexOf(0x0a)
    const line = JSON.parse(bytes.subarray(0, end).toString()) as Line
    edit(line)
    return { seq, body: Buffer.concat([Buffer.from(JSON.stringify(line)), bytes.subarray(end)]) }
  }

  test.each<readonly [string, () => Promise<Checkpoint | undefined>]>([
    ['none', async () => undefined],
    ['empty', async () => ({ seq: cut, body: new Uint8Array() })],
    ['no JSON', async () => ({ seq: cut, body: Buffer.from('{"layout":1\n') })],
    ['another JSON', async () => ({ seq: cut, body: Buffer.from('null\n') })],
    ['cut off', async () => ({ ...(await good()), body: (await good()).body.subarray(0, -1) })],
    ['beyond the head', async () => ({ ...(await good()), seq: events.length + 1 })],
    ['of another seq', async () => ({ ...(await good()), seq: cut - 1 })],
    ['of another session', () => checkpointOf(events.slice(0, cut), { ...HEADER, id: 'other' })],
    ['of a session made again', () => checkpointOf(events.slice(0, cut), { ...HEADER, createdAt: 7 })],
    ['of another layout', () => edited((line) => Object.assign(line, { layout: 2 }))],
    [
      'of another chart',
      () => edited((line) => Object.assign(line, { maker: line.maker.replace(/[0-9a-f]{16}$/, '0'.repeat(16)) })),
    ],
    [
      'with a state that the chart has not',
      () => edited(({ holder }) => Object.assign(holder.state, { value: 'gone' })),
    ],
    ['without a context', () => edited(({ holder }) => Object.assign(holder.state, { context: null }))],
    ['without what its agent counted', () => edited(({ holder }) => Object.assign(holder, { budgets: {} }))],
    ['without its folds', () => edited((line) => Object.assign(line, { folds: null }))],
    ['with nothing of its agent', () => edited((line) => Object.assign(line, { holder: null }))],
  ])('%s', async (_, make) => {
    const expected = await goOn(events, undefined)
    const found = await goOn(events, await make())
    expect(found.from).toBe(0)
    expect(found.log).toEqual(expected.log)
    expect(found.requests).toEqual(expected.requests)
  })

  test('counted without limits, where the agent now has some', async () => {
    const without = await checkpointOf(events.slice(0, cut))
    expect((await goOn(events, without, LIMITED)).from).toBe(0)
    expect((await goOn(events, await checkpointOf(events.slice(0, cut), HEADER, LIMITED), LIMITED)).from).toBe(cut)
  })

  test('an older one of the same log is taken, and the rest read', async () => {
    for (const older of [1, 2, cut - 1]) {
      const found = await goOn(events, await checkpointOf(events.slice(0, older)))
      expect(found.from).toBe(older)
    }
  })

  test('a store that cannot find one, or never says', async () => {
    const expected = await goOn(events, undefined)
    const rejecting = async () => Promise.reject(new Error('no checkpoints today'))
    for (const checkpoint of [rejecting, () => new Promise<never>(() => {})]) {
      const store = withCheckpoint(await storeOf(events), checkpoint)
      const found = await live(store, events, { storeTimeoutMs: 50 })
      expect(found.log).toEqual(expected.log)
    }
  })

  test('and a log that breaks its rules after one is refused as ever', async () => {
    const broken = [...events.slice(0, cut), { ...events[cut], seq: cut + 1 } as SessionEvent]
    const inner = await storeOf(events)
    const store: LogStore = {
      ...withCheckpoint(inner, good),
      async *read(_, options) {
        yield* broken.slice(options?.from ?? 0)
      },
    }
    await expect(createAgent({ model: scripted(() => 'ok'), store, sessionId: 'session' })).rejects.toMatchObject({
      code: 'INVALID_LOG',
    })
  })
})

describe('when one is kept', () => {
  const open = (store: LogStore, more: Partial<Parameters<typeof createAgent>[0]> = {}) =>
    createAgent({ model: scripted(() => 'ok'), store, sessionId: 'session', newId: countingIds(), ...more })

  test('closing keeps one of all that the log holds, and the next opening reads no event', async () => {
    const store = checkpointStore(memoryStore())
    const first = await open(store)
    await first.run('hello')
    await first.close()
    const log = await stored(store, 'session')
    expect(store.kept.get('session')?.seq).toBe(log.length)
    store.readFrom.length = 0
    const second = await open(store)
    expect(store.readFrom).toEqual([log.length])
    expect(second.session.messages()).toHaveLength(2)
    await second.close()
  })

  test('an opening that adds nothing keeps none', async () => {
    const store = checkpointStore(memoryStore())
    const first = await open(store)
    await first.run('hello')
    await first.close()
    const kept = store.kept.get('session')
    await (await open(store)).close()
    expect(store.kept.get('session')).toBe(kept)
    store.kept.clear()
    await (await open(store)).close()
    expect(store.kept.size).toBe(0)
  })

  test('and one that suspends an open turn keeps one that carries it on', async () => {
    const store = checkpointStore(memoryStore())
    const first = await open(store, { model: scripted([hangs()]) })
    first.followup('hello')
    await settle(20)
    await first.close({ graceMs: 0 })
    const log = await stored(store, 'session')
    expect(log.at(-1)?.type).toBe('session/suspended')
    expect(store.kept.get('session')?.seq).toBe(log.length)
    const second = await open(store, { model: scripted(['again']) })
    await second.whenIdle()
    expect((await stored(store, 'session')).at(-1)).toMatchObject({
      type: 'turn/end',
      data: { reason: { kind: 'completed' } },
    })
    await second.close()
  })

  test('one is kept each time that the log has grown by so many events, at rest and within a turn', async () => {
    const store = checkpointStore(memoryStore(), 50)
    const seqs: number[] = []
    const agent = await open(keeping(store, seqs), {
      model: scripted((_, n) => (n < 12 ? toolCall('look', { n }) : 'done')),
      tools: [look],
    })
    await agent.run('go')
    const inTurn = seqs.length
    expect(inTurn).toBeGreaterThan(1)
    for (const [i, seq] of seqs.entries()) expect(seq - (seqs[i - 1] ?? 0)).toBeGreaterThanOrEqual(50)
    await agent.close()
    expect(seqs.length).toBe(inTurn + 1)
  })

  test('a long conversation waits until the log has grown by a quarter of the bytes of the last one', async () => {
    const store = checkpointStore(memoryStore(), 1)
    const seqs: number[] = []
    const agent = await open(keeping(store, seqs))
    for (const said of ['x'.repeat(400_000), 'short', 'short']) await agent.run(said)
    const after = seqs.length
    for (let i = 0; i < 3; i++) await agent.run('short')
    expect(seqs.length).toBe(after)
    await agent.run('y'.repeat(200_000))
    expect(seqs.length).toBeGreaterThan(after)
    await agent.close()
  })

  test('a store that fails to keep it loses nothing and is not asked again for each event', async () => {
    let asked = 0
    const inner = checkpointStore(memoryStore(), 5)
    const store: LogStore = {
      ...inner,
      async acquire(id, options) {
        const owner = await inner.acquire(id, options)
        return { ...owner, keep: () => Promise.reject(new Error(`disk full ${++asked}`)) }
      },
    }
    const agent = await open(store)
    for (let i = 0; i < 5; i++) await agent.run('hello')
    await agent.close()
    expect(asked).toBeGreaterThan(2)
    const log = await stored(store, 'session')
    expect(asked).toBeLessThan(log.length / 5 + 2)
    expect(verify(log)).toMatchObject({ ok: true, turns: 5 })
  })

  test('one that the store never answers keeps no agent from closing', async () => {
    const inner = checkpointStore(memoryStore())
    let released = false
    const store: LogStore = {
      ...inner,
      async acquire(id, options) {
        const owner = await inner.acquire(id, options)
        const release = async (): Promise<void> => {
          released = true
        }
        return { ...owner, keep: () => new Promise(() => {}), release }
      },
    }
    const agent = await open(store, { storeTimeoutMs: 50 })
    await agent.run('hello')
    await agent.close()
    expect(released).toBe(true)
  })

  test('none is made of an agent that failed', async () => {
    const inner = checkpointStore(memoryStore(), 1)
    const seqs: number[] = []
    const store: LogStore = {
      ...inner,
      async acquire(id, options) {
        const owner = await keeping(inner, seqs).acquire(id, options)
        let failing = false
        return {
          ...owner,
          append: (events, request) => {
            failing ||= events.some(({ type }) => type === 'step/start')
            return failing ? Promise.reject(new Error('the disk is gone')) : owner.append(events, request)
          },
        }
      },
    }
    const fallbackDir = mkdtempSync(join(tmpdir(), 'pawl-unsaved-'))
    onTestFinished(() => rmSync(fallbackDir, { recursive: true }))
    const agent = await open(store, { fallbackDir })
    await expect(agent.run('hello')).rejects.toMatchObject({ code: 'STORE_FAILURE' })
    const before = seqs.length
    await agent.close().catch(() => {})
    expect(seqs.length).toBe(before)
    for (const seq of seqs) expect(seq).toBeLessThanOrEqual((await stored(store, 'session')).length)
  })
})

interface Line {
  maker: string
  holder: { state: object }
}

const look = tool({
  name: 'look',
  description: 'look',
  parameters: { type: 'object' },
  mode: 'parallel',
  onCrash: 'rerun',
  execute: () => 'seen',
})

const range = (n: number): readonly number[] => [...Array(n).keys()]

/** Beginning, end, and some between. */
const someCuts = (length: number): readonly number[] => [
  ...new Set(
    [1, 2, 5, Math.floor(length / 3), Math.floor(length / 2), length - 3, length - 1, length].filter((n) => n > 0),
  ),
]

async function storeOf(events: readonly SessionEvent[], header: SessionHeader = HEADER): Promise<LogStore> {
  const store = memoryStore()
  const owner = await store.acquire(header.id, { create: header })
  await owner.append(events, { expectedSeq: 0 })
  await owner.release()
  return store
}

function withCheckpoint(inner: LogStore, checkpoint: () => Promise<Checkpoint | undefined>): LogStore {
  const { pages: _, ...store } = inner
  return { ...store, acquire: async (id, options) => ({ ...(await inner.acquire(id, options)), checkpoint }) }
}

/** Notes the seq of each checkpoint that is kept. */
const keeping = (inner: LogStore, seqs: number[]): LogStore => ({
  ...inner,
  async acquire(id, options) {
    const owner = await inner.acquire(id, options)
    return {
      ...owner,
      async keep(checkpoint) {
        seqs.push(checkpoint.seq)
        await owner.keep?.(checkpoint)
      },
    }
  },
})

interface Life {
  /** From which seq on the log was read. */
  readonly from: number
  readonly log: readonly SessionEvent[]
  readonly requests: readonly unknown[]
}

/** Opens the log, with that checkpoint or without, and carries it on: what is open ends, and two more turns follow. */
async function goOn(
  events: readonly SessionEvent[],
  checkpoint: Checkpoint | undefined,
  more: Partial<Parameters<typeof createAgent>[0]> = {},
): Promise<Life> {
  return live(
    withCheckpoint(await storeOf(events), async () => checkpoint),
    events,
    more,
  )
}

async function live(
  inner: LogStore,
  events: readonly SessionEvent[],
  more: Partial<Parameters<typeof createAgent>[0]> = {},
): Promise<Life> {
  let from = -1
  const store: LogStore = {
    ...inner,
    read(id, options) {
      if (from < 0) from = options?.from ?? 0
      return inner.read(id, options)
    },
  }
  const clock = simulatedClock()
  clock.increment((events.at(-1)?.time ?? 0) + 1)
  const model = scripted((_, n) => text(`answer ${n}`))
  const agent = await createAgent({
    ...{ model, store, clock, sessionId: 'session', newId: countingIds('later'), random: () => 0.5 },
    ...{ recovery: 'interrupt', tools: [look], ...more },
  })
  await agent.whenQuiet()
  for (const { callId, run, argumentsDigest } of agent.approvals())
    await agent.deny(callId, { run, digest: argumentsDigest })
  await agent.run('one more')
  await agent.run('and another')
  await agent.close()
  return { from, log: await stored(store, 'session'), requests: model.requests }
}
