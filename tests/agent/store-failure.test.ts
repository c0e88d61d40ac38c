/** A store that fails under an agent: nothing more is done, nothing that was acknowledged is lost, and the rest waits. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Agent, AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { verify } from '../../src/machines/verify.ts'
import { scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, typesOf, unhurriedHooks } from '../kit/agents.ts'
import { faultyStore } from '../kit/faulty-store.ts'
import { newFile, storeOn } from '../log/stores/sqlite-fixtures.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-unsaved-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What the process was warned of, and what it said on stderr, instead of doing so. */
function listen(): { warnings: string[]; lines: string[] } {
  const heard = { warnings: [] as string[], lines: [] as string[] }
  const warned = vi
    .spyOn(process, 'emitWarning')
    .mockImplementation((warning) => void heard.warnings.push(`${warning}`))
  const said = vi.spyOn(console, 'error').mockImplementation((line) => void heard.lines.push(`${line}`))
  onTestFinished(() => {
    warned.mockRestore()
    said.mockRestore()
  })
  return heard
}

/** One turn of two requests and a tool; each effect is noted, and is held to its record being stored before it. */
function work(store: LogStore) {
  const effects: string[] = []
  const unrecorded: string[] = []
  const has = async (type: string): Promise<boolean> =>
    (await stored(store, 'session')).some((event) => event.type === type)
  const ask = scripted((_, n) => (n === 0 ? [text('I look.'), toolCall('look', {}, { id: 'c1' })] : 'Done.'))
  const model: AgentOptions['model'] = {
    ...ask,
    stream(request, options) {
      effects.push('asked')
      return ask.stream(request, options)
    },
  }
  const look = tool({
    name: 'look',
    description: 'Looks',
    parameters: { type: 'object' },
    onCrash: 'rerun',
    async execute() {
      effects.push('looked')
      if (!(await has('tool/dispatch'))) unrecorded.push('looked')
      return 'seen'
    },
  })
  return { effects, unrecorded, options: { model, tools: [look] } }
}

async function failed(agent: Agent): Promise<void> {
  for (let turns = 0; agent.status !== 'failed'; turns++) {
    if (turns > 2_000) throw new Error('the agent did not fail')
    await settle(1)
  }
}

describe('[containment-005] [containment-006] [containment-007] [containment-008] an append that fails, whichever it is', () => {
  // What a turn records at once is one append, so it is lost as a whole; unhurried, each of its batches is lost by itself.
  const paces = [
    { pace: 'at once', hooks: {}, appends: 4 },
    { pace: 'unhurried', hooks: unhurriedHooks, appends: 8 },
  ]
  const cases = paces.flatMap((pace) => Array.from({ length: pace.appends + 4 }, (_, skip) => ({ ...pace, skip })))
  test.each(cases)('$pace, append $skip', async ({ hooks, appends, skip }) => {
    listen()
    const inner = memoryStore()
    const store = faultyStore(inner, { seed: skip })
    const fallbackDir = newFolder()
    const { effects, unrecorded, options } = work(inner)
    store.script('append', 'fail', skip)
    const { agent } = await startAgent({ ...options, hooks, store, fallbackDir })
    let effectsAtFailure: number | undefined
    agent.on('agent/status', (status) => {
      if (status === 'failed') effectsAtFailure = effects.length
    })
    const seen: SessionEvent[] = []
    agent.session.events$.subscribe({ next: (event) => void seen.push(event), error: () => {} })
    const receipt = agent.followup('go')
    const ended = await receipt.turn.then(
      () => 'ended',
      (error: unknown) => error,
    )
    if (ended === 'ended') {
      // Fewer appends than that: nothing failed.
      expect(skip).toBeGreaterThanOrEqual(appends)
      await agent.close()
      return
    }
    expect(ended).toMatchObject({ code: 'STORE_FAILURE', reason: 'io' })
    await failed(agent)
    await settle(20)
    expect(effects).toHaveLength(effectsAtFailure ?? -1)
    expect(unrecorded).toEqual([])
    expect(() => agent.followup('more')).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED', cause: ended }))
    expect(() => agent.wake()).toThrow(expect.objectContaining({ code: 'AGENT_CLOSED', cause: ended }))
    await expect(agent.cancel()).rejects.toMatchObject({ code: 'AGENT_CLOSED' })
    await expect(agent.whenIdle()).rejects.toBe(ended)
    await expect(agent.close()).rejects.toBe(ended)
    const acknowledged = await stored(inner, 'session')
    expect(acknowledged.slice(0, seen.length)).toEqual(seen)
    expect(readdirSync(fallbackDir)).toHaveLength(1)

    const again = await startAgent({ ...options, store: inner, fallbackDir })
    await again.agent.whenIdle()
    const log = await again.log()
    expect(readdirSync(fallbackDir)).toEqual([])
    expect(log.slice(0, acknowledged.length)).toEqual(acknowledged)
    expect(ofType(log, 'turn/end').map(({ data }) => data.reason.kind)).toEqual(['completed'])
    expect(ofType(log, 'user/message').filter(({ data }) => data.source.kind === 'user')).toHaveLength(1)
    await again[Symbol.asyncDispose]()
  })
})

/** An agent that failed in its turn and is closed, and where its tail is. */
async function failedTurn(options: { sessionId?: string } = {}) {
  const heard = listen()
  const inner = memoryStore()
  const store = faultyStore(inner, { seed: 1 })
  const fallbackDir = newFolder()
  const { agent } = await startAgent({ store, fallbackDir, ...options })
  await agent.run('first')
  store.script('append', 'fail')
  agent.followup('second')
  await failed(agent)
  await agent.close().catch(() => {})
  const [name = ''] = readdirSync(fallbackDir)
  const path = join(fallbackDir, name)
  const before = await stored(inner, options.sessionId ?? 'session')
  return { heard, inner, fallbackDir, path, before, tail: JSON.parse(readFileSync(path, 'utf8')) }
}

describe('the tail that was not stored', () => {
  test('is a file for its user alone that says what it continues, and the process is warned of it', async () => {
    const { heard, path, tail, before } = await failedTurn()
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(tail).toMatchObject({ format: 1, sessionId: 'session', epoch: 1, expectedSeq: before.length })
    expect(tail.events.map(({ type }: SessionEvent) => type).slice(0, 3)).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
    ])
    expect(heard.warnings).toEqual([expect.stringContaining(path)])
    expect(heard.lines).toEqual([])
  })

  test('is applied as it was recorded, seq and time, and then folded: its message is answered', async () => {
    const { inner, fallbackDir, before, tail } = await failedTurn()
    await using again = await startAgent({ store: inner, fallbackDir })
    await again.agent.whenIdle()
    const log = await again.log()
    expect(log.slice(0, before.length + tail.events.length)).toEqual([...before, ...tail.events])
    expect(log[before.length + tail.events.length]?.type).toBe('session/resumed')
    expect(ofType(log, 'turn/end').map(({ data }) => data.turn)).toEqual([1, 2])
    expect(readdirSync(fallbackDir)).toEqual([])
  })

  test('of a session with a hostile name stays in its folder, and is found again', async () => {
    const sessionId = '../../x/y\u0001.unsaved'
    const { inner, fallbackDir, path } = await failedTurn({ sessionId })
    expect(path.startsWith(join(fallbackDir, '______x_y__unsaved-'))).toBe(true)
    await using again = await startAgent({ store: inner, fallbackDir, sessionId })
    await again.agent.whenIdle()
    expect(readdirSync(fallbackDir)).toEqual([])
  })

  test('is set aside and reported when the log went on without it', async () => {
    const { heard, inner, fallbackDir, tail } = await failedTurn()
    const between = await startAgent({ store: inner })
    await between.agent.run('third')
    await between.agent.close()
    const before = await stored(inner, 'session')
    const errors: unknown[] = []
    const hooks = { 'agent/error': ({ error }: { error: unknown }) => void errors.push(error) }
    await using again = await startAgent({ store: inner, fallbackDir, hooks })
    expect(await again.log()).toEqual(before)
    const [aside = ''] = readdirSync(fallbackDir)
    expect(aside).toMatch(/\.set-aside\.json$/)
    expect(JSON.parse(readFileSync(join(fallbackDir, aside), 'utf8'))).toEqual(tail)
    expect(errors).toMatchObject([{ code: 'UNSAVED_SET_ASIDE' }])
    expect(heard.warnings.at(-1)).toContain(aside)
    await again.agent.close()
    // Once only.
    await using later = await startAgent({ store: inner, fallbackDir, hooks })
    expect([errors.length, later.agent.status]).toEqual([1, 'idle'])
  })

  test('goes in although its session was opened meanwhile, by an owner that wrote nothing', async () => {
    const { inner, fallbackDir } = await failedTurn()
    const between = await startAgent({ store: inner })
    await between.agent.close()
    await using again = await startAgent({ store: inner, fallbackDir })
    await again.agent.whenIdle()
    expect(ofType(await again.log(), 'turn/end')).toHaveLength(2)
  })

  test.each([
    ['no JSON', () => '{"format":1,'],
    ['of a later format', (tail: object) => JSON.stringify({ ...tail, format: 2 })],
    ['after another event', (tail: object) => JSON.stringify({ ...tail, after: 'sha256:00' })],
    ['after nothing', (tail: object) => JSON.stringify({ ...tail, expectedSeq: 0, after: null })],
    ['of an epoch yet to come', (tail: object) => JSON.stringify({ ...tail, epoch: 99 })],
    [
      'of events the chart cannot reach',
      ({ events, ...tail }: { events: SessionEvent[] }) => {
        const [first] = events
        const odd = { ...first, type: 'turn/end', data: { turn: 1, reason: { kind: 'completed' } } }
        return JSON.stringify({ ...tail, events: [odd] })
      },
    ],
    [
      'of events with a gap',
      ({ events, ...tail }: { events: SessionEvent[] }) => JSON.stringify({ ...tail, events: events.slice(1) }),
    ],
    ['of no events', (tail: object) => JSON.stringify({ ...tail, events: [null] })],
  ])('that is %s is set aside, and the log stays as it is', async (_, damage) => {
    const { inner, fallbackDir, path, tail, before } = await failedTurn()
    writeFileSync(path, damage(tail))
    await using again = await startAgent({ store: inner, fallbackDir })
    expect(await again.log()).toEqual(before)
    expect(readdirSync(fallbackDir)).toEqual([expect.stringMatching(/set-aside/)])
  })

  test('of another session with the same name is left where it is', async () => {
    const { inner, fallbackDir, path, tail, before } = await failedTurn()
    writeFileSync(path, JSON.stringify({ ...tail, createdAt: tail.createdAt + 1 }))
    await using again = await startAgent({ store: inner, fallbackDir })
    expect(await again.log()).toEqual(before)
    expect(join(fallbackDir, readdirSync(fallbackDir)[0] ?? '')).toBe(path)
  })

  test('that the store holds already, in part or all of it, is not written twice', async () => {
    for (const taken of [1, undefined]) {
      const { inner, fallbackDir, tail, before } = await failedTurn()
      const owner = await inner.acquire('session')
      await owner.append(tail.events.slice(0, taken), { expectedSeq: before.length })
      await owner.release()
      await using again = await startAgent({ store: inner, fallbackDir })
      await again.agent.whenIdle()
      expect(typesOf(await again.log()).filter((type) => type === 'turn/start')).toHaveLength(2)
      expect(readdirSync(fallbackDir)).toEqual([])
    }
  })

  test('stays where it is while the store fails again, and goes in later', async () => {
    const { inner, fallbackDir, path } = await failedTurn()
    const store = faultyStore(inner, { seed: 2 })
    store.script('append', 'fail')
    await expect(startAgent({ store, fallbackDir })).rejects.toMatchObject({ code: 'STORE_FAILURE' })
    expect(join(fallbackDir, readdirSync(fallbackDir)[0] ?? '')).toBe(path)
    await using again = await startAgent({ store: inner, fallbackDir })
    await again.agent.whenIdle()
    expect(ofType(await again.log(), 'turn/end')).toHaveLength(2)
  })

  test('is a line of JSON on stderr without a folder, or when the folder cannot be written', async () => {
    const nowhere = join(newFolder(), 'file')
    writeFileSync(nowhere, '')
    for (const fallbackDir of [undefined, nowhere]) {
      const { lines } = listen()
      const store = faultyStore(memoryStore(), { seed: 3 })
      store.script('append', 'fail')
      const { agent } = await startAgent({ store, ...(fallbackDir === undefined ? {} : { fallbackDir }) })
      agent.followup('x'.repeat(50_000))
      agent.followup('y'.repeat(50_000))
      await failed(agent)
      const [line = '', ...more] = lines
      expect([more, line.includes('\n'), line.length < 66_000]).toEqual([[], false, true])
      const { unsaved } = JSON.parse(line)
      expect(unsaved).toMatchObject({ sessionId: 'session', epoch: 1, expectedSeq: 0, after: null })
      expect(unsaved.omitted + unsaved.events.length).toBeGreaterThan(unsaved.events.length)
    }
  })

  test('is void once another owner took the session: nothing is kept', async () => {
    const { lines, warnings } = listen()
    const store = memoryStore()
    const fallbackDir = newFolder()
    const first = await startAgent({ store, fallbackDir })
    await using second = await startAgent({ store, fallbackDir, steal: true })
    await failed(first.agent)
    expect(second.agent.status).toBe('idle')
    expect([readdirSync(fallbackDir), lines, warnings]).toEqual([[], [], []])
  })
})

test('a store that does not answer fails the agent after storeTimeoutMs, and the session can be opened again at once', async () => {
  listen()
  const inner = memoryStore()
  const store = faultyStore(inner, { seed: 4 })
  const fallbackDir = newFolder()
  store.script('append', 'hang')
  const { agent } = await startAgent({ store, fallbackDir, storeTimeoutMs: 20 })
  const { turn } = agent.followup('go')
  await expect(turn).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'timeout' })
  await settle()
  // The failed agent was not closed: it gave the session up when it died.
  await using again = await startAgent({ store: inner, fallbackDir })
  await again.agent.whenIdle()
  expect(ofType(await again.log(), 'turn/end')).toHaveLength(1)
})

test('a full disk in the middle of an answer: nothing acknowledged is lost, and with room again it carries on', async () => {
  listen()
  const path = newFile()
  const fallbackDir = newFolder()
  const full = storeOn(path, { pragmas: ['max_page_count = 60'] })
  const long = Array.from({ length: 40 }, (_, i) => text(`${i} ${'x'.repeat(20_000)}`))
  const first = await startAgent({ store: full, fallbackDir, model: scripted(() => long) })
  const seen: SessionEvent[] = []
  first.agent.session.events$.subscribe({ next: (event) => void seen.push(event), error: () => {} })
  const { turn } = first.agent.followup('go')
  await expect(turn).rejects.toMatchObject({ code: 'STORE_FAILURE', reason: 'full' })
  expect(first.agent.status).toBe('failed')
  await first.agent.close().catch(() => {})
  expect((await stored(full, 'session')).slice(0, seen.length)).toEqual(seen)
  await full[Symbol.asyncDispose]()

  const roomy = storeOn(path)
  await using again = await startAgent({ store: roomy, fallbackDir, model: scripted(['short']) })
  await again.agent.whenIdle()
  const log = await again.log()
  expect(verify(log)).toMatchObject({ ok: true, state: 'idle' })
  expect(ofType(log, 'assistant/message')).toMatchObject([{ data: { attempt: 2 } }])
  expect(readdirSync(fallbackDir)).toEqual([])
})
