/** What the log takes, what it refuses, and who is told. */
import { describe, expect, test, vi } from 'vitest'
import { summaryOf } from '../../src/agent/status.ts'
import { createAgent } from '../../src/agent.ts'
import { InvalidEvent, InvalidLog, LogTooNew, NotJson } from '../../src/log/errors.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fold } from '../../src/machines/fold.ts'
import { verify } from '../../src/machines/verify.ts'
import { fails, finish, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent } from '../kit/agents.ts'
import * as k from '../kit/logs.ts'

const echo = tool({ name: 'echo', description: 'Echoes', parameters: { type: 'object' }, execute: (args) => args })

const isDeepFrozen = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeepFrozen))

describe('an event', () => {
  test('[log-001] has the seq that is its place, from 0, whoever recorded it', async () => {
    const model = scripted([toolCall('echo', { a: 1 }), 'done', fails('AUTH')])
    await using started = await startAgent({ model, tools: [echo] })
    await started.agent.run('go')
    started.agent.session.note('me/note', 1)
    started.agent.inject('later')
    await started.agent.run('again')
    const log = await started.log()
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index))
    expect(log.length).toBeGreaterThan(20)
    expect(started.agent.session.head).toBe(log.length)
  })

  test('[log-002] is a frozen copy: what is done to the given value afterwards changes nothing', async () => {
    await using started = await startAgent()
    const { session } = started.agent
    const data = { list: [{ deep: 1 }] }
    const noted = session.note('me/note', data)
    const message = { id: 'm1', role: 'user', content: [{ type: 'text', text: 'as given' }], source: { kind: 'user' } }
    started.agent.inject(message as Parameters<typeof started.agent.inject>[0])
    data.list[0] = { deep: 2 }
    data.list.push({ deep: 3 })
    message.content.push({ type: 'text', text: 'and more' })
    message.source.kind = 'plugin'
    const [note, splice] = await started.log()
    expect(note?.data).toEqual({ list: [{ deep: 1 }] })
    expect(ofType([splice as SessionEvent], 'agent/inbox/spliced')[0]?.data.inserted).toEqual([
      {
        kind: 'message',
        message: { id: 'm1', role: 'user', content: [{ type: 'text', text: 'as given' }], source: { kind: 'user' } },
      },
    ])
    expect([noted, note, splice].map(isDeepFrozen)).toEqual([true, true, true])
    expect(() => Object.assign(noted.data, { list: [] })).toThrow(TypeError)
  })

  const cycle: Record<string, unknown> = {}
  cycle.self = cycle

  test.each<[string, unknown]>([
    ['an undefined property', { a: undefined }],
    ['undefined', undefined],
    ['a bigint', { a: 1n }],
    ['a function', { a: () => 1 }],
    ['a symbol', { a: Symbol('s') }],
    ['a symbol for a key', { [Symbol('s')]: 1 }],
    ['NaN', { a: Number.NaN }],
    ['an infinity', { a: [Number.POSITIVE_INFINITY] }],
    ['negative zero', { a: -0 }],
    ['a date', { a: new Date(0) }],
    ['a map', { a: new Map() }],
    ['an instance of a class', { a: new (class Thing {})() }],
    ['a sparse array', { a: new Array(2) }],
    ['a cycle', cycle],
  ])('[log-003] with %s is refused, and nothing is recorded', async (_, data) => {
    await using started = await startAgent()
    expect(() => started.agent.session.note('me/note', data)).toThrow(NotJson)
    expect(await started.log()).toEqual([])
    expect(started.agent.session.note('me/note', null).seq).toBe(0)
  })

  test('[log-005] is read once: of a value that changes at every look the first is kept', async () => {
    await using started = await startAgent()
    let looks = 0
    const data = {
      get count() {
        looks += 1
        return looks
      },
    }
    started.agent.session.note('me/note', data)
    expect(looks).toBe(1)
    expect((await started.log())[0]?.data).toEqual({ count: 1 })
  })

  test('[log-006] may have data under the key __proto__, which stays data', async () => {
    await using started = await startAgent()
    const data: unknown = JSON.parse('{"__proto__":{"polluted":true},"a":1}')
    started.agent.session.note('me/note', data)
    const [event] = await started.log()
    expect(Object.keys(event?.data ?? {})).toEqual(['__proto__', 'a'])
    expect(Object.getPrototypeOf(event?.data)).toBe(Object.prototype)
    expect(JSON.stringify(event?.data)).toBe('{"__proto__":{"polluted":true},"a":1}')
  })

  test('[log-008] that would break the conversation changes neither it nor the log, and nobody is told', async () => {
    await using started = await startAgent()
    await started.agent.run('go')
    const { session } = started.agent
    const before = { log: await started.log(), messages: session.messages() }
    const told: SessionEvent[] = []
    started.agent.on('session/event', (event) => told.push(event))
    const [start, end] = [before.log.length + 3, before.log.length + 4]
    expect(() => session.replace({ start, end, message: 'a summary' })).toThrow(InvalidEvent)
    expect(await started.log()).toEqual(before.log)
    expect(session.messages()).toBe(before.messages)
    expect(told).toEqual([])
    expect(session.note('me/note', null).seq).toBe(before.log.length)
  })

  test('[log-017] that ends a turn for want of tokens says so again when it is read back', async () => {
    const store = memoryStore()
    const model = scripted([[text('so far'), finish({ kind: 'max-tokens' })]])
    let before: readonly SessionEvent[]
    {
      await using started = await startAgent({ store, model })
      await started.agent.run('go')
      before = await started.log()
    }
    await using reopened = await startAgent({ store })
    const after = await reopened.log()
    expect(after).toEqual(before)
    expect(after.at(-1)?.data).toEqual({ turn: 1, reason: { kind: 'max-tokens' } })
    expect(fold(after).context).toEqual(reopened.agent.actor.getSnapshot().context)
    for await (const { lastReason } of store.list()) expect(lastReason).toBe('max-tokens')
  })
})

describe('observers', () => {
  test('[log-009] are told in order, once it is in the log, whatever another of them throws', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    await using started = await startAgent()
    const { session } = started.agent
    const seen: string[] = []
    started.agent.on('session/event', () => {
      throw new Error('not my day')
    })
    started.agent.on('session/event', (event) => {
      if (event.type !== 'user/message') return
      const stands = session.messages().some(({ id }) => id === event.data.id)
      seen.push(
        `${event.seq}: ${stands ? 'stands' : 'missing'}, ${session.head > event.seq ? 'durable' : 'not durable'}`,
      )
    })
    const { reason } = await started.agent.run('go')
    warn.mockRestore()
    const log = await started.log()
    const seq = ofType(log, 'user/message')[0]?.seq ?? 0
    expect(reason).toEqual({ kind: 'completed' })
    // It stands in the conversation at once; durable it is later, and the head says so.
    expect(seen).toEqual([`${seq}: stands, not durable`])
  })

  test('[log-015] of a session opened again are told of what is new, and of nothing else', async () => {
    const store = memoryStore()
    {
      await using started = await startAgent({ store })
      await started.agent.run('go')
    }
    const told: SessionEvent[] = []
    await using reopened = await startAgent({ store, hooks: { 'session/event': (event) => told.push(event) } })
    await settle()
    expect(told).toEqual([])
    const inherited = (await reopened.log()).length
    await reopened.agent.run('again')
    const log = await reopened.log()
    expect(inherited).toBeGreaterThan(5)
    expect(told).toEqual(log.slice(inherited))
  })

  test('and what a list shows is the state that the stored log leaves, after each append, also of their commands', async () => {
    const memory = memoryStore()
    const appended: (readonly [SessionEvent[], object])[] = []
    const log: SessionEvent[] = []
    const store: LogStore = {
      ...memory,
      async acquire(id, options) {
        const ownership = await memory.acquire(id, options)
        return {
          ...ownership,
          async append(events, request) {
            await ownership.append(events, request)
            log.push(...events)
            for await (const { state, waitingFor, owed, lastReason } of memory.list()) {
              appended.push([log.slice(), { state, waitingFor, owed, lastReason }])
            }
          },
        }
      },
    }
    await using started = await startAgent({ store, model: scripted([fails('SERVER')]), clock: simulatedClock() })
    const turn = started.agent.run('go')
    await started.agent.whenQuiet()
    started.agent.on('session/event', ({ type }) => {
      if ((type as string) === 'me/note') void started.agent.cancel()
    })
    started.agent.session.note('me/note', null)
    await turn
    expect(new Set(appended.map(([, summary]) => (summary as { state: string }).state))).toContain('waiting')
    for (const [stored, summary] of appended) {
      const { state, waitingFor, owed } = summaryOf(fold(stored))
      const lastReason = ofType(stored, 'turn/end').at(-1)?.data.reason.kind
      expect(summary).toEqual({ state, waitingFor, owed, lastReason })
    }
    // What the observer's command brought about shares an append with what it was told of: nobody waited in between.
    expect(appended.at(-1)?.[1]).toMatchObject({ state: 'idle', lastReason: 'aborted' })
  })
})

// Replaced: the log is not held in memory; what is handed out is the conversation, and events one by one.
test('[log-011] what was read stays as it was, frozen; reading again shows what came since', async () => {
  await using started = await startAgent()
  const { session } = started.agent
  await started.agent.run('go')
  const held = session.messages()
  const events = await started.log()
  expect(Object.isFrozen(held)).toBe(true)
  expect(isDeepFrozen(events[0])).toBe(true)
  await started.agent.run('again')
  expect(held).toHaveLength(2)
  expect(session.messages()).toHaveLength(4)
  expect((await started.log()).slice(0, events.length)).toEqual(events)
  expect((await started.log()).length).toBeGreaterThan(events.length)
})

describe('a stored log that is not one', () => {
  const good = k.logOf(k.textTurn())
  /** The log with one event changed: the stored form, as a careless hand may have left it. */
  const withEvent = (type: string, change: (event: SessionEvent) => unknown): readonly unknown[] => {
    const at = good.findIndex((event) => event.type === type)
    return good.map((event, index) => (index === at ? change(event) : event))
  }
  const withData = (type: string, change: object): readonly unknown[] =>
    withEvent(type, (event) => ({ ...event, data: { ...event.data, ...change } }))

  const answer = ofType(good, 'assistant/message')[0]?.data.message
  const result = (change: object) => {
    const event = k.logOf(k.toolCall('c1'), k.result('c1'))[1] as SessionEvent & { data: { message: object } }
    return withEvent('assistant/message', ({ seq, time }) => ({
      ...event,
      seq,
      time,
      data: { ...event.data, message: { ...event.data.message, ...change } },
    }))
  }
  const block = { type: 'tool-result', toolCallId: 'c1', content: [] }

  const refused: readonly (readonly [string, string, readonly unknown[], string])[] = [
    ['log-012', 'a gap', good.filter(({ seq }) => seq !== 3), 'SEQ-CONTIGUOUS'],
    ['log-012', 'a seq twice', [...good.slice(0, 3), ...good.slice(2)], 'SEQ-CONTIGUOUS'],
    ['log-012', 'data that is no JSON', withData('turn/start', { extra: Number.NaN }), 'DATA'],
    ['log-012', 'an unknown key', withEvent('turn/start', (event) => ({ ...event, extra: 1 })), 'ENVELOPE'],
    ['log-012', 'ignorable: false', withEvent('turn/start', (event) => ({ ...event, ignorable: false })), 'ENVELOPE'],
    ['log-012', 'a time in words', withEvent('turn/start', (event) => ({ ...event, time: 'noon' })), 'ENVELOPE'],
    [
      'log-013',
      'an answer of nobody',
      withData('assistant/message', { message: { ...answer, source: { kind: 'user' } } }),
      'DATA',
    ],
    ['log-013', 'a result of two blocks', result({ content: [block, block] }), 'DATA'],
    ['log-013', 'a result of another call', result({ content: [{ ...block, toolCallId: 'c2' }] }), 'DATA'],
    ['log-013', 'a message without an id', withData('user/message', { id: undefined }), 'DATA'],
  ]

  const storeOf = (events: readonly unknown[]): LogStore => ({
    ...memoryStore(),
    async *read() {
      yield* events as readonly SessionEvent[]
    },
  })
  const open = (store: LogStore) => createAgent({ model: scripted([]), store, sessionId: 's' })

  test.each(refused)('[%s] for %s is not opened, and is left to others', async (_, __, events, rule) => {
    const store = storeOf(events)
    const opening = open(store)
    await expect(opening).rejects.toThrow(InvalidLog)
    await expect(opening).rejects.toMatchObject({ rule })
    const verdict = verify(events as readonly SessionEvent[])
    expect(verdict.ok ? [] : verdict.violations.map((violation) => violation.rule)).toContain(rule)
    const next = await store.acquire('s')
    expect(next.head).toBe(0)
    await next.release()
  })

  test('the same log is opened when nothing is wrong with it, as far as the store agrees that it is all there', async () => {
    await expect(open(storeOf(good))).rejects.toMatchObject({ rule: 'HEAD' })
    expect(verify(good)).toMatchObject({ ok: true })
  })

  test('an event of a later version is not guessed at', async () => {
    const store = storeOf(withEvent('turn/start', (event) => ({ ...event, type: 'turn/paused' })))
    await expect(open(store)).rejects.toThrow(LogTooNew)
  })
})
