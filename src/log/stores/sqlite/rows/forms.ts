/**
 * The forms of common events, as examples with holes: of an event that fits one, its number and what fills the holes are
 * kept. A hole takes only what its event's shape allows, so what is made of a form needs no second look. The numbers are
 * in files for ever: no form is ever changed, and a release that adds some at the end writes them under a new encoding.
 */
import { isCount, isOrdinal } from '../../deltas.ts'

/**
 * What is not always the same. `word`: a string or number. `json`: any JSON. `turn`, `step`, `attempt`: what the events
 * around it are of. `again`: the word before it once more.
 */
export class Hole {
  readonly kind: 'word' | 'json' | 'turn' | 'step' | 'attempt' | 'again'
  readonly takes: (value: unknown) => boolean

  constructor(kind: Hole['kind'], takes: (value: unknown) => boolean) {
    this.kind = kind
    this.takes = takes
  }
}

/** One of several forms; `many`: a list of them, of any length. */
export class Choice {
  readonly forms: readonly Form[]
  readonly many: boolean

  constructor(forms: readonly Form[], many: boolean) {
    this.forms = forms
    this.many = many
  }
}

export type Form = Hole | Choice | string | number | boolean | readonly Form[] | FormFields
export interface FormFields {
  readonly [key: string]: Form
}

export interface EventForm {
  readonly type: string
  readonly data: Form
  /** Its message is on the surface, put there last. */
  readonly surfaceOp?: 'append'
  /** It cites earlier events, one after the other without a gap. */
  readonly cites?: true
}

const TURN = new Hole('turn', isOrdinal)
const STEP = new Hole('step', isOrdinal)
const ATTEMPT = new Hole('attempt', isOrdinal)
const STRING = new Hole('word', (value) => typeof value === 'string')
const NAME = new Hole('word', (value) => typeof value === 'string' && value !== '')
const COUNT = new Hole('word', isCount)
const ORDINAL = new Hole('word', isOrdinal)
const DIGEST = new Hole('word', (value) => typeof value === 'string' && value.startsWith('sha256:'))
const JSON_VALUE = new Hole('json', (value) => value !== undefined)
const REPLAY_STATE = new Hole('json', isReplayState)
const AGAIN = new Hole('again', (value) => typeof value === 'string' && value !== '')

const word = (...words: readonly string[]): Hole => {
  const allowed = new Set<unknown>(words)
  return new Hole('word', (value) => allowed.has(value))
}
const either = (...forms: readonly Form[]): Choice => new Choice(forms, false)
const many = (...forms: readonly Form[]): Choice => new Choice(forms, true)

function isReplayState(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const { response, blocks } = value as { readonly response?: unknown; readonly blocks?: unknown }
  return response !== undefined && (blocks === undefined || Array.isArray(blocks))
}

const inStep = { turn: TURN, step: STEP }
const inAttempt = { ...inStep, attempt: ATTEMPT }

const text = { type: 'text', text: STRING }
const reasoning = { type: 'reasoning', text: STRING }
const toolCall = { type: 'tool-call', id: STRING, name: STRING, arguments: STRING }
const tokens = { inputTokens: COUNT, outputTokens: COUNT }
const cached = { ...tokens, cacheReadTokens: COUNT }
const written = { ...cached, cacheWriteTokens: COUNT }
const thought = { reasoningTokens: COUNT }
const usage = either(tokens, cached, written, ...[tokens, cached, written].map((counts) => ({ ...counts, ...thought })))

const userMessage = {
  id: NAME,
  role: 'user',
  content: many(text),
  source: either({ kind: 'user' }, { kind: 'plugin', plugin: STRING }),
}
const queued = either({ kind: 'message', message: userMessage }, { kind: 'tool-result', turn: TURN, callId: NAME })

const spliced = (more: FormFields, inserted: Form = []): EventForm => ({
  type: 'agent/inbox/spliced',
  data: {
    mutation: 'splice',
    queue: word('next-turn', 'next-step'),
    start: COUNT,
    deleteCount: COUNT,
    inserted,
    ...more,
  },
})
const chunk = (form: Form, more: FormFields = {}): EventForm => ({
  type: 'assistant/chunk',
  data: { ...inAttempt, chunk: form, ...more },
})
const ended = word('stop', 'tool-calls', 'max-tokens')
const modelSource = { kind: 'model', provider: NAME, model: NAME }
const answered = (source: FormFields, more: FormFields): EventForm => ({
  type: 'assistant/message',
  data: {
    ...inAttempt,
    message: { id: NAME, role: 'assistant', content: many(text, reasoning, toolCall), source },
    finish: { kind: ended },
    calls: many({ callId: NAME, name: STRING, mode: word('parallel', 'exclusive') }),
    ...more,
  },
  surfaceOp: 'append',
  cites: true,
})
const called = { ...inStep, callId: NAME, run: COUNT, name: STRING, argumentsDigest: DIGEST }
const purpose = word('run', 'rerun')
const resolved = { ...inStep, callId: NAME, run: COUNT, decision: word('approved', 'denied', 'expired') }
const dispatched = { ...inStep, callId: NAME, run: ORDINAL, onCrash: word('unknown', 'rerun', 'ask', 'probe') }
const settled = (block: FormFields, more: FormFields): EventForm => ({
  type: 'tool/result',
  data: {
    ...inStep,
    message: {
      id: NAME,
      role: 'user',
      source: { kind: 'tool', callId: NAME },
      content: [{ type: 'tool-result', toolCallId: AGAIN, content: many(text), ...block }],
    },
    ...more,
  },
  surfaceOp: 'append',
  cites: true,
})

export const FORMS: readonly EventForm[] = [
  { type: 'turn/start', data: { turn: TURN, limits: { maxSteps: ORDINAL, maxParallelToolCalls: ORDINAL } } },
  { type: 'turn/end', data: { turn: TURN, reason: { kind: word('completed', 'max-tokens') } } },
  { type: 'step/start', data: inStep },
  {
    type: 'step/end',
    data: {
      ...inStep,
      outcome: { kind: word('completed', 'tool-calls', 'concluded', 'max-tokens', 'aborted', 'interrupted') },
    },
  },
  spliced({ outcome: word('claimed', 'canceled') }),
  spliced({ wake: true }, many(queued)),
  spliced({}, many(queued)),
  { type: 'user/message', data: userMessage, surfaceOp: 'append' },
  chunk({ type: 'block-start', index: COUNT, blockType: NAME }, { request: DIGEST }),
  chunk({ type: 'block-start', index: COUNT, blockType: NAME }),
  chunk({ type: 'tool-call-delta', index: COUNT, id: STRING, name: STRING, argumentsDelta: STRING }),
  chunk({ type: 'block-end', index: COUNT, block: either(text, reasoning, toolCall) }),
  chunk({ type: 'usage', usage }),
  chunk({ type: 'finish', reason: { kind: ended } }),
  chunk({ type: 'finish', reason: { kind: ended }, replayState: REPLAY_STATE }),
  answered(modelSource, {}),
  answered(modelSource, { usage }),
  answered({ ...modelSource, replayState: REPLAY_STATE }, {}),
  answered({ ...modelSource, replayState: REPLAY_STATE }, { usage }),
  { type: 'tool/call', data: { ...inStep, callId: NAME, name: STRING, arguments: STRING } },
  { type: 'tool/approval-requested', data: { ...called, purpose } },
  { type: 'tool/approval-resolved', data: resolved },
  { type: 'tool/approval-resolved', data: { ...resolved, by: STRING } },
  { type: 'tool/dispatch', data: dispatched },
  settled({}, {}),
  settled({}, { meta: JSON_VALUE }),
  settled({ isError: true }, { error: { name: STRING, code: NAME } }),
]
