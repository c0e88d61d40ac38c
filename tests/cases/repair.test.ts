/**
 * Logs that end in the middle of a turn, opened with recovery 'interrupt': what is added to close them. By default a
 * turn is carried on instead. A log that no agent can have left is refused and stays as it is.
 */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { textOf } from '../../src/log/messages.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { createFold, stateName } from '../../src/machines/fold.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, stored, typesOf } from '../kit/agents.ts'
import { reasons, userTexts } from '../kit/conversation.ts'

const work = tool({ name: 'work', description: 'Works', parameters: { type: 'object' }, execute: () => 'worked' })
const interrupted = { kind: 'interrupted' } as const
const recovery = 'interrupt' as const

/** The log of a turn that called `work` as c1, and of a second one that did so as c2. */
async function twoTurns(): Promise<readonly SessionEvent[]> {
  const model = scripted([toolCall('work', {}, { id: 'c1' }), 'one', toolCall('work', {}, { id: 'c2' }), 'two'])
  await using started = await startAgent({ model, tools: [work] })
  await started.agent.run('first')
  await started.agent.run('second')
  return started.log()
}

/** A store that holds just these events. */
async function holding(events: readonly SessionEvent[]): Promise<LogStore> {
  const store = memoryStore()
  const owner = await store.acquire('session', { create: { format: 1, id: 'session', createdAt: 0 } })
  await owner.append(events, { expectedSeq: 0 })
  await owner.release()
  return store
}

/** The log up to and with the n-th event of a type. */
function upTo(log: readonly SessionEvent[], type: SessionEvent['type'], n = 1): readonly SessionEvent[] {
  const last = log.filter((event) => event.type === type)[n - 1]
  return log.slice(0, (last?.seq ?? Number.NaN) + 1)
}

/** What opening adds to these events. */
async function added(events: readonly SessionEvent[]): Promise<readonly SessionEvent[]> {
  const store = await holding(events)
  await using started = await startAgent({ store, recovery, tools: [work] })
  const log = await started.log()
  expect(log.slice(0, events.length)).toEqual(events)
  return log.slice(events.length)
}

test('[repair-001] a log at rest, or an empty one, gets nothing added', async () => {
  expect(await added([])).toEqual([])
  expect(await added(upTo(await twoTurns(), 'turn/end'))).toEqual([])
})

test('[repair-002] a turn without a step is ended, and its message waits at the head of its queue again', async () => {
  const events = upTo(await twoTurns(), 'agent/inbox/spliced', 2)
  expect(typesOf(events)).toEqual(['agent/inbox/spliced', 'turn/start', 'agent/inbox/spliced'])
  const [resumed, back, end, ...more] = await added(events)
  expect(resumed).toMatchObject({ type: 'session/resumed', data: { recovery } })
  expect(back?.data).toMatchObject({ queue: 'next-turn', start: 0, deleteCount: 0, inserted: [{ kind: 'message' }] })
  expect(end).toMatchObject({ type: 'turn/end', data: { turn: 1, reason: interrupted } })
  expect(more).toEqual([])
})

test('[repair-005] a call that had begun is answered: its outcome is unknown, and the model is told what to do', async () => {
  const events = upTo(await twoTurns(), 'tool/dispatch')
  const closers = await added(events)
  expect(typesOf(closers)).toEqual(['session/resumed', 'tool/result', 'step/end', 'turn/end'])
  const [result] = ofType(closers, 'tool/result')
  expect(result?.data.error).toMatchObject({ code: 'TOOL_OUTCOME_UNKNOWN' })
  expect(result?.surfaceOp).toBe('append')
  expect(result?.sourceEventSeqs).toEqual([ofType(events, 'tool/call')[0]?.seq])
  const [block] = result?.data.message.content ?? []
  const said = (block?.content ?? []).map((part) => ('text' in part ? part.text : '')).join()
  expect(said).toMatch(/read-only|idempotent|again/)
  expect(ofType(closers, 'step/end')[0]?.data.outcome).toEqual(interrupted)
  expect(reasons(closers)).toEqual([interrupted])
})

test('[repair-005] a call that was scheduled and had not begun is answered as not started', async () => {
  const [result] = ofType(await added(upTo(await twoTurns(), 'tool/call')), 'tool/result')
  expect(result?.data.error).toMatchObject({ code: 'TOOL_NOT_STARTED' })
})

/** Opening refuses it, for each way of recovery, takes the session from nobody and changes nothing. */
async function refusedAsItIs(events: readonly SessionEvent[]): Promise<void> {
  const store = await holding(events)
  for (const each of ['interrupt', 'continue', 'continue'] as const) {
    await expect(startAgent({ store, recovery: each })).rejects.toMatchObject({ code: 'INVALID_LOG' })
  }
  expect(await stored(store, 'session')).toEqual(events)
}

test('[repair-007] a step that is closed over an unanswered call is a log that cannot be: it is refused', async () => {
  const log = await twoTurns()
  const open = upTo(log, 'tool/dispatch')
  const [end] = ofType(log, 'step/end')
  if (end === undefined) throw new Error('no step ended')
  await refusedAsItIs([...open, { ...end, seq: open.length }])
})

test('[repair-008] what is added speaks of the open turn alone: a turn that is over stays as it is', async () => {
  const closers = await added(upTo(await twoTurns(), 'tool/dispatch', 2))
  expect(ofType(closers, 'tool/result')).toMatchObject([{ data: { turn: 2, step: 1 } }])
  expect(closers.map(({ data }) => ('turn' in data ? data.turn : 2))).toEqual([2, 2, 2, 2])
})

test('[repair-009] a call that no answer names is a log that cannot be: it is refused', async () => {
  const log = await twoTurns()
  const [call] = ofType(log, 'tool/call')
  const open = log.slice(0, ofType(log, 'assistant/message')[0]?.seq)
  if (call === undefined) throw new Error('no call')
  await refusedAsItIs([...open, { ...call, seq: open.length, data: { ...call.data, callId: 'c9' } }])
})

test('[repair-013] reading repairs nothing and writes nothing; opening closes the turn once', async () => {
  const events = upTo(await twoTurns(), 'tool/dispatch')
  const store = await holding(events)
  const fold = createFold()
  for await (const event of store.read('session')) fold.push(event)
  expect(stateName(fold.snapshot())).toBe('toolExec')
  expect(await stored(store, 'session')).toEqual(events)
  const lengths: number[] = []
  for (let opening = 0; opening < 2; opening++) {
    await using started = await startAgent({ store, recovery, tools: [work] })
    lengths.push((await started.log()).length)
  }
  expect(lengths).toEqual([events.length + 4, events.length + 4])
})

test('[repair-015] after it the agent goes on: the next turn tells the model the result right after its call', async () => {
  const store = await holding(upTo(await twoTurns(), 'tool/dispatch', 2))
  const model = scripted(['three'])
  await using started = await startAgent({ store, recovery, tools: [work], model })
  expect((await started.agent.run('third')).turn).toBe(3)
  const told = model.requests[0]?.messages ?? []
  const calling = told.findLastIndex(({ role }) => role === 'assistant')
  expect(told[calling + 1]?.content).toMatchObject([{ type: 'tool-result', toolCallId: 'c2', isError: true }])
  expect(told.slice(calling + 2).map((message) => textOf(message))).toEqual(['third'])
  expect(userTexts(await started.log())).toEqual(['first', 'second', 'third'])
})
