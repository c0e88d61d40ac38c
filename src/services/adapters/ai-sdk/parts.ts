/** Which parts of a stream are an answer, and which only say that the line is open. */
import { isObject, textIn, type WireObject } from '../chat-completions/wire-json.ts'

const ANSWERS: ReadonlySet<unknown> = new Set([
  'text-start',
  'text-delta',
  'text-end',
  'reasoning-start',
  'reasoning-delta',
  'reasoning-end',
  'tool-input-start',
  'tool-input-delta',
  'tool-input-end',
  'tool-call',
  'tool-result',
  'tool-approval-request',
  'file',
  'reasoning-file',
  'source',
  'custom',
  'finish',
  'error',
])

/** True for a part that brings the answer on: an empty delta does so only with something beside it. */
export const isAnswer = (part: WireObject): boolean =>
  ANSWERS.has(part.type) &&
  !(textIn(part.type).endsWith('-delta') && textIn(part.delta) === '' && !isObject(part.providerMetadata))
