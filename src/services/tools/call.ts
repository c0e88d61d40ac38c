/** A call's arguments, parsed and checked against the live tool, and what hooks are told of the call. */
import { parseArguments } from '../../log/arguments.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { Materialised, Tool, ToolCallInfo } from './contract.ts'

/** For a tool that is not there the arguments are only parsed. */
export async function materialise(tool: Tool | undefined, input: CallInput): Promise<Materialised> {
  const parsed = parseArguments(input.arguments)
  if (parsed.kind === 'unparsable') return { kind: 'invalid', args: input.arguments, message: parsed.message }
  if (tool === undefined) return { kind: 'ok', args: parsed.args }
  const checked = await tool.parse(parsed.args)
  return checked.kind === 'ok' ? checked : { ...checked, args: parsed.args }
}

export const callInfo = (
  { turn: { signal } }: AgentRuntime,
  { turn, step, callId, name, arguments: raw }: CallInput,
  args: unknown,
): ToolCallInfo => ({ turn, step, callId, name, arguments: raw, args: frozenCopy(args), signal })

/**
 * Plain objects and lists, copied and frozen, so that who looks at a call changes nothing of it; the rest, which a
 * schema may make of arguments, as it is.
 */
function frozenCopy(value: unknown, copies = new Map<object, object>()): unknown {
  if (typeof value !== 'object' || value === null) return value
  const isList = Array.isArray(value)
  if (!isList && Object.getPrototypeOf(value) !== Object.prototype) return value
  const known = copies.get(value)
  if (known !== undefined) return known
  const copy: object = isList ? [] : {}
  copies.set(value, copy)
  for (const [key, item] of Object.entries(value)) {
    Object.defineProperty(copy, key, { value: frozenCopy(item, copies), enumerable: true })
  }
  return Object.freeze(copy)
}

/** Nothing but plain objects and lists, all the way: who is shown them sees copies alone. */
export function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function'
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every(isPlain)
}

/** The same over every run of a call; a fork is another session and so has another. */
export const idempotencyKey = ({ session }: AgentRuntime, callId: string): string => `${session.id}:${callId}`
