/** The hook that may act before a turn ends. */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { gate, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, typesOf } from '../kit/agents.ts'

const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })
const stepsIn = (log: readonly SessionEvent[]) =>
  ofType(log, 'step/start').map(({ data }) => `${data.turn}/${data.step}`)
const reasonsIn = (log: readonly SessionEvent[]) => ofType(log, 'turn/end').map(({ data }) => data.reason)

test('[stopping-001] a message it steers is claimed by one more step of the same turn', async () => {
  const model = scripted(['one', 'two'])
  await using started = await startAgent({ model })
  let asked = 0
  started.agent.on('agent/turn-stopping', () => {
    asked += 1
    if (asked === 1) started.agent.steer('and now?')
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  const log = await started.log()
  const first = log.findIndex(({ type }) => type === 'step/end')
  expect(typesOf(log.slice(first))).toEqual([
    'step/end',
    'agent/inbox/spliced',
    'agent/inbox/spliced',
    'step/start',
    'user/message',
    'assistant/chunk*',
    'assistant/message',
    'step/end',
    'turn/end',
  ])
  expect(log[first + 1]?.data).toMatchObject({ queue: 'next-step', deleteCount: 0, wake: true })
  expect(log[first + 2]?.data).toMatchObject({ queue: 'next-step', deleteCount: 1, outcome: 'claimed' })
  expect(model.requests).toHaveLength(2)
})

test('[stopping-002] it is asked each time the turn would stop', async () => {
  await using started = await startAgent()
  let asked = 0
  started.agent.on('agent/turn-stopping', () => {
    asked += 1
    if (asked <= 2) started.agent.steer(`more, ${asked}`)
  })
  await started.agent.run('go')
  expect(asked).toBe(3)
  expect(stepsIn(await started.log())).toEqual(['1/1', '1/2', '1/3'])
})

test('[stopping-003] it is asked after the end of the step and before that of the turn', async () => {
  const log: SessionEvent[] = []
  await using started = await startAgent()
  started.agent.on('session/event', (event) => log.push(event))
  const seen: (readonly SessionEvent[])[] = []
  started.agent.on('agent/turn-stopping', () => void seen.push([...log]))
  await started.agent.run('go')
  expect(seen.map((events) => events.at(-1)?.type)).toEqual(['step/end'])
  expect(ofType(seen[0] ?? [], 'turn/end')).toEqual([])
})

test('[stopping-004] it is not asked while the model is owed results', async () => {
  await using started = await startAgent({ model: scripted([toolCall('look', {}), 'done']), tools: [look] })
  const log: SessionEvent[] = []
  started.agent.on('session/event', (event) => log.push(event))
  const steps: number[] = []
  started.agent.on('agent/turn-stopping', () => void steps.push(ofType(log, 'step/end').length))
  await started.agent.run('go')
  expect(steps).toEqual([2])
})

test('[stopping-005] it is not asked while a message waits for the next step', async () => {
  const speaking = gate()
  const model = scripted([[text('one'), pause(speaking)], 'two'])
  await using started = await startAgent({ model })
  const asked: number[] = []
  started.agent.on('agent/turn-stopping', () => void asked.push(model.requests.length))
  const turn = started.agent.run('go')
  await speaking.reached
  started.agent.inject('i')
  speaking.release()
  expect((await turn).steps).toBe(2)
  expect(asked).toEqual([2])
})

test('[stopping-008] a throw ends the turn as an error; what was answered stays, and the next turn runs', async () => {
  await using started = await startAgent()
  const remove = started.agent.on('agent/turn-stopping', () => {
    throw new Error('stop-bug')
  })
  const { reason, text: said } = await started.agent.run('go')
  expect(reason).toEqual({ kind: 'error', error: { code: 'UNKNOWN', message: 'stop-bug' } })
  expect(said).toBe('ok')
  expect(ofType(await started.log(), 'agent/hook-failed')).toMatchObject([{ data: { hook: 'agent/turn-stopping' } }])
  remove()
  expect((await started.agent.run('again')).reason).toEqual({ kind: 'completed' })
})

test('[stopping-010] a follow-up it sends is the next turn, not a step of this one', async () => {
  await using started = await startAgent()
  let asked = 0
  started.agent.on('agent/turn-stopping', () => {
    asked += 1
    if (asked === 1) started.agent.followup('next')
  })
  await started.agent.run('go')
  await started.agent.whenIdle()
  expect(stepsIn(await started.log())).toEqual(['1/1', '2/1'])
  expect(reasonsIn(await started.log())).toEqual([{ kind: 'completed' }, { kind: 'completed' }])
})

// Replaced: two reasons may be returned, and nothing else.
test('[stopping-011] it may say that a policy stopped the turn', async () => {
  await using started = await startAgent()
  const reason = { kind: 'stopped-by-policy', policy: 'budget', reason: 'spent' } as const
  started.agent.on('agent/turn-stopping', () => reason)
  expect((await started.agent.run('go')).reason).toEqual(reason)
})

test('[stopping-011] a reason that is not its to give is a failure of the hook', async () => {
  await using started = await startAgent()
  started.agent.on('agent/turn-stopping', () => ({ kind: 'blocked' }))
  expect((await started.agent.run('go')).reason).toMatchObject({ kind: 'error' })
  expect(ofType(await started.log(), 'agent/hook-failed')).toHaveLength(1)
})

test('a message it steers wins over a reason it gives', async () => {
  await using started = await startAgent()
  let asked = 0
  started.agent.on('agent/turn-stopping', () => {
    asked += 1
    if (asked > 1) return undefined
    started.agent.steer('more')
    return { kind: 'stopped-by-policy', policy: 'p' }
  })
  const { reason, steps } = await started.agent.run('go')
  expect({ reason, steps }).toEqual({ reason: { kind: 'completed' }, steps: 2 })
})

test('under a cancel what it says is not heard', async () => {
  await using started = await startAgent()
  started.agent.on('agent/turn-stopping', () => {
    void started.agent.cancel()
    return { kind: 'completed' }
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
})
