import { expect, test } from 'vitest'
import type { AgentOptions } from '../../src/agent.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { fails, gate, hangs, pause, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { Clock } from '../../src/services/clock.ts'
import type { Tool } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, simulatedClock, startAgent, stored, typesOf } from '../kit/agents.ts'

type Policy = NonNullable<Parameters<typeof tool>[0]['onCrash']>

/** A tool whose body appends its run and idempotency key to `witness` when it begins, and then waits to be killed. */
function hangingTool(witness: string[], onCrash: Policy): { tool: Tool; begun: Promise<void> } {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const made = tool({
    name: 'work',
    description: 'Works',
    parameters: { type: 'object' },
    onCrash,
    execute: (_, { run, idempotencyKey }) => {
      witness.push(`${idempotencyKey} ${run}`)
      begin()
      return run === 1 ? new Promise(() => {}) : `finished in run ${run}`
    },
  })
  return { tool: made, begun }
}

/** Starts a turn whose tool is at work, and takes the session away as a crash does: nothing more is recorded by it. */
async function crashInTool(onCrash: Policy) {
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
  expect(witness).toEqual(['session:c1 1'])
  expect(ofType(await again.log(), 'turn/end')).toMatchObject([{ data: { turn: 1, reason: { kind: 'completed' } } }])
})

test('a call whose tool may run again does so once, as run 2 with the same idempotency key', async () => {
  const { store, witness, tools } = await crashInTool('rerun')
  await using again = await startAgent({ store, steal: true, tools, model: scripted(['carried on']) })
  await again.agent.whenIdle()
  const log = await again.log()
  expect(witness).toEqual(['session:c1 1', 'session:c1 2'])
  expect(ofType(log, 'tool/dispatch').map(({ data }) => data.run)).toEqual([1, 2])
  expect(ofType(log, 'tool/result')).toHaveLength(1)
})

test('a probe that finds the work done gives its value as the result, and nothing runs again', async () => {
  const asked: unknown[] = []
  const { store, witness, tools } = await crashInTool(async ({ callId, run, idempotencyKey, args }) => {
    asked.push({ callId, run, idempotencyKey, args })
    return { kind: 'done', value: { paid: 7 } }
  })
  const model = scripted(['carried on'])
  await using again = await startAgent({ store, steal: true, tools, model })
  await again.agent.whenIdle()
  expect(asked).toEqual([{ callId: 'c1', run: 1, idempotencyKey: 'session:c1', args: {} }])
  expect(witness).toEqual(['session:c1 1'])
  const [result] = ofType(await again.log(), 'tool/result')
  expect(result?.data.error).toBeUndefined()
  expect(result?.data.message.content[0].content).toEqual([{ type: 'text', text: '{"paid":7}' }])
  expect(model.requests).toHaveLength(1)
})

test('a probe that finds nothing done lets the call run again, and one that cannot tell does not', async () => {
  for (const [kind, runs] of [
    ['not-done', ['session:c1 1', 'session:c1 2']],
    ['unknown', ['session:c1 1']],
  ] as const) {
    const { store, witness, tools } = await crashInTool(async () => ({ kind }))
    await using again = await startAgent({ store, steal: true, tools, model: scripted(['carried on']) })
    await again.agent.whenIdle()
    expect(witness).toEqual(runs)
    const [result] = ofType(await again.log(), 'tool/result')
    expect(result?.data.error?.code).toBe(kind === 'unknown' ? 'TOOL_OUTCOME_UNKNOWN' : undefined)
  }
})

test('a tool that the log allows to run again, and that now says unknown, does not', async () => {
  const { store, witness } = await crashInTool('rerun')
  const changed = hangingTool(witness, 'unknown')
  await using again = await startAgent({ store, steal: true, tools: [changed.tool], model: scripted(['carried on']) })
  await again.agent.whenIdle()
  expect(witness).toEqual(['session:c1 1'])
  expect(ofType(await again.log(), 'tool/result')[0]?.data.error?.code).toBe('TOOL_OUTCOME_UNKNOWN')
})

test('a call whose tool asks is waited for, and runs again once approved', async () => {
  const { store, witness, tools } = await crashInTool('ask')
  await using again = await startAgent({ store, steal: true, tools, model: scripted(['carried on']) })
  await again.agent.whenQuiet()
  const [approval] = again.agent.approvals()
  expect(approval).toMatchObject({ callId: 'c1', purpose: 'rerun', run: 1 })
  expect(witness).toEqual(['session:c1 1'])
  await again.agent.approve('c1', { digest: approval?.argumentsDigest ?? '', run: 1 })
  await again.agent.whenIdle()
  expect(witness).toEqual(['session:c1 1', 'session:c1 2'])
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
  expect(witness).toEqual(['session:c1 1'])
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

test('a retry goes on after a restart for the rest of its delay', async () => {
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

test('a retry waits no longer than all of its delay when the clock was set back over a restart', async () => {
  const store = memoryStore()
  const timers = simulatedClock()
  timers.increment(3_600_000)
  const setBack: Clock = {
    now: () => timers.now() - 3_600_000,
    setTimeout: (run, ms) => timers.setTimeout(run, ms),
    clearTimeout: (id) => timers.clearTimeout(id as number),
  }
  const retry = { backoff: { initialDelayMs: 1_000, jitterRatio: 0 } }
  const dead = await startAgent({ store, clock: timers, retry, model: scripted([fails('SERVER')]) })
  dead.agent.followup('hi')
  await dead.agent.whenQuiet()
  await using again = await startAgent({ store, steal: true, clock: setBack, retry, model: scripted(['at last']) })
  await again.agent.whenQuiet()
  timers.increment(999)
  await settle()
  expect(again.agent.status).toBe('waiting')
  timers.increment(1)
  await again.agent.whenIdle()
  expect(again.agent.session.messages().at(-1)).toMatchObject({ content: [{ text: 'at last' }] })
})

test('an approval that expired while nobody was there expires before the answer that was left for it is taken', async () => {
  const store = memoryStore()
  const clock = simulatedClock()
  const ran: string[] = []
  const guarded = tool({
    name: 'pay',
    description: 'Pays',
    parameters: {},
    needsApproval: true,
    approvalExpiresMs: 1_000,
    execute: () => void ran.push('paid'),
  })
  const shared = { store, clock, tools: [guarded] }
  const dead = await startAgent({ ...shared, model: scripted([toolCall('pay', {}, { id: 'c1' })]) })
  dead.agent.followup('go')
  await dead.agent.whenQuiet()
  const digest = dead.agent.approvals()[0]?.argumentsDigest ?? ''
  await dead.agent.close()
  await store.post('session', { id: 'late', kind: 'approve', callId: 'c1', run: 0, digest })
  clock.increment(1_000)
  await using again = await startAgent({ ...shared, model: scripted(['never mind']) })
  await again.agent.whenIdle()
  expect(await store.outcome('session', 'late', AbortSignal.timeout(5_000))).toMatchObject({
    kind: 'refused',
    code: 'APPROVAL_EXPIRED',
  })
  expect(ran).toEqual([])
  const log = await again.log()
  expect(ofType(log, 'tool/approval-resolved').map(({ data }) => data.decision)).toEqual(['expired'])
  expect(ofType(log, 'tool/result')[0]?.data.message.content[0]).toMatchObject({ isError: true })
  await expect(again.agent.approve('c1', { digest })).rejects.toMatchObject({ code: 'APPROVAL_EXPIRED' })
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

test('a hook that was asked when the process died is asked again at the next opening', async () => {
  const store = memoryStore()
  let ask = (): void => {}
  const asked = new Promise<void>((resolve) => {
    ask = resolve
  })
  let times = 0
  const dead = await startAgent({
    store,
    hooks: {
      'agent/pre-step': () => {
        times += 1
        ask()
        return new Promise(() => {})
      },
    },
  })
  dead.agent.followup('go')
  await asked
  await dead.agent.session.flush()
  const hooks: AgentOptions['hooks'] = {
    'agent/pre-step': (_, next) => {
      times += 1
      return next()
    },
  }
  await using again = await startAgent({ store, steal: true, hooks })
  await again.agent.whenIdle()
  expect(times).toBe(2)
  expect(ofType(await again.log(), 'step/start')).toHaveLength(1)
})
