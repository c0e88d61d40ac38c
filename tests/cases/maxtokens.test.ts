/** Answers that were cut short, and answers that say nothing. */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { createSurface } from '../../src/log/projections/surface.ts'
import { finish, scripted, text, toolCall, usage } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, typesOf } from '../kit/agents.ts'

const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })
const cut = finish({ kind: 'max-tokens' })
const spent = { inputTokens: 7, outputTokens: 3 }
const MAX_TOKENS = { kind: 'max-tokens' }
const answersIn = (log: readonly SessionEvent[]) => ofType(log, 'assistant/message')
const toolsIn = (log: readonly SessionEvent[]) => typesOf(log).filter((type) => type.startsWith('tool/'))

/** Steers once, when the turn would stop. */
const steersOnce = () => {
  let asked = 0
  return (steer: () => unknown) => {
    asked += 1
    if (asked === 1) steer()
  }
}

test('[maxtokens-002] an answer cut in one step is the reason of the turn, whatever the next step says', async () => {
  const once = steersOnce()
  await using started = await startAgent({ model: scripted([[text('so'), cut], 'done', 'next']) })
  started.agent.on('agent/turn-stopping', () => once(() => started.agent.steer('go on')))
  const { reason, steps } = await started.agent.run('go')
  expect({ reason, steps }).toEqual({ reason: MAX_TOKENS, steps: 2 })
  expect(ofType(await started.log(), 'step/end').map(({ data }) => data.outcome.kind)).toEqual([
    'max-tokens',
    'completed',
  ])
  // It belongs to its turn.
  expect((await started.agent.run('again')).reason).toEqual({ kind: 'completed' })
})

test('[maxtokens-004] a call in it is not run, nor part of the answer', async () => {
  const model = scripted([[toolCall('look', {}), usage(spent), cut]])
  await using started = await startAgent({ model, tools: [look] })
  expect((await started.agent.run('go')).reason).toEqual(MAX_TOKENS)
  const log = await started.log()
  const [answer] = answersIn(log)
  expect(answer?.data).toMatchObject({ message: { content: [] }, calls: [], usage: spent })
  expect(answer?.sourceEventSeqs).toEqual(ofType(log, 'assistant/chunk').map(({ seq }) => seq))
  expect(toolsIn(log)).toEqual([])
  expect(model.requests).toHaveLength(1)
  expect(started.agent.session.messages().map(({ role }) => role)).toEqual(['user'])
})

test('[maxtokens-005] without a report of usage it stands in the log all the same', async () => {
  await using started = await startAgent({ model: scripted([[toolCall('look', {}), cut]]), tools: [look] })
  expect((await started.agent.run('go')).reason).toEqual(MAX_TOKENS)
  const [answer] = answersIn(await started.log())
  expect(answer?.data.message.content).toEqual([])
  expect(answer?.data).not.toHaveProperty('usage')
})

test('[maxtokens-006] its text is kept, its calls are not', async () => {
  const model = scripted([[text('partial'), toolCall('look', {}), cut]])
  await using started = await startAgent({ model, tools: [look] })
  await started.agent.run('go')
  const log = await started.log()
  expect(answersIn(log)[0]?.data.message.content).toEqual([{ type: 'text', text: 'partial' }])
  expect(toolsIn(log)).toEqual([])
})

// Replaced: a turn goes on while results are owed; that an answer was cut decides only how the turn ends.
test('[maxtokens-007] a later step that asks for tools is followed by one that reads their results', async () => {
  const once = steersOnce()
  const model = scripted([[text('so'), cut], toolCall('look', {}), 'done'])
  await using started = await startAgent({ model, tools: [look] })
  started.agent.on('agent/turn-stopping', () => once(() => started.agent.steer('go on')))
  const { reason, steps } = await started.agent.run('go')
  expect({ reason, steps }).toEqual({ reason: MAX_TOKENS, steps: 3 })
  expect(model.requests[2]?.messages.at(-1)?.source.kind).toBe('tool')
})

test('[maxtokens-008] an answer of nothing completes the turn, and nothing of it is said to the model', async () => {
  const model = scripted([finish({ kind: 'stop' }), 'ok'])
  await using started = await startAgent({ model })
  let asked = 0
  started.agent.on('agent/request-error', (_, next) => {
    asked += 1
    return next()
  })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  expect(answersIn(await started.log())[0]?.data.message.content).toEqual([])
  expect(asked).toBe(0)
  await started.agent.run('again')
  expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'user'])
})

test('[maxtokens-009] such an answer stands on the surface, and not in the conversation', async () => {
  await using started = await startAgent({ model: scripted([finish({ kind: 'stop' })]) })
  await started.agent.run('go')
  const log = await started.log()
  const surface = createSurface()
  for (const event of log) surface.place(event)
  expect(surface.nodes()).toEqual([ofType(log, 'user/message')[0]?.seq, answersIn(log)[0]?.seq])
  expect(surface.messages().map(({ role }) => role)).toEqual(['user'])
})
