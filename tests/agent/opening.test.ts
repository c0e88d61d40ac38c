/** An opening that comes to no agent, or to one that is closed already, leaves nothing at work. */
import { expect, test, vi } from 'vitest'
import { type Agent, createAgent, type Plugin } from '../../src/agent.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { hangs, scripted } from '../../src/services/adapters/scripted.ts'
import { settle, startAgent, stored, typesOf } from '../kit/agents.ts'

/** A store whose session has a turn open in the middle of a request. */
async function suspended(): Promise<LogStore> {
  const store = memoryStore()
  const { agent } = await startAgent({ store, model: scripted([hangs()]) })
  agent.followup('go')
  await settle()
  await agent.close()
  return store
}

test('a plug-in that closes the agent while it is made: nothing is carried on, and the next opening finds the log as it was', async () => {
  const store = await suspended()
  const before = await stored(store, 'session')
  const told: string[] = []
  const closes: Plugin = (agent) => {
    agent.on('agent/status', (status) => void told.push(status))
    void agent.close()
    return () => void told.push('disposed')
  }
  const model = scripted(['answered'])
  const never: Plugin = () => void told.push('made over a closed agent')
  const agent = await createAgent({ model, store, sessionId: 'session', plugins: [closes, never] })
  await settle(20)
  expect([agent.status, told, model.requests]).toEqual(['closed', ['closed', 'disposed'], []])
  expect(await stored(store, 'session')).toEqual(before)
  await using again = await startAgent({ store, model })
  await again.agent.whenIdle()
  expect(typesOf(await again.log()).at(-1)).toBe('turn/end')
})

test('a store that gives no commands: the agent that had begun is suspended, its plug-ins are disposed of, the session is free', async () => {
  const inner = await suspended()
  const store: LogStore = {
    ...inner,
    acquire: async (id, options) => ({
      ...(await inner.acquire(id, options)),
      commands() {
        throw new Error('There are no commands here')
      },
    }),
  }
  const told: string[] = []
  let made: Agent | undefined
  const watches: Plugin = (agent) => {
    made = agent
    return () => void told.push('disposed')
  }
  const model = scripted([hangs()])
  const opening = createAgent({ model, store, sessionId: 'session', plugins: [watches] })
  await expect(opening).rejects.toThrow('There are no commands here')
  await settle(20)
  expect([made?.status, told]).toEqual(['closed', ['disposed']])
  expect(typesOf(await stored(inner, 'session')).at(-1)).toBe('session/suspended')
  await using again = await startAgent({ store: inner, model: scripted(['answered']) })
  await again.agent.whenIdle()
  expect(typesOf(await again.log()).at(-1)).toBe('turn/end')
})

test('a store that is closed while an agent opens, whenever that is: the opening or the agent fails, and is disposed of', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  try {
    for (let turns = 0; turns < 12; turns++) {
      let [made, disposed] = [0, 0]
      const counts: Plugin = () => {
        made += 1
        return () => {
          disposed += 1
        }
      }
      const store = await suspended()
      const opening = createAgent({ model: scripted([hangs()]), store, sessionId: 'session', plugins: [counts] })
      for (let ticks = 0; ticks < turns; ticks++) await Promise.resolve()
      await store[Symbol.asyncDispose]()
      const opened = await opening.catch((error: unknown) => ({ error }))
      if ('error' in opened) expect(opened.error).toMatchObject({ code: 'STORE_FAILURE' })
      else
        await expect(opened.whenIdle().finally(() => opened.close())).rejects.toMatchObject({ code: 'STORE_FAILURE' })
      await settle()
      expect(disposed).toBe(made)
    }
    expect(unhandled).not.toHaveBeenCalled()
  } finally {
    process.off('unhandledRejection', unhandled)
  }
})
