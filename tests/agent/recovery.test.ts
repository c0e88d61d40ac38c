import { expect, test } from 'vitest'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { Tool } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, stored, typesOf } from '../kit/agents.ts'

/** A tool whose body appends its call and run to `witness` when it begins, and then waits to be killed. */
function hangingTool(witness: string[], onCrash: 'unknown' | 'rerun' | 'ask'): { tool: Tool; begun: Promise<void> } {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const made = tool({
    name: 'work',
    description: 'Works',
    parameters: { type: 'object' },
    onCrash,
    execute: (_, { callId, run }) => {
      witness.push(`${callId} ${run}`)
      begin()
      return run === 1 ? new Promise(() => {}) : `finished in run ${run}`
    },
  })
  return { tool: made, begun }
}

/** Starts a turn whose tool is at work, and takes the session away as a crash does: nothing more is recorded by it. */
async function crashInTool(onCrash: 'unknown' | 'rerun' | 'ask') {
  const store = memoryStore()
  const witness: string[] = []
  const first = hangingTool(witness, onCrash)
  const dead = await startAgent({ store, tools: [first.tool], model: scripted([toolCall('work', {}, { id: 'c1' })]) })
  dead.agent.followup('go')
  await first.begun
  const second = hangingTool(witness, onCrash)
  return { store, witness, tools: [second.tool] }
}

test('a call that was running at a crash and may not run again is answered as unknown', async () => {
  const { store, witness, tools } = await crashInTool('unknown')
  const model = scripted(['carried on'])
  await using again = await startAgent({ store, steal: true, tools, model })
  await again.agent.whenIdle()
  const [result] = ofType(await again.log(), 'tool/result')
  expect(result?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
  expect(witness).toEqual(['c1 1'])
  expect(ofType(await again.log(), 'turn/end')).toMatchObject([{ data: { turn: 1, reason: { kind: 'completed' } } }])
})

test('a call whose tool may run again does so once, as run 2 with the same idempotency key', async () => {
  const { store, witness, tools } = await crashInTool('rerun')
  await using again = await startAgent({ store, steal: true, tools, model: scripted(['carried on']) })
  await again.agent.whenIdle()
  const log = await again.log()
  expect(witness).toEqual(['c1 1', 'c1 2'])
  expect(ofType(log, 'tool/dispatch').map(({ data }) => data.run)).toEqual([1, 2])
  expect(ofType(log, 'tool/result')).toHaveLength(1)
})

test('a tool that the log allows to run again, and that now says unknown, does not', async () => {
  const { store, witness } = await crashInTool('rerun')
  const changed = hangingTool(witness, 'unknown')
  await using again = await startAgent({ store, steal: true, tools: [changed.tool], model: scripted(['carried on']) })
  await again.agent.whenIdle()
  expect(witness).toEqual(['c1 1'])
  expect(ofType(await again.log(), 'tool/result')[0]?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
})

test('a call whose tool asks is waited for, and runs again once approved', async () => {
  const { store, witness, tools } = await crashInTool('ask')
  await using again = await startAgent({ store, steal: true, tools, model: scripted(['carried on']) })
  await again.agent.whenQuiet()
  const [approval] = again.agent.approvals()
  expect(approval).toMatchObject({ callId: 'c1', purpose: 'rerun', run: 1 })
  expect(witness).toEqual(['c1 1'])
  await again.agent.approve('c1', { digest: approval?.argumentsDigest ?? '', run: 1 })
  await again.agent.whenIdle()
  expect(witness).toEqual(['c1 1', 'c1 2'])
})

test('a crash while the model streams asks it again as another attempt, and keeps the lost chunks unused', async () => {
  const store = memoryStore()
  const held = gate()
  const dead = await startAgent({ store, model: scripted([[text('half an ans'), pause(held)]]) })
  dead.agent.followup('hi')
  await held.reached
  await dead.agent.session.flush()
  await using again = await startAgent({ store, steal: true, model: scripted(['a whole answer']) })
  await again.agent.whenIdle()
  const log = await again.log()
  expect(new Set(ofType(log, 'assistant/chunk').map(({ data }) => data.attempt))).toEqual(new Set([1, 2]))
  expect(ofType(log, 'assistant/message')).toMatchObject([{ data: { attempt: 2 } }])
  expect(again.agent.session.messages().at(-1)).toMatchObject({ content: [{ type: 'text', text: 'a whole answer' }] })
})

test('recovery interrupt closes the open turn, puts nothing in its place and starts nothing', async () => {
  const { store, witness, tools } = await crashInTool('rerun')
  await using again = await startAgent({ store, steal: true, tools, recovery: 'interrupt' })
  await again.agent.whenIdle()
  const log = await again.log()
  expect(witness).toEqual(['c1 1'])
  expect(typesOf(log).slice(-4)).toEqual(['session/resumed', 'tool/result', 'step/end', 'turn/end'])
  expect(ofType(log, 'turn/end')[0]?.data.reason).toEqual({ kind: 'interrupted' })
})

test('a turn that finds its work cut short more often than maxResumes is interrupted', async () => {
  const store = memoryStore()
  for (let opening = 0; opening < 4; opening++) {
    const started = await startAgent({ store, steal: true, maxResumes: 2, model: scripted(() => [text('x'), hangs()]) })
    if (opening === 0) started.agent.followup('hi')
    await settle()
    await started.agent.session.flush().catch(() => {})
  }
  const log = await stored(store, 'session')
  expect(ofType(log, 'session/resumed').map(({ data }) => [data.resumes, data.recovery])).toEqual([
    [1, 'continue'],
    [2, 'continue'],
    [3, 'interrupt'],
  ])
  expect(ofType(log, 'turn/end')).toMatchObject([
    { data: { reason: { kind: 'interrupted', cause: 'recovery-limit' } } },
  ])
})

test('closing suspends: the open turn stays open, is not counted, and goes on at the next opening', async () => {
  const store = memoryStore()
  const held = gate()
  const first = await startAgent({ store, model: scripted([[text('half'), pause(held)]]) })
  const receipt = first.agent.followup('hi')
  await held.reached
  await first.agent.close()
  expect(first.agent.status).toBe('closed')
  await expect(receipt.turn).rejects.toMatchObject({ code: 'AGENT_CLOSED' })
  expect((await stored(store, 'session')).at(-1)?.type).toBe('session/suspended')
  await using again = await startAgent({ store, model: scripted(['whole']) })
  await again.agent.whenIdle()
  expect(ofType(await again.log(), 'session/resumed')).toMatchObject([{ data: { resumes: 0 } }])
})

test('a retry goes on after a restart for the rest of its delay, and never longer than all of it', async () => {
  const store = memoryStore()
  const clock = simulatedClock()
  const model = scripted(() => ({
    kind: 'finish',
    reason: { kind: 'error', failure: { code: 'SERVER', message: 'no' } },
  }))
  const retry = { backoff: { initialDelayMs: 1_000, jitterRatio: 0 } }
  const dead = await startAgent({ store, clock, model, retry })
  dead.agent.followup('hi')
  await dead.agent.whenQuiet()
  expect(dead.agent.status).toBe('waiting')
  clock.increment(400)
  await using again = await startAgent({ store, steal: true, clock, retry, model: scripted(['at last']) })
  await again.agent.whenQuiet()
  clock.increment(599)
  await settle()
  expect(again.agent.status).toBe('waiting')
  clock.increment(1)
  await again.agent.whenIdle()
  expect(again.agent.session.messages().at(-1)).toMatchObject({ content: [{ text: 'at last' }] })
})

test('a session at rest with nothing owed is reopened without writing anything', async () => {
  const store = memoryStore()
  const first = await startAgent({ store })
  await first.agent.run('hi')
  await first.agent.close()
  const before = await stored(store, 'session')
  const again = await startAgent({ store })
  await again.agent.whenIdle()
  await again.agent.close()
  expect(await stored(store, 'session')).toEqual(before)
})
