/**
 * `tool()`: from what a user writes to what the loop runs. A definition that cannot be is refused here, before any
 * model sees it; afterwards nothing but the user's own callbacks can throw.
 */
import type { OnCrash, ToolMode } from '../../log/events.ts'
import { type Json, toJson } from '../../log/json.ts'
import type { ContentBlock } from '../../log/messages.ts'
import type { JsonSchema, ToolSchema } from '../../log/requests.ts'
import { MAX_TIMER_MS } from '../clock.ts'
import { InvalidOption } from '../errors.ts'
import type { OutputOutcome, ProbeAnswer, ProbeContext, Tool, ToolContext } from './contract.ts'
import {
  type Check,
  checkOf,
  isStandardSchema,
  type Output,
  reasonOf,
  type Schema,
  statedJsonSchema,
} from './schema.ts'

/** What a body gets: the parsed output of a Standard Schema, typed; for a JSON Schema a copy of the raw arguments. */
export type Args<S extends Schema> = Output<S>

export interface ToolDefinition<S extends Schema> {
  /** 1 to 64 of A-Z, a-z, 0-9, `_` and `-`, as providers want it. */
  readonly name: string
  /** What the model reads to decide when to call it. */
  readonly description: string
  readonly parameters: S
  /** What the model is shown. Needed if `parameters` is a Standard Schema that cannot state its own JSON Schema. */
  readonly jsonSchema?: JsonSchema
  /** 'exclusive' by default. A classifier must be synchronous; whatever goes wrong in it means exclusive. */
  readonly mode?: ToolMode | ((args: Args<S>) => ToolMode)
  /** 'unknown' by default. A function is a probe: it looks at the world and says whether the call was carried out. */
  readonly onCrash?: Exclude<OnCrash, 'probe'> | ((context: ProbeContext) => Promise<ProbeAnswer>)
  /** ms; none by default. */
  readonly timeoutMs?: number
  /** False by default. Anything but false from the function means that somebody must allow the call. */
  readonly needsApproval?: boolean | ((args: Args<S>) => boolean | Promise<boolean>)
  /** ms; an approval never expires by default. */
  readonly approvalExpiresMs?: number
  /** Excluded from repeated-call detection; false by default. */
  readonly repeatable?: boolean
  /** Checks the returned value. It changes nothing: what the body returned is what is recorded. */
  readonly output?: Schema
  /** Kept beside the result for whoever shows it; the model never sees it. */
  readonly meta?: (args: Args<S>, value: unknown) => Json
  /** The body. A string is text, undefined is empty, anything else JSON text; what is not JSON is INVALID_TOOL_OUTPUT. */
  execute(args: Args<S>, context: ToolContext): unknown
}

/**
 * Makes a tool.
 * @throws InvalidOption for a definition that cannot be; it names the option and the tool.
 */
export function tool<S extends Schema>(definition: ToolDefinition<S>): Tool {
  checkDefinition(definition)
  const { name, description, timeoutMs, approvalExpiresMs, onCrash = 'unknown', meta } = definition
  const parameters = shownSchema(definition)
  const schema: ToolSchema = Object.freeze({ name, description, parameters })
  const check = checkOf(definition.parameters)
  const made = Object.freeze<Tool>({
    name,
    description,
    schema,
    parameters,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(approvalExpiresMs !== undefined && { approvalExpiresMs }),
    repeatable: definition.repeatable ?? false,
    ...(typeof definition.needsApproval !== 'function' && { parsesForBody: true as const }),
    ...(typeof onCrash === 'function' ? { onCrash: 'probe' as const, probe: probeOf(onCrash) } : { onCrash }),
    async parse(args) {
      const checked = await check(plainCopy(args))
      return checked.kind === 'valid'
        ? { kind: 'ok', args: checked.value }
        : { kind: 'invalid', message: `The arguments of ${name} are invalid:\n${checked.violations}` }
    },
    modeOf: modeOf(definition.mode ?? 'exclusive', check),
    async needsApproval(args) {
      const { needsApproval = false } = definition
      return (typeof needsApproval === 'function' ? await needsApproval(parsed<S>(args)) : needsApproval) !== false
    },
    execute: (args, context) => definition.execute(parsed<S>(args), context),
    render: renderer(definition.output === undefined ? undefined : checkOf(definition.output)),
    ...(meta !== undefined && { meta: (args: unknown, value: unknown) => toJson(meta(parsed<S>(args), value)) }),
  })
  madeHere.add(made)
  return made
}

const madeHere = new WeakSet<Tool>()

/** False for a tool that was written by hand, or copied from one that was made here. */
export const isMadeHere = (given: Tool): boolean => madeHere.has(given)

/** The caller's own to change: of parsed JSON, or, as structures are copied, of whatever else is given for it. */
export function plainCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(plainCopy)
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value)
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = plainCopy((value as Record<string, unknown>)[key])
    if (key === '__proto__')
      Object.defineProperty(copy, key, { value: item, enumerable: true, writable: true, configurable: true })
    else copy[key] = item
  }
  return copy
}

/** The loop hands back what `parse` gave it, so this is the schema's own output. */
const parsed = <S extends Schema>(args: unknown): Args<S> => args as Args<S>

function checkDefinition<S extends Schema>(definition: ToolDefinition<S>): void {
  const { name, description, mode, onCrash, needsApproval } = definition
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new InvalidOption('name', `a tool's name is 1 to 64 letters, digits, "_" or "-", not ${JSON.stringify(name)}`)
  }
  const demand = (option: string, holds: boolean, what: string): void => {
    if (!holds) throw new InvalidOption(option, `of tool "${name}" must be ${what}`)
  }
  const isCallback = (value: unknown): boolean => value === undefined || typeof value === 'function'
  demand('description', typeof description === 'string', 'a string')
  demand('execute', typeof definition.execute === 'function', 'a function')
  demand(
    'mode',
    isCallback(mode) || mode === 'exclusive' || mode === 'parallel',
    "'exclusive', 'parallel' or a function",
  )
  const policies: readonly unknown[] = ['unknown', 'rerun', 'ask']
  demand('onCrash', isCallback(onCrash) || policies.includes(onCrash), "'unknown', 'rerun', 'ask' or a function")
  demand('needsApproval', isCallback(needsApproval) || typeof needsApproval === 'boolean', 'a boolean or a function')
  demand('output', isSchema(definition.output), 'a schema')
  demand('meta', isCallback(definition.meta), 'a function')
  for (const option of ['timeoutMs', 'approvalExpiresMs'] as const) {
    demand(option, isDelay(definition[option]), `milliseconds, more than 0 and at most ${MAX_TIMER_MS}`)
  }
}

const isSchema = (schema: unknown): boolean =>
  schema === undefined || isStandardSchema(schema) || (typeof schema === 'object' && schema !== null)

const isDelay = (ms: number | undefined): boolean =>
  ms === undefined || (typeof ms === 'number' && ms > 0 && ms <= MAX_TIMER_MS)

/** The JSON Schema the model is shown. */
function shownSchema<S extends Schema>({ name, parameters, jsonSchema }: ToolDefinition<S>): JsonSchema {
  const shown = stated(name, jsonSchema ?? parameters)
  if (shown === undefined) {
    const way = isStandardSchema(parameters) ? 'cannot state its JSON Schema: pass `jsonSchema` too' : 'is no schema'
    throw new InvalidOption('parameters', `of tool "${name}" ${way}`)
  }
  // A schema that says nothing of the type is taken to mean what every provider wants.
  if (shown.type === undefined) return Object.freeze({ type: 'object', ...shown })
  if (shown.type !== 'object') {
    throw new InvalidOption('parameters', `of tool "${name}" must be of type "object": wrap what it takes in an object`)
  }
  return shown
}

function stated(name: string, schema: Schema): JsonSchema | undefined {
  try {
    return statedJsonSchema(schema)
  } catch (error) {
    throw new InvalidOption('parameters', `of tool "${name}" is not JSON: ${reasonOf(error)}`, { cause: error })
  }
}

function modeOf<S extends Schema>(mode: ToolMode | ((args: Args<S>) => ToolMode), check: Check): Tool['modeOf'] {
  if (typeof mode !== 'function') return () => mode
  return (args) => {
    try {
      const checked = check(plainCopy(args))
      // A schema that needs time cannot be asked here; its promise never rejects.
      if (checked instanceof Promise || checked.kind === 'invalid') return 'exclusive'
      const answer: unknown = mode(parsed<S>(checked.value))
      if (answer instanceof Promise) answer.catch(() => undefined)
      return answer === 'parallel' ? 'parallel' : 'exclusive'
    } catch {
      // The classifier is the user's; alone is how a call it cannot judge is safe.
      return 'exclusive'
    }
  }
}

/** An answer that is none of the three is no knowledge. */
export function probeOf(probe: (context: ProbeContext) => Promise<ProbeAnswer>): NonNullable<Tool['probe']> {
  return async (context) => {
    const answer: ProbeAnswer | undefined = await probe(context)
    if (answer?.kind === 'done') return { kind: 'done', value: answer.value }
    return { kind: answer?.kind === 'not-done' ? 'not-done' : 'unknown' }
  }
}

function renderer(check: Check | undefined): Tool['render'] {
  return async (returned): Promise<OutputOutcome> => {
    try {
      const value = toJson(returned === undefined ? null : returned)
      const checked = await check?.(value)
      if (checked?.kind === 'invalid') return invalidOutput(checked.violations)
      if (returned === undefined) return rendered(value, [])
      return rendered(value, [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }])
    } catch (error) {
      // What a body returns may be no JSON, or an object whose accessors throw.
      return invalidOutput(reasonOf(error))
    }
  }
}

/** Frozen: hooks see it before the log does. */
const rendered = (value: Json, content: readonly ContentBlock[]): OutputOutcome =>
  Object.freeze({ kind: 'ok', value, content: Object.freeze(content.map((block) => Object.freeze(block))) })

const invalidOutput = (why: string): OutputOutcome => ({
  kind: 'invalid',
  message: `The tool returned what its result cannot be:\n${why}`,
})
