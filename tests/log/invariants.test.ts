import { describe, expect, test } from 'vitest'
import type { CancelCause, SessionEvent } from '../../src/log/events.ts'
import { RULES, type Rule } from '../../src/log/invariants/rules.ts'
import { checkInvariants, createInvariantChecker } from '../../src/log/invariants.ts'
import * as k from '../kit/logs.ts'

const rulesOf = (events: Iterable<unknown>) => [
  ...new Set(checkInvariants(events as Iterable<SessionEvent>).map(({ rule }) => rule)),
]

const calls = (...ids: readonly string[]) => [k.opened(), k.asksFor(ids.map((id) => ({ id })))]
const waits = (id: string, start = 0) => k.insert('next-turn', [k.item(id)], { start })
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
  // Each says in words what is wrong, and of what.
  for (const { message } of found) expect(message).toMatch(/\w+ \w+/)
})

const closedStep = [k.opened(), k.textChunks('a'), k.answer('a'), k.stepEnd()]
const claimedOnly = k.opened().slice(0, 3)
const limitCause = { kind: 'limit', limit: { name: 'time', scope: 'turn', max: 1, spent: 2 } } as const
const repeated = { kind: 'repeated-call', name: 'look', count: 2 } as const
const note = { type: 'todo/write', data: {}, ignorable: true } as const
const start = (index = 0) => k.chunk({ type: 'block-start', index, blockType: 'text' })
const text = (index = 0) => k.chunk({ type: 'text-delta', index, text: 'a' })
const stop = (index = 0) => k.chunk({ type: 'block-end', index, block: { type: 'text', text: 'a' } })
const finish = k.chunk({ type: 'finish', reason: { kind: 'stop' } })
const many = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `c${i}` }))

/** More ways to break a rule, by its last event: what is wrong, the rule, the log. */
const alsoBroken: readonly (readonly [string, Rule, readonly k.Drafts[]])[] = [
  [
    'what a service records after the suspension',
    'RESUME-FIRST',
    [k.opened().slice(0, 5), k.ev('session/suspended', {}), k.header()],
  ],
  ['a turn starts while one is open', 'TURN-NESTING', [k.opened(), waits('m2'), k.turnStart(2)]],
  ['a cancel with no turn open', 'TURN-NESTING', [k.textTurn(), k.turnCancel(1)]],
  ['a cancel of another turn', 'TURN-NESTING', [k.opened(), k.turnCancel(2)]],
  ['the end of another turn', 'TURN-NESTING', [claimedOnly, k.turnEnd(2, { kind: 'blocked' })]],
  ['a turn ends with its step open', 'TURN-NESTING', [k.opened(), k.turnCancel(), k.aborted()]],
  ['a suspension at rest', 'TURN-NESTING', [k.ev('session/suspended', {})]],
  ['a step without a turn', 'STEP-NESTING', [k.stepStart()]],
  ['a step of another turn', 'STEP-NESTING', [claimedOnly, k.stepStart(2, 1)]],
  ['a step ends that is not open', 'STEP-NESTING', [claimedOnly, k.stepEnd()]],
  ['the end of another step', 'STEP-NESTING', [k.opened(), k.stepEnd('completed', 1, 2)]],
  ['the end of a step of another turn', 'STEP-NESTING', [k.opened(), k.stepEnd('completed', 2, 1)]],
  ['a context with no turn open', 'STEP-SCOPE', [k.ev('request/context', { provider: 'p', model: 'm' })]],
  ['a chunk after the step', 'STEP-SCOPE', [closedStep, text()]],
  ['an answer after the step', 'STEP-SCOPE', [closedStep, k.answer('b')]],
  ['a retry after the step', 'STEP-SCOPE', [closedStep, retry(1, 1)]],
  ['a retry started after the step', 'STEP-SCOPE', [closedStep, retryStarted(2, 1)]],
  ['a call after the step', 'STEP-SCOPE', [closedStep, k.toolCall('c1')]],
  ['a question after the step', 'STEP-SCOPE', [closedStep, k.approvalRequested('c1')]],
  ['an approval after the step', 'STEP-SCOPE', [closedStep, k.approvalResolved('c1')]],
  ['a dispatch after the step', 'STEP-SCOPE', [closedStep, k.dispatch('c1')]],
  ['a result after the step', 'STEP-SCOPE', [closedStep, k.result('c1')]],
  ['a dispatch of another step', 'STEP-SCOPE', [calls('c1'), k.toolCall('c1'), k.dispatch('c1', { step: 2 })]],
  ['a dispatch of another turn', 'STEP-SCOPE', [calls('c1'), k.toolCall('c1'), k.dispatch('c1', { turn: 2 })]],
  [
    'a step over the limit',
    'MAX-STEPS',
    [k.opened('m1', 1, { maxSteps: 1 }), k.asksFor([{ id: 'c1' }]), k.ran('c1'), k.handsOver('c1')],
  ],
  [
    'steps called spent with one left',
    'MAX-STEPS',
    [
      k.opened('m1', 1, { maxSteps: 2 }),
      k.asksFor([{ id: 'c1' }]),
      k.ran('c1'),
      k.stepEnd('tool-calls'),
      k.turnEnd(1, { kind: 'max-steps', maxSteps: 2 }),
    ],
  ],
  [
    'results owed to a model that ran out of tokens',
    'RESULTS-OWED',
    [calls('c1'), k.ran('c1'), k.stepEnd('tool-calls'), k.turnEnd(1, { kind: 'max-tokens' })],
  ],
  ['an abort nobody asked for', 'CANCEL-REASON', [claimedOnly, k.aborted()]],
  ['a limit that cancelled nothing', 'CANCEL-REASON', [claimedOnly, k.turnEnd(1, limitCause)]],
  ['a repeated call that cancelled nothing', 'CANCEL-REASON', [claimedOnly, k.turnEnd(1, repeated)]],
  [
    'a limit that ends as an abort',
    'CANCEL-REASON',
    [claimedOnly, k.turnCancel(1, { cause: limitCause }), waits('m1'), k.aborted()],
  ],
  ['an abort that ends as a limit', 'CANCEL-REASON', [claimedOnly, k.turnCancel(), k.turnEnd(1, limitCause)]],
  [
    'an interruption that ends otherwise',
    'INTERRUPT-REASON',
    [claimedOnly, interrupt, waits('m1'), k.turnEnd(1, { kind: 'blocked' })],
  ],
  ['a step begins under a cancel', 'AFTER-CANCEL', [claimedOnly, k.turnCancel(), k.stepStart()]],
  ['a retry under a cancel', 'AFTER-CANCEL', [k.opened(), failedChunk(1), k.turnCancel(), retry(1, 1)]],
  [
    'a retry begins under a cancel',
    'AFTER-CANCEL',
    [k.opened(), failedChunk(1), retry(1, 1), k.turnCancel(), retryStarted(2, 1)],
  ],
  [
    'a question under a cancel',
    'AFTER-CANCEL',
    [calls('c1'), k.toolCall('c1'), k.turnCancel(), k.approvalRequested('c1')],
  ],
  [
    'what woke during a cancel is left',
    'OWED-STARTS-TURN',
    [claimedOnly, k.turnCancel(), k.insert('next-turn', [k.item('m2')], { wake: true }), k.aborted(), waits('m3')],
  ],
  [
    'what waits is left by a turn cut by the token limit',
    'OWED-STARTS-TURN',
    [closedStep, waits('m2'), k.turnEnd(1, { kind: 'max-tokens' }), waits('m3')],
  ],
  [
    'an approval, and another call is dispatched',
    'APPROVAL-CONSEQUENCE',
    [
      calls('c1', 'c2'),
      k.toolCall('c1'),
      k.toolCall('c2'),
      k.approvalRequested('c1'),
      k.approvalResolved('c1'),
      k.dispatch('c2'),
    ],
  ],
  [
    'a denial, and the call is dispatched',
    'APPROVAL-CONSEQUENCE',
    [
      calls('c1'),
      k.toolCall('c1'),
      k.approvalRequested('c1'),
      k.approvalResolved('c1', { decision: 'denied' }),
      k.dispatch('c1'),
    ],
  ],
  [
    'a denial, and another call’s result',
    'APPROVAL-CONSEQUENCE',
    [
      calls('c1', 'c2'),
      k.toolCall('c1'),
      k.toolCall('c2'),
      k.dispatch('c2'),
      k.approvalRequested('c1'),
      k.approvalResolved('c1', { decision: 'denied' }),
      k.result('c2'),
    ],
  ],
  ['a splice behind the end', 'SPLICE-COUNT', [k.spliced({ start: 1, inserted: [k.item('m1')] })]],
  [
    'nothing removed, with an outcome',
    'SPLICE-OUTCOME',
    [k.spliced({ inserted: [k.item('m1')], outcome: 'canceled' })],
  ],
  ['a claim in a step', 'CLAIM-PLACE', [k.opened(), k.insert('next-step', [k.item('m2')]), k.claim('next-step')]],
  [
    'a claim under a cancel',
    'CLAIM-PLACE',
    [waits('m1'), waits('m2'), k.turnStart(), k.turnCancel(1, { keepInbox: true }), k.claim('next-turn')],
  ],
  [
    'a claim that inserts',
    'CLAIM-PLACE',
    [waits('m1'), k.turnStart(), k.spliced({ deleteCount: 1, outcome: 'claimed', inserted: [k.item('m2')] })],
  ],
  ['two of next-turn at once', 'CLAIM-PLACE', [waits('m1'), waits('m2'), k.turnStart(), k.claim('next-turn', 2)]],
  [
    'two of next-turn one by one',
    'CLAIM-PLACE',
    [waits('m1'), waits('m2'), k.turnStart(), k.claim('next-turn'), k.claim('next-turn')],
  ],
  ['one of next-turn between steps', 'CLAIM-PLACE', [closedStep, waits('m2'), k.claim('next-turn')]],
  ['what was claimed comes back unasked', 'MESSAGE-FATE', [claimedOnly, waits('m1')]],
  ['what a cancel drops comes back', 'MESSAGE-FATE', [claimedOnly, k.turnCancel(), waits('m1')]],
  [
    'what was canceled enters',
    'MESSAGE-FATE',
    [waits('m2'), k.canceled('next-turn'), claimedOnly, k.stepStart(), k.entered('m2')],
  ],
  ['what was entered waits again', 'MESSAGE-ID', [k.opened(), waits('m1')]],
  ['what was canceled waits again', 'MESSAGE-ID', [waits('m1'), k.canceled('next-turn'), waits('m1')]],
  [
    'a result in the wrong queue',
    'RESULT-ITEM-PLACE',
    [calls('c1'), k.ran('c1'), k.insert('next-turn', [k.resultItem(1, 'c1')])],
  ],
  [
    'a result of another turn',
    'RESULT-ITEM-PLACE',
    [calls('c1'), k.ran('c1'), k.insert('next-step', [k.resultItem(2, 'c1')])],
  ],
  [
    'a result under a cancel',
    'RESULT-ITEM-PLACE',
    [calls('c1'), k.ran('c1'), k.turnCancel(), k.insert('next-step', [k.resultItem(1, 'c1')])],
  ],
  [
    'a claim lost by a cancel that keeps the inbox',
    'CLAIM-LOST',
    [claimedOnly, k.turnCancel(1, { keepInbox: true }), k.aborted()],
  ],
  ['too many calls in one answer', 'CALLS-OF-ANSWER', [k.opened(), k.asksFor(many(129))]],
  ['an id twice in one answer', 'CALLS-OF-ANSWER', [k.opened(), k.asksFor([{ id: 'c1' }, { id: 'c1' }])]],
  [
    'fewer calls than the message has',
    'CALLS-OF-ANSWER',
    [k.opened(), k.textChunks('a'), k.answer('a', { calls: [{ callId: 'c1', name: 'look', mode: 'parallel' }] })],
  ],
  [
    'a call by another name than its block',
    'CALLS-OF-ANSWER',
    [
      k.opened(),
      k.asksFor([{ id: 'c1' }]).slice(0, -1),
      k.answer('', {
        finish: { kind: 'tool-calls' },
        calls: [{ callId: 'c1', name: 'peek', mode: 'parallel' }],
        message: {
          id: 'a1-1',
          role: 'assistant',
          content: [{ type: 'tool-call', id: 'c1', name: 'look', arguments: '{"at":1}' }],
          source: { kind: 'model', provider: 'p', model: 'm' },
        },
      }),
    ],
  ],
  [
    'steps called spent with nothing to go on for',
    'MAX-STEPS',
    [
      k.opened('m1', 1, { maxSteps: 1 }),
      k.textChunks('a'),
      k.answer('a'),
      k.stepEnd(),
      k.turnEnd(1, { kind: 'max-steps', maxSteps: 1 }),
    ],
  ],
  ['a call begun twice', 'CALL-ORDER', [calls('c1'), k.toolCall('c1'), k.toolCall('c1')]],
  [
    'a call by another name',
    'CALL-ORDER',
    [calls('c1'), k.ev('tool/call', { turn: 1, step: 1, callId: 'c1', name: 'peek', arguments: '{"at":1}' })],
  ],
  [
    'a call with other arguments',
    'CALL-ORDER',
    [calls('c1'), k.ev('tool/call', { turn: 1, step: 1, callId: 'c1', name: 'look', arguments: '{"at":2}' })],
  ],
  [
    'an exclusive call beside another',
    'EXCLUSIVE-ALONE',
    [k.opened(), k.asksFor([{ id: 'c1' }, { id: 'c2', mode: 'exclusive' }]), k.toolCall('c1'), k.toolCall('c2')],
  ],
  ['a run that skips a number', 'DISPATCH-STATE', [calls('c1'), k.toolCall('c1'), k.dispatch('c1', { run: 2 })]],
  [
    'a dispatch while a person is asked',
    'DISPATCH-STATE',
    [calls('c1'), k.toolCall('c1'), k.approvalRequested('c1'), k.dispatch('c1')],
  ],
  ['a dispatch of no call', 'DISPATCH-STATE', [calls('c1'), k.dispatch('c9')]],
  [
    'a call run twice by one process',
    'DISPATCH-AGAIN',
    [calls('c1'), k.toolCall('c1'), onCrash('rerun'), onCrash('rerun', 2)],
  ],
  [
    'a call run again before anybody allowed it',
    'DISPATCH-AGAIN',
    [calls('c1'), k.toolCall('c1'), onCrash('ask'), k.resumed(), onCrash('ask', 2)],
  ],
  [
    'a question about a rerun with no crash',
    'APPROVAL-STATE',
    [calls('c1'), k.toolCall('c1'), onCrash('ask'), k.approvalRequested('c1', { run: 1, purpose: 'rerun' })],
  ],
  [
    'a question about a rerun that the call forbids',
    'APPROVAL-STATE',
    [
      calls('c1'),
      k.toolCall('c1'),
      onCrash('rerun'),
      k.resumed(),
      k.approvalRequested('c1', { run: 1, purpose: 'rerun' }),
    ],
  ],
  [
    'a question about another run',
    'APPROVAL-STATE',
    [calls('c1'), k.toolCall('c1'), k.approvalRequested('c1', { run: 1 })],
  ],
  [
    'an approval of another run',
    'APPROVAL-ONCE',
    [calls('c1'), k.toolCall('c1'), k.approvalRequested('c1'), k.approvalResolved('c1', { run: 1 })],
  ],
  [
    'an approval given twice',
    'APPROVAL-ONCE',
    [
      calls('c1'),
      k.toolCall('c1'),
      k.approvalRequested('c1'),
      k.approvalResolved('c1'),
      k.dispatch('c1'),
      k.approvalResolved('c1'),
    ],
  ],
  ['a result of no call', 'RESULT-ONCE', [calls('c1'), k.result('c9')]],
  [
    'an outcome unknown of a call that never ran',
    'RESULT-CODE',
    [calls('c1'), k.toolCall('c1'), k.result('c1', 'TOOL_OUTCOME_UNKNOWN')],
  ],
  [
    'not started, of a call that ran',
    'RESULT-CODE',
    [calls('c1'), k.toolCall('c1'), k.dispatch('c1'), k.result('c1', 'TOOL_NOT_STARTED')],
  ],
  [
    'a success in a fork of what the parent ran',
    'RESULT-AFTER-CRASH',
    [calls('c1'), k.toolCall('c1'), onCrash('probe'), k.endSeed, k.resumed(), k.result('c1')],
  ],
  [
    'a failure of its own after a crash, from a call that was not run again',
    'RESULT-AFTER-CRASH',
    [calls('c1'), k.toolCall('c1'), onCrash('rerun'), k.resumed(), k.result('c1', 'TOOL_TIMEOUT')],
  ],
  [
    'a late result of a call that has no other answer',
    'LATE-RESULT',
    [
      calls('c1'),
      k.toolCall('c1'),
      k.dispatch('c1'),
      k.ev('tool/late-result', { turn: 1, step: 1, callId: 'c1', run: 1, outcome: null }),
    ],
  ],
  [
    'a digest on a later chunk',
    'REQUEST-DIGEST',
    [k.opened(), start(), k.chunk({ type: 'text-delta', index: 0, text: 'a' }, { request: 'sha256:0' })],
  ],
  [
    'a delta of another type',
    'STREAM-BLOCKS',
    [k.opened(), start(), k.chunk({ type: 'reasoning-delta', index: 0, text: 'a' })],
  ],
  ['a delta in another block', 'STREAM-BLOCKS', [k.opened(), start(), text(1)]],
  ['a delta in a closed block', 'STREAM-BLOCKS', [k.opened(), start(), stop(), text()]],
  ['a block opened while it is open', 'STREAM-BLOCKS', [k.opened(), start(), start()]],
  ['a block opened again', 'STREAM-BLOCKS', [k.opened(), start(), stop(), start()]],
  ['a block closed twice', 'STREAM-BLOCKS', [k.opened(), start(), stop(), stop()]],
  ['a success with a block open', 'STREAM-FINISH', [k.opened(), start(), finish]],
  ['a chunk after the finish', 'STREAM-FINISH', [k.opened(), k.textChunks('a'), start(1)]],
  [
    'an answer to a stream that failed',
    'STREAM-FINISH',
    [k.opened(), failedChunk(1), k.answer('', { finish: { kind: 'error', failure } })],
  ],
  [
    'an answer with fewer sources',
    'ANSWER-SOURCES',
    [k.opened(), k.textChunks('a'), k.answer('a', {}, { sourceEventSeqs: [7, 8, 9, 10] })],
  ],
  [
    'an answer with other sources',
    'ANSWER-SOURCES',
    [k.opened(), k.textChunks('a'), k.answer('a', {}, { sourceEventSeqs: [6, 8, 9, 10, 11] })],
  ],
  [
    'an interrupted answer that asks for tools',
    'ANSWER-INTERRUPTED',
    [
      k.opened(),
      k.turnCancel(),
      k.answer('', { interrupted: true, calls: [{ callId: 'c1', name: 'look', mode: 'parallel' }] }),
    ],
  ],
  ['more retries than there may be', 'RETRY-NUMBERING', [k.opened(), failedChunk(1), retry(1, 1, { maxRetries: 0 })]],
  [
    'another id in the chain',
    'RETRY-NUMBERING',
    [k.opened(), failedChunk(1), retry(1, 1), retryStarted(2, 1), failedChunk(2), retry(2, 2, { retryId: 'r2' })],
  ],
  [
    'the id of another chain',
    'RETRY-NUMBERING',
    [k.opened(), failedChunk(1), retry(1, 1), retryStarted(2, 1), failedChunk(2), retry(2, 1, { provider: 'p2' })],
  ],
  ['a retry nobody waits for', 'RETRY-STARTED', [k.opened(), failedChunk(1), retryStarted(2, 1)]],
  [
    'a retry started twice',
    'RETRY-STARTED',
    [k.opened(), failedChunk(1), retry(1, 1), retryStarted(2, 1), retryStarted(2, 1)],
  ],
  ['a retry with another number', 'RETRY-STARTED', [k.opened(), failedChunk(1), retry(1, 1), retryStarted(2, 2)]],
  ['a retry as another attempt', 'RETRY-STARTED', [k.opened(), failedChunk(1), retry(1, 1), retryStarted(3, 1)]],
]

test.each(alsoBroken)('%s: %s', (_, rule, drafts) => {
  const log = k.logOf(...drafts)
  const found = checkInvariants(log).filter((violation) => violation.rule === rule)
  expect(found.map(({ seq }) => seq)).toEqual([log.length - 1])
  for (const { message } of found) expect(message).toMatch(/\w+ \w+/)
})

/** Close to a breach, and none. */
const alsoGood: Record<string, readonly k.Drafts[]> = {
  'as many calls as there may be in one answer': [k.opened(), k.asksFor(many(128))],
  'as many calls at once as there may be': [
    k.opened('m1', 1, { maxParallelToolCalls: 2 }),
    k.asksFor(many(3)),
    k.toolCall('c0'),
    k.toolCall('c1'),
    k.dispatch('c0'),
    k.result('c0'),
    k.toolCall('c2'),
  ],
  'an exclusive call when its time has come': [
    k.opened(),
    k.asksFor([{ id: 'c1' }, { id: 'c2', mode: 'exclusive' }]),
    k.ran('c1'),
    k.toolCall('c2'),
  ],
  'a probe that knows that the call did not run': [
    calls('c1'),
    k.toolCall('c1'),
    onCrash('probe'),
    k.turnCancel(),
    k.resumed(),
    k.result('c1', 'ABORTED_BEFORE_DISPATCH'),
  ],
  'a probe after which the call runs again': [
    calls('c1'),
    k.toolCall('c1'),
    onCrash('probe'),
    k.resumed(),
    onCrash('probe', 2),
    k.result('c1'),
  ],
  'a fork between an approved rerun and its dispatch': [
    calls('c1'),
    k.toolCall('c1'),
    onCrash('ask'),
    k.resumed(),
    k.approvalRequested('c1', { run: 1, purpose: 'rerun' }),
    k.approvalResolved('c1', { run: 1 }),
    k.endSeed,
    k.resumed(),
    k.approvalRequested('c1', { run: 1, purpose: 'rerun' }),
  ],
  'a late result while the step goes on': [
    calls('c1', 'c2'),
    k.toolCall('c1'),
    k.dispatch('c1'),
    k.result('c1', 'TOOL_TIMEOUT'),
    k.ev('tool/late-result', { turn: 1, step: 1, callId: 'c1', run: 1, outcome: null }),
  ],
  'two policies, each with its own chain': [
    k.opened(),
    failedChunk(1),
    retry(1, 1),
    retryStarted(2, 1),
    failedChunk(2),
    retry(2, 1, { policyKey: 'k2', retryId: 'r2' }),
    retryStarted(3, 1, 'r2'),
    failedChunk(3),
    retry(3, 2),
  ],
  'retries without end, where that is wanted': [
    k.opened(),
    failedChunk(1),
    retry(1, 1, { mode: 'always', maxRetries: 0 }),
  ],
  'retries that begin anew in each step': [
    k.opened(),
    failedChunk(1),
    retry(1, 1),
    retryStarted(2, 1),
    k.asksFor([{ id: 'c1' }], { attempt: 2 }),
    k.ran('c1'),
    k.handsOver('c1'),
    k.chunk({ type: 'finish', reason: { kind: 'error', failure } }, { step: 2 }),
    retry(1, 1, { step: 2, retryId: 'r2' }),
  ],
  'a stream that fails with a block open': [k.opened(), start(), failedChunk(1), retry(1, 1)],
  'blocks side by side': [k.opened(), start(), start(1), text(), text(1), stop(1), stop(), finish],
  'an answer that cites its chunks': [
    k.opened(),
    k.textChunks('a'),
    k.answer('a', {}, { sourceEventSeqs: [7, 8, 9, 10, 11] }),
  ],
  'an approval, and a note before its dispatch': [
    calls('c1'),
    k.toolCall('c1'),
    k.approvalRequested('c1'),
    k.approvalResolved('c1'),
    note,
    k.dispatch('c1'),
  ],
  'what woke during a cancel and was taken back': [
    claimedOnly,
    k.turnCancel(),
    k.insert('next-turn', [k.item('m2')], { wake: true }),
    k.canceled('next-turn'),
    k.aborted(),
    waits('m3'),
  ],
  'a turn that ended before its first step leaves what waits': [claimedOnly, waits('m2'), k.turnEnd(), waits('m3', 1)],
  'a turn that failed leaves what waits': [
    closedStep,
    waits('m2'),
    k.turnEnd(1, { kind: 'error', error: failure }),
    waits('m3', 1),
  ],
  'an interrupted turn leaves what waits': [
    claimedOnly,
    waits('m2'),
    interrupt,
    k.insert('next-turn', [k.item('m1')]),
    interrupted,
    waits('m3', 2),
  ],
  'a message steered in when the steps are spent': [
    k.opened('m1', 1, { maxSteps: 1 }),
    k.textChunks('a'),
    k.answer('a'),
    k.stepEnd(),
    k.insert('next-step', [k.item('s1')]),
    k.turnEnd(1, { kind: 'max-steps', maxSteps: 1 }),
  ],
  'a call repeated too often': [
    k.opened(),
    k.asksFor([{ id: 'c1' }, { id: 'c2' }]).slice(0, -1),
    k.turnCancel(1, { cause: repeated, keepInbox: true }),
    k.asksFor([{ id: 'c1' }, { id: 'c2' }]).slice(-1),
    ['c1', 'c2'].map((id) => [k.toolCall(id), k.result(id, 'ABORTED_BEFORE_DISPATCH')]),
    k.stepEnd('aborted'),
    k.turnEnd(1, repeated),
  ],
  'a message put in its own place': [
    waits('m1'),
    k.spliced({ deleteCount: 1, outcome: 'canceled', inserted: [k.item('m1')] }),
  ],
  'a message of the parent, sent to the fork again': [waits('m1'), k.endSeed, waits('m1')],
  'a turn closed in a second opening': [
    claimedOnly,
    interrupt,
    k.resumed({ recovery: 'interrupt', resumes: 2 }),
    waits('m1'),
    interrupted,
  ],
}

test.each(Object.entries(alsoGood))('%s: nothing is wrong', (_, drafts) => {
  expect(checkInvariants(k.logOf(...drafts))).toEqual([])
})

test('every rule says what it holds', () => {
  for (const text of Object.values(RULES)) expect(text).toMatch(/\w+ \w+/)
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
    const [found] = checkInvariants(events as Iterable<SessionEvent>)
    expect(found?.message).toMatch(/^(?!seq ).*\w+ \w+/)
  })
  test('every rule has a log that breaks it', () => {
    expect(new Set([...Object.keys(cases), ...Object.keys(broken)])).toEqual(new Set(Object.keys(RULES)))
  })
})

test('what must come next is missed when whoever writes the log is quiet', () => {
  const restOf = (...drafts: k.Drafts[]) => {
    const checker = createInvariantChecker()
    for (const event of k.logOf(...drafts)) expect(checker.check(event)).toEqual([])
    return checker.rest().map(({ rule }) => rule)
  }
  const waiting = [k.opened(), waits('m2'), k.textChunks('a'), k.answer('a'), k.stepEnd(), k.turnEnd()]
  expect(restOf(...waiting)).toEqual(['OWED-STARTS-TURN'])
  expect(restOf(k.textTurn())).toEqual([])
  expect(restOf(k.opened(), waits('m2'), k.turnCancel())).toEqual(['CANCEL-CLEARS'])
})
