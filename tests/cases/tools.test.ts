/** One call: whether its body may run, what became of it, and what the log and the model are told. */
import { describe, expect, test } from 'vitest'
import { PawlError } from '../../src/log/errors.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import type { ToolContext } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, typesOf } from '../kit/agents.ts'

type Definition = Partial<Parameters<typeof tool>[0]>

const look = (execute: (args: unknown, context: ToolContext) => unknown = () => 'seen', more: Definition = {}) =>
  tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, ...more, execute })
const looksOnce = (name = 'look') => scripted([toolCall(name, {}, { id: 'c1' }), 'done'])
const resultsOf = (log: readonly SessionEvent[]) =>
  ofType(log, 'tool/result').map(({ data: { message, error, meta } }) => {
    const { content, isError } = message.content[0]
    return { text: textOf(content), isError: isError === true, code: error?.code, meta }
  })
const textOf = (content: readonly unknown[]) => content.map((block) => (block as { text: string }).text).join('\n')
const entered = (log: readonly SessionEvent[]) => ofType(log, 'user/message').map(({ data }) => textOf(data.content))
const aborted = { kind: 'aborted', cause: { kind: 'user' } } as const

/** A body that waits until it is told what to give, or to throw. */
function held() {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  let give = (_: unknown): void => {}
  let fail = (_: unknown): void => {}
  const body = (): Promise<unknown> => {
    begin()
    return new Promise((resolve, reject) => {
      give = resolve
      fail = reject
    })
  }
  return { begun, body, give: (value: unknown) => give(value), fail: (error: unknown) => fail(error) }
}

describe('before the body', () => {
  test('[tools-001] its call and its dispatch are stored, and nothing of its outcome', async () => {
    const seen: string[][] = []
    const { store, agent } = await startAgent()
    await agent.close()
    const reads = look(async (_, { sessionId }) => {
      const types: string[] = []
      for await (const { type } of store.read(sessionId)) types.push(type)
      seen.push(types.filter((type) => type.startsWith('tool/')))
    })
    await using started = await startAgent({ store, model: looksOnce(), tools: [reads] })
    await started.agent.run('go')
    expect(seen).toEqual([['tool/call', 'tool/dispatch']])
  })

  test('[tools-002] a tool that is not there is answered with what there is, and the turn goes on', async () => {
    const model = looksOnce('nope')
    await using started = await startAgent({ model, tools: [look()] })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(ofType(log, 'tool/call').map(({ data }) => data.name)).toEqual(['nope'])
    expect(ofType(log, 'tool/dispatch')).toEqual([])
    const [result] = ofType(log, 'tool/result')
    expect(result?.data.error).toEqual({ name: 'ToolNotFoundError', code: 'UNKNOWN_TOOL' })
    expect(resultsOf(log)).toMatchObject([{ isError: true, text: 'There is no tool "nope". Available: look.' }])
    expect(model.requests).toHaveLength(2)
  })

  test('[tools-010] a policy denies: neither the body nor what is around it runs, and the last word is still asked', async () => {
    const told: string[] = []
    const model = looksOnce()
    await using started = await startAgent({
      model,
      tools: [look(() => void told.push('body'))],
      hooks: {
        'tools/pre-execute': () => ({ kind: 'deny', reason: 'no' }),
        'tools/execute': (_, next) => {
          told.push('around')
          return next()
        },
        'tools/post-execute': ({ outcome }, next) => {
          told.push(`after ${outcome.kind}`)
          return next()
        },
      },
    })
    await started.agent.run('go')
    expect(told).toEqual(['after error'])
    expect(resultsOf(await started.log())).toEqual([
      { text: 'Not run: denied: no', isError: true, code: undefined, meta: undefined },
    ])
    expect(model.requests).toHaveLength(2)
  })

  test('[tools-040] two tools of one name are refused', async () => {
    const opening = startAgent({ tools: [look(), look()] })
    await expect(opening).rejects.toThrow(InvalidOption)
    await expect(opening).rejects.toThrow('two tools named "look"')
  })
})

describe('a call that wants approval', () => {
  const asking = async (more: Definition = {}) => {
    const ran: string[] = []
    const clock = simulatedClock()
    const started = await startAgent({
      clock,
      model: looksOnce(),
      tools: [look((_, { callId }) => void ran.push(callId), more)],
      hooks: { 'tools/pre-execute': () => ({ kind: 'ask', reason: 'it costs' }) },
    })
    const running = started.agent.run('go')
    await started.agent.whenQuiet()
    const [approval] = started.agent.approvals()
    return { started, agent: started.agent, running, ran, clock, digest: approval?.argumentsDigest ?? '', approval }
  }

  // Replaced: nobody being there is no refusal. The question is stored, and may be answered by another process later.
  test('[tools-012] waits while nobody answers, and its body does not run', async () => {
    const { started, agent, ran, running } = await asking()
    await using _ = started
    await settle()
    expect(agent.status).toBe('waiting')
    expect(ran).toEqual([])
    expect(typesOf(await started.log()).at(-1)).toBe('tool/approval-requested')
    await agent.cancel()
    await running
  })

  test('[tools-013] runs once it is approved, by somebody who was shown what it would do', async () => {
    const { started, agent, ran, running, approval, digest } = await asking()
    await using _ = started
    expect(approval).toEqual({
      callId: 'c1',
      run: 0,
      name: 'look',
      arguments: '{}',
      argumentsDigest: digest,
      purpose: 'run',
    })
    await agent.approve('c1', { digest, by: 'me' })
    expect((await running).text).toBe('done')
    expect(ran).toEqual(['c1'])
    const [resolved] = ofType(await started.log(), 'tool/approval-resolved')
    expect(resolved?.data).toMatchObject({ decision: 'approved', by: 'me' })
  })

  test('[tools-014] is answered without being run when it is denied, with or without a reason, or expires', async () => {
    const given = [
      {
        words: 'Not run: denied: too dear',
        answer: (a: Asked) => a.agent.deny('c1', { digest: a.digest, reason: 'too dear' }),
      },
      { words: 'Not run: denied.', answer: (a: Asked) => a.agent.deny('c1', { digest: a.digest }) },
      {
        words: 'Not run: nobody approved this call in time.',
        answer: async (a: Asked) => void a.clock.increment(1_000),
      },
    ]
    type Asked = Awaited<ReturnType<typeof asking>>
    for (const { words, answer } of given) {
      const asked = await asking({ approvalExpiresMs: 1_000 })
      await using _ = asked.started
      await expect(asked.agent.approve('c1', { digest: 'sha256:other' })).rejects.toMatchObject({
        code: 'APPROVAL_DIGEST_MISMATCH',
      })
      await answer(asked)
      expect((await asked.running).text).toBe('done')
      expect(resultsOf(await asked.started.log())).toMatchObject([{ isError: true, text: words, code: undefined }])
      expect(asked.ran).toEqual([])
    }
  })

  test('[tools-015] is answered as never begun when the turn is cancelled first', async () => {
    const { started, agent, ran, running, digest } = await asking()
    await using _ = started
    await agent.cancel()
    expect((await running).reason).toEqual(aborted)
    expect(resultsOf(await started.log())).toMatchObject([{ code: 'ABORTED_BEFORE_DISPATCH' }])
    await expect(agent.approve('c1', { digest })).rejects.toMatchObject({ code: 'APPROVAL_NOT_PENDING' })
    expect(ran).toEqual([])
  })
})

describe('a body that fails', () => {
  test('[tools-016] with any error tells the model its message, and fails nothing else', async () => {
    const fails = look(() => {
      throw new Error('x')
    })
    await using started = await startAgent({ model: looksOnce(), tools: [fails] })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(resultsOf(log)).toMatchObject([{ text: 'Error: x', isError: true }])
    expect(ofType(log, 'tool/result')[0]?.data).not.toHaveProperty('error')
  })

  test('[tools-018] with something that is no error, or cannot be read, says what can be said', async () => {
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const hostile = {
      get message(): never {
        throw new Error('gotcha')
      },
    }
    const thrown: readonly unknown[] = ['a word', { message: 'm' }, hostile, revoked.proxy]
    const throws = look((args) => {
      throw thrown[(args as { n: number }).n]
    })
    const model = scripted([thrown.map((_, n) => toolCall('look', { n })), 'done'])
    await using started = await startAgent({ model, tools: [throws] })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    expect(resultsOf(await started.log()).map(({ text, isError }) => isError && text)).toEqual([
      'Error: a word',
      'Error: m',
      'Error: (unreadable)',
      'Error: (unreadable)',
    ])
  })

  test('[tools-028] leaves what it had added for the next step', async () => {
    const fails = look((_, { addContext }) => {
      addContext('found before')
      throw new Error('x')
    })
    await using started = await startAgent({ model: looksOnce(), tools: [fails] })
    await started.agent.run('go')
    const log = await started.log()
    expect(resultsOf(log)).toMatchObject([{ isError: true }])
    expect(entered(log)).toEqual(['go', 'found before'])
  })
})

describe('hooks around and after the body', () => {
  const counted = (more: Definition = {}) =>
    look(() => 'four', {
      output: { type: 'string' },
      meta: (_: unknown, value: unknown) => ({ length: String(value).length }),
      ...more,
    })

  test('[tools-023] a value put in its place is rendered, checked and described anew', async () => {
    const answers = [
      { kind: 'accept', value: 'longer' },
      { kind: 'accept', value: 3 },
      { kind: 'accept', value: 'x', content: [{ type: 'text', text: 'y' }] },
      { kind: 'accept' },
    ] as const
    const model = scripted([answers.map((_, n) => toolCall('look', {}, { id: `c${n}` })), 'done'])
    await using started = await startAgent({
      model,
      tools: [counted()],
      hooks: { 'tools/post-execute': ({ callId }) => answers[Number(callId[1])] ?? { kind: 'accept' } },
    })
    await started.agent.run('go')
    expect(resultsOf(await started.log())).toMatchObject([
      { text: 'longer', isError: false, meta: { length: 6 } },
      { isError: true, code: 'INVALID_TOOL_OUTPUT', meta: undefined },
      { isError: true, code: 'HOOK_MISUSE', meta: undefined },
      { text: 'four', isError: false, meta: { length: 4 } },
    ])
  })

  test('[tools-023] a call that failed has no value to put another in place of', async () => {
    await using started = await startAgent({
      model: looksOnce('nope'),
      hooks: { 'tools/post-execute': () => ({ kind: 'accept', value: 'fine' }) },
    })
    await started.agent.run('go')
    const log = await started.log()
    expect(resultsOf(log)).toMatchObject([{ isError: true, code: 'HOOK_MISUSE' }])
    expect(ofType(log, 'agent/hook-failed')).toHaveLength(1)
  })

  test('[tools-024] a block gives its feedback for a result, and keeps only what it adds itself', async () => {
    const adds = look((_, { addContext }) => addContext('of the body'))
    await using started = await startAgent({
      model: looksOnce(),
      tools: [adds],
      hooks: { 'tools/post-execute': () => ({ kind: 'block', feedback: 'not so', contexts: ['of the block'] }) },
    })
    await started.agent.run('go')
    const log = await started.log()
    expect(resultsOf(log)).toEqual([{ text: 'not so', isError: true, code: undefined, meta: undefined }])
    expect(entered(log)).toEqual(['go', 'of the block'])
  })

  test('[tools-026] a hook that answers in place of the body is held to what the tool declares', async () => {
    const ran: string[] = []
    const seen: unknown[] = []
    const content = [{ type: 'text', text: 'in short' }] as const
    const model = scripted([[toolCall('look', {}, { id: 'c0' }), toolCall('look', {}, { id: 'c1' })], 'done'])
    const base = counted()
    await using started = await startAgent({
      model,
      tools: [{ ...base, execute: () => ran.push('ran') }],
      hooks: {
        'tools/execute': ({ callId }) => ({ kind: 'ok', value: callId === 'c0' ? 'cached' : 3, content }),
        'tools/post-execute': ({ outcome }, next) => {
          seen.push(outcome.kind === 'ok' ? outcome.value : outcome.error?.code)
          return next()
        },
      },
    })
    await started.agent.run('go')
    expect(ran).toEqual([])
    expect(seen).toEqual(['cached', 'INVALID_TOOL_OUTPUT'])
    expect(resultsOf(await started.log())).toMatchObject([
      { text: 'in short', isError: false, meta: { length: 6 } },
      { isError: true, code: 'INVALID_TOOL_OUTPUT' },
    ])
  })

  // Replaced: a hook around the body adds nothing through its answer; it may inject, which is recorded at once.
  test('[tools-027] what is added stands in the order it was said, after the result', async () => {
    const adds = look((_, { addContext }) => addContext('a'))
    await using started = await startAgent({
      model: looksOnce(),
      tools: [adds],
      hooks: { 'tools/post-execute': () => ({ kind: 'accept', contexts: ['c'] }) },
    })
    started.agent.on('tools/execute', async (_, next) => {
      const outcome = await next()
      started.agent.inject('b')
      return outcome
    })
    await started.agent.run('go')
    const log = await started.log()
    const result = ofType(log, 'tool/result')[0]?.seq ?? 0
    const splices = ofType(log, 'agent/inbox/spliced').flatMap(({ seq, data }) =>
      data.queue === 'next-step' && seq > 0
        ? data.inserted.map((item) => [
            item.kind === 'message' ? textOf(item.message.content) : item.kind,
            seq > result,
          ])
        : [],
    )
    expect(splices).toEqual([
      ['b', false],
      ['a', true],
      ['c', true],
      ['tool-result', true],
    ])
    expect(entered(log)).toEqual(['go', 'b', 'a', 'c'])
  })
})

describe('a tool that concludes the turn', () => {
  test('[tools-029] ends it with its step: the model is not asked again', async () => {
    const model = looksOnce()
    await using started = await startAgent({ model, tools: [look((_, { concludeTurn }) => concludeTurn())] })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(typesOf(log).slice(-5)).toEqual(['tool/call', 'tool/dispatch', 'tool/result', 'step/end', 'turn/end'])
    expect(ofType(log, 'tool/result')[0]?.data.concludesTurn).toBe(true)
    expect(ofType(log, 'step/end')[0]?.data.outcome).toEqual({ kind: 'concluded' })
    expect(model.requests).toHaveLength(1)
  })

  test.each(['fails', 'is blocked'])('[tools-031] concludes nothing when it %s', async (how) => {
    const model = looksOnce()
    const concludes = look((_, { concludeTurn }) => {
      concludeTurn()
      if (how === 'fails') throw new Error('x')
    })
    await using started = await startAgent({ model, tools: [concludes] })
    if (how === 'is blocked') started.agent.on('tools/post-execute', () => ({ kind: 'block', feedback: 'not yet' }))
    await started.agent.run('go')
    expect(model.requests).toHaveLength(2)
    expect(ofType(await started.log(), 'tool/result')[0]?.data).not.toHaveProperty('concludesTurn')
  })
})

describe('a body that speaks', () => {
  test('[tools-032] is heard before its result; its messages enter the next step after it', async () => {
    const speaks = look((_, { inject, steer }) => {
      inject('i')
      steer('s')
    })
    const model = looksOnce()
    await using started = await startAgent({ model, tools: [speaks] })
    await started.agent.run('go')
    const log = await started.log()
    const inTool = typesOf(log).slice(typesOf(log).indexOf('tool/call'), typesOf(log).indexOf('step/end'))
    expect(inTool).toEqual([
      'tool/call',
      'tool/dispatch',
      'agent/inbox/spliced',
      'agent/inbox/spliced',
      'tool/result',
      'agent/inbox/spliced',
    ])
    expect(entered(log)).toEqual(['go', 'i', 's'])
    expect(model.requests[1]?.messages.map(({ source }) => source.kind)).toEqual([
      'user',
      'model',
      'tool',
      'user',
      'user',
    ])
  })

  test('[tools-033] is refused a message that is not JSON, and nothing of it is queued', async () => {
    const content = [{ type: 'text', text: 'a', more: undefined }]
    const model = looksOnce()
    await using started = await startAgent({
      model,
      tools: [look((_, { inject }) => void inject(content as unknown as string))],
    })
    await started.agent.run('go')
    const log = await started.log()
    expect(resultsOf(log)).toMatchObject([{ isError: true, code: 'NOT_JSON' }])
    expect(entered(log)).toEqual(['go'])
  })
})

describe('a cancel', () => {
  // Replaced: the call is answered at once; what the policy says after that changes nothing.
  test.each(['allow', 'deny'] as const)(
    '[tools-034] while a policy thinks answers the call, whatever it says later: %s',
    async (kind) => {
      let decide = (): void => {}
      const decided = new Promise<void>((resolve) => {
        decide = resolve
      })
      const ran: string[] = []
      await using started = await startAgent({
        model: looksOnce(),
        tools: [look(() => void ran.push('ran'))],
        hooks: {
          'tools/pre-execute': async () => {
            await decided
            return { kind, reason: 'late' }
          },
        },
      })
      const running = started.agent.run('go')
      while (ofType(await started.log(), 'tool/call').length === 0) await settle(1)
      await started.agent.cancel()
      decide()
      await settle()
      expect((await running).reason).toEqual(aborted)
      expect(resultsOf(await started.log())).toMatchObject([{ code: 'ABORTED_BEFORE_DISPATCH' }])
      expect(ran).toEqual([])
    },
  )

  test('[tools-035] waits for a body that does not heed it: its success counts as aborted, what it added is kept', async () => {
    const { begun, body, give } = held()
    const deaf = look((_, { addContext }) => {
      addContext('for later')
      return body()
    })
    await using started = await startAgent({ model: looksOnce(), tools: [deaf] })
    const running = started.agent.run('go')
    await begun
    const cancelled = started.agent.cancel()
    await settle()
    expect(ofType(await started.log(), 'tool/result')).toEqual([])
    give('fine')
    await cancelled
    expect((await running).reason).toEqual(aborted)
    expect(resultsOf(await started.log())).toMatchObject([{ isError: true, code: 'ABORTED' }])
    expect(started.agent.inbox.nextStep).toMatchObject([{ message: { content: [{ text: 'for later' }] } }])
  })

  test('[tools-036] keeps the error that a body has of its own', async () => {
    const heeds = look(
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new PawlError('half done', 'HALF_DONE')))
        }),
    )
    await using started = await startAgent({ model: looksOnce(), tools: [heeds] })
    const running = started.agent.run('go')
    while (ofType(await started.log(), 'tool/dispatch').length === 0) await settle(1)
    await settle()
    await started.agent.cancel()
    await running
    expect(resultsOf(await started.log())).toMatchObject([{ text: 'Error: half done', code: 'HALF_DONE' }])
  })

  test('[tools-037] that comes before a call asks no hook of it, and answers it once', async () => {
    const asked: string[] = []
    await using started = await startAgent({ model: looksOnce(), tools: [look(() => void asked.push('body'))] })
    const { agent } = started
    const told: string[] = []
    agent.on('tools/pre-execute', (_, next) => {
      asked.push('pre')
      return next()
    })
    agent.on('tools/execute', (_, next) => {
      asked.push('around')
      return next()
    })
    agent.on('tools/post-execute', (_, next) => {
      asked.push('post')
      return next()
    })
    agent.on('session/event', (event) => {
      if (event.type === 'assistant/message') void agent.cancel()
      if (event.type === 'tool/result') told.push(event.data.error?.code ?? '')
    })
    await agent.run('go')
    expect(asked).toEqual([])
    expect(told).toEqual(['ABORTED_BEFORE_DISPATCH'])
  })
})

test('[tools-042] a result is a message of one block, from the call it answers', async () => {
  await using started = await startAgent({ model: looksOnce(), tools: [look()] })
  await started.agent.run('go')
  expect(ofType(await started.log(), 'tool/result')[0]?.data).toEqual({
    turn: 1,
    step: 1,
    message: {
      id: expect.any(String),
      role: 'user',
      source: { kind: 'tool', callId: 'c1' },
      content: [{ type: 'tool-result', toolCallId: 'c1', content: [{ type: 'text', text: 'seen' }] }],
    },
  })
})
