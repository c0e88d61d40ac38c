/** What the chart's actors are asked in a simulated world, and how it makes up their answers. */
import { argumentsDigest } from '../../../src/log/digest.ts'
import type { BoundCause, KnownEvent, OnCrash, PlannedCall, SessionEvent } from '../../../src/log/events.ts'
import type { AssistantMessage, UserMessage } from '../../../src/log/messages.ts'
import type {
  AskModelInput,
  CallInput,
  PrepareStepInput,
  StopTurnInput,
  WaitInput,
} from '../../../src/services/inputs.ts'
import type { CallResult, OfCall, PreparedDecision, RecoveryDecision, Verdict } from '../../../src/services/verdicts.ts'
import type { Random } from './random.ts'

/** What one actor, or the timer of a cancel, has to do. */
export type Work =
  | { readonly kind: 'prepareStep'; readonly input: PrepareStepInput }
  | { readonly kind: 'askModel'; readonly input: AskModelInput }
  | { readonly kind: 'wait'; readonly input: WaitInput }
  | { readonly kind: 'call'; readonly input: CallInput }
  | { readonly kind: 'stopTurn'; readonly input: StopTurnInput }
  | { readonly kind: 'settle'; readonly turn: number }

/** What an answer depends on beside chance. */
export interface Surroundings {
  readonly random: Random
  readonly now: number
  /** The turn's signal. */
  readonly aborted: boolean
  readonly approvals: boolean
  readonly chunkSeqs: readonly number[]
}

const FAILURE = { code: 'SERVER', message: 'The model is down' }
const DIGEST = argumentsDigest('{}')

export const userMessage = (random: Random, prefix = 'm'): UserMessage => ({
  id: random.id(prefix),
  role: 'user',
  content: [{ type: 'text', text: 'A message' }],
  source: { kind: 'user' },
})

const ON_CRASH = ['unknown', 'rerun', 'ask', 'probe'] as const satisfies readonly OnCrash[]

/** What the tool of a call said of crashes when it was dispatched. */
export const onCrashOf = (callId: string): OnCrash => ON_CRASH[Number(callId.slice(1)) % 4] ?? 'unknown'

/** The verdict on this work; undefined while only a person can tell. */
export function answer(work: Work, around: Surroundings): Verdict | undefined {
  switch (work.kind) {
    case 'prepareStep':
      return { ...atStep(work.input), type: 'verdict.prepared', decision: prepared(work.input, around) }
    case 'askModel':
      return asked(work.input, around)
    case 'wait':
      return { ...atStep(work.input), attempt: work.input.attempt, type: 'verdict.waited' }
    case 'call':
      return called(work.input, around)
    case 'stopTurn':
      return { ...atStep(work.input), ...stopping(around), type: 'verdict.stopping' }
    case 'settle':
      return { type: 'verdict.settle', turn: work.turn }
  }
}

const atStep = ({ turn, step }: { readonly turn: number; readonly step: number }) => ({ turn, step })

function prepared({ messages }: PrepareStepInput, { random }: Surroundings): PreparedDecision {
  const drawn = random.draw()
  if (drawn < 0.06) return { kind: 'reject', reason: 'Not today' }
  if (drawn < 0.09) return { kind: 'failed', failure: FAILURE }
  if (drawn < 0.13) return { kind: 'enter', messages: [] }
  if (drawn < 0.17) return { kind: 'enter', messages: messages.slice(1) }
  return { kind: 'enter', messages: random.chance(0.1) ? [...messages, userMessage(random, 'x')] : messages }
}

function stopping({ random }: Surroundings) {
  const drawn = random.draw()
  if (drawn < 0.1) return { reason: { kind: 'stopped-by-policy', policy: 'budget' } } as const
  return drawn < 0.13 ? { failure: FAILURE } : {}
}

// The model

function asked(input: AskModelInput, around: Surroundings): Verdict {
  const { random } = around
  const of = { ...atStep(input), attempt: input.attempt }
  const drawn = random.draw()
  if (around.aborted && drawn < 0.8) {
    return { ...of, type: 'verdict.aborted', ...(random.chance(0.5) ? { partial: answered(around, []) } : {}) }
  }
  if (drawn < 0.1) return { ...of, type: 'verdict.retry', retry: retry(input, random) }
  if (drawn < 0.14) return { ...of, type: 'verdict.failed', failure: FAILURE }
  if (drawn < 0.16) return { ...of, type: 'verdict.aborted' }
  const calls = drawn < 0.62 ? plannedCalls(random) : []
  const answer = answered(around, calls)
  return {
    ...of,
    type: 'verdict.answered',
    answer,
    calls,
    ...(random.chance(0.04) ? { bound: random.pick(BOUNDS) } : {}),
  }
}

/** What ends a turn though nobody asked for it. */
export const BOUNDS: readonly BoundCause[] = [
  { kind: 'limit', limit: { name: 'tokens', scope: 'turn', max: 10, spent: 11 } },
  { kind: 'repeated-call', name: 'work', count: 6 },
]

const retry = ({ chain }: AskModelInput, random: Random) => ({
  retryId: chain?.retryId ?? random.id('r'),
  provider: 'sim',
  policyKey: 'default',
  retry: (chain?.retry ?? 0) + 1,
  delayMs: 5,
  failure: FAILURE,
  mode: 'normal' as const,
  maxRetries: 9,
})

const plannedCalls = (random: Random): readonly PlannedCall[] =>
  Array.from({ length: 1 + random.below(random.chance(0.2) ? 12 : 4) }, () => ({
    callId: random.id('c'),
    name: 'work',
    mode: random.chance(0.6) ? 'parallel' : 'exclusive',
  }))

function answered({ random, chunkSeqs }: Surroundings, calls: readonly PlannedCall[]) {
  const message: AssistantMessage = {
    id: random.id('a'),
    role: 'assistant',
    content: [
      { type: 'text', text: 'An answer' },
      ...calls.map(({ callId, name }) => ({ type: 'tool-call' as const, id: callId, name, arguments: '{}' })),
    ],
    source: { kind: 'model', provider: 'sim', model: 'sim' },
  }
  const plain = random.chance(0.1) ? 'max-tokens' : 'stop'
  return { message, finish: { kind: calls.length > 0 ? 'tool-calls' : plain }, chunkSeqs } as const
}

// Calls

function called(input: CallInput, around: Surroundings): Verdict | undefined {
  const { random, now } = around
  const of: OfCall = { callId: input.callId, run: input.run, phase: input.phase }
  const expires = random.chance(0.5) ? { expiresAt: now + 3 } : {}
  switch (input.phase) {
    case 'authorizing':
      if (around.approvals && random.chance(0.25)) {
        return { ...of, ...expires, type: 'verdict.ask', argumentsDigest: DIGEST }
      }
      return random.chance(0.06)
        ? { ...of, type: 'verdict.settled', result: failed('UNKNOWN_TOOL'), contexts: [] }
        : { ...of, type: 'verdict.authorized', onCrash: onCrashOf(input.callId) }
    case 'awaiting':
      return input.expiresAt === undefined ? undefined : { ...of, type: 'verdict.expired' }
    case 'executing':
      return { ...of, type: 'verdict.settled', result: executed(around), contexts: contexts(random) }
    case 'recovering': {
      const live = random.chance(0.2) ? random.pick(ON_CRASH) : onCrashOf(input.callId)
      return { ...of, type: 'verdict.recovered', decision: recovery(live, around, expires), onCrash: live }
    }
  }
}

const failed = (code: string): CallResult => ({
  content: [{ type: 'text', text: code }],
  isError: true,
  error: { name: 'Error', code },
})

const done = (concludes: boolean): CallResult => ({
  content: [{ type: 'text', text: 'Done' }],
  isError: false,
  ...(concludes ? { concludesTurn: true } : {}),
})

function executed({ random, aborted }: Surroundings): CallResult {
  if (aborted && random.chance(0.5)) return failed('ABORTED')
  return random.chance(0.1) ? failed('TOOL_TIMEOUT') : done(random.chance(0.07))
}

const contexts = (random: Random): readonly UserMessage[] =>
  random.chance(0.15) ? Array.from({ length: 1 + random.below(2) }, () => userMessage(random)) : []

/** The live tool's word alone: it is the chart that must hold it against the log's. */
function recovery(live: OnCrash, { random }: Surroundings, expires: { readonly expiresAt?: number }): RecoveryDecision {
  switch (live) {
    case 'unknown':
      return { kind: 'unknown' }
    case 'rerun':
      return { kind: 'rerun' }
    case 'ask':
      return { kind: 'ask', argumentsDigest: DIGEST, ...expires }
    case 'probe':
      return random.pick<RecoveryDecision>([
        { kind: 'done', result: done(false) },
        { kind: 'not-done' },
        { kind: 'unknown' },
      ])
  }
}

/** The chunks of an answer that begins, or of one that was cut off. */
export const chunkOf = (input: AskModelInput, first: boolean): SessionEventData => ({
  ...atStep(input),
  attempt: input.attempt,
  chunk: first ? { type: 'block-start', index: 0, blockType: 'text' } : { type: 'text-delta', index: 0, text: 'An' },
})

type SessionEventData = KnownEvent<'assistant/chunk'>['data']

/** What was dispatched and when: a body may only run after it. */
export const dispatchSeq = (log: readonly SessionEvent[], { callId, run }: CallInput): number | undefined =>
  log.find((event) => event.type === 'tool/dispatch' && event.data.callId === callId && event.data.run === run)?.seq
