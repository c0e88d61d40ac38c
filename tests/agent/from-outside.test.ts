/** What hooks, commands and other processes hand over is data from outside: what cannot be is refused, and nothing ends. */
import { describe, expect, test } from 'vitest'
import { PawlError } from '../../src/log/errors.ts'
import type { CancelCause, SessionEvent } from '../../src/log/events.ts'
import type { UserMessage } from '../../src/log/messages.ts'
import type { PostedCommand } from '../../src/log/store.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import type { ToolContext } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent } from '../kit/agents.ts'

const echo = (execute: (args: unknown, context: ToolContext) => unknown = () => 'hi', needsApproval = false) =>
  tool({ name: 'echo', description: 'Says it again', parameters: {}, needsApproval, execute })
const callsOnce = () => scripted([toolCall('echo', {}, { id: 'c1' }), 'done'])
const resultOf = (log: readonly SessionEvent[]) => ofType(log, 'tool/result')[0]?.data
const message = (id: string, text: string): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

const text = [{ type: 'text', text: 'hi' }]
const nonsense: readonly (readonly [keyof Hooks, unknown])[] = [
  ['tools/pre-execute', undefined],
  ['tools/pre-execute', { kind: 'allowed' }],
  ['tools/pre-execute', { kind: 'deny' }],
  ['tools/pre-execute', { kind: 'ask', reason: 3 }],
  ['tools/execute', undefined],
  ['tools/execute', { kind: 'done', value: 1, content: text }],
  ['tools/execute', { kind: 'ok', value: 1n, content: text }],
  ['tools/execute', { kind: 'ok', value: 1 }],
  ['tools/execute', { kind: 'ok', value: 1, content: [{ type: 'text' }] }],
  ['tools/execute', { kind: 'ok', value: 1, content: [{ type: 'text', text: 'hi', more: undefined }] }],
  ['tools/execute', { kind: 'error' }],
  ['tools/execute', { kind: 'error', text: 'no', error: { name: 'E', code: '' } }],
  ['tools/post-execute', undefined],
  ['tools/post-execute', { kind: 'fine' }],
  ['tools/post-execute', { kind: 'block' }],
  ['tools/post-execute', { kind: 'accept', content: 'hi' }],
  ['tools/post-execute', { kind: 'accept', content: [{ type: 'text' }] }],
  ['tools/post-execute', { kind: 'accept', value: 1, content: text }],
  ['tools/post-execute', { kind: 'accept', contexts: 'one' }],
  ['tools/post-execute', { kind: 'accept', contexts: [{ role: 'user' }] }],
]

test.each(nonsense)(
  '%s that answers %o has failed: the call’s result says so, and the turn goes on',
  async (hook, answer) => {
    const ran: string[] = []
    await using started = await startAgent({
      model: callsOnce(),
      tools: [echo(() => void ran.push('ran'))],
      hooks: { [hook]: () => answer },
    })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const log = await started.log()
    expect(resultOf(log)?.message.content[0].isError).toBe(true)
    expect(ofType(log, 'agent/hook-failed').map(({ data }) => data.hook)).toEqual([hook])
    expect(ran).toEqual(hook === 'tools/post-execute' ? ['ran'] : [])
  },
)

test('a hook cannot change what a tool gave behind the back of the log', async () => {
  await using started = await startAgent({
    model: callsOnce(),
    tools: [echo()],
    hooks: {
      'tools/post-execute': ({ outcome }, next) => {
        if (outcome.kind === 'ok') (outcome.content as unknown[]).push({ type: 'text' })
        return next()
      },
    },
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  expect(resultOf(await started.log())?.message.content[0].isError).toBe(true)
})

test.each([
  ['a code that is empty', () => new PawlError('no', '')],
  ['a name that is none', () => Object.assign(new PawlError('no', 'NO'), { name: 3 })],
])('an error with %s is told without it', async (_, make) => {
  const fail = (): never => {
    throw make()
  }
  await using started = await startAgent({ model: callsOnce(), tools: [echo(fail)] })
  await started.agent.run('go')
  const result = resultOf(await started.log())
  expect(result?.message.content[0].content).toEqual([{ type: 'text', text: 'Error: no' }])
  expect(result?.error).toBeUndefined()
})

test('what a tool that is out of time throws stands beside the conversation, whatever it is, once its call is answered', async () => {
  const unhandled: unknown[] = []
  const note = (thrown: unknown): void => void unhandled.push(thrown)
  process.on('unhandledRejection', note)
  let fail = (_: unknown): void => {}
  const slow = tool({
    name: 'echo',
    description: 'Slow',
    parameters: {},
    timeoutMs: 1_000,
    execute: () =>
      new Promise((_, reject) => {
        fail = reject
      }),
  })
  const clock = simulatedClock()
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await using started = await startAgent({
    clock,
    model: callsOnce(),
    tools: [slow],
    hooks: {
      'tools/post-execute': async (_, next) => {
        await held
        return next()
      },
    },
  })
  const running = started.agent.run('go')
  await settle()
  clock.increment(1_000)
  await settle()
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  fail(proxy)
  await settle()
  // The call has no answer yet: what its tool says is not late.
  expect(ofType(await started.log(), 'tool/late-result')).toEqual([])
  release()
  expect((await running).reason).toEqual({ kind: 'completed' })
  await settle()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
  expect(ofType(await started.log(), 'tool/late-result')).toMatchObject([{ data: { outcome: { isError: true } } }])
})

test('of what tools and hooks add, what has an id that is taken gets another', async () => {
  const adds = (_: unknown, { addContext }: ToolContext): void => {
    addContext(message('same', 'one'))
    addContext(message('same', 'two'))
  }
  await using started = await startAgent({
    model: callsOnce(),
    tools: [echo(adds)],
    hooks: { 'tools/post-execute': () => ({ kind: 'accept', contexts: [message('first', 'three')] }) },
  })
  expect((await started.agent.run(message('first', 'go'))).reason).toEqual({ kind: 'completed' })
  const entered = ofType(await started.log(), 'user/message').map(({ data }) => data)
  expect(entered.map(({ content }) => (content[0] as { text: string }).text)).toEqual(['go', 'one', 'two', 'three'])
  expect(new Set(entered.map(({ id }) => id)).size).toBe(4)
})

test('agent/pre-step may not enter a message under an id that another has', async () => {
  await using started = await startAgent({ model: scripted(() => 'ok') })
  await started.agent.run(message('first', 'go'))
  started.agent.on('agent/pre-step', () => ({ kind: 'enter', messages: [message('first', 'once more')] }))
  expect((await started.agent.run('again')).reason).toMatchObject({ kind: 'error', error: { code: 'HOOK_MISUSE' } })
  expect(ofType(await started.log(), 'user/message')).toHaveLength(1)
})

describe('a command with what the log refuses', () => {
  const causes = [{ kind: 'bored' }, { kind: 'hook' }, { kind: 'user', why: undefined }] as unknown as CancelCause[]

  const waiting = async () => {
    const started = await startAgent({ model: callsOnce(), tools: [echo(() => 'hi', true)] })
    const running = started.agent.run('go')
    await started.agent.whenQuiet()
    const digest = started.agent.approvals()[0]?.argumentsDigest ?? ''
    return { started, agent: started.agent, running, digest }
  }

  test.each(causes)('rejects: a cancel or a close because of %o', async (cause) => {
    const { started, agent, running } = await waiting()
    await using _ = started
    const before = await started.log()
    await expect(agent.cancel(cause)).rejects.toThrow('cause')
    await expect(agent.close({ cancel: cause })).rejects.toThrow('cause')
    expect(agent.status).toBe('waiting')
    expect(await started.log()).toEqual(before)
    await agent.cancel()
    expect((await running).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
  })

  test('rejects: an answer to a question by nobody, or for no reason', async () => {
    const { started, agent, running, digest } = await waiting()
    await using _ = started
    const odd = 3 as unknown as string
    await expect(agent.approve('c1', { digest, by: odd })).rejects.toThrow('by must be a string')
    await expect(agent.deny('c1', { digest, by: odd })).rejects.toThrow('by must be a string')
    await expect(agent.deny('c1', { digest, reason: odd })).rejects.toThrow('reason must be a string')
    await agent.approve('c1', { digest, by: 'me' })
    expect((await running).text).toBe('done')
  })

  test('is refused when another process posts it, also while nobody owns the session', async () => {
    const { started, agent, running, digest } = await waiting()
    await using _ = started
    running.catch(() => {})
    await agent.close()
    const posted = [
      { id: 'p1', kind: 'cancel', turn: 1, cause: { kind: 'bored' } },
      { id: 'p2', kind: 'deny', callId: 'c1', run: 0, digest, reason: 3 },
    ] as unknown as readonly PostedCommand[]
    for (const command of posted) await started.store.post('session', command)
    await using again = await startAgent({
      store: started.store,
      model: scripted(['done']),
      tools: [echo(() => 'hi', true)],
    })
    const { signal } = new AbortController()
    for (const { id } of posted) {
      expect(await started.store.outcome('session', id, signal)).toMatchObject({
        kind: 'refused',
        code: 'INVALID_EVENT',
      })
    }
    expect(again.agent.status).toBe('waiting')
    await again.agent.cancel()
  })
})
