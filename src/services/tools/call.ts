/** A call's arguments, parsed and checked against the live tool, and what hooks are told of the call. */
import { parseArguments } from '../../log/arguments.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { Tool, ToolCallInfo } from './contract.ts'

/** `args` is what hooks see: parsed if it could be, else the raw string. Only those of kind 'ok' reach the body. */
export type Materialised =
  | { readonly kind: 'ok'; readonly args: unknown }
  | { readonly kind: 'invalid'; readonly args: unknown; readonly message: string }

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
): ToolCallInfo => ({ turn, step, callId, name, arguments: raw, args, signal })

/** The same over every run of a call; a fork is another session and so has another. */
export const idempotencyKey = ({ session }: AgentRuntime, callId: string): string => `${session.id}:${callId}`
