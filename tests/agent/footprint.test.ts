/** What an idle agent costs, awake and asleep: many of them share what can be shared, and a turn leaves no actor behind. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { agentMachine } from '../../src/machines/agent.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { startAgent } from '../kit/agents.ts'

/** Bytes of heap an agent holds in that state, without its log: of 500 in a process of their own, from the build. */
function bytesOf(state: string): number {
  const node = ['--expose-gc', 'scripts/memory.mjs', '--one', state, '--agents', '500']
  return JSON.parse(execFileSync(process.execPath, node, { encoding: 'utf8' })).agent
}

test.each([
  ['memory/fresh', 8_000],
  ['sqlite/fresh', 8_000],
  ['memory/after a turn', 10_000],
  ['memory/asleep, after a turn', 1_000],
  ['sqlite/asleep, after a turn', 1_000],
])('an agent that rests holds few bytes: %s', { timeout: 120_000 }, (state, most) => {
  expect(bytesOf(state)).toBeLessThan(most)
})

test('the chart is given its effects once, however many agents there are', async () => {
  const started = await Promise.all(['a', 'b', 'c'].map((sessionId) => startAgent({ sessionId })))
  const logics = new Set(started.map(({ agent }) => Reflect.get(agent.actor, 'logic')))
  expect(logics.size).toBe(1)
  expect(logics).not.toContain(agentMachine)
  for (const one of started) await one[Symbol.asyncDispose]()
})

test('a turn with tools leaves no actor behind, however many turns there were', async () => {
  const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: async () => 'seen' })
  await using started = await startAgent({
    tools: [look],
    model: scripted((_, n) => (n % 2 === 0 ? toolCall('look', { n }) : 'done')),
  })
  for (let turn = 0; turn < 20; turn++) {
    await started.agent.run('look')
    expect(started.agent.actor.getSnapshot().children).toEqual({})
  }
})
