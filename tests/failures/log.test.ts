/**
 * Known failures of logs: torn and damaged records, numbers given twice, disks that are full, busy or not there, and
 * sessions that cannot be opened any more. Each test is what broke somebody's log, and what happens here.
 */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { connect } from '../../src/log/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { fold } from '../../src/machines/fold.ts'
import { verify } from '../../src/machines/verify.ts'
import { hangs, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, unhurriedHooks } from '../kit/agents.ts'
import * as k from '../kit/logs.ts'
import { expectPaired } from '../kit/pairing.ts'
import { chunks, collect, header, own } from '../kit/store-contract/fixtures.ts'
import { childProcess, told } from '../log/stores/sqlite-fixtures.ts'

vi.setConfig({ testTimeout: 60_000 })

const anything = { type: 'object' } as const
const look = tool({ name: 'look', description: 'Looks', parameters: anything, mode: 'parallel', execute: () => 'seen' })

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const newFile = (): string => join(newFolder(), 'pawl.db')

/** A store that is closed after the test. */
function storeOn(path: string): ReturnType<typeof sqliteStore> {
  const store = sqliteStore(path)
  onTestFinished(async () => store[Symbol.asyncDispose]())
  return store
}

/** A store whose session `s` holds these events. */
async function storeWith(
  events: readonly SessionEvent[],
  store: LogStore = memoryStore(),
  id = 's',
): Promise<LogStore> {
  const owner = await store.acquire(id, { create: header(id) })
  await owner.append(events, { expectedSeq: 0 })
  await owner.release()
  return store
}

describe('records that are torn or damaged', () => {
  test('[LOG-01] [LOG-03] a log cut at any byte of what was written last loses that batch and nothing before it', async () => {
    const path = newFile()
    const child = childProcess('append', path)
    await told(child, 8)
    await child.kill()
    const wal = readFileSync(`${path}-wal`)
    expect(wal.length).toBeGreaterThan(8_000)
    let shortest = Number.POSITIVE_INFINITY
    let seen = 0
    for (let i = 0; i <= 16; i++) {
      const copy = newFile()
      copyFileSync(path, copy)
      copyFileSync(`${path}-wal`, `${copy}-wal`)
      truncateSync(`${copy}-wal`, Math.floor((wal.length * i) / 16))
      await using store = sqliteStore(copy)
      // So short that not even the session had been made.
      if ((await store.header('s').catch(() => undefined)) === undefined) continue
      seen += 1
      const events = await collect(store.read('s'))
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, seq) => seq))
      // Whole batches only: the last event is the last of its batch.
      const last = events.at(-1)?.data as { size: number; i: number } | undefined
      if (last !== undefined) expect(last.i).toBe(last.size - 1)
      shortest = Math.min(shortest, events.length)
      const owner = await own(store)
      expect(owner.head).toBe(events.length)
    }
    expect(seen).toBeGreaterThan(4)
    expect(shortest).toBeLessThan(20)
  })

  test('[LOG-04] what a tool says with line ends, separators and control characters is one event, read back as it was', async () => {
    const words = 'one\ntwo\r\nthree\rfour\u2028five\u2029six\u0085seven\u0000eight\u001b[2Jnine𝒳\ud800'
    const says = tool({ name: 'says', description: 'Says', parameters: anything, execute: () => words })
    const store = storeOn(newFile())
    await using started = await startAgent({ store, tools: [says], model: scripted([toolCall('says', {}), words]) })
    await started.agent.run(words)
    const log = await started.log()
    const [result] = ofType(log, 'tool/result')
    expect(result?.data.message.content[0].content).toEqual([{ type: 'text', text: words }])
    for (const event of log) expect(JSON.stringify(event)).not.toMatch(/[\n\r]/)
    expect(log.map((event) => JSON.parse(JSON.stringify(event)))).toEqual(log)
  })

  test('[LOG-05] [LOG-13] damage in the middle is loud for whoever would go on from it; what lies before it can be read and carried over', async () => {
    const path = newFile()
    const good = k.logOf(k.textTurn('m1', 1), k.textTurn('m2', 2), k.textTurn('m3', 3))
    {
      await using store = sqliteStore(path)
      const owner = await store.acquire('s', { create: header('s') })
      for (let at = 0; at < good.length; at += 6) await owner.append(good.slice(at, at + 6), { expectedSeq: at })
    }
    damage(path, `UPDATE log SET body = CAST('[{"seq":12}]' AS BLOB) WHERE first_seq = 12`)
    const store = storeOn(path)
    const opening = createAgent({ store, sessionId: 's', model: scripted([]) })
    await expect(opening).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'damaged' })
    const read: SessionEvent[] = []
    const reading = (async () => {
      for await (const event of store.read('s')) read.push(event)
    })()
    await expect(reading).rejects.toMatchObject({ reason: 'damaged', message: expect.stringContaining('12') })
    expect(read).toEqual(good.slice(0, 12))
    // The way out: the last whole turn of what can be read, as a session of its own.
    const whole = read.findLastIndex(({ type }) => type === 'turn/end') + 1
    await storeWith(read.slice(0, whole), store, 'saved')
    const model = scripted(['on we go'])
    await using saved = await startAgent({ store, sessionId: 'saved', model })
    expect((await saved.agent.run('and?')).text).toBe('on we go')
    expectPaired(model.requests[0]?.messages ?? [])
  })

  test('[LOG-06] a session that is damaged keeps no other from being opened, listed or begun, and can be removed unread', async () => {
    const path = newFile()
    {
      await using store = sqliteStore(path)
      await storeWith(k.logOf(k.textTurn()), store, 'bad')
      await storeWith(k.logOf(k.textTurn()), store, 'fine')
    }
    damage(
      path,
      `UPDATE log SET body = CAST('no json' AS BLOB) WHERE session = (SELECT id FROM sessions WHERE name = 'bad')`,
    )
    const store = storeOn(path)
    await expect(createAgent({ store, sessionId: 'bad', model: scripted([]) })).rejects.toMatchObject({
      reason: 'damaged',
    })
    expect((await collect(store.list())).map(({ id, owned }) => [id, owned])).toEqual([
      ['bad', false],
      ['fine', false],
    ])
    await using fine = await startAgent({ store, sessionId: 'fine' })
    await fine.agent.run('hi')
    const kept = join(newFolder(), 'kept.db')
    await store.backup(kept)
    expect(existsSync(kept)).toBe(true)
    await store.delete('bad')
    await using anew = await startAgent({ store, sessionId: 'bad' })
    expect((await anew.agent.run('hi')).reason).toEqual({ kind: 'completed' })
  })

  /** Changes the file of a store that nobody has open. */
  function damage(path: string, sql: string): void {
    const connection = connect(path)
    try {
      connection.exec(sql)
    } finally {
      connection.close()
    }
  }
})

describe('a store that fails', () => {
  /** A store that answers `after` more appends, and then with an error for ever. */
  function failing(inner: LogStore, holds: (events: readonly SessionEvent[]) => boolean): LogStore {
    let broken = false
    return {
      ...inner,
      async acquire(...given) {
        const owner = await inner.acquire(...given)
        const append: typeof owner.append = async (events, options) => {
          broken ||= holds(events)
          if (broken) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
          return owner.append(events, options)
        }
        return { ...owner, append }
      },
    }
  }
  const has = (type: SessionEvent['type']) => (events: readonly SessionEvent[]) =>
    events.some((event) => event.type === type)

  /** How often the model was asked and the body ran by then, and the body once it was opened again. */
  test.each([
    // The answer shares the append with what follows from it, so it is lost as well, and the next opening asks anew.
    { type: 'tool/dispatch', pace: 'at once', hooks: {}, asked: 1, ran: 0, once: 0 },
    // After a policy that took its time the call is in the log, and is carried on.
    { type: 'tool/dispatch', pace: 'unhurried', hooks: unhurriedHooks, asked: 1, ran: 0, once: 1 },
    { type: 'request/header', pace: 'at once', hooks: {}, asked: 0, ran: 0, once: 0 },
    { type: 'tool/result', pace: 'at once', hooks: {}, asked: 1, ran: 1, once: 1 },
  ] as const)(
    '[LOG-07] at $type, $pace, does nothing in the world beyond the last durable fact, and says so to whoever waits',
    async ({ type, hooks, asked, ran, once }) => {
      const inner = memoryStore()
      const bodies: string[] = []
      const work = tool({
        name: 'work',
        description: 'Works',
        parameters: anything,
        execute: () => void bodies.push('ran'),
      })
      const model = scripted([toolCall('work', {}), 'never asked'])
      const statuses: string[] = []
      const { agent } = await startAgent({ store: failing(inner, has(type)), tools: [work], model, hooks })
      agent.on('agent/status', (status) => statuses.push(status))
      const told = agent.session.events({ live: true })
      const reading = expect(collect(told)).rejects.toMatchObject({ code: 'STORE_FAILURE' })
      await expect(agent.run('go')).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'io' })
      await settle()
      await reading
      expect([model.requests.length, bodies.length]).toEqual([asked, ran])
      expect(agent.status).toBe('failed')
      expect(statuses.at(-1)).toBe('failed')
      expect(() => agent.followup('more')).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED' }))
      await expect(agent.whenIdle()).rejects.toMatchObject({ code: 'STORE_FAILURE' })
      await agent.close().catch(() => {})
      // Opened again it goes on from what is there, and runs nothing twice.
      await using again = await startAgent({
        store: inner,
        steal: true,
        tools: [work],
        model: scripted(() => 'carried on'),
      })
      await again.agent.whenIdle()
      expect(bodies).toHaveLength(once)
      expectPaired(again.agent.session.messages())
    },
  )

  test('[LOG-15] a store that is opened by many at once opens for all of them, and keeps no reader waiting', async () => {
    const path = newFile()
    const stores = [storeOn(path), storeOn(path), storeOn(path)]
    const open = (n: number) =>
      createAgent({ store: stores[n % 3] ?? memoryStore(), sessionId: `s${n}`, model: scripted(['ok']) })
    const agents = await Promise.all(Array.from({ length: 28 }, (_, n) => open(n)))
    const ends = await Promise.all(agents.map((agent) => agent.run('go')))
    expect(new Set(ends.map(({ reason }) => reason.kind))).toEqual(new Set(['completed']))
    await Promise.all(agents.map((agent) => agent.close()))
    const [store] = stores
    expect((await collect((store ?? memoryStore()).list())).filter(({ state }) => state === 'idle')).toHaveLength(28)
  })

  test('[LOG-16] removing a large session holds up nobody who writes', async () => {
    const store = storeOn(newFile())
    const large = await store.acquire('large', { create: header('large') })
    for (let seq = 0; seq < 40_000; seq += 1_000) {
      await large.append(chunks(seq, 1_000, 'x'.repeat(1_000)), { expectedSeq: seq })
    }
    await large.release()
    const other = await store.acquire('other', { create: header('other') })
    const removed = store.delete('large')
    let slowest = 0
    let seq = 0
    let over = false
    void removed.then(() => {
      over = true
    })
    do {
      const from = performance.now()
      await other.append(chunks(seq, 1), { expectedSeq: seq })
      seq += 1
      slowest = Math.max(slowest, performance.now() - from)
    } while (!over)
    await removed
    expect(slowest).toBeLessThan(2_000)
  })
})

describe('numbers', () => {
  test('[LOG-09] [LOG-21] a process that opens a session by its name goes on counting where the last one stopped', async () => {
    const path = newFile()
    for (let process = 0; process < 3; process++) {
      await using store = sqliteStore(path)
      await using started = await startAgent({ store })
      await started.agent.run(`hello ${process}`)
    }
    await using store = sqliteStore(path)
    const log = await stored(store, 'session')
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq))
    expect(ofType(log, 'turn/end').map(({ data }) => data.turn)).toEqual([1, 2, 3])
    // Opening what is not there without saying so is an error, not a new session.
    await expect(store.acquire('elsewhere')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' })
    await using first = await startAgent({ store })
    await expect(createAgent({ store, sessionId: 'session', model: scripted([]) })).rejects.toMatchObject({
      code: 'SESSION_BUSY',
    })
    await first.agent.close()
  })

  test('[LOG-10] a hundred that record in the same tick get numbers in the order in which they lie', async () => {
    const store = storeOn(newFile())
    await using started = await startAgent({ store })
    const { agent } = started
    const receipts = Array.from({ length: 50 }, (_, n) => agent.inject(`m${n}`))
    const notes = Array.from({ length: 50 }, (_, n) => agent.session.note('acme/note', { n }))
    const seqs = await Promise.all(receipts.map(async ({ accepted }) => (await accepted).seq))
    const log = await started.log()
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq))
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
    for (const { seq, data } of notes) expect(log[seq]).toMatchObject({ type: 'acme/note', data })
  })

  test('[LOG-11] killed in a turn, and again in each of its recoveries, a log only grows and is answered once', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const work = tool({
      name: 'work',
      description: 'Works',
      parameters: anything,
      execute: (_, { callId, run }) => {
        witness.push(`${callId} ${run}`)
        return new Promise(() => {})
      },
    })
    const dead = await startAgent({ store, tools: [work], model: scripted([toolCall('work', {}, { id: 'c1' })]) })
    dead.agent.followup('go')
    await settle()
    await dead.agent.session.flush()
    let before = await stored(store, 'session')
    for (let rounds = 1; rounds <= 3; rounds++) {
      const again = await startAgent({
        store,
        steal: true,
        maxResumes: 9,
        tools: [work],
        model: scripted(() => hangs()),
      })
      await settle(rounds)
      await again.agent.session.flush()
      const after = await stored(store, 'session')
      expect(after.slice(0, before.length)).toEqual(before)
      before = after
    }
    await using last = await startAgent({ store, steal: true, maxResumes: 9, tools: [work], model: scripted(['done']) })
    await last.agent.whenIdle()
    const log = await last.log()
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq))
    expect(ofType(log, 'tool/result')).toHaveLength(1)
    expect(witness).toEqual(['c1 1'])
  })

  test('[LOG-12] of two writers one writes: what the other numbered is refused and nowhere in the log', async () => {
    const path = newFile()
    const [here, there] = [storeOn(path), storeOn(path)]
    const first = await startAgent({ store: here, model: scripted([[text('from the first'), hangs()]]) })
    first.agent.followup('one')
    await settle()
    await first.agent.session.flush()
    await using second = await startAgent({ store: there, steal: true, model: scripted(() => 'from the second') })
    const late = (async () => {
      const receipt = first.agent.inject('too late')
      await receipt.accepted
    })()
    await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/FENCED|AGENT_CLOSED/) })
    await second.agent.whenIdle()
    await second.agent.run('two')
    const log = await second.log()
    expect(JSON.stringify(log)).not.toContain('too late')
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq))
    expect(first.agent.status).toBe('failed')
    await first.agent.close().catch(() => {})
  })

  test('[LOG-25] a fork has a head of its own: what is said in it moves it, and not its parent', async () => {
    const store = memoryStore()
    await using parent = await startAgent({ store })
    await parent.agent.run('one')
    const at = (await parent.log()).length
    await parent.agent.run('two')
    const before = await parent.log()
    const { sessionId } = await parent.agent.fork({ at })
    await using child = await startAgent({ store, sessionId })
    for (let turn = 2; turn <= 3; turn++) {
      const head = child.agent.session.head
      expect((await child.agent.run(`child ${turn}`)).turn).toBe(turn)
      expect(child.agent.session.head).toBeGreaterThan(head)
    }
    expect(await parent.log()).toEqual(before)
    const texts = JSON.stringify(child.agent.session.messages())
    expect(texts).toContain('child 3')
    expect(texts).not.toContain('two')
  })
})

describe('what is written', () => {
  const bytesOf = (log: readonly SessionEvent[]): number => JSON.stringify(log).length

  test('[LOG-19] a log grows with what is said, and not with what was said before', async () => {
    const grown: number[] = []
    await using started = await startAgent({
      model: scripted((_, n) => (n % 2 === 0 ? toolCall('look', { n }) : 'ok')),
      tools: [look],
    })
    for (let turn = 0; turn < 60; turn++) {
      await started.agent.run('the same words each time')
      if (turn % 20 === 19) grown.push(bytesOf(await started.log()))
    }
    const [first = 0, second = 0, third = 0] = grown
    expect((third - second) / (second - first)).toBeLessThan(1.2)
    expect(second / first).toBeLessThan(2.3)
  })

  test('[LOG-20] large results of one batch are kept each in its event; one too large keeps its beginning and its end', async () => {
    const store = storeOn(newFile())
    const large = tool({
      name: 'large',
      description: 'Gives much',
      parameters: anything,
      mode: 'parallel',
      execute: (args) => `<${'é'.repeat(Number((args as { n: number }).n))}>`,
    })
    const sizes = [250_000, 250_000, 250_000, 250_000, 2_000_000]
    const model = scripted([sizes.map((n, i) => toolCall('large', { n }, { id: `c${i}` })), 'ok'])
    await using started = await startAgent({ store, tools: [large], model })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const results = ofType(await started.log(), 'tool/result')
    const byCall = new Map(results.map(({ data }) => [data.message.source.callId, data]))
    for (const id of ['c0', 'c1', 'c2', 'c3']) expect(byCall.get(id)?.error).toBeUndefined()
    const cut = byCall.get('c4')
    expect(cut?.error?.code).toBe('RESULT_TOO_LARGE')
    const words = JSON.stringify(cut?.message.content)
    expect(words).toContain('<éé')
    expect(words).toContain('éé>')
    expectPaired(model.requests[1]?.messages ?? [])
  })

  test.each<[string, unknown, string]>([
    ['undefined', { a: { b: undefined } }, '$.a.b'],
    ['NaN', { a: [1, Number.NaN] }, '$.a[1]'],
    ['a date', { at: new Date(0) }, '$.at'],
    ['a map', { m: new Map() }, '$.m'],
    ['a bigint', { n: 1n }, '$.n'],
    ['an instance', { i: new (class Point {})() }, '$.i'],
    ['a hole', { a: new Array(1) }, '$.a'],
    ['minus zero', { z: -0 }, '$.z'],
  ])('[LOG-22] %s is refused where it is handed over, with its place', async (_, data, path) => {
    await using started = await startAgent({})
    const { head } = started.agent.session
    expect(() => started.agent.session.note('acme/note', data)).toThrow(
      expect.objectContaining({ code: 'NOT_JSON', path: expect.stringContaining(path.slice(1)) }),
    )
    expect(started.agent.session.head).toBe(head)
  })

  test('[LOG-22] a cycle is refused too, from a tool as the result of its call', async () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    const odd = tool({ name: 'odd', description: 'Odd', parameters: anything, execute: () => cycle })
    await using started = await startAgent({ tools: [odd], model: scripted([toolCall('odd', {}), 'ok']) })
    expect(() => started.agent.session.note('acme/note', cycle)).toThrow(expect.objectContaining({ code: 'NOT_JSON' }))
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    expect(ofType(await started.log(), 'tool/result')[0]?.data.error?.code).toBe('INVALID_TOOL_OUTPUT')
  })

  test('[LOG-24] folding asks neither the time nor chance, and a log that could not be one is found', () => {
    const log = k.logOf(k.toolTurn(), k.textTurn('m2', 2))
    const before = JSON.stringify(fold(log))
    const never = (): never => {
      throw new Error('a fold asked')
    }
    vi.spyOn(Date, 'now').mockImplementation(never)
    vi.spyOn(Math, 'random').mockImplementation(never)
    onTestFinished(() => void vi.restoreAllMocks())
    expect(JSON.stringify(fold(log))).toBe(before)
    // A log that another chart wrote, or a hand: the event that cannot happen is named.
    const end = log.findIndex(({ type }) => type === 'turn/end')
    const diverged = [...log.slice(0, end), ...log.slice(end + 1)].map(
      (event, seq) => ({ ...event, seq }) as SessionEvent,
    )
    const verdict = verify(diverged)
    expect(verdict.ok ? [] : verdict.violations.map(({ rule }) => rule)).toContain('CHART')
  })

  test('[LOG-23] fields that a later version adds are kept through reading, opening and going on', async () => {
    const later = { later: { field: [1] } }
    const withField = (drafts: readonly k.Drafts[]): readonly k.Drafts[] =>
      drafts.map((draft) => {
        if (!('type' in draft)) return withField(draft)
        const extended = draft.type === 'user/message' || draft.type === 'turn/end'
        return extended ? ({ ...draft, data: { ...(draft.data as object), ...later } } as k.Draft) : draft
      })
    const store = await storeWith(k.logOf(...withField(k.textTurn())))
    const model = scripted(() => 'ok')
    await using started = await startAgent({ store, sessionId: 's', model })
    await started.agent.run('and on')
    const log = await started.log()
    expect(ofType(log, 'user/message')[0]?.data).toMatchObject(later)
    expect(ofType(log, 'turn/end')[0]?.data).toMatchObject(later)
    expect(model.requests[0]?.messages[0]).toMatchObject(later)
  })
})
