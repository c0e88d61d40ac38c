/** Logs that real agents wrote: each a life with one thing worth breaking in it. The same from run to run. */
import type { AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import {
  fails,
  finish,
  gate,
  pause,
  reasoning,
  scripted,
  text,
  toolCall,
  usage,
} from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, settle, simulatedClock, startAgent, stored } from './agents.ts'

type Life = (store: LogStore) => Promise<void>
type Options = Partial<AgentOptions>

const spent = (inputTokens: number) => usage({ inputTokens, outputTokens: 1 })

/** What a body waits for, so that results come in an order of the test's choosing. */
const body = (name: string, more: Partial<Parameters<typeof tool>[0]> = {}) =>
  tool({
    name,
    description: name,
    parameters: { type: 'object' },
    mode: 'parallel',
    execute: () => `${name} is done`,
    ...more,
  })
const look = body('look')
const write = body('write', { mode: 'exclusive', onCrash: 'rerun' })
const pay = body('pay', { needsApproval: true })
const concludes = body('conclude', { execute: (_, ctx) => void ctx.concludeTurn() })
const notes = body('notes', {
  execute(_, ctx) {
    ctx.addContext('a note of the tool')
    return 'noted'
  },
})

const start = (store: LogStore, options: Options) => startAgent({ store, clock: simulatedClock(), ...options })

async function withAgent(
  store: LogStore,
  options: Options,
  live: (agent: Awaited<ReturnType<typeof start>>['agent']) => Promise<unknown>,
): Promise<void> {
  await using started = await start(store, options)
  await live(started.agent)
}

/** The process dies in the middle of `when`: nobody closes the agent, and the next one takes the session away. */
async function crashed(
  store: LogStore,
  options: Options,
  when: (agent: Awaited<ReturnType<typeof start>>['agent']) => Promise<unknown>,
): Promise<void> {
  const { agent } = await start(store, options)
  await when(agent)
  await settle(20)
  await agent.session.flush()
}

/** A body that says when it began, and never ends in its first run. */
function hanging(name: string, onCrash: 'unknown' | 'rerun' | 'ask') {
  let begun = (): void => {}
  const reached = new Promise<void>((resolve) => {
    begun = resolve
  })
  const made = body(name, {
    onCrash,
    execute(_, { run }) {
      begun()
      return run === 1 ? new Promise(() => {}) : `${name} is done in run ${run}`
    },
  })
  return { tool: made, reached }
}

const answerAll = async (
  agent: Awaited<ReturnType<typeof start>>['agent'],
  how: readonly ('approve' | 'deny')[],
): Promise<void> => {
  for (const way of how) {
    await agent.whenQuiet()
    const [asked] = agent.approvals()
    const { callId = '', argumentsDigest = '', run = 0 } = asked ?? {}
    await agent[way](callId, { digest: argumentsDigest, run })
  }
}

const LIVES: Readonly<Record<string, Life>> = {
  'three turns, tools side by side, messages of every kind': (store) => {
    const model = scripted([
      [
        reasoning('hm'),
        text('Let me look.'),
        toolCall('look', { n: 1 }, { id: 'c1' }),
        toolCall('look', { n: 2 }, { id: 'c2' }),
        toolCall('write', {}, { id: 'c3' }),
        spent(10),
      ],
      [text('Seen. '), toolCall('notes', { n: 3 }, { id: 'c4' }), spent(10)],
      [text('Done.'), spent(20)],
      [text('Again.'), spent(20)],
      [text('And again.'), spent(20)],
    ])
    return withAgent(
      store,
      { model, tools: [look, write, notes], system: 'be brief', maxParallelToolCalls: 2 },
      async (agent) => {
        agent.inject('for later')
        agent.followup('go')
        agent.followup('and then')
        agent.steer('at once')
        await agent.whenIdle()
        agent.inject('one more thing')
        agent.inbox.remove(agent.inject('never mind').id)
        agent.inbox.replace(agent.inject('a mistake').id, 'put right')
        await agent.run('the last')
      },
    )
  },
  'retries, until an answer': (store) => {
    const clock = simulatedClock()
    const model = scripted([fails('SERVER'), [text('hal'), fails('TRANSPORT')], 'whole'])
    return withAgent(store, { model, clock }, async (agent) => {
      const running = agent.run('go')
      for (let retry = 0; retry < 2; retry++) {
        await agent.whenQuiet()
        clock.increment(20_000)
        await settle()
      }
      await running
    })
  },
  'a failure': (store) => withAgent(store, { model: scripted([fails('AUTH')]) }, (agent) => agent.run('go')),
  'a cancel in the middle of an answer, with one to come': (store) => {
    const held = gate()
    const model = scripted([[text('half an ans'), pause(held)], 'the next'])
    return withAgent(store, { model }, async (agent) => {
      const running = agent.run('go')
      await held.reached
      agent.inject('dropped by the cancel')
      const cancelled = agent.cancel()
      agent.followup('after the cancel')
      await Promise.all([running, cancelled])
      await agent.whenIdle()
    })
  },
  'a cancel that keeps the inbox': (store) => {
    const held = gate()
    const model = scripted([[text('half'), pause(held)], 'later'])
    return withAgent(store, { model }, async (agent) => {
      const running = agent.run('go')
      await held.reached
      agent.followup('kept')
      await agent.cancel({ kind: 'user' }, { keepInbox: true })
      await running
      agent.wake()
      await agent.whenIdle()
    })
  },
  'a cancel while tools run': (store) => {
    let begun = (): void => {}
    const reached = new Promise<void>((resolve) => {
      begun = resolve
    })
    const slow = body('slow', {
      execute: (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          begun()
        }),
    })
    const calls = ['c1', 'c2', 'c3'].map((id) => toolCall(id === 'c2' ? 'write' : 'slow', {}, { id }))
    return withAgent(store, { model: scripted([calls]), tools: [slow, write] }, async (agent) => {
      const running = agent.run('go')
      await reached
      await agent.cancel()
      await running
    })
  },
  'approvals: one given, one denied, one expired': (store) => {
    const clock = simulatedClock()
    const soon = body('soon', { needsApproval: true, approvalExpiresMs: 1_000 })
    const calls = [
      toolCall('pay', { n: 1 }, { id: 'c1' }),
      toolCall('pay', { n: 2 }, { id: 'c2' }),
      toolCall('soon', {}, { id: 'c3' }),
    ]
    return withAgent(store, { model: scripted([calls, 'done']), clock, tools: [pay, soon] }, async (agent) => {
      const running = agent.run('go')
      await answerAll(agent, ['approve', 'deny'])
      await agent.whenQuiet()
      clock.increment(1_000)
      await running
    })
  },
  'a crash in an answer, then in its tools': async (store) => {
    const held = gate()
    await crashed(store, { model: scripted([[text('half'), pause(held)]]) }, async (agent) => {
      agent.followup('go')
      await held.reached
    })
    const first = hanging('write', 'rerun')
    const calls = [toolCall('write', {}, { id: 'c1' }), toolCall('look', {}, { id: 'c2' })]
    const options = { steal: true, tools: [look, first.tool] }
    await crashed(store, { ...options, model: scripted([calls]) }, () => first.reached)
    const second = hanging('write', 'rerun')
    await withAgent(store, { ...options, tools: [look, second.tool], model: scripted(['carried on']) }, (agent) =>
      agent.whenIdle(),
    )
  },
  'a crash whose tool asks, and one nobody knows of': async (store) => {
    const asks = hanging('asks', 'ask')
    const lost = hanging('lost', 'unknown')
    const tools = [asks.tool, lost.tool]
    const calls = [toolCall('asks', {}, { id: 'c1' }), toolCall('lost', {}, { id: 'c2' })]
    await crashed(store, { model: scripted([calls]), tools }, async (agent) => {
      agent.followup('go')
      await Promise.all([asks.reached, lost.reached]).catch(() => {})
    })
    await withAgent(
      store,
      { steal: true, tools: [hanging('asks', 'ask').tool, lost.tool], model: scripted(['on']) },
      async (agent) => {
        await answerAll(agent, ['approve'])
        await agent.whenIdle()
      },
    )
  },
  'a crash while a retry is waited for, and a clean close': async (store) => {
    const clock = simulatedClock()
    await crashed(store, { model: scripted([fails('SERVER')]), clock }, async (agent) => {
      agent.followup('go')
      await agent.whenQuiet()
    })
    const held = gate()
    const again = await start(store, { steal: true, model: scripted([[text('half'), pause(held)]]), clock })
    await again.agent.whenQuiet()
    clock.increment(20_000)
    await held.reached
    await again.agent.close({ graceMs: 0 })
    await withAgent(store, { model: scripted(['whole']), clock }, (agent) => agent.whenIdle())
  },
  'a crash that is interrupted': async (store) => {
    const first = hanging('work', 'unknown')
    const calls = [toolCall('work', {}, { id: 'c1' }), toolCall('write', {}, { id: 'c2' })]
    await crashed(store, { model: scripted([calls]), tools: [first.tool, write] }, async (agent) => {
      agent.followup('go')
      agent.followup('waits')
      await first.reached
    })
    const options = { steal: true, recovery: 'interrupt', tools: [first.tool, write], model: scripted(['on']) } as const
    await withAgent(store, options, async (agent) => {
      await agent.whenIdle()
      agent.wake()
      await agent.whenIdle()
    })
  },
  'a fork in the middle of its tools': async (store) => {
    const slow = hanging('slow', 'rerun')
    const calls = [
      toolCall('look', {}, { id: 'c1' }),
      toolCall('slow', {}, { id: 'c2' }),
      toolCall('pay', {}, { id: 'c3' }),
    ]
    const parents = memoryStore()
    const options = { tools: [look, slow.tool, pay], newId: countingIds() }
    const { agent } = await start(parents, { ...options, model: scripted([calls]) })
    agent.followup('go')
    agent.followup('the parent’s')
    await slow.reached
    await settle(20)
    await agent.session.flush()
    await agent.fork({ sessionId: 'child' })
    const child = await start(parents, {
      ...options,
      sessionId: 'child',
      newId: countingIds('child'),
      model: scripted(['mine', 'next']),
    })
    await child.agent.whenIdle()
    await child.agent.run('more')
    await child.agent.close()
    await copy(parents, 'child', store)
  },
  'the steps are spent': (store) => {
    const model = scripted((_, n) => toolCall('look', { n }, { id: `c${n}` }))
    return withAgent(store, { model, tools: [look], maxSteps: 2 }, (agent) => agent.run('go'))
  },
  'the tokens are spent': (store) => {
    const model = scripted((_, n) => [toolCall('look', { n }, { id: `c${n}` }), spent(60)])
    return withAgent(store, { model, tools: [look], limits: { turn: { tokens: 100 } } }, async (agent) => {
      const running = agent.run('go')
      agent.followup('waits')
      await running
    })
  },
  'the time is spent': (store) => {
    const clock = simulatedClock()
    const held = gate()
    const limits = { turn: { timeMs: 1_000 } }
    return withAgent(store, { model: scripted([[text('thinking'), pause(held)]]), clock, limits }, async (agent) => {
      const running = agent.run('go')
      await held.reached
      clock.increment(1_000)
      await running
    })
  },
  'the session’s tokens are spent before a step': (store) => {
    const model = scripted([[text('one'), spent(120)]])
    return withAgent(store, { model, limits: { session: { tokens: 100 } } }, async (agent) => {
      await agent.run('first')
      await agent.run('second')
    })
  },
  'the same call again and again': (store) => {
    const model = scripted((_, n) => toolCall('look', {}, { id: `c${n}` }))
    return withAgent(store, { model, tools: [look], repeatedCalls: { warnAfter: 2, stopAfter: 3 } }, (agent) =>
      agent.run('go'),
    )
  },
  'an answer cut by the token limit': (store) =>
    withAgent(store, { model: scripted([[text('cut'), finish({ kind: 'max-tokens' })]]) }, (agent) => agent.run('go')),
  'a tool that concludes the turn': (store) =>
    withAgent(store, { model: scripted([toolCall('conclude', {}, { id: 'c1' })]), tools: [concludes] }, (agent) =>
      agent.run('go'),
    ),
  'a hook that fails, and a tool that speaks too late': (store) => {
    let end = (): void => {}
    let begun = (): void => {}
    const reached = new Promise<void>((resolve) => {
      begun = resolve
    })
    const deaf = body('deaf', {
      execute: () =>
        new Promise((resolve) => {
          end = () => resolve('too late')
          begun()
        }),
    })
    const clock = simulatedClock()
    const model = scripted(['one', toolCall('deaf', {}, { id: 'c1' }), 'two'])
    return withAgent(store, { model, tools: [deaf], clock, settleTimeoutMs: 1_000 }, async (agent) => {
      const dispose = agent.on('agent/turn-stopping', () => {
        throw new Error('hook down')
      })
      await agent.run('first')
      dispose()
      const running = agent.run('second')
      await reached
      const cancelled = agent.cancel()
      await settle()
      clock.increment(1_000)
      await Promise.all([running, cancelled])
      end()
      await settle()
      await agent.run('third')
    })
  },
  'a crash whose tool can tell how it went': async (store) => {
    const lost = hanging('work', 'unknown')
    const work = { ...lost.tool, onCrash: 'probe' } as const
    const calls = [toolCall('work', {}, { id: 'c1' })]
    await crashed(store, { model: scripted([calls]), tools: [work] }, async (agent) => {
      agent.followup('go')
      await lost.reached
    })
    const probed = body('work', { onCrash: async () => ({ kind: 'done', value: 'it was done' }) })
    await withAgent(store, { steal: true, model: scripted(['on']), tools: [probed] }, (agent) => agent.whenIdle())
  },
  'a blocked turn, and one stopped by policy': (store) => {
    let blocked = false
    const hooks: AgentOptions['hooks'] = {
      'agent/pre-step': (_, next) => {
        blocked = !blocked
        return blocked ? { kind: 'reject', reason: 'not now' } : next()
      },
      'agent/turn-stopping': () => ({ kind: 'stopped-by-policy', policy: 'p' }),
    }
    return withAgent(store, { model: scripted(['one']), hooks }, async (agent) => {
      await agent.run('first')
      await agent.run('second')
    })
  },
  'a summary in place of the first turn': (store) =>
    withAgent(store, { model: scripted(['one', 'two']) }, async (agent) => {
      await agent.run('first')
      await agent.session.flush()
      const events = await stored(store, 'session')
      const seqs = events.filter(({ surfaceOp }) => surfaceOp !== undefined).map(({ seq }) => seq)
      agent.session.replace({ start: seqs[0] ?? 0, end: seqs.at(-1) ?? 0, message: 'they said one' })
      agent.session.note('plug/in', { a: 1 })
      await agent.run('second')
    }),
}

/** Every life by its name, lived anew. */
export async function* livedLogs(): AsyncGenerator<readonly [string, readonly SessionEvent[]]> {
  for (const [name, live] of Object.entries(LIVES)) {
    const store = memoryStore()
    await live(store)
    yield [name, await stored(store, 'session')]
  }
}

/** The log of `from`, as the session the other lives have. */
async function copy(from: LogStore, id: string, to: LogStore): Promise<void> {
  const events = await stored(from, id)
  const header = await from.header(id)
  if (header === undefined) throw new Error(`${id} was never made`)
  const owner = await to.acquire('session', { create: { ...header, id: 'session' } })
  await owner.append(events, { expectedSeq: 0 })
  await owner.release()
}
