/** The most steps a turn may take. */
import { expect, test } from 'vitest'
import { fails, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, simulatedClock, startAgent } from '../kit/agents.ts'

const look = tool({
  name: 'look',
  description: 'Looks',
  parameters: { type: 'object' },
  repeatable: true,
  execute: () => 'seen',
})

const looksForEver = () => scripted(() => toolCall('look', {}))

test('[maxsteps-002] a turn whose steps are spent leaves nothing open, and the next one runs', {
  timeout: 30_000,
}, async () => {
  const model = scripted((_, n) => (n < 50 ? toolCall('look', { n }) : 'done'))
  await using started = await startAgent({ model, tools: [look] })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'max-steps', maxSteps: 50 })
  expect(started.agent.status).toBe('idle')
  expect(started.agent.inbox.nextStep).toEqual([])
  const log = await started.log()
  expect(ofType(log, 'step/start').map(({ data }) => data.step)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
  expect(ofType(log, 'step/end').map(({ data }) => data.step)).toEqual(
    ofType(log, 'step/start').map(({ data }) => data.step),
  )
  const calls = ofType(log, 'tool/call').map(({ data }) => data.callId)
  expect(calls).toHaveLength(50)
  expect(ofType(log, 'tool/result').map(({ data }) => data.message.source.callId)).toEqual(calls)
  expect(log.at(-1)?.type).toBe('turn/end')
  const { turn, reason, steps } = await started.agent.run('again')
  expect({ turn, reason, steps }).toEqual({ turn: 2, reason: { kind: 'completed' }, steps: 1 })
  // What the model was owed and never got is in the conversation all the same.
  expect(model.requests.at(-1)?.messages).toHaveLength(1 + 50 * 2 + 1)
})

test('[maxsteps-003] three steps are three requests; then the turn ends and says why', async () => {
  const model = looksForEver()
  await using started = await startAgent({ model, tools: [look], maxSteps: 3 })
  const { reason, steps } = await started.agent.run('go')
  expect(reason).toEqual({ kind: 'max-steps', maxSteps: 3 })
  expect(steps).toBe(3)
  expect(model.requests).toHaveLength(3)
  expect(ofType(await started.log(), 'step/start')).toHaveLength(3)
})

test('[maxsteps-004] an answer in the last step completes the turn', async () => {
  const model = scripted([toolCall('look', {}), toolCall('look', {}), 'done'])
  await using started = await startAgent({ model, tools: [look], maxSteps: 3 })
  const { reason, steps } = await started.agent.run('go')
  expect({ reason, steps }).toEqual({ reason: { kind: 'completed' }, steps: 3 })
})

test('[maxsteps-006] another attempt is not another step', async () => {
  const clock = simulatedClock()
  const model = scripted([fails('SERVER'), [text('done')]])
  await using started = await startAgent({ model, maxSteps: 1, clock })
  const turn = started.agent.run('go')
  await started.agent.whenQuiet()
  clock.increment(10_000)
  const { reason, steps } = await turn
  expect({ reason, steps }).toEqual({ reason: { kind: 'completed' }, steps: 1 })
  expect(model.requests).toHaveLength(2)
})

test('the steps of one turn are not counted against the next', async () => {
  const model = scripted([toolCall('look', {}), 'one', toolCall('look', {}), 'two'])
  await using started = await startAgent({ model, tools: [look], maxSteps: 2 })
  expect((await started.agent.run('go')).text).toBe('one')
  expect((await started.agent.run('go')).text).toBe('two')
})

test('a message that waits when the steps are spent stays queued, and the turn ends by its own outcome', async () => {
  const model = scripted([[text('done')], 'later'])
  await using started = await startAgent({ model, maxSteps: 1 })
  started.agent.on('session/event', ({ type }) => {
    if (type === 'step/start' && model.requests.length === 0) started.agent.inject('and this')
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  await started.agent.whenIdle()
  const starts = ofType(await started.log(), 'step/start').map(({ data }) => data)
  expect(starts).toEqual([
    { turn: 1, step: 1 },
    { turn: 2, step: 1 },
  ])
  expect(model.requests[1]?.messages.at(-1)?.content).toEqual([{ type: 'text', text: 'and this' }])
})

test.each([0, -1, 2.5, Number.NaN])('a turn of %d steps is refused', async (maxSteps) => {
  await expect(startAgent({ maxSteps })).rejects.toThrow(InvalidOption)
})

test('[maxsteps-007] a hook that steers whenever the turn would stop cannot go past the steps, nor start a turn with what it left', async () => {
  const model = scripted(() => 'an answer')
  await using started = await startAgent({
    model,
    maxSteps: 2,
    hooks: { 'agent/turn-stopping': () => void started.agent.steer('go on') },
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'max-steps', maxSteps: 2 })
  await started.agent.whenIdle()
  expect(model.requests).toHaveLength(2)
  expect(ofType(await started.log(), 'turn/start')).toHaveLength(1)
  expect(started.agent.inbox.nextStep).toHaveLength(1)
})
