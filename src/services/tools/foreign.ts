/**
 * A tool that was not made by `tool()`, or was changed since: held to what `tool()` vouches for, so that whatever it says
 * is an outcome of its calls, and nothing of it gets into the log unchecked.
 */
import type { OnCrash } from '../../log/events.ts'
import { frozenJson, type Json, toJson } from '../../log/json.ts'
import type { ContentBlock } from '../../log/messages.ts'
import type { ToolSchema } from '../../log/requests.ts'
import { contentBlocks, toolSchema } from '../../log/shapes.ts'
import { InvalidOption } from '../errors.ts'
import type { ArgsOutcome, OutputOutcome, Tool } from './contract.ts'
import { reasonOf } from './schema.ts'
import { isMadeHere, plainCopy, probeOf } from './tool.ts'

const ON_CRASH: readonly OnCrash[] = ['unknown', 'rerun', 'ask', 'probe']

/** The tool as the loop may take it; itself if `tool()` made it. @throws InvalidOption for one that cannot be. */
export function ownTool(given: Tool): Tool {
  if (isMadeHere(given)) return given
  const { name, timeoutMs, approvalExpiresMs, onCrash } = given
  const schema = ownSchema(given)
  if (!ON_CRASH.includes(onCrash)) {
    throw new InvalidOption('tools', `"onCrash" of tool "${name}" must be one of ${ON_CRASH.join(', ')}`)
  }
  return Object.freeze<Tool>({
    name,
    description: schema.description,
    schema,
    parameters: schema.parameters,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(approvalExpiresMs !== undefined && { approvalExpiresMs }),
    repeatable: given.repeatable === true,
    onCrash,
    ...(given.probe !== undefined && { probe: probeOf(async (context) => given.probe?.(context) ?? UNKNOWN) }),
    parse: (args) => parse(given, args),
    modeOf(args) {
      try {
        return given.modeOf(plainCopy(args)) === 'parallel' ? 'parallel' : 'exclusive'
      } catch {
        // The tool's own classifier threw: alone is how a call it cannot judge is safe.
        return 'exclusive'
      }
    },
    needsApproval: async (args) => (await given.needsApproval(args)) !== false,
    execute: (args, context) => given.execute(args, context),
    render: (value) => render(given, value),
    ...(given.meta !== undefined && { meta: (args: unknown, value: unknown) => toJson(given.meta?.(args, value)) }),
  })
}

const UNKNOWN = { kind: 'unknown' } as const

function ownSchema({ name, schema }: Tool): ToolSchema {
  let own: ToolSchema
  try {
    own = frozenJson(schema)
  } catch (error) {
    throw new InvalidOption('tools', `the schema of tool "${name}" is not JSON: ${reasonOf(error)}`, { cause: error })
  }
  const wrong = toolSchema(own as unknown as Json)
  if (wrong !== undefined) throw new InvalidOption('tools', `the schema of tool "${name}" is none: schema${wrong}`)
  return own
}

async function parse(given: Tool, args: unknown): Promise<ArgsOutcome> {
  const parsed: ArgsOutcome | undefined = await given.parse(plainCopy(args))
  if (parsed?.kind === 'ok') return { kind: 'ok', args: parsed.args }
  return { kind: 'invalid', message: String(parsed?.message) }
}

/** What is no rendering is an invalid one; what it throws is for the caller, as with a body. */
async function render(given: Tool, value: unknown): Promise<OutputOutcome> {
  const rendered: OutputOutcome | undefined = await given.render(value)
  if (rendered?.kind !== 'ok') return { kind: 'invalid', message: String(rendered?.message) }
  try {
    const content = frozenJson(rendered.content)
    const wrong = contentBlocks(content as unknown as Json)
    if (wrong !== undefined) return { kind: 'invalid', message: `The tool's own rendering is none: content${wrong}` }
    return Object.freeze({ kind: 'ok', value: frozenJson(rendered.value), content: content as readonly ContentBlock[] })
  } catch (error) {
    return { kind: 'invalid', message: `The tool's own rendering is none: ${reasonOf(error)}` }
  }
}
