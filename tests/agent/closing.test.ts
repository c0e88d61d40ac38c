/** Closing over an open turn: what the log ends with is that it was suspended. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AgentOptions } from '../../src/agent/options.ts'
import { createAgent } from '../../src/agent.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { hangs, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, typesOf } from '../kit/agents.ts'

/** A store that keeps the append of a suspension waiting until `release`. */
function slowToSuspend(inner: LogStore) {
  const { reached, release, released } = hold()
  const store: LogStore = {
    ...inner,
    async acquire(session, options) {
      const owner = await inner.acquire(session, options)
      return {
        ...owner,
        async append(events, about) {
          if (events.some(({ type }) => type === 'session/suspended')) await released()
          await owner.append(events, about)
        },
      }
    },
  }
  return { store, reached, release }
}

/** Whoever awaits `released()` has reached it, and goes on after `release()`. */
function hold() {
  let reach = (): void => {}
  let release = (): void => {}
  const reached = new Promise<void>((resolve) => (reach = resolve))
  const open = new Promise<void>((resolve) => (release = resolve))
  const released = () => {
    reach()
    return open
  }
  return { reached, release: () => release(), released }
}

test('a tool that settles while the suspension is being written adds nothing after it, and is answered by the next opening', async () => {
  const { store, reached, release } = slowToSuspend(memoryStore())
  let finish = (_: string): void => {}
  const slow = tool({
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    execute: () => new Promise<string>((resolve) => (finish = resolve)),
  })
  const options = { store, tools: [slow] }
  await using first = await startAgent({ ...options, model: scripted([toolCall('act', {})]) })
  first.agent.followup('go')
  await settle()
  const closed = first.agent.close({ graceMs: 0 })
  await reached
  finish('done')
  await settle()
  release()
  await closed
  expect(typesOf(await stored(store, 'session')).at(-1)).toBe('session/suspended')
  await using second = await startAgent({ ...options, model: scripted(['It may have run.']) })
  await second.agent.whenIdle()
  const log = await second.log()
  expect(ofType(log, 'tool/result').map(({ data }) => data.error?.code)).toEqual(['TOOL_OUTCOME_UNKNOWN'])
  expect(ofType(log, 'turn/end')).toMatchObject([{ data: { reason: { kind: 'completed' } } }])
})

/** Each waits for `answer` where its service waits for somebody, and then would record something. */
const LATE: Readonly<Record<string, (answer: () => Promise<void>) => Partial<AgentOptions>>> = {
  'an agent/request hook': (answer) => ({
    hooks: {
      'agent/request': async (_, next) => {
        await answer()
        return next()
      },
    },
  }),
  'an agent/request hook that throws': (answer) => ({
    hooks: {
      'agent/request': async () => {
        await answer()
        throw new Error('no')
      },
    },
  }),
  'an agent/pre-step hook that throws': (answer) => ({
    hooks: {
      'agent/pre-step': async () => {
        await answer()
        throw new Error('no')
      },
    },
  }),
  "an adapter's prepare": (answer) => ({
    model: {
      ...scripted(['done']),
      prepare: async (config) => {
        await answer()
        return { config, contextWindow: 1_000 }
      },
    },
  }),
  'a model that speaks': (answer) => ({
    model: {
      ...scripted([]),
      async *stream() {
        await answer()
        yield { type: 'text-delta', index: 0, text: 'late' }
      },
    },
  }),
}

describe('while the suspension is being written', () => {
  for (const [who, late] of Object.entries(LATE)) {
    test(`${who} answers, and nothing comes after it`, async () => {
      const { store, reached, release } = slowToSuspend(memoryStore())
      const asked = hold()
      await using started = await startAgent({ store, model: scripted(['done']), ...late(asked.released) })
      started.agent.followup('go')
      await asked.reached
      const closed = started.agent.close({ graceMs: 0 })
      await reached
      asked.release()
      await settle()
      release()
      await closed
      expect(typesOf(await stored(store, 'session')).at(-1)).toBe('session/suspended')
    })
  }
})

test.each([{}, { cancel: { kind: 'user' } as const }])(
  'an agent that ended by a defect is closed without a word to its chart: %o',
  async (how) => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    onTestFinished(() => void warned.mockRestore())
    const disposed: string[] = []
    const store = memoryStore()
    const plugins = [() => () => void disposed.push('disposed')]
    const agent = await createAgent({ store, model: scripted([hangs()]), sessionId: 'session', plugins })
    agent.followup('go')
    await settle()
    // No service says such a thing.
    Reflect.apply(agent.actor.send, agent.actor, [{ type: 'verdict.answered', turn: 1, step: 1, attempt: 1 }])
    expect(agent.status).toBe('failed')
    await agent.close(how).catch((error: unknown) => expect(error).toBeInstanceOf(TypeError))
    expect([disposed, warned.mock.calls]).toEqual([['disposed'], []])
    await (await store.acquire('session')).release()
  },
)
