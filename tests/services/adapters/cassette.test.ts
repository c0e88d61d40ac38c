import { describe, expect, test } from 'vitest'
import type { Agent, AgentOptions } from '../../../src/agent.ts'
import type { KnownEvent, SessionEvent } from '../../../src/log/events.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { type Cassette, type CassetteOptions, cassette } from '../../../src/services/adapters/cassette.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall, usage } from '../../../src/services/adapters/scripted.ts'
import { LlmError } from '../../../src/services/errors.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { countingIds, ofType, settle, startAgent } from '../../kit/agents.ts'

type Options = Partial<AgentOptions>
type Live = (agent: Agent) => Promise<unknown>

/** The log of an agent that lived so. */
async function recorded(options: Options, live: Live): Promise<readonly SessionEvent[]> {
  await using started = await startAgent(options)
  await live(started.agent)
  return started.log()
}

/** The same options and deeds with the cassette for a model, in another session with ids of its own. */
async function replayed(
  events: readonly SessionEvent[],
  { match, ...options }: Options & CassetteOptions,
  live: Live,
): Promise<{ log: readonly SessionEvent[]; tape: Cassette }> {
  const tape = cassette(events, match ? { match } : {})
  const renewed = { model: tape, models: tape.models, sessionId: 'replay', newId: countingIds('other') }
  const log = await recorded({ ...options, ...renewed }, live)
  return { log, tape }
}

const endOf = (log: readonly SessionEvent[]) => ofType(log, 'turn/end').at(-1)?.data.reason
const errorOf = (log: readonly SessionEvent[]) => {
  const reason = endOf(log)
  return reason?.kind === 'error' ? reason.error : reason
}
const chunksOf = (log: readonly SessionEvent[]) => ofType(log, 'assistant/chunk').map(({ data }) => data.chunk)
const go: Live = (agent) => agent.run('go')
/** Cancels when the n-th chunk was logged. */
const cancelAfter =
  (n: number): Live =>
  async (agent) => {
    let seen = 0
    agent.on('session/event', ({ type }) => {
      if (type === 'assistant/chunk' && ++seen === n) setImmediate(() => void agent.cancel())
    })
    await agent.run('go')
  }

const looking = (description: string, execute: () => unknown) =>
  tool({ name: 'look', description, parameters: { type: 'object' }, execute })
const look = looking('looks', () => 'a lake')
const LOOKING = [[text('I look.'), toolCall('look', { far: true })], 'A lake.']

describe('an exact cassette', () => {
  test('takes the same question under other ids of session, messages and calls', async () => {
    const noId = [toolCall('look', {}, { id: '' }), toolCall('look', {}, { id: '' })]
    const options = { system: 'be brief', tools: [look] }
    const events = await recorded({ ...options, model: scripted([noId, ...LOOKING]) }, go)
    const { log, tape } = await replayed(events, options, (agent) => agent.followup('go', { requestId: 'mine' }).turn)
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(errorOf(log)).toEqual({ kind: 'completed' })
    expect(tape).toMatchObject({ left: 0, provider: 'scripted', model: 'scripted', models: [] })
  })

  const differing: readonly [string, Options & { ask?: string }, string][] = [
    ['the words of a message', { ask: 'go on' }, 'messages[0].content[0].text was "go" and is now "go on"'],
    ['the system text', { system: 'be long' }, 'system was "be brief" and is now "be long"'],
    ['a system text too many', { system: [] }, 'system was "be brief" and is now nothing'],
    [
      'a tool’s words',
      { tools: [looking('sees', () => 'a lake')] },
      'tools[0].description was "looks" and is now "sees"',
    ],
    ['no tools', { tools: [] }, 'tools was [{"name":"look"'],
    ['the config', { maxTokens: 5 }, 'maxTokens was nothing and is now 5'],
    [
      'a message more',
      { context: [{ name: 'now', text: 'noon' }] },
      'messages[1] was nothing and is now {"role":"user"',
    ],
  ]
  test.each(differing)('tells %s', async (_, { ask = 'go', ...other }, words) => {
    const options = { system: 'be brief', tools: [look] }
    const events = await recorded({ ...options, model: scripted(LOOKING) }, go)
    const { log, tape } = await replayed(events, { ...options, ...other }, (agent) => agent.run(ask))
    expect(errorOf(log)).toMatchObject({ code: 'CASSETTE_MISMATCH', message: expect.stringContaining(words) })
    expect(tape.left).toBe(2)
  })

  test('names the attempt, and shows long texts around the place where they part', async () => {
    const far = (end: string) => looking('looks', () => `${'x'.repeat(500)}${end}${'y'.repeat(500)}`)
    const events = await recorded({ tools: [far('A')], model: scripted(LOOKING) }, go)
    const { log } = await replayed(events, { tools: [far('B')] }, go)
    const { message = '' } = errorOf(log) as { message?: string }
    expect(message).toContain('for attempt 1 of step 2 in turn 1, messages[2].content[0].content[0].text was "…xxx')
    expect(message).toMatch(/x{24}Ay{55}…" and is now "…x{24}By{55}…"$/)
  })

  test('tells results in another order from those in the model’s', async () => {
    const calls = [toolCall('look', { n: 1 }), toolCall('look', { n: 2 })]
    const said = (...words: string[]) => ({ tools: [looking('looks', () => words.shift())] })
    const events = await recorded({ ...said('one', 'two'), model: scripted([calls, 'ok']) }, go)
    const { log } = await replayed(events, said('two', 'one'), go)
    expect(errorOf(log)).toMatchObject({
      code: 'CASSETTE_MISMATCH',
      message: expect.stringContaining('"one" and is now "two"'),
    })
  })

  test('passes over attempts that were asked something else, and never goes back', async () => {
    const events = await recorded({ model: scripted([fails('AUTH'), 'two']) }, async (agent) => {
      await agent.run('one')
      await agent.run('two')
    })
    const tape = cassette(events)
    const first = ofType(events, 'user/message').map(({ data }) => data)
    const ask = (n: number) =>
      heard(tape, { provider: 'scripted', model: 'scripted', messages: first.slice(0, n), sessionId: '' })
    expect(await ask(2)).toEqual(chunksOf(events).slice(1))
    expect(await ask(1)).toEqual([
      { type: 'finish', reason: { kind: 'error', failure: expect.objectContaining({ code: 'CASSETTE_EXHAUSTED' }) } },
    ])
  })

  test('tells an answer in the history that another model gave: what a provider wants back goes to its own', async () => {
    const live: Live = async (agent) => {
      await agent.run('one')
      await agent.run('two')
    }
    const events = await recorded({ model: scripted(['a', 'b']) }, live)
    const others = JSON.stringify(events).replaceAll(
      '"kind":"model","provider":"scripted"',
      '"kind":"model","provider":"p"',
    )
    const { log } = await replayed(JSON.parse(others), {}, live)
    expect(errorOf(log)).toMatchObject({ message: expect.stringContaining('messages[1].source.provider was "p"') })
  })

  test('plays a recording as it stands, also one whose words were changed by hand', async () => {
    const events = await recorded({ model: scripted(['Hello Ada.']) }, (agent) => agent.run('I am Ada'))
    const edited: readonly SessionEvent[] = JSON.parse(JSON.stringify(events).replaceAll('Ada', 'Eve'))
    const { log } = await replayed(edited, {}, (agent) => agent.run('I am Eve'))
    expect(chunksOf(log)).toEqual(chunksOf(edited))
  })
})

describe('a loose cassette', () => {
  test('plays attempt after attempt, whatever is asked', async () => {
    const events = await recorded({ tools: [look], model: scripted(LOOKING) }, go)
    const { log, tape } = await replayed(events, { match: 'loose', tools: [look], system: 'other' }, (agent) =>
      agent.run('x'),
    )
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(tape.left).toBe(0)
  })
})

test.each(['exact', 'loose'] as const)('a cassette (%s) that is played says so', async (match) => {
  const events = await recorded({ model: scripted(['one']) }, go)
  const { log } = await replayed(events, { match }, async (agent) => {
    await agent.run('go')
    await agent.run('again')
  })
  expect(errorOf(log)).toEqual({
    code: 'CASSETTE_EXHAUSTED',
    message:
      'The recording has no more to say: it ends with attempt 1 of step 1 in turn 1, and the model is asked again',
  })
})

test('a request that was given up before it was heard plays nothing', async () => {
  const tape = cassette(await recorded({ model: scripted(['one']) }, go))
  const given = { provider: 'scripted', model: 'scripted', messages: [], sessionId: '' }
  for await (const chunk of tape.stream(given, { signal: AbortSignal.abort() })) expect(chunk).toBeUndefined()
  expect(tape.left).toBe(1)
})

test('an attempt is played once, whoever asks', async () => {
  const events = await recorded({ model: scripted(['one']) }, go)
  const tape = cassette(events)
  const ends = await Promise.all(
    ['a', 'b'].map(async (sessionId) =>
      endOf(await recorded({ model: tape, sessionId, newId: countingIds(sessionId) }, go)),
    ),
  )
  expect(ends).toContainEqual({ kind: 'completed' })
  expect(ends).toContainEqual({ kind: 'error', error: expect.objectContaining({ code: 'CASSETTE_EXHAUSTED' }) })
})

describe('what went wrong goes wrong again', () => {
  const RETRY = { backoff: { initialDelayMs: 1, maxDelayMs: 2, jitterRatio: 0 } }

  test('retries: the same question is answered in the order of the recording', async () => {
    const model = scripted([fails('SERVER'), [text('hal'), fails({ code: 'TIMEOUT', message: 'too long' })], 'whole'])
    const events = await recorded({ model, retry: RETRY }, go)
    const { log } = await replayed(events, { retry: RETRY }, go)
    expect(chunksOf(log)).toEqual(chunksOf(events))
    const plans = (of: readonly SessionEvent[]) => ofType(of, 'llm/retry').map(({ data }) => ({ ...data, retryId: '' }))
    expect(plans(log)).toEqual(plans(events))
    expect(plans(log)).toHaveLength(2)
  })

  const keysOf = (log: readonly SessionEvent[]) => ofType(log, 'llm/retry').map(({ data }) => data.policyKey)

  test.each([
    ['a policy of its own', { ...RETRY, maxRetries: 1, retryableCodes: ['AUTH'] }, [fails('AUTH'), fails('AUTH')]],
    ['no retry at all', { maxRetries: 0 }, [fails('SERVER')]],
    ['a policy that never gives up', { mode: 'always', ...RETRY } as const, [fails('AUTH'), fails('X'), 'there']],
  ] as const)('an adapter with %s: the cassette has it, too', async (_, retry, script) => {
    const events = await recorded({ model: scripted(script, { retry }) }, go)
    const { log, tape } = await replayed(events, {}, go)
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(endOf(log)).toEqual(endOf(events))
    expect(tape.left).toBe(0)
    if (!('mode' in retry)) expect(keysOf(log)).toEqual(keysOf(events))
  })

  test('a policy that never gives up does not ask a cassette for ever', async () => {
    const retry = { mode: 'always', ...RETRY } as const
    const events = await recorded({ model: scripted([fails('X'), 'there'], { retry }) }, go)
    const { log } = await replayed(events, {}, (agent) => agent.run('other'))
    expect(errorOf(log)).toMatchObject({ code: 'CASSETTE_MISMATCH' })
  })

  test('a failure before the model was asked', async () => {
    const refusing: ModelAdapter = {
      ...scripted([], { model: 'refusing' }),
      prepare: () => Promise.reject(new LlmError({ code: 'UNSUPPORTED_REASONING_EFFORT', message: 'no "huge"' })),
    }
    const hooks: AgentOptions['hooks'] = {
      'agent/request': ({ turn, config }) => (turn === 1 ? config : { ...config, model: 'refusing' }),
    }
    const live: Live = async (agent) => {
      await agent.run('go')
      await agent.run('again')
    }
    const options = { model: scripted(['fine']), models: [refusing], hooks }
    const events = await recorded(options, live)
    // What was asked beside the messages is not in the log, so it may be anything.
    const warmer: AgentOptions['hooks'] = {
      'agent/request': ({ turn, config }) => (turn === 1 ? config : { ...config, temperature: 1 }),
    }
    const { log } = await replayed(events, { hooks: warmer }, live)
    expect(errorOf(events)).toMatchObject({ code: 'UNSUPPORTED_REASONING_EFFORT' })
    expect(errorOf(log)).toEqual(errorOf(events))
  })

  test('a hook of the request that failed is no attempt of the model', async () => {
    const hooks: AgentOptions['hooks'] = {
      'agent/request'({ turn }, next) {
        if (turn === 1) throw new Error('hook down')
        return next()
      },
    }
    const live: Live = async (agent) => {
      await agent.run('one')
      await agent.run('two')
    }
    const events = await recorded({ model: scripted(['fine']), hooks }, live)
    const { log, tape } = await replayed(events, { match: 'loose', hooks }, live)
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(tape.left).toBe(0)
  })

  test('a stream that just ended', async () => {
    const silent: ModelAdapter = { ...scripted([]), async *stream() {} }
    const events = await recorded({ model: silent }, go)
    const { log } = await replayed(events, {}, go)
    expect(errorOf(log)).toMatchObject({ code: 'STREAM_CLOSED' })
    expect(chunksOf(log)).toEqual(chunksOf(events))
  })

  test('a hook around the stream that failed, for a replay without the hook', async () => {
    const hooks: AgentOptions['hooks'] = {
      async *'llm/stream'(_, next) {
        for await (const chunk of next()) {
          yield chunk
          throw new Error('filter down')
        }
      },
    }
    const events = await recorded({ model: scripted(['fine']), hooks }, go)
    const { log } = await replayed(events, {}, go)
    expect(errorOf(log)).toEqual(errorOf(events))
  })
})

describe('an attempt that a cancel ended', () => {
  test('says what it had said, then waits for the abort', async () => {
    const model = scripted([
      [text('half an answer', { deltas: 3 }), usage({ inputTokens: 1, outputTokens: 1 }), hangs()],
      'next',
    ])
    const live: Live = async (agent) => {
      await cancelAfter(6)(agent)
      await agent.run('more')
    }
    const events = await recorded({ model }, live)
    const { log, tape } = await replayed(events, {}, live)
    expect(ofType(log, 'turn/end').map(({ data }) => data.reason.kind)).toEqual(['aborted', 'completed'])
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(tape.left).toBe(0)
  })

  test('before it said anything waits at once; a replay that never asked it goes on without it', async () => {
    const events = await recorded({ model: scripted([hangs(), 'next']) }, async (agent) => {
      const running = agent.run('go')
      await settle()
      await agent.cancel()
      await running
      await agent.run('more')
    })
    const tape = cassette(events)
    await recorded({ model: tape }, async (agent) => {
      const running = agent.run('go')
      await settle()
      expect({ left: tape.left, status: agent.status }).toEqual({ left: 1, status: 'running' })
      await agent.cancel()
      await running
      expect((await agent.run('more')).text).toBe('next')
    })
  })
})

describe('an attempt that a crash cut off', () => {
  /** Half an answer, the crash, and the whole one of the next process. */
  async function crashed(end: (agent: Agent) => Promise<unknown>): Promise<readonly SessionEvent[]> {
    const store = memoryStore()
    const held = gate()
    const { agent } = await startAgent({ store, model: scripted([[text('half'), pause(held)]]) })
    agent.followup('go')
    await held.reached
    await agent.session.flush()
    await end(agent)
    return recorded({ store, steal: true, model: scripted(['whole', 'more']) }, async (next) => {
      await next.whenIdle()
      await next.run('and?')
    })
  }

  test.each([
    ['crash', async () => {}],
    ['clean close', (agent: Agent) => agent.close({ graceMs: 0 })],
  ] as const)('by a %s is left out: the one after it is played', async (_, end) => {
    const events = await crashed(end)
    const { log, tape } = await replayed(events, {}, async (agent) => {
      expect((await agent.run('go')).text).toBe('whole')
      expect((await agent.run('and?')).text).toBe('more')
    })
    expect(ofType(log, 'step/start')).toHaveLength(2)
    expect(tape.left).toBe(0)
  })

  test('is where a session can be taken up again, with the log up to there', async () => {
    const events = await crashed(async () => {})
    const store = memoryStore()
    const owner = await store.acquire('session', { create: { format: 1, id: 'session', createdAt: 0 } })
    const cut = events.findIndex(({ type }) => type === 'session/resumed')
    await owner.append(events.slice(0, cut), { expectedSeq: 0 })
    await owner.release()
    const tape = cassette(events)
    const log = await recorded({ store, model: tape, newId: countingIds('again') }, async (agent) => {
      await agent.whenIdle()
      expect((await agent.run('and?')).text).toBe('more')
    })
    expect(chunksOf(log)).toEqual(chunksOf(events))
  })

  test('at the end of the recording says what there is, and fails clearly', async () => {
    const events = await crashed(async () => {})
    const cut = events.slice(
      0,
      events.findIndex(({ type }) => type === 'session/resumed'),
    )
    const { log } = await replayed(cut, {}, go)
    expect(chunksOf(log).slice(0, -1)).toEqual(chunksOf(cut))
    expect(errorOf(log)).toEqual({
      code: 'CASSETTE_EXHAUSTED',
      message: 'The recording has no more to say: attempt 1 of step 1 in turn 1 was cut off here',
    })
  })

  test('and that was not made again fails so, too', async () => {
    const store = memoryStore()
    const held = gate()
    const { agent } = await startAgent({ store, model: scripted([[text('half'), pause(held)]]) })
    agent.followup('go')
    await held.reached
    await agent.session.flush()
    const events = await recorded({ store, steal: true, recovery: 'interrupt' }, (next) => next.whenIdle())
    const { log } = await replayed(events, {}, go)
    expect(errorOf(log)).toMatchObject({ code: 'CASSETTE_EXHAUSTED' })
  })
})

describe('the facts of a model', () => {
  const FACTS = { contextWindow: 64_000, price: { input: 2, output: 8, cacheRead: 1 } }
  const filling = (): ModelAdapter => ({
    ...scripted([[text('one'), usage({ inputTokens: 500_000, outputTokens: 0 })], 'two']),
    prepare: async (config) => ({
      config: { ...config, maxTokens: config.maxTokens ?? 4_096, reasoningEffort: config.reasoningEffort ?? 'high' },
      adapterDefaults: {
        ...(config.maxTokens === undefined && { maxTokens: true as const }),
        ...(config.reasoningEffort === undefined && { reasoningEffort: true as const }),
      },
      ...FACTS,
    }),
  })
  const live: Live = async (agent) => {
    await agent.run('one')
    agent.on('agent/request', async (_, next) => ({ ...(await next()), maxTokens: 100 }))
    await agent.run('two')
  }
  const statedIn = (log: readonly SessionEvent[]) =>
    log.filter(({ type }) => type === 'request/header' || type === 'request/context').map(({ data }) => data)

  test('are stated again: what it filled in, what it can read, what it costs', async () => {
    const events = await recorded({ model: filling() }, live)
    const { log } = await replayed(events, {}, live)
    expect(statedIn(log)).toEqual(statedIn(events))
    expect(statedIn(log)).toHaveLength(3)
  })

  test('are those of the attempt that the config leads to, wherever in the recording it stands', async () => {
    const byEffort: ModelAdapter = {
      ...scripted(['one', 'two']),
      prepare: async (config) => ({
        config: { ...config, maxTokens: config.reasoningEffort === 'low' ? 1_000 : 8_000 },
        adapterDefaults: { maxTokens: true },
      }),
    }
    const events = await recorded({ model: byEffort }, async (agent) => {
      await agent.run('one')
      agent.on('agent/request', async (_, next) => ({ ...(await next()), reasoningEffort: 'low' }))
      await agent.run('two')
    })
    const tape = cassette(events)
    const asked = { provider: 'scripted', model: 'scripted' }
    const { signal } = new AbortController()
    const filled = async (more: object) => (await tape.prepare?.({ ...asked, ...more }, signal))?.config.maxTokens
    expect(await filled({})).toBe(8_000)
    expect(await filled({ reasoningEffort: 'low' })).toBe(1_000)
    // What was given is not overwritten, also where it is wrong.
    expect(await filled({ maxTokens: 7 })).toBe(7)
  })

  test('make a limit on cost count', async () => {
    const limits = { session: { cost: 1 } }
    const events = await recorded({ model: filling(), limits }, live)
    const { log } = await replayed(events, { limits }, live)
    expect(endOf(events)).toMatchObject({ kind: 'limit' })
    expect(endOf(log)).toEqual(endOf(events))
  })
})

describe('several models', () => {
  const falling: AgentOptions['hooks'] = {
    'agent/request': ({ attempt, config }) => (attempt === 1 ? config : { provider: 'p', model: 'fallback' }),
    'agent/request-error': ({ attempt }) => (attempt === 1 ? { kind: 'retry' } : undefined),
  }

  test('are each this cassette by another name', async () => {
    const models = [scripted(['from the fallback'], { provider: 'p', model: 'fallback', contextWindow: 9 })]
    const model = scripted([fails('QUOTA')], { provider: 'p', model: 'first' })
    const events = await recorded({ model, models, hooks: falling }, go)
    const { log, tape } = await replayed(events, { hooks: falling }, go)
    expect([tape, ...tape.models].map(({ provider, model: name }) => [provider, name])).toEqual([
      ['p', 'first'],
      ['p', 'fallback'],
    ])
    expect(chunksOf(log)).toEqual(chunksOf(events))
    expect(ofType(log, 'request/context').map(({ data }) => data)).toEqual(
      ofType(events, 'request/context').map(({ data }) => data),
    )
    expect(tape.left).toBe(0)
  })

  test('one that nobody served fails as it did', async () => {
    const events = await recorded({ model: scripted([fails('QUOTA')]), hooks: falling }, go)
    const { log } = await replayed(events, { hooks: falling }, go)
    expect(errorOf(events)).toMatchObject({ code: 'NO_ADAPTER' })
    expect(errorOf(log)).toEqual(errorOf(events))
  })
})

test('a fork’s recording begins with what it inherited, and plays to an agent of the fork as well', async () => {
  const store = memoryStore()
  const parent = await recorded({ store, model: scripted(['one', 'two']) }, async (agent) => {
    await agent.run('first')
    await agent.run('second')
    await agent.fork({ sessionId: 'child' })
  })
  const child = { store, sessionId: 'child', newId: countingIds('child') }
  const events = await recorded({ ...child, model: scripted(['three']) }, (agent) => agent.run('third'))
  const { tape } = await replayed(events, {}, async (agent) => {
    for (const said of ['first', 'second', 'third']) await agent.run(said)
    expect(agent.session.messages().at(-1)).toMatchObject({ content: [{ type: 'text', text: 'three' }] })
  })
  expect(tape.left).toBe(0)
  const seed = parent.length
  const other = memoryStore()
  const owner = await other.acquire('child', { create: { format: 1, id: 'child', createdAt: 0 } })
  await owner.append(events.slice(0, seed + 1), { expectedSeq: 0 })
  await owner.release()
  const again = { store: other, sessionId: 'child', newId: countingIds('again') }
  const log = await recorded({ ...again, model: cassette(events) }, (agent) => agent.run('third'))
  expect(chunksOf(log)).toEqual(chunksOf(events))
})

describe('what is no recording is refused when the cassette is made', () => {
  const given = async () => recorded({ tools: [look], model: scripted(LOOKING) }, go)
  const without = (events: readonly SessionEvent[], seq: number) => events.filter((event) => event.seq !== seq)
  const seqOf = (events: readonly SessionEvent[], type: SessionEvent['type']) =>
    events.find((event) => event.type === type)?.seq ?? -1
  const renumbered = (events: readonly SessionEvent[]): readonly SessionEvent[] =>
    events.map(({ sourceEventSeqs: _, ...event }, seq) => ({ ...event, seq }) as SessionEvent)

  test.each<[string, (events: readonly SessionEvent[]) => unknown, object]>([
    ['no list', () => undefined, { code: 'INVALID_OPTION', option: 'events' }],
    ['the text of a file', (events) => JSON.stringify(events), { code: 'INVALID_OPTION', option: 'events' }],
    ['an empty list', () => [], { code: 'CASSETTE_EMPTY' }],
    ['no attempt', (events) => events.slice(0, 2), { code: 'CASSETTE_EMPTY' }],
    ['what is no event', () => [1], { code: 'INVALID_LOG', seq: 0, rule: 'ENVELOPE' }],
    ['lines that are not parsed', (events) => events.map((event) => JSON.stringify(event)), { code: 'INVALID_LOG' }],
    ['the end of a log', (events) => events.slice(3), { code: 'INVALID_LOG', rule: 'SEQ-CONTIGUOUS' }],
    ['a gap', (events) => without(events, 4), { code: 'INVALID_LOG', seq: 4, rule: 'SEQ-CONTIGUOUS' }],
    ['a newer log', (events) => [{ ...events[0], type: 'new/thing' }], { code: 'LOG_TOO_NEW' }],
    [
      'chunks before any header',
      (events) => renumbered(without(events, seqOf(events, 'request/header'))),
      { code: 'INVALID_LOG', rule: 'REQUEST-HEADER' },
    ],
    [
      'chunks of no step',
      (events) => renumbered(without(events, seqOf(events, 'step/start'))),
      { code: 'INVALID_LOG', rule: 'CHUNK-ATTEMPT' },
    ],
    [
      'an answer that never finished',
      (events) => renumbered(events.filter((event) => !isFinish(event))),
      { code: 'INVALID_LOG', rule: 'STREAM-FINISH' },
    ],
  ])('%s', async (_, damage, facts) => {
    const events = await given()
    expect(() => cassette(damage(events) as SessionEvent[])).toThrow(expect.objectContaining(facts))
  })

  test('a way to match that there is not', async () => {
    const options = { match: 'fuzzy' } as unknown as CassetteOptions
    const events = await given()
    expect(() => cassette(events, options)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'match' }),
    )
  })
})

const isFinish = (event: SessionEvent): boolean =>
  event.type === 'assistant/chunk' && (event as KnownEvent<'assistant/chunk'>).data.chunk.type === 'finish'

async function heard(model: ModelAdapter, request: Parameters<ModelAdapter['stream']>[0]): Promise<unknown[]> {
  const said: unknown[] = []
  for await (const chunk of model.stream(request, { signal: new AbortController().signal })) said.push(chunk)
  return said
}
