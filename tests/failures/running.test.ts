/**
 * Known failures of running agents: stops that lose or restart work, aborts that leave things going, approvals that
 * run a call twice or never, loops without an end. Each test is the input that broke somebody, and what happens here.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Agent, type AgentOptions, createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { JsonSchema } from '../../src/log/requests.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import type { Tool } from '../../src/services/tools/contract.ts'
import { type ToolDefinition, tool } from '../../src/services/tools/tool.ts'
import { workspaceTools } from '../../src/services/tools/workspace/workspace-tools.ts'
import { countingIds, ofType, settle, startAgent, stored } from '../kit/agents.ts'
import { reasons, userTexts } from '../kit/conversation.ts'
import { expectPaired } from '../kit/pairing.ts'

const user = { kind: 'user' } as const
type Definition = ToolDefinition<JsonSchema>
type Body = Definition['execute']

const named = (name: string, execute: Body, more: Partial<Definition> = {}): Tool =>
  tool<JsonSchema>({ name, description: name, parameters: { type: 'object' }, execute, ...more })
const look = named('look', () => 'seen')

/** A body that has begun tells so, and goes on when it is let. */
function held() {
  const bench = gate()
  const body: Body = async () => {
    await bench.pass(new AbortController().signal)
    return 'worked'
  }
  return { body, begun: bench.reached, release: bench.release }
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-running-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const pendingOf = (agent: Agent) => {
  const [pending] = agent.approvals()
  if (pending === undefined) throw new Error('nothing is pending')
  return { ...pending, digest: pending.argumentsDigest }
}

describe('stopping', () => {
  test.each(['followup', 'steer'] as const)(
    '[RUN-02] a %s that is accepted while a stop settles runs after it',
    async (kind) => {
      const work = held()
      const model = scripted([toolCall('work', {}), 'second answer'])
      await using started = await startAgent({ model, tools: [named('work', work.body)] })
      started.agent.followup('first')
      await work.begun
      const stopped = started.agent.cancel()
      const receipt = started.agent[kind]('second')
      expect(await receipt.accepted).toMatchObject({ seq: expect.any(Number) })
      work.release()
      await stopped
      expect(await receipt.turn).toMatchObject({ turn: 2, text: 'second answer' })
      expect(reasons(await started.log()).map(({ kind: end }) => end)).toEqual(['aborted', 'completed'])
    },
  )

  test('[RUN-02] what only informs waits on, and a run that a second stop clears says so', async () => {
    const work = held()
    await using started = await startAgent({
      model: scripted([toolCall('work', {})]),
      tools: [named('work', work.body)],
    })
    started.agent.followup('first')
    await work.begun
    const stopped = started.agent.cancel()
    const lost = started.agent.run('lost')
    const refused = expect(lost).rejects.toMatchObject({ code: 'MESSAGE_CANCELED' })
    void started.agent.cancel()
    started.agent.inject('kept')
    work.release()
    await stopped
    await refused
    await started.agent.whenIdle()
    expect(started.agent.inbox.nextStep).toHaveLength(1)
  })

  test('[RUN-03] what is queued is held after a stop that keeps it, and starts only when asked to', async () => {
    const model = scripted([[text('first'), hangs()], 'two', 'three'])
    await using started = await startAgent({ model })
    for (const words of ['one', 'two', 'three']) started.agent.followup(words)
    await settle()
    await started.agent.cancel(user, { keepInbox: true })
    await settle()
    expect(started.agent.status).toBe('idle')
    expect(started.agent.inbox.nextTurn).toHaveLength(2)
    started.agent.wake()
    await started.agent.whenIdle()
    expect(userTexts(await started.log())).toEqual(['one', 'two', 'three'])
  })

  test('[RUN-03] nor does anything start by itself after a failure, or when the session is opened again', async () => {
    const store = memoryStore()
    const model = scripted([fails('AUTH'), 'never asked'])
    await using started = await startAgent({ store, model })
    for (const words of ['one', 'two', 'three']) started.agent.followup(words)
    await started.agent.whenIdle()
    expect(started.agent.inbox.nextTurn).toHaveLength(2)
    await started.agent.close()
    await using again = await startAgent({ store, model })
    await settle()
    expect(model.requests).toHaveLength(1)
    expect(again.agent.inbox.nextTurn).toHaveLength(2)
  })

  test('[RUN-04] a message given while a turn ends is not overwritten by its end', async () => {
    await using started = await startAgent({ model: scripted(() => 'ok') })
    const { agent } = started
    let given = false
    agent.on('session/event', ({ type }) => {
      if (given || (type !== 'step/end' && type !== 'turn/end')) return
      given = true
      agent.followup('at the end')
      agent.inject('by the way')
    })
    await agent.run('first')
    await agent.whenIdle()
    expect([...userTexts(await started.log())].sort()).toEqual(['at the end', 'by the way', 'first'])
  })

  test('[RUN-05] a stop in the tick of the start ends the turn without a request', async () => {
    const model = scripted(['never asked'])
    await using started = await startAgent({ model })
    const { agent } = started
    const stop = new AbortController()
    const run = agent.run('go', { signal: stop.signal })
    stop.abort()
    expect((await run).reason).toEqual({ kind: 'aborted', cause: user })
    expect(model.requests).toEqual([])
    await expect(agent.run('go', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
    expect(reasons(await started.log())).toHaveLength(1)
  })

  test('[RUN-05] a stop of a run that still waits takes its message out and leaves the open turn alone', async () => {
    const first = gate()
    await using started = await startAgent({ model: scripted([[pause(first), text('one')], 'never asked']) })
    const { agent } = started
    const one = agent.run('one')
    const stop = new AbortController()
    const two = expect(agent.run('two', { signal: stop.signal })).rejects.toMatchObject({ code: 'MESSAGE_CANCELED' })
    await first.reached
    stop.abort()
    await two
    first.release()
    expect((await one).reason).toEqual({ kind: 'completed' })
  })

  test('[RUN-05] a stop that comes when the store has failed is no uncaught exception', async () => {
    const disk = faulty(memoryStore())
    const { agent } = await startAgent({ store: disk.store, model: scripted([[text('a'), hangs()]]) })
    const stop = new AbortController()
    agent.on('agent/status', (status) => {
      if (status === 'failed') stop.abort()
    })
    const run = expect(agent.run('go', { signal: stop.signal })).rejects.toMatchObject({ code: 'STORE_FAILURE' })
    await settle()
    disk.breakNow('fail')
    agent.inject('and this')
    await run
    expect(agent.status).toBe('failed')
  })

  test('[RUN-06] a stop from elsewhere reaches the owner, and whoever reads the log sees the end', async () => {
    const store = memoryStore()
    await using started = await startAgent({ store, model: scripted([[text('so far'), hangs()]]) })
    started.agent.followup('go')
    await settle()
    const seen = (async () => {
      for await (const event of store.subscribe('session', { from: 0, signal: AbortSignal.timeout(5_000) })) {
        if (event.type === 'turn/end') return event.data.reason
      }
      return undefined
    })()
    const parent = { kind: 'parent' } as const
    await store.post('session', { id: 'x', kind: 'cancel', turn: 1, cause: parent })
    expect(await store.outcome('session', 'x', AbortSignal.timeout(5_000))).toMatchObject({ kind: 'taken' })
    expect(await seen).toEqual({ kind: 'aborted', cause: parent })
    // The turn it named is over: the next one is safe from it.
    await store.post('session', { id: 'y', kind: 'cancel', turn: 1, cause: parent })
    expect(await store.outcome('session', 'y', AbortSignal.timeout(5_000))).toMatchObject({ code: 'TURN_OVER' })
  })

  test('[RUN-06] one that was left while nobody owned the session is carried out at its opening', async () => {
    const store = memoryStore()
    const { agent } = await startAgent({ store, model: scripted([[text('so far'), hangs()]]) })
    agent.followup('go')
    await settle()
    await agent.close()
    await store.post('session', { id: 'x', kind: 'cancel', turn: 1, cause: user })
    const model = scripted(['never asked'])
    await using again = await startAgent({ store, model })
    await again.agent.whenIdle()
    expect(reasons(await again.log())).toEqual([{ kind: 'aborted', cause: user }])
    expect(model.requests).toEqual([])
  })

  test('[RUN-07] a stop ends the processes a command started, and the result says what was ended', async () => {
    const root = newFolder()
    const command = 'sleep 300 & echo "child $!"; wait'
    const model = scripted([toolCall('run_command', { command })])
    await using started = await startAgent({ model, tools: workspaceTools({ root }) })
    const { agent } = started
    agent.followup('go')
    await agent.whenQuiet()
    await agent.approve(pendingOf(agent).callId, pendingOf(agent))
    await new Promise((resolve) => setTimeout(resolve, 300))
    await agent.cancel()
    const [result] = ofType(await started.log(), 'tool/result')
    const words = JSON.stringify(result?.data.message.content)
    expect(result?.data.error?.code).toBe('ABORTED')
    expect(words).toContain('ended by SIGTERM')
    const child = Number(/child (\d+)/.exec(words)?.[1])
    expect(child).toBeGreaterThan(0)
    expect(() => process.kill(child, 0)).toThrow('ESRCH')
  })

  test('[RUN-08] a body that is stopped and answers all the same is no success, and the loop does not go on', async () => {
    const work = held()
    const model = scripted([toolCall('work', {}), 'never asked'])
    await using started = await startAgent({ model, tools: [named('work', work.body)] })
    started.agent.followup('go')
    await work.begun
    const stopped = started.agent.cancel()
    work.release()
    await stopped
    const [result] = ofType(await started.log(), 'tool/result')
    expect(result?.data).toMatchObject({ error: { code: 'ABORTED' }, message: { content: [{ isError: true }] } })
    expect(model.requests).toHaveLength(1)
  })

  test('[RUN-09] the signal of a call that has ended stays quiet: what it handed on is not stopped with the turn', async () => {
    const signals: AbortSignal[] = []
    const keep = named('keep', (_, { signal }) => {
      signals.push(signal)
      return 'handed on'
    })
    const model = scripted([toolCall('keep', {}), [text('so far'), hangs()]])
    await using started = await startAgent({ model, tools: [keep] })
    started.agent.followup('go')
    await settle()
    expect(model.requests).toHaveLength(2)
    await started.agent.cancel()
    await started.agent.close()
    expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  })

  test('[RUN-10] a stop reaches an agent inside a tool, and the tool inside that agent', async () => {
    const store = memoryStore()
    const inner = named(
      'sleep',
      (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('woken'))),
    )
    const delegate = named('delegate', async (_, { signal, callId }) => {
      await using child = await createAgent({
        store,
        sessionId: `child-${callId}`,
        tools: [inner],
        model: scripted([toolCall('sleep', {})]),
      })
      const stop = () => void child.cancel({ kind: 'parent' })
      signal.addEventListener('abort', stop, { once: true })
      return (await child.run('sleep')).text
    })
    const model = scripted([toolCall('delegate', {}, { id: 'c1' })])
    await using started = await startAgent({ store, model, tools: [delegate] })
    started.agent.followup('go')
    await untilLogged(store, 'child-c1', 'tool/dispatch')
    await started.agent.cancel()
    const parent = { kind: 'parent' } as const
    expect(reasons(await stored(store, 'child-c1'))).toEqual([{ kind: 'aborted', cause: parent }])
    expect(reasons(await started.log())).toEqual([{ kind: 'aborted', cause: user }])
  })

  test('[RUN-11] the same stop reaches the hooks, the model and the tools, wherever it came from', async () => {
    const store = memoryStore()
    const reached: string[] = []
    const tell = (name: string, signal: AbortSignal) => signal.addEventListener('abort', () => reached.push(name))
    const work = named('work', (_, { signal }) => {
      tell('tool', signal)
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped')))
    })
    await using started = await startAgent({
      store,
      tools: [work],
      model: scripted([toolCall('work', {})]),
      hooks: {
        'agent/pre-step': ({ signal }, next) => {
          tell('pre-step', signal)
          return next()
        },
        'tools/execute': ({ signal }, next) => {
          tell('execute', signal)
          return next()
        },
      },
    })
    started.agent.followup('go')
    await untilLogged(store, 'session', 'tool/dispatch')
    await settle()
    await store.post('session', { id: 'x', kind: 'cancel', turn: 1, cause: user })
    await started.agent.whenIdle()
    expect(reached.sort()).toEqual(['execute', 'pre-step', 'tool'])
  })

  test('[RUN-12] a reader that leaves stops nothing', async () => {
    const first = gate()
    await using started = await startAgent({ model: scripted([[text('half'), pause(first), text(' and half')]]) })
    const { agent } = started
    const run = agent.run('go')
    const leaving = new AbortController()
    const reading = (async () => {
      for await (const event of agent.session.events({ live: true, signal: leaving.signal })) {
        if (event.type === 'assistant/chunk') break
      }
    })()
    const subscription = agent.session.events$.subscribe()
    await first.reached
    await agent.session.flush()
    await reading
    leaving.abort()
    subscription.unsubscribe()
    first.release()
    expect(await run).toMatchObject({ reason: { kind: 'completed' }, text: 'half and half' })
  })
})

describe('approvals', () => {
  const gated = (witness: string[], more: Partial<Definition> = {}): Tool =>
    named(
      'pay',
      (_, { callId, run }) => {
        witness.push(`${callId} ${run}`)
        return `paid ${callId}`
      },
      { needsApproval: true, ...more },
    )
  /** A session that waits for one approval, its agent closed or gone. */
  async function asked(
    store: LogStore,
    witness: string[],
    script: Parameters<typeof scripted>[0] = [toolCall('pay', { sum: 5 }, { id: 'c1' })],
  ) {
    const started = await startAgent({ store, tools: [gated(witness)], model: scripted(script) })
    started.agent.followup('go')
    await started.agent.whenQuiet()
    return started
  }

  test('[RUN-14] [RUN-17] the result of an approved call is durable before anything else: no crash runs it again', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const { agent } = await asked(store, witness, [toolCall('pay', { sum: 5 }, { id: 'c1' }), [text('so'), hangs()]])
    const { digest } = pendingOf(agent)
    await agent.approve('c1', { digest })
    await untilLogged(store, 'session', 'tool/result')
    for (let crash = 0; crash < 3; crash++) {
      const again = await startAgent({ store, steal: true, tools: [gated(witness)], model: scripted([hangs()]) })
      await settle()
      await expect(again.agent.approve('c1', { digest })).rejects.toMatchObject({ code: 'APPROVAL_ALREADY_RESOLVED' })
    }
    expect(witness).toEqual(['c1 1'])
    const model = scripted(['done'])
    await using last = await startAgent({ store, steal: true, maxResumes: 9, tools: [gated(witness)], model })
    await last.agent.whenIdle()
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('paid c1')
    expect(witness).toEqual(['c1 1'])
  })

  test('[RUN-17] a crash before the approval is durable: the body has not run, and one answer runs it once', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const disk = faulty(store)
    const { agent } = await asked(disk.store, witness)
    const { digest } = pendingOf(agent)
    disk.breakNow('hang')
    agent.approve('c1', { digest }).catch(() => {})
    await settle()
    expect(witness).toEqual([])
    const model = scripted(['done'])
    await using again = await startAgent({ store, steal: true, tools: [gated(witness)], model })
    await again.agent.whenQuiet()
    expect(pendingOf(again.agent)).toMatchObject({ callId: 'c1', run: 0 })
    await again.agent.approve('c1', { digest })
    await again.agent.whenIdle()
    expect(witness).toEqual(['c1 1'])
    expectPaired(model.requests[0]?.messages ?? [])
  })

  test('[RUN-15] an answer that is sent again after its reply was lost has the first outcome, also at the next owner', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const { agent } = await asked(store, witness, [toolCall('pay', { sum: 5 }, { id: 'c1' }), 'done'])
    const { digest } = pendingOf(agent)
    const outcomeOf = (id: string) => store.outcome('session', id, AbortSignal.timeout(5_000))
    const approve = { id: 'mine', kind: 'approve', callId: 'c1', run: 0, digest } as const
    await store.post('session', approve)
    const first = await outcomeOf('mine')
    await agent.whenIdle()
    await store.post('session', approve)
    expect(await outcomeOf('mine')).toEqual(first)
    await agent.close()
    await using again = await startAgent({ store, tools: [gated(witness)], model: scripted([]) })
    await store.post('session', approve)
    await settle()
    expect(await outcomeOf('mine')).toEqual(first)
    await store.post('session', { ...approve, id: 'another', kind: 'deny' })
    expect(await outcomeOf('another')).toMatchObject({ kind: 'refused', code: 'APPROVAL_ALREADY_RESOLVED' })
    expect(witness).toEqual(['c1 1'])
    await again.agent.close()
  })

  test('[RUN-16] what was done before a pause is not done again when it is over', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const effect = named('effect', () => void witness.push('effect'))
    const script = [[toolCall('effect', {}), toolCall('pay', {}, { id: 'c1' })], 'done']
    const hooked: string[] = []
    const options = (): Partial<AgentOptions> => ({
      store,
      tools: [effect, gated(witness)],
      hooks: {
        'tools/pre-execute': ({ name }, next) => {
          hooked.push(name)
          return next()
        },
      },
    })
    const first = await startAgent({ ...options(), model: scripted(script) })
    first.agent.followup('go')
    await first.agent.whenQuiet()
    await first.agent.close()
    await using again = await startAgent({ ...options(), model: scripted(script.slice(1)) })
    await again.agent.whenQuiet()
    await again.agent.approve('c1', pendingOf(again.agent))
    await again.agent.whenIdle()
    expect(witness).toEqual(['effect', 'c1 1'])
    expect(hooked).toEqual(['effect', 'pay'])
  })

  test('[RUN-18] [RUN-20] [RUN-33] two calls that wait are answered each by its id in another process, the second first', async () => {
    const path = join(newFolder(), 'pawl.db')
    const witness: string[] = []
    const script = [[toolCall('pay', { n: 1 }, { id: 'c1' }), toolCall('pay', { n: 2 }, { id: 'c2' })], 'done']
    const tools = [gated(witness, { mode: 'parallel' })]
    const storeA = sqliteStore(path)
    const first = await startAgent({ store: storeA, tools, model: scripted(script) })
    first.agent.followup('go')
    await first.agent.whenQuiet()
    await first.agent.close()
    await storeA[Symbol.asyncDispose]()

    await using store = sqliteStore(path)
    for await (const listed of store.list()) expect(listed).toMatchObject({ id: 'session', waitingFor: 'approval' })
    const model = scripted(script.slice(1))
    await using again = await startAgent({ store, tools, model })
    await again.agent.whenQuiet()
    const [one, two] = again.agent.approvals()
    expect([one?.callId, two?.callId]).toEqual(['c1', 'c2'])
    const digests = { c1: one?.argumentsDigest ?? '', c2: two?.argumentsDigest ?? '' }
    await expect(again.agent.approve('c2', { digest: digests.c1 })).rejects.toMatchObject({
      code: 'APPROVAL_DIGEST_MISMATCH',
    })
    await again.agent.approve('c2', { digest: digests.c2 })
    await again.agent.deny('c1', { digest: digests.c1, reason: 'too much' })
    await again.agent.whenIdle()
    expect(witness).toEqual(['c2 1'])
    const { messages = [] } = model.requests[0] ?? {}
    expectPaired(messages)
    expect(JSON.stringify(messages)).toContain('paid c2')
    expect(JSON.stringify(messages)).toContain('too much')
  })

  test('[RUN-33] an answer for a call that nobody knows is refused, and no result is made of it', async () => {
    const store = memoryStore()
    const witness: string[] = []
    await using started = await asked(store, witness)
    const { digest } = pendingOf(started.agent)
    const post = async (callId: string, run: number) => {
      const id = `${callId} ${run}`
      await store.post('session', { id, kind: 'approve', callId, run, digest })
      return store.outcome('session', id, AbortSignal.timeout(5_000))
    }
    expect(await post('c9', 0)).toMatchObject({ kind: 'refused', code: 'APPROVAL_NOT_PENDING' })
    expect(await post('c1', 1)).toMatchObject({ kind: 'refused', code: 'APPROVAL_NOT_PENDING' })
    expect(ofType(await started.log(), 'tool/result')).toEqual([])
    expect(started.agent.status).toBe('waiting')
  })

  test('[RUN-19] an approval is there to be answered as soon as anybody hears of it, however large the session', async () => {
    const store = memoryStore()
    const witness: string[] = []
    const large = 'x'.repeat(900_000)
    const started = await startAgent({
      store,
      tools: [gated(witness)],
      model: scripted(['ok', toolCall('pay', {}), 'ok']),
    })
    await using _ = started
    await started.agent.run(large)
    const answered = (async () => {
      for await (const event of store.subscribe('session', { from: 0, signal: AbortSignal.timeout(10_000) })) {
        if (event.type !== 'tool/approval-requested') continue
        const { callId, run, argumentsDigest: digest } = event.data
        await store.post('session', { id: 'now', kind: 'approve', callId, run, digest })
        return store.outcome('session', 'now', AbortSignal.timeout(10_000))
      }
      return undefined
    })()
    await started.agent.run(large)
    expect(await answered).toMatchObject({ kind: 'taken' })
    expect(witness).toHaveLength(1)
  })

  test('[RUN-21] what may be answered is what the log asked: another call, run or set of arguments is refused', async () => {
    const store = memoryStore()
    const witness: string[] = []
    await using started = await asked(store, witness)
    const { agent } = started
    const { digest } = pendingOf(agent)
    const forged = agent.approvals()[0]
    expect(() => Object.assign(forged ?? {}, { argumentsDigest: 'sha256:forged' })).not.toThrow()
    await expect(agent.approve('c1', { digest: 'sha256:forged' })).rejects.toMatchObject({
      code: 'APPROVAL_DIGEST_MISMATCH',
    })
    await expect(agent.approve('c1', { digest, run: 1 })).rejects.toMatchObject({ code: 'APPROVAL_NOT_PENDING' })
    expect(pendingOf(agent)).toMatchObject({ callId: 'c1', digest })
    expect(witness).toEqual([])
  })
})

describe('loops', () => {
  test('[RUN-23] a call that is made again and again ends the turn with its own reason, however it is spelt', async () => {
    const spelt = ['{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }', '{"b":[2],\n"a":1}']
    const model = scripted((_, n) => toolCall('look', spelt[n % spelt.length]))
    await using started = await startAgent({ model, tools: [look] })
    const { reason } = await started.agent.run('go')
    expect(reason).toEqual({ kind: 'repeated-call', name: 'look', count: 6 })
    expect(ofType(await started.log(), 'tool/dispatch')).toHaveLength(5)
  })

  test('[RUN-23] also within one answer, and in batches whose order changes', async () => {
    const spelt = ['{"a":1,"b":2}', '{"b":2,"a":1}', ' {"a":1, "b":2}']
    const once = scripted([Array.from({ length: 6 }, (_, i) => toolCall('look', spelt[i % 3]))])
    await using first = await startAgent({ model: once, tools: [look] })
    expect((await first.agent.run('go')).reason).toMatchObject({ kind: 'repeated-call', count: 6 })
    const batches = scripted((_, n) => {
      const pair = [toolCall('look', { x: 1 }), toolCall('look', { y: 2 })]
      return n % 2 === 0 ? pair : pair.reverse()
    })
    await using second = await startAgent({ model: batches, tools: [look] })
    expect((await second.agent.run('go')).reason).toMatchObject({ kind: 'repeated-call', count: 6 })
  })

  test('[RUN-24] a tool that may repeat itself is left alone, others are warned first, and the guard can be turned off', async () => {
    const poll = named('poll', () => 'not yet', { repeatable: true })
    const polling = scripted((_, n) => (n < 12 ? toolCall('poll', {}) : 'there'))
    await using first = await startAgent({ model: polling, tools: [poll] })
    expect(await first.agent.run('go')).toMatchObject({ reason: { kind: 'completed' }, text: 'there' })
    const looking = () => scripted((_, n) => (n < 12 ? toolCall('look', {}) : 'there'))
    await using off = await startAgent({ model: looking(), tools: [look], repeatedCalls: false })
    expect((await off.agent.run('go')).reason).toEqual({ kind: 'completed' })
    const warned = looking()
    await using on = await startAgent({ model: warned, tools: [look] })
    expect((await on.agent.run('go')).reason.kind).toBe('repeated-call')
    expect(JSON.stringify(warned.requests[2])).not.toContain('same arguments')
    expect(JSON.stringify(warned.requests[3])).toContain('same arguments')
    // Pages are other arguments, and no repetition.
    const paging = scripted((_, n) => (n < 12 ? toolCall('look', { page: n }) : 'there'))
    await using pages = await startAgent({ model: paging, tools: [look] })
    expect((await pages.agent.run('go')).reason).toEqual({ kind: 'completed' })
  })

  test('[RUN-25] [RUN-26] the steps of a turn end at their bound, whatever the model asks, and the turn says so', async () => {
    const model = scripted((_, n) => toolCall('look', { n }))
    await using started = await startAgent({ model, tools: [look], maxSteps: 2 })
    expect(await started.agent.run('go')).toMatchObject({ steps: 2, reason: { kind: 'max-steps', maxSteps: 2 } })
    expect(model.requests).toHaveLength(2)
    expectPaired(started.agent.session.messages())
  })
})

describe('long lives', () => {
  const heap = (): number => {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    if (typeof collect === 'function') for (let i = 0; i < 3; i++) collect()
    return process.memoryUsage().heapUsed
  }

  /** A model that keeps nothing of what it was asked. */
  const quick: ModelAdapter = {
    provider: 'p',
    model: 'm',
    async *stream() {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      yield { type: 'block-end', index: 0, block: { type: 'text', text: 'ok' } }
      yield { type: 'finish', reason: { kind: 'stop' } }
    },
  }

  test('[RUN-27] a long stream costs what its answer is, and each of its pieces the same', {
    timeout: 60_000,
  }, async () => {
    await using store = sqliteStore(join(newFolder(), 'pawl.db'))
    const length = 6_000
    const long = () => text('abcde'.repeat(length / 5), { deltas: length })
    await using started = await startAgent({ store, model: scripted([long(), long(), long(), long()]) })
    const times: number[] = []
    const run = async () => {
      const from = performance.now()
      await started.agent.run('go')
      times.push(performance.now() - from)
    }
    await run()
    const before = heap()
    for (let i = 0; i < 3; i++) await run()
    // Six thousand chunks an answer are megabytes; what is kept is three answers of 6 kB.
    expect(heap() - before).toBeLessThan(3_000_000)
    expect(times[3] ?? 0).toBeLessThan((times[0] ?? 0) * 4 + 500)
  })

  test('[RUN-27] runs that are over leave nothing behind but the conversation', { timeout: 60_000 }, async () => {
    await using store = sqliteStore(join(newFolder(), 'pawl.db'))
    const { agent } = await startAgent({ store, model: quick })
    for (let i = 0; i < 30; i++) await agent.run('go')
    const before = heap()
    for (let i = 0; i < 100; i++) await agent.run('go')
    expect((heap() - before) / 100).toBeLessThan(8_000)
    await agent.close()
  })

  test('[RUN-31] a turn keeps its number and its message over a crash, and whoever waits for it hears its end', async () => {
    const store = memoryStore()
    const dead = await startAgent({ store, model: scripted([[text('half'), hangs()]]) })
    dead.agent.followup('go', { requestId: 'r1' })
    await settle()
    await dead.agent.session.flush()
    const heard: SessionEvent[] = []
    const client = (async () => {
      for await (const event of store.subscribe('session', { from: 0, signal: AbortSignal.timeout(5_000) })) {
        heard.push(event)
        if (event.type === 'turn/end') return
      }
    })()
    await using again = await startAgent({ store, steal: true, model: scripted(['whole']) })
    const receipt = again.agent.followup('go', { requestId: 'r1' })
    expect(await receipt.turn).toMatchObject({ turn: 1, text: 'whole' })
    await client
    expect(
      new Set(heard.flatMap(({ data }) => ('turn' in (data as object) ? [(data as { turn: number }).turn] : []))),
    ).toEqual(new Set([1]))
    expect(userTexts(await again.log())).toEqual(['go'])
  })

  test('[RUN-32] recovery that always fails is tried a bounded number of times, then the turn is closed and rests', async () => {
    const store = memoryStore()
    let probed = 0
    const probe = () => {
      probed += 1
      throw new Error('the probe is broken')
    }
    const work = (): Tool => named('work', () => new Promise(() => {}), { onCrash: async () => probe() })
    const dead = await startAgent({ store, tools: [work()], model: scripted([toolCall('work', {})]) })
    dead.agent.followup('go')
    await untilLogged(store, 'session', 'tool/dispatch')
    await settle()
    // A probe that throws does not know; the model that is asked then never answers, and the process dies again.
    for (let crash = 0; crash < 6; crash++) {
      const { agent } = await startAgent({ store, steal: true, tools: [work()], model: scripted(() => hangs()) })
      await settle()
      await agent.session.flush()
    }
    expect(probed).toBe(1)
    const log = await stored(store, 'session')
    expect(ofType(log, 'session/resumed').length).toBeLessThanOrEqual(5)
    expect(reasons(log)).toEqual([{ kind: 'interrupted', cause: 'recovery-limit' }])
    for await (const summary of store.list()) expect(summary).toMatchObject({ state: 'idle', owed: false })
  })

  test('[RUN-32] one session whose recovery hangs keeps no other waiting', async () => {
    const store = memoryStore()
    const stuck = named('work', () => new Promise(() => {}), { onCrash: () => new Promise(() => {}) })
    const open = (sessionId: string, more: Partial<AgentOptions> = {}) =>
      createAgent({
        store,
        sessionId,
        steal: true,
        tools: [stuck],
        model: scripted(['done']),
        newId: countingIds(),
        ...more,
      })
    for (const id of ['a', 'b', 'c']) {
      const agent = await open(id, { model: scripted([toolCall('work', {}, { id: 'c1' })]) })
      agent.followup('go')
      await untilLogged(store, id, 'tool/dispatch')
    }
    const [a, b, c] = await Promise.all([open('a'), open('b', { tools: [] }), open('c', { tools: [] })])
    await Promise.all([b?.whenIdle(), c?.whenIdle()])
    expect(a?.status).toBe('running')
    await a?.cancel()
    for (const agent of [a, b, c]) await agent?.close()
  })
})

/** A store whose appends fail, or are never answered, once it is told to break. */
function faulty(inner: LogStore) {
  let broken: 'fail' | 'hang' | undefined
  const store: LogStore = {
    ...inner,
    async acquire(...given) {
      const owner = await inner.acquire(...given)
      const append: typeof owner.append = async (...batch) => {
        if (broken === 'fail') throw new Error('the disk is gone')
        if (broken === 'hang') await new Promise(() => {})
        return owner.append(...batch)
      }
      return { ...owner, append }
    },
  }
  return {
    store,
    breakNow: (how: 'fail' | 'hang') => {
      broken = how
    },
  }
}

/** Until a session's log has an event of that type. */
async function untilLogged(store: LogStore, session: string, type: string): Promise<void> {
  while ((await store.header(session)) === undefined) await settle(1)
  for await (const event of store.subscribe(session, { from: 0, signal: AbortSignal.timeout(5_000) })) {
    if (event.type === type) return
  }
  throw new Error(`no ${type} in ${session}`)
}
