/** What an actor throws is told where it ended the turn, and nowhere else. */
import { expect, test } from 'vitest'
import { fails, scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../kit/agents.ts'

const errorsOf = (errors: unknown[]) => ({ 'agent/error': ({ error }: { error: unknown }) => void errors.push(error) })

test('agent/error tells the very value that ended the turn', async () => {
  const errors: unknown[] = []
  const thrown = new Error('no prompt today')
  await using started = await startAgent({
    hooks: {
      ...errorsOf(errors),
      'system-prompt/assemble': () => {
        throw thrown
      },
    },
  })
  await started.agent.run('m')
  expect(errors).toEqual([thrown])
  expect(errors[0]).toBe(thrown)
})

test('agent/error does not tell what only failed a call when the turn ends by another failure', async () => {
  const errors: unknown[] = []
  const nothing = tool({ name: 'nothing', description: 'x', parameters: { type: 'object' }, execute: () => 'ok' })
  await using started = await startAgent({
    model: scripted([toolCall('nothing', {}), fails('QUOTA')]),
    tools: [nothing],
    hooks: {
      ...errorsOf(errors),
      'tools/pre-execute': () => {
        throw new Error('the policy is broken')
      },
    },
  })
  expect((await started.agent.run('m')).reason).toMatchObject({ kind: 'error', error: { code: 'QUOTA' } })
  expect(errors).toEqual([expect.objectContaining({ code: 'QUOTA' })])
  expect(ofType(await started.log(), 'tool/result').map(({ data }) => data.message.content[0].isError)).toEqual([true])
})
