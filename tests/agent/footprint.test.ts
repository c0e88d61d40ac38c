/** What an idle agent costs: a thousand of them share what can be shared, and a turn leaves no actor behind. */
import { execFileSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { agentMachine } from '../../src/machines/agent.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { startAgent } from '../kit/agents.ts'

/** Runs from the build, in a process of its own: prints the bytes an agent holds, fresh and after a turn, as JSON. */
const script = `
  const { createAgent } = await import(${JSON.stringify(pathToFileURL('dist/index.js').href)})
  const { memoryStore } = await import(${JSON.stringify(pathToFileURL('dist/log.js').href)})
  const kept = memoryStore()
  // Acknowledges and forgets: the log is not what is measured.
  const acquire = async (id, options) => ({ ...(await kept.acquire(id, options)), append: async () => {} })
  const store = { ...kept, acquire }
  // Keeps nothing of what it was asked, unlike a scripted model.
  const block = { type: 'text', text: 'ok' }
  const model = {
    provider: 'fake',
    model: 'fake',
    async *stream() {
      yield { type: 'block-end', index: 0, block }
      yield { type: 'finish', reason: { kind: 'stop' } }
    },
  }
  const agents = []
  const start = async (count) => {
    for (let i = 0; i < count; i++) agents.push(await createAgent({ model, store, sessionId: 's' + agents.length }))
  }
  const held = async () => {
    for (let i = 0; i < 5; i++) { gc(); await new Promise((resolve) => setTimeout(resolve, 5)) }
    return process.memoryUsage().heapUsed
  }
  await start(50)
  for (const agent of agents) await agent.run('warm up')
  const runs = []
  for (let run = 0; run < 3; run++) {
    const before = await held()
    await start(1000)
    const fresh = await held()
    for (const agent of agents.slice(-1000)) await agent.run('hi')
    runs.push([(fresh - before) / 1000, ((await held()) - before) / 1000])
  }
  const median = (values) => values.sort((a, b) => a - b)[1]
  console.log(JSON.stringify({ fresh: median(runs.map((run) => run[0])), used: median(runs.map((run) => run[1])) }))
`

const measured = (): { fresh: number; used: number } => {
  const node = ['--expose-gc', '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(process.execPath, node, { encoding: 'utf8' }))
}

/** The fresh one is a promise. A turn adds the conversation, its header and what is known of its messages. */
const FRESH_BYTES = 10_000
const USED_BYTES = 17_000

test('an idle agent holds few bytes, fresh and after a turn', { timeout: 120_000 }, () => {
  const { fresh, used } = measured()
  expect(fresh).toBeLessThan(FRESH_BYTES)
  expect(used).toBeLessThan(USED_BYTES)
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
