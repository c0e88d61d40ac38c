import { describe, expect, test } from 'vitest'
import type { CancelCause, SessionEvent } from '../../src/log/events.ts'
import { RULES, type Rule } from '../../src/log/invariants/rules.ts'
import { checkInvariants } from '../../src/log/invariants.ts'
import * as k from '../kit/logs.ts'

const rulesOf = (events: Iterable<unknown>) => [
  ...new Set(checkInvariants(events as Iterable<SessionEvent>).map(({ rule }) => rule)),
]

const calls = (...ids: readonly string[]) => [k.opened(), k.asksFor(ids.map((id) => ({ id })))]
const waits = (id: string) => k.insert('next-turn', [k.item(id)])
const failure = { message: 'busy', code: 'SERVER' }
const retry = (attempt: number, n: number, more: object = {}) =>
  k.ev('llm/retry', {
    turn: 1,
    step: 1,
    attempt,
    retryId: 'r1',
    provider: 'p',
    policyKey: 'k',
    retry: n,
    mode: 'normal',
    maxRetries: 2,
    delayMs: 500,
    failure,
    ...more,
  })
const retryStarted = (attempt: number, n: number, retryId = 'r1') =>
  k.ev('llm/retry-started', { turn: 1, step: 1, attempt, retryId, retry: n })
const failedChunk = (attempt: number) => k.chunk({ type: 'finish', reason: { kind: 'error', failure } }, { attempt })
const onCrash = (value: 'rerun' | 'ask' | 'probe' | 'unknown', run = 1) => k.dispatch('c1', { onCrash: value, run })
const timeLimit = (max: number, spent: number): CancelCause => ({
  kind: 'limit',
  limit: { name: 'time', scope: 'turn', max, spent },
})
const interrupt = k.resumed({ recovery: 'interrupt' })
const interrupted = k.turnEnd(1, { kind: 'interrupted' })
const ends = [
  k.textChunks('done', { step: 2 }),
  k.answer('done', { step: 2 }),
  k.stepEnd('completed', 1, 2),
  k.turnEnd(),
]

const good: Record<string, readonly k.Drafts[]> = {
  nothing: [],
  'a turn with an answer': [k.textTurn()],
  'two turns': [k.textTurn(), k.textTurn('m2', 2)],
  'a turn with tools, answered out of order': [k.toolTurn()],
  'notes of plug-ins anywhere': [
    { type: 'todo/write', data: {}, ignorable: true },
    k.opened(),
    { type: 'todo/write', data: {}, ignorable: true },
    k.textChunks('hello'),
  ],
  'a turn cancelled as it starts': [k.opened().slice(0, 3), k.turnCancel(), k.aborted()],
  'a turn cancelled while the model answers': [
    k.opened(),
    k.textChunks('hel').slice(0, 2),
    k.turnCancel(),
    k.answer('hel', { interrupted: true, finish: { kind: 'aborted', failure } }),
    k.stepEnd('aborted'),
    k.aborted(),
  ],
  'a turn cancelled while tools run': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.turnCancel(),
    k.toolCall('c2'),
    k.result('c2', 'ABORTED_BEFORE_DISPATCH'),
    k.result('c1'),
    k.stepEnd('aborted'),
    k.aborted(),
  ],
  'a cancel that keeps the inbox puts back what was claimed': [
    k.opened().slice(0, 3),
    k.turnCancel(1, { keepInbox: true }),
    waits('m1'),
    k.aborted(),
  ],
  'a message that wakes during a cancel gets its turn afterwards': [
    k.opened().slice(0, 3),
    k.turnCancel(),
    k.insert('next-turn', [k.item('m2')], { wake: true }),
    k.aborted(),
    k.turnStart(2),
  ],
  'what waits when a turn completes is taken on': [
    k.opened(),
    waits('m2'),
    k.textChunks('hello'),
    k.answer('hello'),
    k.stepEnd(),
    k.turnEnd(),
    k.turnStart(2),
    k.claim('next-turn'),
  ],
  'parked work started by a wake': [
    waits('m1'),
    k.turnStart(),
    k.claim('next-turn'),
    k.turnEnd(1, { kind: 'blocked' }),
  ],
  'a limit': [
    k.opened().slice(0, 3),
    k.turnCancel(1, {
      cause: { kind: 'limit', limit: { name: 'time', scope: 'turn', max: 1, spent: 2 } },
      keepInbox: true,
    }),
    waits('m1'),
    k.turnEnd(1, { kind: 'limit', limit: { name: 'time', scope: 'turn', max: 1, spent: 2 } }),
  ],
  'the steps are spent': [
    k.opened('m1', 1, { maxSteps: 1 }),
    k.asksFor([{ id: 'c1' }]),
    k.ran('c1'),
    k.stepEnd('tool-calls'),
    k.turnEnd(1, { kind: 'max-steps', maxSteps: 1 }),
  ],
  'two retries': [
    k.opened(),
    failedChunk(1),
    retry(1, 1),
    retryStarted(2, 1),
    failedChunk(2),
    retry(2, 2),
    retryStarted(3, 2),
    k.textChunks('hello', { attempt: 3 }),
    k.answer('hello', { attempt: 3 }),
  ],
  'a crash while the model answers': [
    k.opened(),
    k.textChunks('hel').slice(0, 2),
    k.resumed(),
    k.textChunks('hello', { attempt: 2 }),
    k.answer('hello', { attempt: 2 }),
    k.stepEnd(),
    k.turnEnd(),
  ],
  'a crash while waiting for a retry': [
    k.opened(),
    failedChunk(1),
    retry(1, 1),
    k.resumed({ resumes: 0 }),
    retryStarted(2, 1),
    k.textChunks('hello', { attempt: 2 }),
    k.answer('hello', { attempt: 2 }),
  ],
  'a crash interrupted before its step: the message waits again': [
    k.opened().slice(0, 3),
    interrupt,
    waits('m1'),
    interrupted,
  ],
  'a crash interrupted in its tools': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    interrupt,
    k.result('c1', 'TOOL_OUTCOME_UNKNOWN'),
    k.result('c2', 'TOOL_NOT_STARTED'),
    k.stepEnd('interrupted'),
    interrupted,
  ],
  'a tool run again after a crash': [
    calls('c1'),
    k.toolCall('c1'),
    onCrash('rerun'),
    k.resumed(),
    onCrash('rerun', 2),
    k.result('c1'),
    k.handsOver('c1'),
    ends,
  ],
  'a tool run again after somebody allowed it': [
    calls('c1'),
    k.toolCall('c1'),
    onCrash('ask'),
    k.resumed(),
    k.approvalRequested('c1', { run: 1, purpose: 'rerun' }),
    k.resumed(),
    k.approvalResolved('c1', { run: 1 }),
    onCrash('ask', 2),
    k.result('c1'),
  ],
  'a probe that knows how it went': [calls('c1'), k.toolCall('c1'), onCrash('probe'), k.resumed(), k.result('c1')],
  'an approval, a denial': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.toolCall('c2'),
    k.approvalRequested('c1'),
    k.approvalRequested('c2'),
    k.approvalResolved('c2', { decision: 'denied' }),
    k.ev('tool/result', { turn: 1, step: 1, message: k.resultMessage('c2', 'denied', true) }),
    k.approvalResolved('c1'),
    k.dispatch('c1'),
    k.result('c1'),
  ],
  'a tool that speaks too late': [
    calls('c1'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.turnCancel(),
    k.result('c1', 'TOOL_OUTCOME_UNKNOWN'),
    k.stepEnd('aborted'),
    k.aborted(),
    k.ev('tool/late-result', { turn: 1, step: 1, callId: 'c1', run: 1, outcome: 'late' }),
  ],
  'a fork of a closed turn': [k.textTurn(), waits('m2'), k.endSeed, k.textTurn('m2', 2)],
  'a fork in the middle of tools': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.toolCall('c2'),
    onCrash('rerun'),
    k.approvalRequested('c2'),
    waits('m2'),
    k.endSeed,
    k.resumed(),
    k.result('c1', 'TOOL_OUTCOME_UNKNOWN'),
    k.result('c2', 'TOOL_NOT_STARTED'),
    k.handsOver('c1', 'c2'),
    ends,
  ],
  'a fork between a waking splice and its turn': [k.insert('next-turn', [k.item('m1')], { wake: true }), k.endSeed],
  'a fork between an approval and its dispatch': [
    calls('c1'),
    k.toolCall('c1'),
    k.approvalRequested('c1'),
    k.approvalResolved('c1'),
    k.endSeed,
    k.resumed(),
    k.approvalRequested('c1'),
  ],
  'a summary in place of a turn': [
    k.textTurn(),
    k.ev('user/message', k.message('s1'), {
      surfaceOp: { op: 'replace', start: 4, end: 12 },
      sourceEventSeqs: [4, 12],
    }),
    k.textTurn('m2', 2),
  ],
}

test.each(Object.entries(good))('a good log breaks no rule: %s', (_, drafts) => {
  expect(checkInvariants(k.logOf(...drafts))).toEqual([])
})

test.each(Object.entries(good))('nor does any part of it that a crash leaves: %s', (_, drafts) => {
  const log = k.logOf(...drafts)
  for (let length = 0; length < log.length; length++) expect(checkInvariants(log.slice(0, length))).toEqual([])
})

const broken: Partial<Record<Rule, readonly k.Drafts[]>> = {
  'TURN-NESTING': [k.textTurn(), k.turnEnd()],
  'TURN-NUMBERING': [k.textTurn(), k.insert('next-turn', [k.item('m2')], { wake: true }), k.turnStart(3)],
  'TURN-WITHOUT-INPUT': [k.turnStart()],
  'STEP-NESTING': [k.opened(), k.stepStart(1, 2)],
  'STEP-NUMBERING': [k.opened().slice(0, 3), k.stepStart(1, 2)],
  'STEP-SCOPE': [k.opened().slice(0, 3), k.turnEnd(1, { kind: 'blocked' }), k.header()],
  'MAX-STEPS': [
    k.opened(),
    k.textChunks('a'),
    k.answer('a'),
    k.stepEnd(),
    k.turnEnd(1, { kind: 'max-steps', maxSteps: 50 }),
  ],
  'RESULTS-OWED': [calls('c1'), k.ran('c1'), k.stepEnd('tool-calls'), k.turnEnd()],
  'STEP-OUTCOME': [k.opened(), k.textChunks('a'), k.answer('a'), k.stepEnd('concluded')],
  'TURN-REASON': [k.textTurn().slice(0, -1), k.turnEnd(1, { kind: 'blocked' })],
  'RESUME-COUNT': [k.opened(), k.resumed({ resumes: 0 })],
  'LIMIT-SPENT': [k.opened(), k.turnCancel(1, { cause: timeLimit(9, 1), keepInbox: true })],
  'LIMIT-KEEPS': [k.opened(), k.turnCancel(1, { cause: timeLimit(1, 2) })],
  'REPEATED-CALL': [
    k.opened(),
    k.asksFor([{ id: 'c1' }]).slice(0, -1),
    k.turnCancel(1, { cause: { kind: 'repeated-call', name: 'look', count: 2 }, keepInbox: true }),
    k.asksFor([{ id: 'c1' }]).slice(-1),
  ],
  'TURN-CLAIMS': [waits('m1'), k.turnStart(), k.stepStart()],
  'STEP-CONSEQUENCE': [calls('c1'), k.ran('c1'), k.handsOver('c1').slice(0, 2), waits('m2')],
  'CANCEL-CLEARS': [k.opened(), waits('m2'), k.turnCancel(), k.stepEnd('aborted')],
  'CANCEL-ANSWERS': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.turnCancel(),
    k.toolCall('c2'),
    k.result('c1'),
  ],
  'RESUME-FIRST': [k.opened(), k.ev('session/suspended', {}), waits('m2')],
  'SPLICE-PLACE': [waits('m1'), waits('m2')],
  'WAKE-PLACE': [k.opened(), k.turnCancel(), k.insert('next-step', [k.item('m2')], { wake: true })],
  'CLAIM-WHOLE': [k.insert('next-step', [k.item('m1'), k.item('m2')]), k.turnStart(), k.claim('next-step')],
  'STEP-INPUT': [waits('m1'), k.turnStart(), k.stepStart()],
  'RESULT-ITEM-CALLS': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.toolCall('c2'),
    ['c1', 'c2'].map((id) => [k.dispatch(id), k.result(id)]),
    k.insert('next-step', [k.resultItem(1, 'c2'), k.resultItem(1, 'c1')]),
  ],
  'APPROVAL-SUBJECT': [calls('c1'), k.toolCall('c1'), k.approvalRequested('c1', { argumentsDigest: 'sha256:00' })],
  'RESULT-ERROR': [
    calls('c1'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.ev('tool/result', { turn: 1, step: 1, message: k.resultMessage('c1'), error: { name: 'E', code: 'E' } }),
  ],
  'RESULT-UNASKED': [calls('c1'), k.toolCall('c1'), k.approvalRequested('c1'), k.result('c1', 'DENIED')],
  'RESULT-SOURCE': [
    calls('c1'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.result('c1', undefined, { sourceEventSeqs: [0] }),
  ],
  'HEADER-REASON': [k.opened(), k.header('another')],
  'REQUEST-CONTEXT': [k.opened().slice(0, 6), k.textChunks('a').slice(0, 1)],
  'ANSWER-SAID': [k.opened(), k.textChunks('a'), k.answer('b', {}, { sourceEventSeqs: [7, 8, 9, 10, 11] })],
  'CANCEL-ONCE': [k.opened(), k.turnCancel(), k.turnCancel()],
  'CANCEL-REASON': [k.opened(), k.turnCancel(), k.stepEnd('aborted'), k.turnEnd()],
  'AFTER-CANCEL': [calls('c1'), k.toolCall('c1'), k.turnCancel(), k.dispatch('c1')],
  'INTERRUPT-REASON': [k.opened(), k.stepEnd('interrupted'), interrupted],
  'WAKE-STARTS-TURN': [k.insert('next-turn', [k.item('m1')], { wake: true }), waits('m2')],
  'OWED-STARTS-TURN': [
    k.opened(),
    waits('m2'),
    k.textChunks('a'),
    k.answer('a'),
    k.stepEnd(),
    k.turnEnd(),
    waits('m3'),
  ],
  'APPROVAL-CONSEQUENCE': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.approvalRequested('c1'),
    k.approvalResolved('c1'),
    k.toolCall('c2'),
  ],
  'SPLICE-COUNT': [waits('m1'), k.canceled('next-turn', 2)],
  'SPLICE-EMPTY': [k.spliced({})],
  'SPLICE-OUTCOME': [waits('m1'), k.spliced({ deleteCount: 1 })],
  'MESSAGE-ID': [waits('m1'), waits('m1')],
  'MESSAGE-FATE': [k.opened().slice(0, 4), k.entered('m1'), k.entered('m1')],
  'MESSAGE-PLACE': [k.opened(), k.entered('m2')],
  'CLAIM-PLACE': [waits('m1'), k.claim('next-turn')],
  'CLAIM-LOST': [k.opened().slice(0, 3), interrupt, interrupted],
  'RESULT-ITEM-PLACE': [waits('m1'), k.insert('next-step', [k.resultItem(1, 'c1')])],
  'RESULT-ITEM-OUTLIVES': [
    calls('c1'),
    k.ran('c1'),
    k.handsOver('c1').slice(0, 2),
    k.turnEnd(1, { kind: 'stopped-by-policy', policy: 'p' }),
  ],
  'CALLS-OF-ANSWER': [calls('c1'), k.ran('c1'), k.handsOver('c1'), k.asksFor([{ id: 'c1' }], { step: 2 })],
  'CALL-ORDER': [calls('c1', 'c2'), k.toolCall('c2')],
  'PARALLEL-CAP': [
    k.opened('m1', 1, { maxParallelToolCalls: 1 }),
    k.asksFor([{ id: 'c1' }, { id: 'c2' }]),
    k.toolCall('c1'),
    k.toolCall('c2'),
  ],
  'EXCLUSIVE-ALONE': [
    k.opened(),
    k.asksFor([{ id: 'c1', mode: 'exclusive' }, { id: 'c2' }]),
    k.toolCall('c1'),
    k.toolCall('c2'),
  ],
  'DISPATCH-STATE': [calls('c1'), k.dispatch('c1')],
  'DISPATCH-AGAIN': [calls('c1'), k.toolCall('c1'), onCrash('unknown'), k.resumed(), onCrash('unknown', 2)],
  'APPROVAL-STATE': [calls('c1'), k.approvalRequested('c1')],
  'APPROVAL-ONCE': [calls('c1'), k.toolCall('c1'), k.approvalResolved('c1')],
  'RESULT-ONCE': [calls('c1'), k.ran('c1'), k.result('c1')],
  'RESULT-MISSING': [calls('c1'), k.toolCall('c1'), k.turnCancel(), k.stepEnd('aborted')],
  'RESULT-UNSCHEDULED': [calls('c1'), k.result('c1', 'INVALID_ARGS')],
  'RESULT-UNDISPATCHED': [calls('c1'), k.toolCall('c1'), k.result('c1')],
  'RESULT-CODE': [calls('c1'), k.toolCall('c1'), k.dispatch('c1'), k.result('c1', 'ABORTED_BEFORE_DISPATCH')],
  'RESULT-AFTER-CRASH': [calls('c1'), k.toolCall('c1'), onCrash('rerun'), k.resumed(), k.result('c1')],
  'LATE-RESULT': [
    calls('c1'),
    k.ran('c1'),
    k.ev('tool/late-result', { turn: 1, step: 1, callId: 'c1', run: 2, outcome: null }),
  ],
  'CHUNK-ATTEMPT': [k.opened(), k.textChunks('a', { attempt: 2 }).slice(0, 1)],
  'REQUEST-HEADER': [k.opened().slice(0, 5), k.textChunks('a').slice(0, 1)],
  'REQUEST-DIGEST': [k.opened(), k.chunk({ type: 'finish', reason: { kind: 'stop' } }, { request: 'sha256:00' })],
  'STREAM-BLOCKS': [k.opened(), k.chunk({ type: 'text-delta', index: 0, text: 'a' })],
  'STREAM-USAGE': [
    k.opened(),
    k.textChunks('a').slice(0, 4),
    k.chunk({ type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } }),
  ],
  'STREAM-FINISH': [k.opened(), k.textChunks('a'), k.chunk({ type: 'finish', reason: { kind: 'stop' } })],
  'ANSWER-ATTEMPT': [k.opened(), k.textChunks('a'), k.resumed(), k.answer('a')],
  'ANSWER-ONCE': [k.opened(), k.textChunks('a'), k.answer('a'), k.answer('a')],
  'ANSWER-SOURCES': [k.opened(), k.textChunks('a'), k.answer('a', {}, { sourceEventSeqs: [6] })],
  'ANSWER-INTERRUPTED': [k.opened(), k.textChunks('a'), k.answer('a', { interrupted: true })],
  'RETRY-ATTEMPT': [k.opened(), failedChunk(1), retry(2, 1)],
  'RETRY-FAILURE': [k.opened(), failedChunk(1), retry(1, 1, { failure: { message: 'other', code: 'SERVER' } })],
  'RETRY-NUMBERING': [k.opened(), failedChunk(1), retry(1, 2)],
  'RETRY-STARTED': [k.opened(), failedChunk(1), retry(1, 1), retryStarted(2, 1, 'other')],
  'SURFACE-REPLACE': [
    k.textTurn(),
    k.ev('user/message', k.message('s1'), { surfaceOp: { op: 'replace', start: 4, end: 12 }, sourceEventSeqs: [4] }),
  ],
  'REPLACE-IN-STEP': [
    k.textTurn(),
    k.opened('m2', 2),
    k.ev('user/message', k.message('s1'), { surfaceOp: { op: 'replace', start: 4, end: 4 }, sourceEventSeqs: [4] }),
  ],
  'HISTORY-PAIRING': [
    k.toolTurn(),
    // The answer that asked for the tools goes, their results stay.
    k.ev('user/message', k.message('s1'), { surfaceOp: { op: 'replace', start: 14, end: 14 }, sourceEventSeqs: [14] }),
  ],
}

test.each(Object.entries(broken))('%s is found where it is broken', (rule, drafts) => {
  const log = k.logOf(...drafts)
  const found = checkInvariants(log)
  expect(found.map((violation) => violation.rule)).toContain(rule)
  expect(found.find((violation) => violation.rule === rule)?.seq).toBe(log.length - 1)
})

test('an answer must have a finish chunk, and agree with it', () => {
  expect(rulesOf(k.logOf(k.opened(), k.textChunks('a').slice(0, 4), k.answer('a')))).toEqual(['STREAM-FINISH'])
  const cut = k.answer('a', { finish: { kind: 'max-tokens' } })
  expect(rulesOf(k.logOf(k.opened(), k.textChunks('a'), cut))).toEqual(['STREAM-FINISH'])
})

test('a fork runs no call again, though a crash came after it', () => {
  const log = k.logOf(calls('c1'), k.toolCall('c1'), onCrash('rerun'), k.endSeed, k.resumed(), onCrash('rerun', 2))
  expect(rulesOf(log)).toEqual(['DISPATCH-AGAIN'])
})

test('a claimed message that pre-step left out cannot enter later', () => {
  const leftOut = [
    k.opened().slice(0, 4),
    k.entered('of a hook'),
    k.opened().slice(5),
    k.textChunks('a'),
    k.answer('a'),
    k.stepEnd(),
  ]
  const log = k.logOf(leftOut, k.turnEnd())
  expect(rulesOf(log)).toEqual([])
  const again = k.logOf(
    leftOut,
    k.insert('next-step', [k.item('m2')]),
    k.claim('next-step'),
    k.stepStart(1, 2),
    k.entered('m1'),
  )
  expect(rulesOf(again)).toEqual(['MESSAGE-FATE'])
})

describe('a log whose structure is broken is checked no further', () => {
  const [first, second, ...rest] = k.logOf(k.textTurn())
  const cases: Partial<Record<Rule, readonly unknown[]>> = {
    'SEQ-CONTIGUOUS': [first, ...rest],
    'TIME-MONOTONE': [first, { ...second, time: 1 }],
    ENVELOPE: [{ ...first, extra: 1 }],
    DATA: [first, { ...second, data: { turn: 0 } }],
    'UNKNOWN-TYPE': [first, { seq: 1, time: 2_000, type: 'future/event', data: {} }],
  }
  test.each(Object.entries(cases))('%s', (rule, events) => {
    expect(rulesOf([...events, ...k.logOf(k.turnEnd())])).toEqual([rule])
  })
  test('every rule has a log that breaks it', () => {
    expect(new Set([...Object.keys(cases), ...Object.keys(broken)])).toEqual(new Set(Object.keys(RULES)))
  })
})
