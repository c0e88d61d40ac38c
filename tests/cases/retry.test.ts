/** Attempts that fail: who decides whether there is another, when it comes, and what the log says of it. */
import { describe, expect, test, vi } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LlmFailure } from '../../src/log/messages.ts'
import { verify } from '../../src/machines/verify.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import { fails, reasoning, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import type { RetryPolicy } from '../../src/services/llm/adapter.ts'
import { completePolicy, planRetry, RETRYABLE_CODES } from '../../src/services/llm/retry.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, type StartedAgent, settle, startAgent, typesOf } from '../kit/agents.ts'
import * as k from '../kit/logs.ts'
import { manualClock } from '../kit/manual-clock.ts'
import { wireServer } from '../kit/wire-server.ts'

const retry: RetryPolicy = {
  maxRetries: 2,
  retryableCodes: ['RATE_LIMIT', 'SERVER'],
  backoff: { initialDelayMs: 500, maxDelayMs: 10_000, jitterRatio: 0 },
}
const always = (initialDelayMs: number, maxDelayMs: number, jitterRatio: number): RetryPolicy => ({
  mode: 'always',
  backoff: { initialDelayMs, maxDelayMs, jitterRatio },
})
const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })

const retriesIn = (log: readonly SessionEvent[]) => ofType(log, 'llm/retry').map(({ data }) => data)
const failureOf = (code: string): LlmFailure => ({ code, message: `The script fails here: ${code}` })
const reasonOf = (code: string) => ({ kind: 'error', error: failureOf(code) })

/** Moves the clock whenever the agent waits, until the turn is over. */
async function through({ agent }: StartedAgent, clock: ReturnType<typeof manualClock>, message = 'go') {
  const turn = agent.run(message)
  await agent.whenQuiet()
  while (agent.status === 'waiting') {
    clock.advance(10_000)
    await agent.whenQuiet()
  }
  return turn
}

describe('the hook on a failed request', () => {
  test('[retry-002] is asked while the step is open, with the failure the last thing logged', async () => {
    const log: SessionEvent[] = []
    await using started = await startAgent({ model: scripted([fails('AUTH')]) })
    started.agent.on('session/event', (event) => log.push(event))
    let seen: readonly SessionEvent[] = []
    started.agent.on('agent/request-error', (_, next) => {
      seen = [...log]
      return next()
    })
    await started.agent.run('go')
    expect(ofType(seen, 'step/start').map(({ data }) => data)).toEqual([{ turn: 1, step: 1 }])
    expect(ofType(seen, 'step/end')).toEqual([])
    expect(seen.at(-1)).toMatchObject({
      type: 'assistant/chunk',
      data: { chunk: { type: 'finish', reason: { kind: 'error', failure: failureOf('AUTH') } } },
    })
  })

  test.each([
    ['[retry-003] nobody', undefined],
    ['[retry-004] a hook that says nothing', () => undefined],
  ])('%s asks for another attempt: the failure ends step and turn', async (_, hook) => {
    const model = scripted([fails('AUTH')])
    await using started = await startAgent({ model, ...(hook && { hooks: { 'agent/request-error': hook } }) })
    const told: unknown[] = []
    started.agent.on('agent/error', (payload) => told.push(payload))
    expect((await started.agent.run('go')).reason).toEqual(reasonOf('AUTH'))
    expect(typesOf(await started.log()).slice(-3)).toEqual(['assistant/chunk*', 'step/end', 'turn/end'])
    expect(model.requests).toHaveLength(1)
    expect(told).toHaveLength(1)
  })

  test('[retry-005] that throws ends the turn with what it threw, and leaves a trace', async () => {
    const model = scripted([fails('AUTH')])
    await using started = await startAgent({ model })
    started.agent.on('agent/request-error', () => {
      throw new Error('recovery bug')
    })
    const error = { code: 'UNKNOWN', message: 'recovery bug' }
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error })
    expect(model.requests).toHaveLength(1)
    expect(ofType(await started.log(), 'agent/hook-failed').map(({ data }) => data)).toEqual([
      { hook: 'agent/request-error', turn: 1, step: 1, error },
    ])
  })

  test('[retry-006] may ask for another attempt, but a cancel wins', async () => {
    const model = scripted([fails('AUTH'), 'never'])
    await using started = await startAgent({ model })
    started.agent.on('agent/request-error', () => {
      void started.agent.cancel()
      return { kind: 'retry' }
    })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
    expect(model.requests).toHaveLength(1)
    expect(ofType(await started.log(), 'assistant/message')).toEqual([])
    expect(retriesIn(await started.log())).toEqual([])
  })

  test('[retry-007] is not asked about a request that was never made', async () => {
    const model = scripted(['never'])
    await using started = await startAgent({ model })
    const asked = vi.fn(() => ({ kind: 'retry' as const }))
    started.agent.on('agent/request-error', asked)
    started.agent.on('agent/request', () => {
      throw new Error('no model today')
    })
    const { reason } = await started.agent.run('go')
    expect(reason).toEqual({ kind: 'error', error: { code: 'UNKNOWN', message: 'no model today' } })
    expect(asked).not.toHaveBeenCalled()
    expect(model.requests).toEqual([])
  })

  // Replaced: every further attempt is in the log, or the log could not tell the attempts apart.
  test('[retry-031] may ask for an attempt of its own: it comes at once and is logged like any other', async () => {
    const clock = manualClock()
    const model = scripted([fails('AUTH'), fails('AUTH'), 'done'], { retry: always(500, 500, 0) })
    await using started = await startAgent({ model, clock })
    started.agent.on('agent/request-error', () => ({ kind: 'retry' }))
    expect((await through(started, clock)).reason).toEqual({ kind: 'completed' })
    const plans = retriesIn(await started.log())
    expect(plans.map(({ retry, delayMs, mode }) => ({ retry, delayMs, mode }))).toEqual([
      { retry: 1, delayMs: 0, mode: 'always' },
      { retry: 2, delayMs: 0, mode: 'always' },
    ])
    expect(new Set(plans.map(({ retryId }) => retryId)).size).toBe(1)
  })

  // Replaced: the planner is the core of the hook, not one listener among others. Who throws around it has spoken.
  test('[retry-032] that throws is believed also where every failure would be tried again', async () => {
    const model = scripted([fails('AUTH'), 'never'], { retry: always(500, 500, 0) })
    await using started = await startAgent({ model })
    started.agent.on('agent/request-error', async () => {
      throw new Error('recovery bug')
    })
    expect((await started.agent.run('go')).reason).toMatchObject({ error: { message: 'recovery bug' } })
    expect(model.requests).toHaveLength(1)
  })
})

describe('a planned retry', () => {
  test('[retry-010] is recorded, waited for and begun, in that order', async () => {
    const clock = manualClock(1_000)
    const model = scripted([fails('SERVER'), 'ok'], { retry })
    await using started = await startAgent({ model, clock })
    const turn = started.agent.run('go')
    await started.agent.whenQuiet()
    clock.advance(499)
    await settle()
    expect(typesOf(await started.log()).at(-1)).toBe('llm/retry')
    clock.advance(1)
    await turn
    expect(typesOf(await started.log())).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
      'step/start',
      'user/message',
      'request/header',
      'request/context',
      'assistant/chunk*',
      'llm/retry',
      'llm/retry-started',
      'assistant/chunk*',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    expect(ofType(await started.log(), 'assistant/message')[0]?.data.attempt).toBe(2)
  })

  test('[retry-011] says of what, by which policy, which one it is and when it comes', async () => {
    const clock = manualClock()
    await using started = await startAgent({ model: scripted([fails('SERVER'), 'ok'], { retry }), clock })
    await through(started, clock)
    const log = await started.log()
    const [plan] = retriesIn(log)
    expect(plan).toEqual({
      turn: 1,
      step: 1,
      attempt: 1,
      retryId: expect.any(String),
      provider: 'scripted',
      mode: 'normal',
      policyKey: '["normal",2,["RATE_LIMIT","SERVER"],500,10000,0]',
      retry: 1,
      maxRetries: 2,
      delayMs: 500,
      failure: failureOf('SERVER'),
    })
    expect(ofType(log, 'llm/retry-started').map(({ data }) => data)).toEqual([
      { turn: 1, step: 1, attempt: 2, retryId: plan?.retryId, retry: 1 },
    ])
  })

  test('[retry-009] asks the same again, and logs no header for it', async () => {
    const clock = manualClock()
    const model = scripted([fails('SERVER'), 'ok'], { retry })
    await using started = await startAgent({ model, clock, system: 'Be brief.' })
    await through(started, clock)
    const log = await started.log()
    expect(ofType(log, 'request/header')).toHaveLength(1)
    expect(ofType(log, 'request/context')).toHaveLength(1)
    expect(model.requests).toHaveLength(2)
    expect(model.requests[1]).toEqual(model.requests[0])
  })

  test('[retry-033] shows the model nothing of what failed', async () => {
    const clock = manualClock()
    const model = scripted([[reasoning('hm'), text('garbage'), fails('SERVER')], 'ok'], { retry })
    await using started = await startAgent({ model, clock })
    await through(started, clock)
    expect(JSON.stringify(model.requests[1])).not.toMatch(/garbage|fails here/)
    expect(started.agent.session.messages().map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'go' }],
      [{ type: 'text', text: 'ok' }],
    ])
  })

  test('[retry-034] runs nothing of what failed: the pieces of a call stay chunks', async () => {
    const clock = manualClock()
    const model = scripted([[toolCall('look', {}), fails('SERVER')], 'ok'], { retry })
    await using started = await startAgent({ model, clock, tools: [look] })
    await through(started, clock)
    const log = await started.log()
    expect(ofType(log, 'assistant/chunk').filter(({ data }) => data.attempt === 1)).toHaveLength(4)
    expect(ofType(log, 'tool/call')).toEqual([])
    expect(ofType(log, 'assistant/message').map(({ data }) => data.attempt)).toEqual([2])
  })

  test('[retry-028] is counted within its step', async () => {
    const clock = manualClock()
    const model = scripted([fails('SERVER'), toolCall('look', {}), fails('SERVER'), 'ok'], { retry })
    await using started = await startAgent({ model, clock, tools: [look] })
    await through(started, clock)
    const plans = retriesIn(await started.log())
    expect(plans.map(({ step, retry }) => ({ step, retry }))).toEqual([
      { step: 1, retry: 1 },
      { step: 2, retry: 1 },
    ])
    expect(plans[0]?.retryId).not.toBe(plans[1]?.retryId)
  })

  test('a failure that lasts is final when the retries are spent', async () => {
    const clock = manualClock()
    const model = scripted(() => fails('SERVER'), { retry })
    await using started = await startAgent({ model, clock })
    expect((await through(started, clock)).reason).toEqual(reasonOf('SERVER'))
    expect(retriesIn(await started.log()).map(({ delayMs }) => delayMs)).toEqual([500, 1_000])
    expect(model.requests).toHaveLength(3)
  })

  test('[retry-050] is no part of the conversation, and reads back as it was', async () => {
    const clock = manualClock()
    await using started = await startAgent({ model: scripted([fails('SERVER'), 'ok'], { retry }), clock })
    await through(started, clock)
    const said = started.agent.session.messages()
    const log = await started.log()
    await started.agent.close()
    await using reopened = await startAgent({ store: started.store, clock })
    expect(await reopened.log()).toEqual(log)
    expect(reopened.agent.session.messages()).toEqual(said)
    expect(said).toHaveLength(2)
  })
})

describe('when it comes', () => {
  test('[retry-016] chance never takes it past the most the policy waits', async () => {
    const clock = manualClock()
    const model = scripted((_, n) => (n < 4 ? fails('AUTH') : 'ok'), { retry: always(1, 4, 0.1) })
    await using started = await startAgent({ model, clock, random: () => 1 })
    await through(started, clock)
    expect(retriesIn(await started.log()).map(({ delayMs }) => delayMs)).toEqual([1.1, 2.2, 4, 4])
  })

  test('[retry-018] the five-thousandth is still a number a timer takes', () => {
    const policy = completePolicy(always(1, 2 ** 31 - 1, 0))
    const plan = { policy, provider: 'p', failure: failureOf('AUTH'), newId: () => 'r', random: () => 0.5 }
    const policyKey = planRetry({ ...plan, chain: null })?.policyKey ?? ''
    const chain = { retryId: 'r', provider: 'p', policyKey, retry: 4_999, at: 0, delayMs: 1 }
    expect(planRetry({ ...plan, chain })).toMatchObject({ retry: 5_000, delayMs: 2 ** 31 - 1 })
  })

  test('[retry-019] the provider’s word is kept, and a little more by chance', async () => {
    const clock = manualClock()
    const policy = { ...retry, backoff: { ...retry.backoff, jitterRatio: 0.1 } }
    const model = scripted([fails({ code: 'RATE_LIMIT', providerRetryAfterMs: 2_000 }), 'ok'], { retry: policy })
    await using started = await startAgent({ model, clock, random: () => 1 })
    await through(started, clock)
    expect(retriesIn(await started.log()).map(({ delayMs }) => delayMs)).toEqual([2_200])
  })

  test('a provider that wants more time than the policy gives is not waited for', async () => {
    const clock = manualClock()
    const failure = { ...failureOf('RATE_LIMIT'), providerRetryAfterMs: 10_001 }
    await using started = await startAgent({ model: scripted([fails(failure), 'never'], { retry }), clock })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error: failure })
    expect(clock.pending).toBe(0)
  })

  test('[retry-021] who tries again whatever happens then waits its own time', async () => {
    const clock = manualClock()
    const model = scripted([fails({ code: 'AUTH', providerRetryAfterMs: 10 }), 'ok'], { retry: always(2, 4, 0.5) })
    await using started = await startAgent({ model, clock, random: () => 1 })
    expect((await through(started, clock)).reason).toEqual({ kind: 'completed' })
    expect(retriesIn(await started.log()).map(({ delayMs }) => delayMs)).toEqual([3])
  })
})

describe('which failures', () => {
  test('[retry-022] one the policy does not name is final at once', async () => {
    const clock = manualClock()
    await using started = await startAgent({ model: scripted([fails('AUTH'), 'never'], { retry }), clock })
    expect((await started.agent.run('go')).reason).toEqual(reasonOf('AUTH'))
    expect(retriesIn(await started.log())).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('[retry-024] an empty response is tried again, unless told otherwise', async () => {
    const clock = manualClock()
    await using started = await startAgent({ model: scripted([fails('EMPTY_RESPONSE'), 'ok']), clock })
    expect((await through(started, clock)).text).toBe('ok')
    expect(retriesIn(await started.log())).toMatchObject([{ failure: { code: 'EMPTY_RESPONSE' } }])
  })

  test('[retry-030] always means every failure, as often as it comes', async () => {
    const clock = manualClock()
    const model = scripted((_, n) => (n < 7 ? fails('AUTH') : 'ok'), { retry: always(1, 4, 0) })
    await using started = await startAgent({ model, clock })
    expect((await through(started, clock)).reason).toEqual({ kind: 'completed' })
    const plans = retriesIn(await started.log())
    expect(plans.map(({ retry, mode }) => `${mode} ${retry}`)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `always ${n}`))
    for (const plan of plans) expect(plan).not.toHaveProperty('maxRetries')
  })

  // Replaced: the agent's own policy, or the default one, holds for whatever serves the request.
  test('[retry-025] those of a hook that serves the request itself go by the default policy', async () => {
    const clock = manualClock()
    await using started = await startAgent({ clock })
    started.agent.on('agent/request', async (_, next) => ({ ...(await next()), provider: 'nobody' }))
    let served = 0
    started.agent.on('llm/stream', async function* () {
      served += 1
      yield {
        type: 'finish',
        reason: served === 1 ? { kind: 'error', failure: failureOf('SERVER') } : { kind: 'stop' },
      }
    })
    const policies: unknown[] = []
    started.agent.on('agent/request-error', ({ retryPolicy }, next) => {
      policies.push(retryPolicy)
      return next()
    })
    expect((await through(started, clock)).reason).toEqual({ kind: 'completed' })
    expect(policies).toEqual([completePolicy()])
    expect(retriesIn(await started.log())).toMatchObject([{ provider: 'nobody' }])
  })

  test('[retry-026] go by the policy of the provider that was asked', async () => {
    const clock = manualClock()
    const first = scripted(['never'], { provider: 'first', retry: { maxRetries: 0 } })
    const second = scripted([fails('SERVER'), 'ok'], { provider: 'second', retry: always(7, 7, 0) })
    await using started = await startAgent({ model: first, models: [second], clock })
    started.agent.on('agent/request', async (_, next) => ({ ...(await next()), provider: 'second' }))
    expect((await through(started, clock)).text).toBe('ok')
    expect(retriesIn(await started.log())).toMatchObject([
      { provider: 'second', policyKey: '["always",7,7,0]', delayMs: 7 },
    ])
  })
})

describe('a cancel', () => {
  const aborted = { kind: 'aborted', cause: { kind: 'user' } }

  test('[retry-035] during the wait ends step and turn at once, and the wait with them', async () => {
    const clock = manualClock()
    const model = scripted([fails('SERVER'), 'never'], { retry })
    await using started = await startAgent({ model, clock })
    const turn = started.agent.run('go')
    await started.agent.whenQuiet()
    expect(clock.pending).toBe(1)
    await started.agent.cancel()
    expect((await turn).reason).toEqual(aborted)
    expect(typesOf(await started.log()).slice(-4)).toEqual(['llm/retry', 'turn/cancel', 'step/end', 'turn/end'])
    expect(clock.pending).toBe(0)
    clock.advance(10_000)
    await settle()
    expect(model.requests).toHaveLength(1)
  })

  test.each([
    ['a normal policy', retry],
    ['one that always tries again', always(500, 500, 0)],
  ])('[retry-036] before it was planned leaves no trace of a plan: %s', async (_, policy) => {
    const clock = manualClock()
    await using started = await startAgent({ model: scripted([fails('SERVER'), 'never'], { retry: policy }), clock })
    started.agent.on('agent/request-error', (__, next) => {
      void started.agent.cancel()
      return next()
    })
    expect((await started.agent.run('go')).reason).toEqual(aborted)
    expect(retriesIn(await started.log())).toEqual([])
    expect(clock.pending).toBe(0)
  })

  test('[retry-037] by who sees the plan recorded comes before the wait has begun', async () => {
    const clock = manualClock()
    const model = scripted([fails('SERVER'), 'never'], { retry })
    await using started = await startAgent({ model, clock })
    started.agent.on('session/event', ({ type }) => {
      if (type === 'llm/retry') void started.agent.cancel()
    })
    expect((await started.agent.run('go')).reason).toEqual(aborted)
    const log = await started.log()
    expect(retriesIn(log)).toHaveLength(1)
    expect(ofType(log, 'llm/retry-started')).toEqual([])
    expect(model.requests).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  test.each([
    ['waits for a hook that is deciding, and takes no notice of what it says', false],
    ['waits for it no longer than it was told to', true],
  ])('[retry-040] %s', async (_, hangsOn) => {
    const clock = manualClock()
    const model = scripted([fails('SERVER'), 'never'], { retry: always(500, 500, 0) })
    await using started = await startAgent({ model, clock, settleTimeoutMs: 1_000 })
    let decide = (): void => {}
    const asked = new Promise<void>((resolve) => {
      started.agent.on('agent/request-error', () => {
        resolve()
        return new Promise((settleHook) => {
          decide = () => settleHook({ kind: 'retry' })
        })
      })
    })
    const turn = started.agent.run('go')
    await asked
    const cancelled = started.agent.cancel()
    await settle()
    expect(started.agent.status).toBe('running')
    if (hangsOn) clock.advance(1_000)
    else decide()
    await cancelled
    expect((await turn).reason).toEqual(aborted)
    decide()
    await settle()
    expect(started.agent.status).toBe('idle')
    expect(retriesIn(await started.log())).toEqual([])
    expect(model.requests).toHaveLength(1)
  })
})

describe('a policy', () => {
  test('[retry-041] has defaults: two retries of the transient codes, from half a second to ten', () => {
    const policy = completePolicy()
    expect(policy).toEqual({
      mode: 'normal',
      maxRetries: 2,
      retryableCodes: ['EMPTY_RESPONSE', 'RATE_LIMIT', 'SERVER', 'TIMEOUT', 'TRANSPORT'],
      backoff: { initialDelayMs: 500, maxDelayMs: 10_000, jitterRatio: 0.1 },
    })
    expect(Object.isFrozen(policy) && Object.isFrozen(policy.backoff)).toBe(true)
    expect(Object.isFrozen(RETRYABLE_CODES)).toBe(true)
  })

  test('is what a hook is shown, and nothing of it is a hook’s to change', async () => {
    await using started = await startAgent({ model: scripted([fails('AUTH')], { retry }) })
    started.agent.on('agent/request-error', (payload, next) => {
      expect(() => Object.assign(payload, { failure: failureOf('SERVER') })).toThrow(TypeError)
      expect(() => Object.assign(payload.retryPolicy ?? {}, { maxRetries: 9 })).toThrow(TypeError)
      return next()
    })
    expect((await started.agent.run('go')).reason).toEqual(reasonOf('AUTH'))
  })

  test.each<[string, unknown]>([
    ['retry.maxRetries', { maxRetries: -1 }],
    ['retry.maxRetries', { maxRetries: 1.5 }],
    ['retry.maxRetries', { maxRetries: 2 ** 53 }],
    ['retry.backoff.initialDelayMs', { backoff: { initialDelayMs: 0 } }],
    ['retry.backoff.maxDelayMs', { backoff: { maxDelayMs: Number.POSITIVE_INFINITY } }],
    ['retry.backoff.maxDelayMs', { backoff: { maxDelayMs: 2 ** 31 } }],
    ['retry.backoff.initialDelayMs', { backoff: { initialDelayMs: 2, maxDelayMs: 1 } }],
    ['retry.backoff.jitterRatio', { backoff: { jitterRatio: 1.1 } }],
    ['retry.retryableCodes', { retryableCodes: [] }],
    ['retry.retryableCodes', { retryableCodes: ['A', 'A'] }],
    ['retry.retryableCodes', { retryableCodes: [''] }],
    ['retry.retryableCodes', { retryableCodes: [429] }],
    ['retry.retryableCodes', { retryableCodes: 'SERVER' }],
    ['retry.retries', { retries: 3 }],
    ['retry.backoff.factor', { backoff: { factor: 3 } }],
    ['retry.mode', { mode: 'sometimes' }],
  ])('[retry-044] with a wrong %s is refused by name: %j', async (option, policy) => {
    const opening = startAgent({ retry: policy as RetryPolicy })
    await expect(opening).rejects.toThrow(InvalidOption)
    await expect(opening).rejects.toMatchObject({ option })
  })

  test('that always tries again may keep what only the normal mode reads', () => {
    const left = { mode: 'always', maxRetries: 3, retryableCodes: ['SERVER'] } as RetryPolicy
    expect(completePolicy(left)).toEqual(completePolicy({ mode: 'always' }))
  })

  test('[retry-044] of an adapter is refused as well, before anything is asked', async () => {
    const wrong = scripted([], { model: 'other', retry: { backoff: { jitterRatio: 2 } } })
    await expect(startAgent({ model: wrong })).rejects.toMatchObject({ option: 'model.retry.backoff.jitterRatio' })
    const models = startAgent({ models: [wrong] })
    await expect(models).rejects.toMatchObject({ option: 'models[0].retry.backoff.jitterRatio' })
  })

  test('[retry-051] that a log does not keep to is found out', () => {
    const failed = k.chunk({ type: 'finish', reason: { kind: 'error', failure: failureOf('SERVER') } })
    const plan = (more: object = {}) =>
      k.ev('llm/retry', {
        turn: 1,
        step: 1,
        attempt: 1,
        retryId: 'r1',
        provider: 'p',
        policyKey: 'k',
        retry: 1,
        delayMs: 1,
        failure: failureOf('SERVER'),
        mode: 'normal',
        maxRetries: 2,
        ...more,
      })
    const begun = (more: object = {}) =>
      k.ev('llm/retry-started', { turn: 1, step: 1, attempt: 2, retryId: 'r1', retry: 1, ...more })
    const rules = (...drafts: readonly k.Drafts[]) => {
      const verdict = verify(k.logOf(...drafts))
      return verdict.ok ? [] : verdict.violations.map(({ rule }) => rule)
    }
    expect(rules(k.opened(), failed, plan(), begun())).toEqual([])
    expect(rules(plan())).toContain('CHART')
    expect(rules(k.opened(), failed, plan({ retry: 2 }))).toContain('RETRY-NUMBERING')
    expect(rules(k.opened(), failed, plan({ maxRetries: 0 }))).toContain('RETRY-NUMBERING')
    expect(rules(k.opened(), failed, begun())).toContain('RETRY-STARTED')
    expect(rules(k.opened(), failed, plan(), begun(), begun())).toContain('RETRY-STARTED')
    expect(rules(k.opened(), failed, plan(), begun({ retryId: 'r2' }))).toContain('RETRY-STARTED')
  })
})

describe('over a wire', () => {
  const line = (data: object | string) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  const says = (content: string) => line({ choices: [{ index: 0, delta: { content } }] })
  const whole = [says('ok'), line({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }), line('[DONE]')]
  const codesIn = (log: readonly SessionEvent[]) => retriesIn(log).map(({ failure }) => failure.code)

  /** One turn with a model at `baseURL`; its waits are over as soon as they begin. */
  async function turnWith(baseURL: string, limits: { readonly idleTimeoutMs?: number } = {}) {
    const clock = manualClock()
    const model = openaiCompatible({ baseURL, model: 'm', ...limits })
    await using started = await startAgent({ model, clock })
    const { reason } = await through(started, clock)
    return { reason, log: await started.log() }
  }

  test('[retry-046] a server that was not there is asked again', async () => {
    await using server = await wireServer([{ body: whole }])
    const gone = await wireServer([])
    await gone.close()
    const clock = manualClock()
    const down = openaiCompatible({ baseURL: gone.url, model: 'm' })
    const up = openaiCompatible({ baseURL: server.url, model: 'm' })
    let asked = 0
    const model = {
      ...up,
      stream: (...given: Parameters<typeof up.stream>) => (asked++ === 0 ? down : up).stream(...given),
    }
    await using started = await startAgent({ model, clock })
    expect((await through(started, clock)).text).toBe('ok')
    expect(codesIn(await started.log())).toEqual(['TRANSPORT'])
  })

  test('[retry-047] a body that breaks off keeps what was said as chunks, and is asked for again', async () => {
    await using server = await wireServer([{ body: [says('so'), { kind: 'cut' }] }, { body: whole }])
    const { reason, log } = await turnWith(server.url)
    expect(reason).toEqual({ kind: 'completed' })
    expect(codesIn(log)).toEqual(['TRANSPORT'])
    const lost = ofType(log, 'assistant/chunk').filter(({ data }) => data.attempt === 1)
    expect(lost.at(-1)?.data.chunk).toMatchObject({ type: 'finish', reason: { failure: { code: 'TRANSPORT' } } })
    expect(lost.map(({ data }) => data.chunk.type)).toContain('text-delta')
    expect(ofType(log, 'assistant/message').map(({ data }) => data.attempt)).toEqual([2])
  })

  test('[retry-048] a body that just ends is closed, not transient: it is not asked for again', async () => {
    await using server = await wireServer([{ body: [says('so')] }, { body: whole }])
    const { reason, log } = await turnWith(server.url)
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'STREAM_CLOSED' } })
    expect(codesIn(log)).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  test('[retry-049] a body that stalls is given up after its time, and asked for again', async () => {
    await using server = await wireServer([{ body: [says('so'), { kind: 'hang' }] }, { body: whole }])
    const { reason, log } = await turnWith(server.url, { idleTimeoutMs: 50 })
    expect(codesIn(log)).toEqual(['TIMEOUT'])
    expect(reason).toEqual({ kind: 'completed' })
  })
})
