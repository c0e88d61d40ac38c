/** What the hooks around a tool answered, held to their contracts: an answer that is none stops the call. */
import { toJson } from '../../log/json.ts'
import type { ContentBlock } from '../../log/messages.ts'
import { userMessage } from '../../log/shapes.ts'
import { HookMisuse } from '../errors.ts'
import type { PostExecute, PreExecute } from '../hooks/contract.ts'
import type { ToolOutcome } from './contract.ts'

/** @throws HookMisuse: what does not plainly allow a call never runs it. */
export function checkPolicy(given: PreExecute): PreExecute {
  if (given?.kind === 'allow' || given?.kind === 'deny' || given?.kind === 'ask') return given
  throw new HookMisuse(
    'tools/pre-execute',
    'it must give { kind: "allow" }, { kind: "deny", reason } or { kind: "ask" }',
  )
}

/** @throws HookMisuse; NotJson */
export function checkOutcome(given: ToolOutcome): ToolOutcome {
  const misused = (what: string) => new HookMisuse('tools/execute', what)
  if (given?.kind === 'ok') {
    return { kind: 'ok', value: toJson(given.value ?? null), content: checkContent(given.content, misused) }
  }
  if (given?.kind !== 'error' || typeof given.text !== 'string') {
    throw misused('it must give { kind: "ok", value, content } or { kind: "error", text, error? }')
  }
  const { text, error } = given
  if (error === undefined) return { kind: 'error', text }
  if (!isName(error?.name) || !isName(error?.code))
    throw misused('an error has a name and a code, of 1 to 256 characters')
  return { kind: 'error', text, error: { name: error.name, code: error.code } }
}

/** @throws HookMisuse; NotJson */
export function checkPostExecute(given: PostExecute): PostExecute {
  const misused = (what: string) => new HookMisuse('tools/post-execute', what)
  if (given?.kind === 'block' && typeof given.feedback === 'string') return given
  if (given?.kind !== 'accept') {
    throw misused('it must give { kind: "accept", value?, content?, contexts? } or { kind: "block", feedback }')
  }
  return given.content === undefined ? given : { ...given, content: checkContent(given.content, misused) }
}

function checkContent(given: unknown, misused: (what: string) => HookMisuse): readonly ContentBlock[] {
  const content = toJson(given ?? null)
  const wrong = userMessage({ id: 'content', role: 'user', content, source: { kind: 'user' } })
  if (wrong === undefined) return content as readonly ContentBlock[]
  throw misused(`its result${wrong}`)
}

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.length <= 256
