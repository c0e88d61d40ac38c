/** The end of an agent: what it waits for, and what comes after it. */
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { hangs, scripted, text } from '../../src/services/adapters/scripted.ts'
import { AgentClosed } from '../../src/services/errors.ts'
import { ofType, settle, startAgent, stored } from '../kit/agents.ts'

const disposed = { cancel: { kind: 'disposed' } } as const

test('[dispose-008] a message that comes while an agent closes is refused and enters nothing', async () => {
  const model = scripted([[text('par'), hangs()], 'never'])
  await using started = await startAgent({ model })
  const { agent } = started
  const running = agent.run('go')
  await settle()
  const closing = agent.close(disposed)
  expect(() => agent.followup('late')).toThrow(AgentClosed)
  await closing
  expect((await running).reason).toEqual({ kind: 'aborted', cause: { kind: 'disposed' } })
  expect(model.requests).toHaveLength(1)
  expect(ofType(await stored(started.store, 'session'), 'user/message')).toHaveLength(1)
})

test('[dispose-009] its session can be opened again, or its id given to a new one', async () => {
  const store = memoryStore()
  const first = await startAgent({ store })
  await first.agent.run('one')
  await first.agent.close(disposed)
  await store.delete('session')
  await using again = await startAgent({ store })
  expect((await again.agent.run('two')).turn).toBe(1)
  expect(ofType(await again.log(), 'user/message')).toHaveLength(1)
})

// Replaced: a command is refused from the moment that closing begins, so nothing is left to be waited for.
test('[dispose-010] an observer that sends on at the end of a turn finds the agent closed, and nothing follows', async () => {
  const model = scripted([[text('par'), hangs()], 'never'])
  await using started = await startAgent({ model })
  const { agent } = started
  const refused: unknown[] = []
  agent.on('agent/status', (status) => {
    if (status !== 'idle') return
    try {
      agent.followup('more')
    } catch (error) {
      refused.push(error)
    }
  })
  const running = agent.run('go')
  await settle()
  await agent.close(disposed)
  await running
  expect(refused).toEqual([expect.any(AgentClosed)])
  const log = await stored(started.store, 'session')
  expect(log.at(-1)?.type).toBe('turn/end')
  await settle()
  expect(await stored(started.store, 'session')).toEqual(log)
})

test('[dispose-015] the signal of its creation means nothing to an agent that is there', async () => {
  const creation = new AbortController()
  await using started = await startAgent({ signal: creation.signal })
  creation.abort()
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
})
