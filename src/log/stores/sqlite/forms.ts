/**
 * The forms of common events, as examples with holes: what fits one is kept as its number and what fills the holes.
 * The numbers are in files for ever: a form is added at the end, and none is ever changed.
 */

/** A string, number or boolean. */
export const V = Symbol('value')
/** Any JSON. */
export const J = Symbol('json')
/** What the events before it were of. */
export const TURN = Symbol('turn')
export const STEP = Symbol('step')
export const ATTEMPT = Symbol('attempt')
/** Seqs without a gap. */
export const SEQS = Symbol('seqs')

export type Form = symbol | string | number | boolean | readonly Form[] | { readonly [key: string]: Form }

export interface EventForm {
  readonly type: string
  readonly data: Form
  readonly surfaceOp?: 'append'
  readonly sourceEventSeqs?: typeof SEQS
}

const inStep = { turn: TURN, step: STEP }
const inAttempt = { ...inStep, attempt: ATTEMPT }
const text = { type: 'text', text: V }
const call = { type: 'tool-call', id: V, name: V, arguments: V }
const said = { id: V, role: 'user', content: [text], source: { kind: 'user' } }
const chunk = (form: Form, more: { readonly [key: string]: Form } = {}): EventForm => ({
  type: 'assistant/chunk',
  data: { ...inAttempt, chunk: form, ...more },
})
const splice = (inserted: Form, more: { readonly [key: string]: Form } = {}): EventForm => ({
  type: 'agent/inbox/spliced',
  data: { mutation: 'splice', queue: V, start: V, deleteCount: V, inserted, ...more },
})
const usage = { inputTokens: V, outputTokens: V }
const answered = (content: Form, calls: Form, more: { readonly [key: string]: Form } = {}): EventForm => ({
  type: 'assistant/message',
  data: {
    ...inAttempt,
    message: { id: V, role: 'assistant', content, source: { kind: 'model', provider: V, model: V } },
    finish: { kind: V },
    calls,
    ...more,
  },
  surfaceOp: 'append',
  sourceEventSeqs: SEQS,
})
const planned = [{ callId: V, name: V, mode: V }]
const result = (block: { readonly [key: string]: Form }, more: { readonly [key: string]: Form } = {}): EventForm => ({
  type: 'tool/result',
  data: {
    ...inStep,
    message: {
      id: V,
      role: 'user',
      source: { kind: 'tool', callId: V },
      content: [{ type: 'tool-result', toolCallId: V, content: [text], ...block }],
    },
    ...more,
  },
  surfaceOp: 'append',
  sourceEventSeqs: SEQS,
})

export const FORMS: readonly EventForm[] = [
  { type: 'step/start', data: inStep },
  { type: 'step/end', data: { ...inStep, outcome: { kind: V } } },
  { type: 'turn/start', data: { turn: TURN, limits: { maxSteps: V, maxParallelToolCalls: V } } },
  { type: 'turn/end', data: { turn: TURN, reason: { kind: V } } },
  splice([], { outcome: V }),
  splice([{ kind: 'message', message: said }], { wake: true }),
  splice([{ kind: 'tool-result', turn: TURN, callId: V }]),
  splice([{ kind: 'message', message: said }]),
  { type: 'user/message', data: said, surfaceOp: 'append' },
  chunk({ type: 'block-start', index: V, blockType: V }),
  chunk({ type: 'block-start', index: V, blockType: V }, { request: V }),
  chunk({ type: 'tool-call-delta', index: V, id: V, name: V, argumentsDelta: V }),
  chunk({ type: 'tool-call-delta', index: V, argumentsDelta: V }),
  chunk({ type: 'block-end', index: V, block: { type: V, text: V } }),
  chunk({ type: 'block-end', index: V, block: call }),
  chunk({ type: 'usage', usage }),
  chunk({ type: 'usage', usage: J }),
  chunk({ type: 'finish', reason: { kind: V } }),
  answered([text], [], { usage }),
  answered([text, call], planned, { usage }),
  answered([call], planned, { usage }),
  answered(J, J, { usage: J }),
  answered(J, J),
  { type: 'tool/call', data: { ...inStep, callId: V, name: V, arguments: V } },
  { type: 'tool/dispatch', data: { ...inStep, callId: V, run: V, onCrash: V } },
  result({}),
  result({ isError: true }, { error: { name: V, code: V } }),
]
