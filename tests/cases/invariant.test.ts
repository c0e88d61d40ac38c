/** What a log may not say, whoever wrote it. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { checkInvariants } from '../../src/log/invariants.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'
import { startAgent } from '../kit/agents.ts'
import * as k from '../kit/logs.ts'

const rulesOf = (...drafts: readonly k.Drafts[]) => [
  ...new Set(checkInvariants(k.logOf(...drafts) as readonly SessionEvent[]).map(({ rule }) => rule)),
]
const asked = (...ids: readonly string[]) => [k.opened(), k.asksFor(ids.map((id) => ({ id })))]

describe('[invariant-002] turns', () => {
  test('do not overlap', () => {
    expect(rulesOf(k.opened(), k.insert('next-turn', [k.item('m2')]), k.turnStart(2))).toContain('TURN-NESTING')
  })

  test('are ended by their own number', () => {
    expect(rulesOf(k.opened().slice(0, 3), k.turnEnd(2))).toEqual(['TURN-NESTING'])
  })

  test('are counted without gaps', () => {
    const later = k.opened('m2', 3)
    expect(rulesOf(k.textTurn(), later.slice(0, 2))).toEqual(['TURN-NUMBERING'])
  })

  test('hold all steps and headers', () => {
    expect(rulesOf(k.textTurn(), k.stepStart(2))).toContain('STEP-NESTING')
    expect(rulesOf(k.textTurn(), k.header('later', 'change'))).toEqual(['STEP-SCOPE'])
  })
})

describe('[invariant-003] steps', () => {
  test('do not overlap', () => {
    expect(rulesOf(k.opened(), k.stepStart(1, 2))).toContain('STEP-NESTING')
  })

  test('are ended by their own number', () => {
    expect(rulesOf(k.opened(), k.textChunks('a'), k.answer('a'), k.stepEnd('completed', 1, 2))).toContain(
      'STEP-NESTING',
    )
  })

  test('are closed before their turn is', () => {
    expect(rulesOf(k.opened(), k.textChunks('a'), k.answer('a'), k.turnEnd())).toContain('TURN-NESTING')
  })
})

describe('[invariant-004] what belongs to a step names the open one', () => {
  const elsewhere = { turn: 1, step: 2 }
  const drafts: Record<string, readonly k.Drafts[]> = {
    'a chunk': [k.opened(), k.textChunks('a', elsewhere).slice(0, 1)],
    'an answer': [k.opened(), k.textChunks('a'), k.answer('a', elsewhere)],
    'a call': [asked('c1'), k.ev('tool/call', { ...elsewhere, callId: 'c1', name: 'look', arguments: '{"at":1}' })],
    'a result': [
      asked('c1'),
      k.toolCall('c1'),
      k.dispatch('c1'),
      k.ev('tool/result', { ...elsewhere, message: k.resultMessage('c1') }),
    ],
  }
  test.each(Object.entries(drafts))('%s', (_, given) => {
    expect(rulesOf(...given)).toContain('STEP-SCOPE')
  })
})

describe('[invariant-005] a result', () => {
  test('has its call in the same step', () => {
    expect(rulesOf(asked('c1'), k.result('c9'))).not.toEqual([])
    expect(rulesOf(asked('c1'), k.result('c1'))).toContain('RESULT-UNSCHEDULED')
  })

  test('may stand alone only to say that the call never started', () => {
    expect(
      rulesOf(asked('c1'), k.resumed({ recovery: 'interrupt', resumes: 0 }), k.result('c1', 'TOOL_NOT_STARTED')),
    ).toEqual([])
  })

  // Replaced: every call is answered in its step, by a cancel and by a recovery as well.
  test('is there for every call when the step ends', () => {
    expect(rulesOf(asked('c1'), k.toolCall('c1'), k.dispatch('c1'), k.stepEnd('tool-calls'))).toContain(
      'RESULT-MISSING',
    )
  })
})

describe('[invariant-006] a result is rewritten', () => {
  const rewrite = k.ev(
    'tool/result',
    { turn: 1, step: 1, message: k.resultMessage('c1', 'in short') },
    {
      surfaceOp: { op: 'replace', start: 20, end: 20 },
      sourceEventSeqs: [20],
    },
  )
  const seqOf = (log: readonly SessionEvent[]) =>
    log.findIndex((event) => event.type === 'tool/result' && event.data.message.source.callId === 'c1')
  const rewriteIn = (...drafts: readonly k.Drafts[]) => {
    const seq = seqOf(k.logOf(...drafts))
    return rulesOf(...drafts, {
      ...rewrite,
      surfaceOp: { op: 'replace', start: seq, end: seq },
      sourceEventSeqs: [seq],
    } as k.Draft)
  }

  // Replaced: what matters is that no request is under way, whose messages the log must give.
  test('between steps and between turns, and never while a step is open', () => {
    expect(rewriteIn(k.toolTurn())).toEqual([])
    expect(rewriteIn(k.toolTurn(), k.opened('m2', 2))).toContain('REPLACE-IN-STEP')
  })
})

describe('[invariant-008] a request', () => {
  test('is the one that the log gives, by its digest', () => {
    const chunk = k.chunk({ type: 'block-start', index: 0, blockType: 'text' }, { request: 'sha256:00' })
    expect(rulesOf(k.opened(), chunk)).toEqual(['REQUEST-DIGEST'])
    expect(rulesOf(k.opened(), k.textChunks('a'))).toEqual([])
  })

  test('has a header before it', () => {
    expect(rulesOf(k.opened().slice(0, 5), k.textChunks('a').slice(0, 1))).toContain('REQUEST-HEADER')
  })

  test('cannot be changed by an adapter', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    await started.agent.run('go')
    const isFrozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen))
    expect(model.requests).toHaveLength(1)
    expect(isFrozen(model.requests[0])).toBe(true)
  })
})

test('[invariant-009] a status is told when it changes, and never twice', async () => {
  const told: string[] = []
  await using started = await startAgent()
  started.agent.on('agent/status', (status) => void told.push(status))
  await started.agent.run('one')
  started.agent.inject('waits')
  await started.agent.run('two')
  await started.agent.close()
  expect(told).toEqual(['running', 'idle', 'running', 'idle', 'closed'])
})
