/** Logs written by hand: drafts of events, numbered, timed and marked as a session would. */
import { trackAttempts } from '../../src/log/attempts.ts'
import { argumentsDigest, requestDigest } from '../../src/log/digest.ts'
import type { EventMap, EventType, InboxItem, NewEvent, Queue, SessionEvent, TurnLimits } from '../../src/log/events.ts'
import { SURFACE } from '../../src/log/events.ts'
import type { StreamChunk, ToolCallBlock, ToolResultMessage, UserMessage } from '../../src/log/messages.ts'
import { createSurface } from '../../src/log/projections/surface.ts'
import { requestOf } from '../../src/log/rebuild.ts'
import { placed, validateNew } from '../../src/log/validate.ts'

/** An event without its place; surface events are appended unless they say otherwise. */
export type Draft =
  | NewEvent
  | { readonly type: `${string}/${string}`; readonly data: unknown; readonly ignorable: true }
/** Drafts, nested as is handy. */
export type Drafts = Draft | readonly Drafts[]

/**
 * A log of `drafts`, one millisecond apart. The first chunk of an attempt gets the digest of its request, unless it has
 * one. Events are validated, so a log that breaks a rule of the whole is still made of good events.
 */
export function logOf(...drafts: readonly Drafts[]): readonly SessionEvent[] {
  const surface = createSurface()
  const attempts = trackAttempts(surface)
  const asked = new Set<string>()
  return flat(drafts).map((draft, seq) => {
    const marked = SURFACE.has(draft.type) ? { surfaceOp: 'append', ...draft } : draft
    const event = placed(validateNew(withDigest(marked as Draft)), seq, 1_000 + seq)
    attempts.note(event)
    try {
      surface.place(event)
    } catch {
      // A replacement that cannot be: what the log under test is about.
    }
    return event
  })

  function withDigest(draft: Draft): Draft {
    if (draft.type !== 'assistant/chunk') return draft
    const data = draft.data as EventMap['assistant/chunk']
    const key = `${data.turn}/${data.step}/${data.attempt}`
    const now = attempts.current()
    if (asked.has(key) || data.request !== undefined || !now?.header) return draft
    asked.add(key)
    const request = requestDigest(requestOf(now.header, now.messages, ''))
    return { type: 'assistant/chunk', data: { ...data, request } }
  }
}

const flat = (drafts: readonly Drafts[]): readonly Draft[] =>
  drafts.flatMap((draft) => (Array.isArray(draft) ? flat(draft) : [draft as Draft]))

/** An event of `type`. */
export const ev = <T extends EventType>(type: T, data: EventMap[T], marks: Partial<NewEvent> = {}): Draft =>
  ({ type, data, ...marks }) as Draft

export const message = (id: string, text = `text of ${id}`): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

export const item = (id: string): InboxItem => ({ kind: 'message', message: message(id) })
export const resultItem = (turn: number, callId: string): InboxItem => ({ kind: 'tool-result', turn, callId })

type Splice = EventMap['agent/inbox/spliced']
export const spliced = (data: Partial<Splice>): Draft =>
  ev('agent/inbox/spliced', { mutation: 'splice', queue: 'next-turn', start: 0, deleteCount: 0, inserted: [], ...data })
export const insert = (queue: Queue, inserted: readonly InboxItem[], more: Partial<Splice> = {}): Draft =>
  spliced({ queue, inserted, ...more })
export const claim = (queue: Queue, deleteCount = 1): Draft => spliced({ queue, deleteCount, outcome: 'claimed' })
export const canceled = (queue: Queue, deleteCount = 1): Draft => spliced({ queue, deleteCount, outcome: 'canceled' })

export const limits: TurnLimits = { maxSteps: 50, maxParallelToolCalls: 10 }
export const turnStart = (turn = 1, more: Partial<TurnLimits> = {}): Draft =>
  ev('turn/start', { turn, limits: { ...limits, ...more } })
export const turnEnd = (turn = 1, reason: EventMap['turn/end']['reason'] = { kind: 'completed' }): Draft =>
  ev('turn/end', { turn, reason })
export const turnCancel = (turn = 1, more: Partial<EventMap['turn/cancel']> = {}): Draft =>
  ev('turn/cancel', { turn, cause: { kind: 'user' }, ...more })
export const aborted = (turn = 1): Draft => turnEnd(turn, { kind: 'aborted', cause: { kind: 'user' } })
export const stepStart = (turn = 1, step = 1): Draft => ev('step/start', { turn, step })
export const stepEnd = (
  kind: 'completed' | 'tool-calls' | 'concluded' | 'max-tokens' | 'aborted' | 'interrupted' = 'completed',
  turn = 1,
  step = 1,
): Draft => ev('step/end', { turn, step, outcome: { kind } })
export const entered = (id: string): Draft => ev('user/message', message(id))
export const header = (system = 'be brief', reason: 'initial' | 'resume' | 'change' = 'initial'): Draft =>
  ev('request/header', { header: { config: { provider: 'p', model: 'm' }, system }, reason })
export const context = (): Draft => ev('request/context', { provider: 'p', model: 'm' })

/** A splice at rest with its turn, up to the first request: `id` enters step 1. */
export const opened = (id = 'm1', turn = 1, more: Partial<TurnLimits> = {}): readonly Draft[] => [
  insert('next-turn', [item(id)], { wake: true }),
  turnStart(turn, more),
  claim('next-turn'),
  stepStart(turn),
  entered(id),
  ...(turn === 1 ? [header(), context()] : []),
]

export const chunk = (data: StreamChunk, at: Partial<EventMap['assistant/chunk']> = {}): Draft =>
  ev('assistant/chunk', { turn: 1, step: 1, attempt: 1, ...at, chunk: data })

type At = { readonly turn?: number; readonly step?: number; readonly attempt?: number }

export const textChunks = (text: string, at: At = {}): readonly Draft[] => [
  chunk({ type: 'block-start', index: 0, blockType: 'text' }, at),
  chunk({ type: 'text-delta', index: 0, text }, at),
  chunk({ type: 'block-end', index: 0, block: { type: 'text', text } }, at),
  chunk({ type: 'usage', usage: { inputTokens: 3, outputTokens: 2 } }, at),
  chunk({ type: 'finish', reason: { kind: 'stop' } }, at),
]

type Answer = EventMap['assistant/message']

export const answer = (text: string, at: At & Partial<Answer> = {}, marks: Partial<NewEvent> = {}): Draft => {
  const { turn = 1, step = 1 } = at
  return ev(
    'assistant/message',
    {
      turn,
      step,
      attempt: 1,
      message: {
        id: `a${turn}-${step}`,
        role: 'assistant',
        content: text === '' ? [] : [{ type: 'text', text }],
        source: { kind: 'model', provider: 'p', model: 'm' },
      },
      finish: { kind: 'stop' },
      calls: [],
      usage: { inputTokens: 3, outputTokens: 2 },
      ...at,
    },
    marks,
  )
}

type Asked = { readonly id: string; readonly mode?: 'parallel' | 'exclusive' }
const block = (id: string): ToolCallBlock => ({ type: 'tool-call', id, name: 'look', arguments: '{"at":1}' })

/** The stream and the answer of a step that asks for tools. */
export const asksFor = (calls: readonly Asked[], at: At = {}): readonly Draft[] => {
  const { turn = 1, step = 1 } = at
  return [
    ...calls.flatMap(({ id }, index) => [
      chunk({ type: 'block-start', index, blockType: 'tool-call' }, at),
      chunk({ type: 'tool-call-delta', index, id, name: 'look', argumentsDelta: '{"at":1}' }, at),
      chunk({ type: 'block-end', index, block: block(id) }, at),
    ]),
    chunk({ type: 'finish', reason: { kind: 'tool-calls' } }, at),
    answer('', {
      ...at,
      finish: { kind: 'tool-calls' },
      calls: calls.map(({ id, mode = 'parallel' }) => ({ callId: id, name: 'look', mode })),
      message: {
        id: `a${turn}-${step}`,
        role: 'assistant',
        content: calls.map(({ id }) => block(id)),
        source: { kind: 'model', provider: 'p', model: 'm' },
      },
    }),
  ]
}

export const toolCall = (callId: string): Draft =>
  ev('tool/call', { turn: 1, step: 1, callId, name: 'look', arguments: '{"at":1}' })
export const dispatch = (callId: string, more: Partial<EventMap['tool/dispatch']> = {}): Draft =>
  ev('tool/dispatch', { turn: 1, step: 1, callId, run: 1, onCrash: 'unknown', ...more })
export const approvalRequested = (callId: string, more: Partial<EventMap['tool/approval-requested']> = {}): Draft =>
  ev('tool/approval-requested', {
    turn: 1,
    step: 1,
    callId,
    run: 0,
    name: 'look',
    argumentsDigest: argumentsDigest('{"at":1}'),
    purpose: 'run',
    ...more,
  })
export const approvalResolved = (callId: string, more: Partial<EventMap['tool/approval-resolved']> = {}): Draft =>
  ev('tool/approval-resolved', { turn: 1, step: 1, callId, run: 0, decision: 'approved', ...more })

export const resultMessage = (callId: string, text = `result of ${callId}`, isError?: true): ToolResultMessage => ({
  id: `r-${callId}`,
  role: 'user',
  content: [
    {
      type: 'tool-result',
      toolCallId: callId,
      content: [{ type: 'text', text }],
      ...(isError === undefined ? {} : { isError }),
    },
  ],
  source: { kind: 'tool', callId },
})

/** A result that succeeds, or with a `code` one that does not. */
export const result = (callId: string, code?: string, marks: Partial<NewEvent> = {}): Draft =>
  ev(
    'tool/result',
    code === undefined
      ? { turn: 1, step: 1, message: resultMessage(callId) }
      : { turn: 1, step: 1, message: resultMessage(callId, code, true), error: { name: 'ToolError', code } },
    marks,
  )

/** One call, run and answered. */
export const ran = (callId: string): readonly Draft[] => [toolCall(callId), dispatch(callId), result(callId)]

/** The end of a step whose results go to the next one, up to that step's start. */
export const handsOver = (...callIds: readonly string[]): readonly Draft[] => [
  insert(
    'next-step',
    callIds.map((callId) => resultItem(1, callId)),
  ),
  stepEnd('tool-calls'),
  claim('next-step', callIds.length),
  stepStart(1, 2),
]

export const resumed = (more: Partial<EventMap['session/resumed']> = {}): Draft =>
  ev('session/resumed', { recovery: 'continue', resumes: 1, version: '0.1.0', chart: 'c', ...more })
export const endSeed: Draft = ev('session/end-seed', {})

/** A whole turn: a message, its answer in text. */
export const textTurn = (id = 'm1', turn = 1): readonly Draft[] =>
  [
    opened(id, turn).slice(),
    textChunks('hello', { turn }),
    answer('hello', { turn }),
    stepEnd('completed', turn),
    turnEnd(turn),
  ].flat()

/** A whole turn of two steps: two calls run at once, the second answered first, then an answer in text. */
export const toolTurn = (): readonly Draft[] =>
  [
    opened(),
    asksFor([{ id: 'c1' }, { id: 'c2' }]),
    toolCall('c1'),
    toolCall('c2'),
    dispatch('c1'),
    dispatch('c2'),
    result('c2'),
    result('c1'),
    handsOver('c1', 'c2'),
    textChunks('done', { step: 2 }),
    answer('done', { step: 2 }),
    stepEnd('completed', 1, 2),
    turnEnd(),
  ].flat()
