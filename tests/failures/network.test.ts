/**
 * Known failures on the way to a model: waits that are not kept or never end, timeouts that cut what is healthy,
 * recoveries that say everything twice. Each test is what a server did, and what happens here.
 */
import { describe, expect, test } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import { fails, scripted } from '../../src/services/adapters/scripted.ts'
import { completePolicy, planRetry } from '../../src/services/llm/retry.ts'
import { ofType, settle, startAgent, typesOf } from '../kit/agents.ts'
import { ask, failureIn, finishIn } from '../kit/ask-adapter.ts'
import { manualClock } from '../kit/manual-clock.ts'
import { answer, DONE, delta, type Reply, refusal, type Step, stopped, wireServer } from '../kit/wire-server.ts'

const whole: Reply = { body: answer({ text: 'here it is' }) }
const limited = (headers: Readonly<Record<string, string>> = {}) =>
  refusal(429, { error: { message: 'slow down' } }, headers)
const retries = (log: readonly SessionEvent[]) => ofType(log, 'llm/retry').map(({ data }) => data)

/** An agent of the model at `url` whose waits are counted by a clock that stands still. */
async function agentAt(url: string, more: Partial<AgentOptions> = {}) {
  const clock = manualClock(Date.UTC(2026, 9, 21, 7, 0))
  const started = await startAgent({ model: openaiCompatible({ baseURL: url, model: 'm' }, { clock }), clock, ...more })
  return { started, clock, agent: started.agent }
}

describe('refusals', () => {
  test.each<[string, unknown, string]>([
    ['an account without money', { error: { message: 'Insufficient Balance' } }, 'QUOTA'],
    ['a spent quota', { error: { message: 'no', code: 'insufficient_quota' } }, 'QUOTA'],
  ])('[NET-01] %s is said plainly and not asked again', async (_, body, code) => {
    await using server = await wireServer([refusal(402, body), whole])
    const { started, agent } = await agentAt(server.url)
    await using __ = started
    const { reason } = await agent.run('go')
    expect(reason).toMatchObject({
      kind: 'error',
      error: { code, status: 402, message: expect.stringContaining('top up') },
    })
    expect(server.requests).toHaveLength(1)
  })

  test('[NET-13] a server that is overloaded twice is asked again, bounded and for all to see', async () => {
    await using server = await wireServer([refusal(503, {}), refusal(500, {}), whole])
    const { started, agent, clock } = await agentAt(server.url)
    await using _ = started
    const run = agent.run('go')
    const waits: unknown[] = []
    for (let i = 0; i < 2; i++) {
      await agent.whenQuiet()
      waits.push(agent.status)
      clock.advance(10_000)
    }
    expect(await run).toMatchObject({ text: 'here it is', reason: { kind: 'completed' } })
    expect(waits).toEqual(['waiting', 'waiting'])
    expect(retries(await started.log())).toMatchObject([
      { retry: 1, maxRetries: 2, failure: { code: 'SERVER', status: 503 } },
      { retry: 2, maxRetries: 2, failure: { code: 'SERVER', status: 500 } },
    ])
  })

  test('[NET-13] one that stays so fails the turn after its last retry', async () => {
    await using server = await wireServer(() => refusal(503, {}))
    const { started, agent, clock } = await agentAt(server.url)
    await using _ = started
    const run = agent.run('go')
    for (let i = 0; i < 2; i++) {
      await agent.whenQuiet()
      clock.advance(10_000)
    }
    expect((await run).reason).toMatchObject({ kind: 'error', error: { code: 'SERVER' } })
    expect(server.requests).toHaveLength(3)
  })
})

describe('a server that says when to come back', () => {
  test.each<[string, Readonly<Record<string, string>>, number]>([
    ['[NET-02] in seconds', { 'retry-after': '7' }, 7_000],
    ['[NET-03] by a date', { 'retry-after': 'Wed, 21 Oct 2026 07:00:08 GMT' }, 8_000],
    ['[NET-03] by a date that has passed', { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, 1],
    ['[NET-04] in milliseconds, which win', { 'retry-after-ms': '1500', 'retry-after': '9' }, 1_500],
    ['[NET-04] by the reset of its limit', { 'x-ratelimit-reset': '0m6s' }, 6_000],
  ])('%s is not asked before that, and soon after', async (_, headers, wait) => {
    await using server = await wireServer([limited(headers), whole])
    const { started, agent, clock } = await agentAt(server.url)
    await using __ = started
    const run = agent.run('go')
    await agent.whenQuiet()
    clock.advance(wait - 1)
    await settle()
    expect(agent.status).toBe('waiting')
    expect(server.requests).toHaveLength(1)
    clock.advance(1 + wait * 0.1)
    expect((await run).text).toBe('here it is')
    const [{ delayMs = 0 } = {}] = retries(await started.log())
    expect(delayMs).toBeGreaterThan(wait)
    expect(delayMs).toBeLessThanOrEqual(wait * 1.1)
  })

  test.each(['soon', '-5', 'NaN', '', '1e400', '9'.repeat(400)])(
    '[NET-03] in words that mean nothing (%j) is asked again by our own backoff',
    async (value) => {
      await using server = await wireServer([limited({ 'retry-after': value }), whole])
      const { started, agent, clock } = await agentAt(server.url)
      await using _ = started
      const run = agent.run('go')
      await agent.whenQuiet()
      clock.advance(600)
      expect((await run).text).toBe('here it is')
      const [{ delayMs = 0 } = {}] = retries(await started.log())
      expect(delayMs).toBeGreaterThanOrEqual(450)
      expect(delayMs).toBeLessThanOrEqual(550)
    },
  )

  test('[NET-06] in hours is not waited for in silence: the turn ends, and says how long it would have been', async () => {
    await using server = await wireServer([limited({ 'retry-after': '10800' }), whole])
    const { started, agent, clock } = await agentAt(server.url)
    await using _ = started
    const { reason } = await agent.run('go')
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'RATE_LIMIT', providerRetryAfterMs: 10_800_000 } })
    expect(clock.pending).toBe(0)
  })

  test('[NET-06] a policy that waits that long shows it with the time it wakes, and waits on after a restart', async () => {
    await using server = await wireServer([limited({ 'retry-after': '10800' }), whole])
    const store = memoryStore()
    const retry = { backoff: { maxDelayMs: 86_400_000, jitterRatio: 0 } }
    const { agent, clock } = await agentAt(server.url, { store, retry })
    agent.followup('go')
    await agent.whenQuiet()
    await agent.close()
    const wakeAt = clock.now() + 10_800_000
    for await (const summary of store.list())
      expect(summary).toMatchObject({ state: 'waiting', waitingFor: 'retry', wakeAt })
    clock.advance(10_799_999)
    await using again = await startAgent({
      store,
      clock,
      retry,
      model: openaiCompatible({ baseURL: server.url, model: 'm' }),
    })
    await again.agent.whenQuiet()
    expect(again.agent.status).toBe('waiting')
    clock.advance(1)
    await again.agent.whenIdle()
    expect(ofType(await again.log(), 'assistant/message')).toHaveLength(1)
  })

  test('[NET-07] a cancel in the wait is over at once: no timer is left, nobody is asked', async () => {
    await using server = await wireServer([limited({ 'retry-after': '9' }), whole])
    const { started, agent, clock } = await agentAt(server.url)
    await using _ = started
    agent.followup('go')
    await agent.whenQuiet()
    clock.advance(1_000)
    await agent.cancel()
    expect(agent.status).toBe('idle')
    expect(clock.pending).toBe(0)
    clock.advance(60_000)
    await settle()
    expect(server.requests).toHaveLength(1)
  })

  test('[NET-07] so is closing in the wait', async () => {
    const { agent, clock } = await agentAt('http://127.0.0.1:9', { model: scripted([fails('SERVER')]) })
    agent.followup('go')
    await agent.whenQuiet()
    await agent.close()
    expect(clock.pending).toBe(0)
  })

  test('[NET-08] twenty that fail at once do not come back at once', () => {
    let n = 0
    const random = () => n++ / 20
    const delays = Array.from({ length: 20 }, () =>
      planRetry({
        policy: completePolicy(),
        provider: 'p',
        failure: { code: 'RATE_LIMIT', message: 'no' },
        chain: null,
        newId: () => 'r',
        random,
      }),
    ).map((plan) => plan?.delayMs)
    expect(new Set(delays).size).toBe(20)
    expect(Math.max(...delays.map((ms) => ms ?? 0)) - Math.min(...delays.map((ms) => ms ?? 0))).toBeGreaterThan(90)
  })
})

describe('an attempt after another', () => {
  test('[NET-10] by another model is the same step: one start, one answer, the attempt counted', async () => {
    const first = scripted([fails('SERVER')], { model: 'first' })
    const second = scripted(['from the second'], { model: 'second' })
    const { started, agent, clock } = await agentAt('http://127.0.0.1:9', {
      model: first,
      models: [second],
      hooks: {
        'agent/request': async ({ attempt }, next) => {
          const config = await next()
          return attempt === 1 ? config : { ...config, model: 'second' }
        },
      },
    })
    await using _ = started
    const run = agent.run('go')
    await agent.whenQuiet()
    clock.advance(1_000)
    expect((await run).text).toBe('from the second')
    const log = await started.log()
    expect(typesOf(log).filter((type) => type === 'step/start' || type === 'turn/start')).toHaveLength(2)
    expect(ofType(log, 'assistant/message')).toMatchObject([
      { data: { attempt: 2, message: { source: { model: 'second' } } } },
    ])
  })

  test('[NET-11] that succeeds gives one answer: nothing of the first is told again', async () => {
    const half: Step[] = [delta({ content: 'here' }), { kind: 'cut' }]
    await using server = await wireServer([limited(), { body: half }, whole])
    const { started, agent, clock } = await agentAt(server.url)
    await using _ = started
    const told: string[] = []
    agent.on('session/event', (event) => {
      if (event.type === 'assistant/message') told.push(event.type)
      if (event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta') {
        told.push(`${event.data.attempt} ${event.data.chunk.text}`)
      }
    })
    const run = agent.run('go')
    for (let i = 0; i < 2; i++) {
      await agent.whenQuiet()
      clock.advance(10_000)
    }
    expect((await run).text).toBe('here it is')
    expect(told).toEqual(['2 here', '3 her', '3 e i', '3 t i', '3 s', 'assistant/message'])
  })
})

describe('time', () => {
  /** A stream of `n` pieces, one every `ms`. */
  const slow = (n: number, ms: number): Reply => ({
    body: [
      ...Array.from({ length: n }, () => [{ kind: 'wait', ms } as const, delta({ content: '.' })]).flat(),
      stopped('stop'),
      DONE,
    ],
  })

  test('[NET-12] a long stream is not cut while it flows: the limit is on silence', async () => {
    await using server = await wireServer([slow(30, 20)])
    const adapter = openaiCompatible({ baseURL: server.url, model: 'm', firstByteTimeoutMs: 400, idleTimeoutMs: 400 })
    const from = performance.now()
    expect(finishIn(await ask(adapter))).toEqual({ kind: 'stop' })
    expect(performance.now() - from).toBeGreaterThan(500)
  })

  test('[NET-12] a limit on the whole is one that somebody set', async () => {
    await using server = await wireServer([slow(30, 20)])
    const adapter = openaiCompatible({ baseURL: server.url, model: 'm', totalTimeoutMs: 150 })
    expect(failureIn(await ask(adapter)).code).toBe('TIMEOUT')
    await server.requests[0]?.closed
  })
})
