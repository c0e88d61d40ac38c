/** The two queues: who goes where, what a claim takes, what is refused, what outlives the process. */
import { describe, expect, test } from 'vitest'
import { AgentClosed, DuplicateMessage, NotJson } from '../../src/index.ts'
import { StoreFailure } from '../../src/log/errors.ts'
import { inbox } from '../../src/log/projections/inbox.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, hangs, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import type { ToolContext } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, typesOf } from '../kit/agents.ts'
import {
  idsOf,
  message,
  reasons,
  splices,
  statusesOf,
  steps,
  toldTexts,
  turnOf,
  userTexts,
} from '../kit/conversation.ts'
import { faultyStore } from '../kit/faulty-store.ts'

/** A tool that does what it is told in the middle of a step. */
const act = (body: (context: ToolContext) => void) =>
  tool({
    name: 'act',
    description: 'Acts',
    parameters: { type: 'object' },
    execute: (_, context) => {
      body(context)
      return 'acted'
    },
  })
const callsAct = toolCall('act', {}, { id: 'c1' })

describe('queues and claims', () => {
  test('[inbox-003] injecting while idle only queues', async () => {
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model })
    const { agent } = started
    const receipt = agent.inject(message('m'))
    expect(await receipt.accepted).toEqual({ seq: 0 })
    await settle()
    const log = await started.log()
    expect(log.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'agent/inbox/spliced',
        data: {
          mutation: 'splice',
          queue: 'next-step',
          start: 0,
          deleteCount: 0,
          inserted: [{ kind: 'message', message: message('m') }],
        },
      },
    ])
    expect(agent.status).toBe('idle')
    expect(model.requests).toEqual([])
  })

  test('[inbox-004] the opening of a turn claims all of next-step, then one of next-turn', async () => {
    await using started = await startAgent()
    const { agent } = started
    agent.inject(message('a'))
    agent.inject(message('b'))
    agent.followup(message('p'))
    await agent.whenIdle()
    const log = await started.log()
    expect(splices(log)).toEqual([
      'next-step@0 +[a]',
      'next-step@1 +[b]',
      'next-turn@0 +[p] wakes',
      'next-step@0 -2 claimed',
      'next-turn@0 -1 claimed',
    ])
    expect(userTexts(log)).toEqual(['a', 'b', 'p'])
  })

  test('[inbox-005] between the steps of a turn only next-step is claimed, in one splice with the result', async () => {
    const model = scripted([callsAct, 'done', 'next'])
    const acts = act((context) => {
      context.steer(message('s'))
      followup()
    })
    await using started = await startAgent({ model, tools: [acts] })
    const followup = () => started.agent.followup(message('f'))
    await started.agent.run(message('p'))
    await started.agent.whenIdle()
    const log = await started.log()
    expect(splices(log)).toEqual([
      'next-turn@0 +[p] wakes',
      'next-turn@0 -1 claimed',
      'next-step@0 +[s] wakes',
      'next-turn@0 +[f] wakes',
      'next-step@1 +[result of c1]',
      'next-step@0 -2 claimed',
      'next-turn@0 -1 claimed',
    ])
    expect(steps(log)).toEqual(['1.1', '1.2', '2.1'])
    expect(userTexts(turnOf(log, 1))).toEqual(['p', 's'])
    expect(userTexts(turnOf(log, 2))).toEqual(['f'])
  })

  test('[inbox-006] two steers of one tool enter the same step, in order', async () => {
    const model = scripted([callsAct, 'done'])
    const acts = act((context) => {
      context.steer(message('a'))
      context.steer(message('b'))
    })
    await using started = await startAgent({ model, tools: [acts] })
    await started.agent.run(message('p'))
    const log = await started.log()
    expect(splices(log).slice(-2)).toEqual(['next-step@2 +[result of c1]', 'next-step@0 -3 claimed'])
    const second = ofType(log, 'step/start')[1]?.seq ?? Number.NaN
    expect(ofType(log, 'user/message').map(({ data, seq }) => [data.id, seq > second])).toEqual([
      ['p', false],
      ['a', true],
      ['b', true],
    ])
    expect(model.requests.map(toldTexts)).toEqual([['p'], ['p', 'a', 'b']])
  })

  test('[inbox-007] a claim says so and inserts nothing', async () => {
    await using started = await startAgent({ model: scripted([callsAct, 'done']), tools: [act(() => {})] })
    await started.agent.run('go')
    const claims = ofType(await started.log(), 'agent/inbox/spliced').filter(({ data }) => data.deleteCount > 0)
    expect(claims.map(({ data }) => [data.queue, data.inserted, data.outcome])).toEqual([
      ['next-turn', [], 'claimed'],
      ['next-step', [], 'claimed'],
    ])
  })

  test('[inbox-028] what was injected before anything woke is claimed with the next followup', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    started.agent.inject('c')
    await settle()
    await started.agent.run('go')
    expect(model.requests.map(toldTexts)).toEqual([['c', 'go']])
    expect(steps(await started.log())).toEqual(['1.1'])
  })
})

describe('editing the queues', () => {
  test('[inbox-009] a change of nothing writes nothing', async () => {
    await using started = await startAgent()
    started.agent.inbox.clear()
    await started.agent.cancel()
    started.agent.wake()
    expect(await started.log()).toEqual([])
  })

  test('[inbox-010] a removal tells exactly where it was, also from the middle', async () => {
    await using started = await startAgent()
    const { agent } = started
    for (const id of ['a', 'b', 'c']) agent.inject(message(id))
    expect(agent.inbox.remove('b')).toBe(true)
    expect(idsOf(agent.inbox.nextStep)).toEqual(['a', 'c'])
    const last = (await started.log()).at(-1)
    expect(last?.data).toEqual({
      mutation: 'splice',
      queue: 'next-step',
      start: 1,
      deleteCount: 1,
      inserted: [],
      outcome: 'canceled',
    })
  })

  test('[inbox-011] a message goes to the end of its queue', async () => {
    await using started = await startAgent()
    for (const id of ['a', 'b']) started.agent.inject(message(id))
    expect(splices(await started.log())).toEqual(['next-step@0 +[a]', 'next-step@1 +[b]'])
  })

  test('[inbox-012] an id that waits is refused with other content, and is the same message with equal content', async () => {
    await using started = await startAgent()
    const { agent } = started
    const receipt = agent.inject(message('a'))
    const before = await started.log()
    for (const kind of ['followup', 'steer', 'inject'] as const) {
      expect(() => agent[kind](message('a', 'something else'))).toThrow(DuplicateMessage)
      expect(() => agent[kind](message('a', 'something else'))).toThrow(/"a"/)
      expect(agent[kind](message('a')).turn).toBe(receipt.turn)
    }
    expect(await started.log()).toEqual(before)
    expect([idsOf(agent.inbox.nextTurn), idsOf(agent.inbox.nextStep)]).toEqual([[], ['a']])
  })

  test('[inbox-014] a replacement whose id waits elsewhere is refused', async () => {
    await using started = await startAgent({ model: scripted([hangs()]) })
    const { agent } = started
    agent.followup('hold the turn open')
    agent.followup(message('other'))
    agent.inject(message('edited'))
    const count = ofType(await started.log(), 'agent/inbox/spliced').length
    expect(() => agent.inbox.replace('edited', message('other'))).toThrow(DuplicateMessage)
    expect([idsOf(agent.inbox.nextTurn), idsOf(agent.inbox.nextStep)]).toEqual([['other'], ['edited']])
    expect(ofType(await started.log(), 'agent/inbox/spliced')).toHaveLength(count)
    await agent.cancel()
  })

  test('[inbox-014] a replacement takes the place, under its own id or the old one', async () => {
    await using started = await startAgent()
    const { agent } = started
    for (const id of ['a', 'b']) agent.inject(message(id))
    expect(agent.inbox.replace('a', message('a', 'anew'))).toBe(true)
    expect(agent.inbox.replace('b', message('c'))).toBe(true)
    expect(idsOf(agent.inbox.nextStep)).toEqual(['a', 'c'])
    expect(splices(await started.log()).slice(2)).toEqual([
      'next-step@0 -1 +[a] canceled',
      'next-step@1 -1 +[c] canceled',
    ])
    await agent.run('go')
    expect(userTexts(await started.log())).toEqual(['anew', 'c', 'go'])
  })

  test('[inbox-015] an unknown id is neither replaced nor removed', async () => {
    await using started = await startAgent()
    expect(started.agent.inbox.replace('unknown', 'x')).toBe(false)
    expect(started.agent.inbox.remove('unknown')).toBe(false)
    expect(await started.log()).toEqual([])
  })
})

describe('observers', () => {
  test('[inbox-017] an observer of a batch sees the inbox that the whole batch left', async () => {
    await using started = await startAgent()
    const { agent } = started
    const seen: (readonly string[])[] = []
    agent.on('session/event', ({ type }) => {
      if (type === 'agent/inbox/spliced') seen.push([...idsOf(agent.inbox.nextTurn), ...idsOf(agent.inbox.nextStep)])
    })
    agent.inject(message('a'))
    expect(seen).toEqual([['a']])
    agent.followup(message('p'))
    // The insert, the turn and both claims are one batch.
    expect(seen.slice(1)).toEqual([[], [], []])
    await agent.whenIdle()
  })

  test('[inbox-022] insertions, claims and discards are told once each, with the turn of the claim', async () => {
    await using started = await startAgent({ model: scripted(['ok']) })
    const { agent } = started
    const told: string[] = []
    agent.on('agent/inbox/inserted', (p) => told.push(`inserted ${p.message.id}`))
    agent.on('agent/inbox/discarded', (p) => told.push(`discarded ${p.message.id}`))
    agent.on('agent/inbox/claimed', (p) => told.push(`claimed ${p.message.id} in ${p.turn}`))
    agent.on('session/event', ({ type }) => {
      if (type === 'turn/start') told.push(type)
    })
    agent.inject(message('c'))
    agent.inbox.remove('c')
    agent.followup(message('p'))
    await agent.whenIdle()
    expect(told).toEqual(['inserted c', 'discarded c', 'turn/start', 'inserted p', 'claimed p in 1'])
  })
})

describe('what is queued', () => {
  test('[inbox-018] a reopened session has its queues as they were, writes nothing and rests', async () => {
    const first = await startAgent()
    first.agent.inject(message('a'))
    first.agent.inject(message('b'))
    first.agent.inject(message('c'))
    first.agent.inbox.remove('b')
    const before = await first.log()
    await first[Symbol.asyncDispose]()

    const model = scripted(() => 'ok')
    await using again = await startAgent({ store: first.store, model })
    await settle()
    expect(again.agent.status).toBe('idle')
    expect(await again.log()).toEqual(before)
    const folded = before.reduce(inbox.evolve, inbox.initial)
    expect(again.agent.inbox.nextStep).toEqual(folded['next-step'])
    expect(idsOf(again.agent.inbox.nextStep)).toEqual(['a', 'c'])
    expect(again.agent.inbox.nextTurn).toEqual([])
    expect(model.requests).toEqual([])
  })

  test('[inbox-021] when the append fails nothing is pending, the agent is over, and opening again starts clean', async () => {
    const inner = memoryStore()
    const store = faultyStore(inner, { seed: 1 })
    const model = scripted(() => 'ok')
    const started = await startAgent({ store, model })
    const statuses = statusesOf(started.agent)
    store.script('append', 'fail')
    const receipt = started.agent.followup(message('m'))
    await expect(receipt.accepted).rejects.toThrow(StoreFailure)
    await expect(receipt.turn).rejects.toThrow(StoreFailure)
    await expect(started.agent.whenIdle()).rejects.toThrow(StoreFailure)
    expect(statuses).toEqual(['running', 'failed'])
    expect(() => started.agent.followup('more')).toThrow(AgentClosed)
    expect(model.requests).toEqual([])
    expect(await stored(inner, 'session')).toEqual([])
    await started.agent.close().catch(() => {})

    await using again = await startAgent({ store: inner })
    expect(again.agent.status).toBe('idle')
    expect([...again.agent.inbox.nextTurn, ...again.agent.inbox.nextStep]).toEqual([])
    expect((await again.agent.run(message('m'))).turn).toBe(1)
  })

  test('[inbox-024] injected content reaches the conversation and the request as it is, with its source', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    const injected = message('i', '<reminder>mind {{this}}</reminder>', { kind: 'plugin', plugin: 'guide' })
    started.agent.inject(injected)
    await started.agent.run('go')
    expect(ofType(await started.log(), 'user/message')[0]?.data).toEqual(injected)
    expect(model.requests[0]?.messages[0]).toEqual(injected)
  })

  test('[inbox-025] an empty plug-in name is kept', async () => {
    await using started = await startAgent()
    started.agent.inject(message('i', 'x', { kind: 'plugin', plugin: '' }))
    const [spliced] = ofType(await started.log(), 'agent/inbox/spliced')
    expect(spliced?.data.inserted[0]).toMatchObject({ message: { source: { kind: 'plugin', plugin: '' } } })
  })

  test('[inbox-026] what is not JSON is refused where it is handed over', async () => {
    await using started = await startAgent()
    const { agent } = started
    const bad = { ...message('m'), content: [{ type: 'other/number', value: 1n }] } as never
    for (const kind of ['inject', 'steer', 'followup'] as const) expect(() => agent[kind](bad)).toThrow(NotJson)
    agent.inject(message('waits'))
    expect(() => agent.inbox.replace('waits', bad)).toThrow(NotJson)
    expect(splices(await started.log())).toEqual(['next-step@0 +[waits]'])
    expect(agent.status).toBe('idle')
  })

  test('[inbox-027] what a tool injects is taken as it was then, in order, after the result', async () => {
    const block = { type: 'text' as const, text: 'original' }
    const acts = act((context) => {
      context.inject([block])
      block.text = 'changed'
      context.inject('second')
    })
    const model = scripted([callsAct, 'done'])
    await using started = await startAgent({ model, tools: [acts] })
    await started.agent.run('go')
    const log = await started.log()
    expect(userTexts(log)).toEqual(['go', 'original', 'second'])
    const surface = log.filter(({ type }) => ['user/message', 'assistant/message', 'tool/result'].includes(type))
    expect(typesOf(surface)).toEqual([
      'user/message',
      'assistant/message',
      'tool/result',
      'user/message',
      'user/message',
      'assistant/message',
    ])
    expect(model.requests[1]?.messages.map(({ source }) => source.kind)).toEqual([
      'user',
      'model',
      'tool',
      'user',
      'user',
    ])
    expect(toldTexts(model.requests[1])).toEqual(['go', 'original', 'second'])
  })
})

describe('what became of a message is told by its receipt', () => {
  test('[inbox-029] one that only waits is accepted and nothing more', async () => {
    await using started = await startAgent()
    const receipt = started.agent.inject(message('m'))
    await receipt.accepted
    const waiting = Symbol('waiting')
    await settle()
    expect(await Promise.race([receipt.entered, receipt.turn, Promise.resolve(waiting)])).toBe(waiting)
  })

  test('[inbox-030] each has the end of its own turn', async () => {
    const model = scripted(['one', [{ kind: 'finish', reason: { kind: 'max-tokens' } }]])
    await using started = await startAgent({ model })
    const [first, second] = [started.agent.followup('a'), started.agent.followup('b')]
    expect(await first.turn).toMatchObject({ turn: 1, steps: 1, text: 'one', reason: { kind: 'completed' } })
    expect(await second.turn).toMatchObject({ turn: 2, steps: 1 })
    expect(await second.entered).toMatchObject({ kind: 'entered', turn: 2, step: 1 })
    expect(reasons(await started.log())[1]?.kind).toBe((await second.turn)?.reason.kind)
  })

  test('[inbox-031] one that was claimed by a turn without a step was dropped, and has that end', async () => {
    let mode: 'reject' | 'fail' | 'hold' | 'empty' = 'reject'
    const held: (() => void)[] = []
    await using started = await startAgent({
      hooks: {
        'agent/pre-step': async (_, next) => {
          if (mode === 'reject') return { kind: 'reject', reason: 'not now' }
          if (mode === 'fail') throw new Error('broken')
          if (mode === 'empty') return { kind: 'enter', messages: [] }
          await new Promise<void>((release) => held.push(release))
          return next()
        },
      },
    })
    const { agent } = started
    const blocked = agent.followup('a')
    expect(await blocked.entered).toEqual({ kind: 'dropped', turn: 1, reason: 'not now' })
    expect(await blocked.turn).toMatchObject({ turn: 1, steps: 0, reason: { kind: 'blocked', reason: 'not now' } })

    mode = 'fail'
    const failed = agent.followup('b')
    expect(await failed.entered).toEqual({ kind: 'dropped', turn: 2 })
    expect(await failed.turn).toMatchObject({ turn: 2, steps: 0, reason: { kind: 'error' } })

    mode = 'hold'
    const aborted = agent.followup('c')
    const cancelled = agent.cancel()
    await settle()
    for (const release of held) release()
    await cancelled
    expect(await aborted.entered).toEqual({ kind: 'dropped', turn: 3 })
    expect(await aborted.turn).toMatchObject({
      turn: 3,
      steps: 0,
      reason: { kind: 'aborted', cause: { kind: 'user' } },
    })

    mode = 'empty'
    const emptied = agent.followup('d')
    expect(await emptied.entered).toEqual({ kind: 'dropped', turn: 4 })
    expect(await emptied.turn).toMatchObject({ turn: 4, steps: 0, reason: { kind: 'completed' } })
    expect(steps(await started.log())).toEqual([])
  })

  test('[inbox-031] one of a turn that failed in its step had entered', async () => {
    await using started = await startAgent({ model: scripted([fails('QUOTA')]) })
    const receipt = started.agent.followup('a')
    expect(await receipt.turn).toMatchObject({ turn: 1, steps: 1, reason: { kind: 'error', error: { code: 'QUOTA' } } })
    expect(await receipt.entered).toMatchObject({ kind: 'entered', turn: 1, step: 1 })
  })
})
