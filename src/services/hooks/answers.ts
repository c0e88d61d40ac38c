/**
 * What the hooks of requests and tools may answer. An answer comes from outside: what is none is the failure of its
 * hook, so that no call is let through by a word nobody knows, and nothing reaches the log that it would refuse.
 */
import { PawlError } from '../../log/errors.ts'
import { frozenJson, type Json, toJson } from '../../log/json.ts'
import type { ContentBlock } from '../../log/messages.ts'
import type { LlmCallConfig } from '../../log/requests.ts'
import { type Check, callConfig, contentBlocks, promptShape } from '../../log/shapes.ts'
import { HookMisuse } from '../errors.ts'
import { toMessage } from '../input.ts'
import type { Mask } from '../masking/mask.ts'
import type { ToolOutcome } from '../tools/contract.ts'
import type { PostExecute, PreExecute, Prompt } from './contract.ts'

type Answers = {
  readonly 'system-prompt/assemble': Prompt
  readonly 'agent/request': LlmCallConfig
  readonly 'agent/request-error': { readonly kind: 'retry' } | undefined
  readonly 'tools/pre-execute': PreExecute
  readonly 'tools/execute': ToolOutcome
  readonly 'tools/post-execute': PostExecute
}

/** The answer, copied where it goes into the log. @throws HookMisuse, NotJson or InvalidEvent for what is none. */
export function checkedAnswer(hook: string, answer: unknown, mask: Mask): unknown {
  return isChecked(hook) ? CHECKS[hook](answer, mask) : answer
}

const isChecked = (hook: string): hook is keyof Answers => Object.hasOwn(CHECKS, hook)

const CHECKS: { readonly [K in keyof Answers]: (answer: unknown, mask: Mask) => Answers[K] } = {
  'system-prompt/assemble': prompt,
  'agent/request': config,
  'agent/request-error': retryOrNot,
  'tools/pre-execute': preExecute,
  'tools/execute': toolOutcome,
  'tools/post-execute': postExecute,
}

function prompt(answer: unknown): Prompt {
  const { system, tools } = fieldsOf(answer)
  // An absent system text may be there as undefined, which is no JSON. Tools that were shown stay the very same.
  const given = { ...(system ? { system } : {}), tools: tools === undefined ? null : frozenJson(tools) }
  return shaped('system-prompt/assemble', Object.freeze(given), promptShape) as unknown as Prompt
}

function config(answer: unknown): LlmCallConfig {
  const { provider, model } = fieldsOf(answer)
  if (isText(provider) && isText(model)) {
    return shaped('agent/request', answer, callConfig) as unknown as LlmCallConfig
  }
  throw new PawlError('The request names no provider or no model: give both from agent/request', 'UNKNOWN')
}

function shaped(hook: string, answer: unknown, check: Check): Json {
  const own = frozenJson(answer) as Json
  const wrong = check(own)
  if (wrong !== undefined) throw new HookMisuse(hook, `its answer${wrong}`)
  return own
}

function retryOrNot(answer: unknown): { readonly kind: 'retry' } | undefined {
  if (answer === undefined || answer === null) return undefined
  if (fieldsOf(answer).kind === 'retry') return { kind: 'retry' }
  throw new HookMisuse('agent/request-error', 'it must give { kind: "retry" }, or undefined to let the failure stand')
}

function preExecute(answer: unknown): PreExecute {
  const { kind, reason } = fieldsOf(answer)
  if (kind === 'allow' || (kind === 'ask' && reason === undefined)) return { kind }
  if ((kind === 'ask' || kind === 'deny') && typeof reason === 'string') return { kind, reason }
  throw new HookMisuse(
    'tools/pre-execute',
    'it must give { kind: "allow" }, { kind: "deny", reason } or { kind: "ask", reason? }',
  )
}

function toolOutcome(answer: unknown): ToolOutcome {
  const { kind, value, content, text, error } = fieldsOf(answer)
  if (kind === 'ok') return Object.freeze({ kind, value: toJson(value), content: blocks('tools/execute', content) })
  if (kind === 'error' && typeof text === 'string') {
    if (error === undefined) return Object.freeze({ kind, text })
    const { name, code } = fieldsOf(error)
    if (isText(name) && isText(code)) return Object.freeze({ kind, text, error: Object.freeze({ name, code }) })
  }
  throw new HookMisuse(
    'tools/execute',
    'it must give { kind: "ok", value, content } or { kind: "error", text, error?: { name, code } }',
  )
}

function postExecute(answer: unknown, mask: Mask): PostExecute {
  const { kind, value, content, contexts = [], feedback } = fieldsOf(answer)
  const added = inputs(contexts, mask)
  if (kind === 'block' && typeof feedback === 'string') return { kind, feedback, contexts: added }
  if (kind === 'accept' && (value === undefined || content === undefined)) {
    return {
      kind,
      ...(value === undefined ? {} : { value: toJson(value) }),
      ...(content === undefined ? {} : { content: blocks('tools/post-execute', content) }),
      contexts: added,
    }
  }
  throw new HookMisuse(
    'tools/post-execute',
    'it must give { kind: "accept", value? or content?, contexts? } or { kind: "block", feedback, contexts? }',
  )
}

function inputs(contexts: unknown, mask: Mask): NonNullable<PostExecute['contexts']> {
  if (!Array.isArray(contexts)) throw new HookMisuse('tools/post-execute', '`contexts` must be a list')
  for (const context of contexts) toMessage(context, 'context', mask)
  return contexts
}

/** Of any size: a result that is too large is cut later. */
function blocks(hook: string, content: unknown): readonly ContentBlock[] {
  const copied = toJson(content === undefined ? null : content)
  const wrong = contentBlocks(copied)
  if (wrong !== undefined) throw new HookMisuse(hook, `\`content\`${wrong}`)
  return copied as unknown as readonly ContentBlock[]
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** The fields of an answer; none of what is no object. */
const fieldsOf = (answer: unknown): { readonly [key: string]: unknown } =>
  typeof answer === 'object' && answer !== null ? { ...answer } : {}
