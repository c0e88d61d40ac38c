/**
 * Schemas of two kinds made one: a Standard Schema checks and may transform, a JSON Schema only checks (no defaults,
 * no coercion, extra keys allowed). Both say what is wrong as a list of places, in words that do not change.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Json, toJson } from '../../log/json.ts'
import type { JsonSchema } from '../../log/requests.ts'

export type Schema = StandardSchemaV1 | JsonSchema

/** What a schema makes of a value: the parsed output of a Standard Schema, the value itself for a JSON Schema. */
export type Output<S extends Schema> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : unknown

/** `violations` name their places from `$`, the value itself. */
export type Checked =
  | { readonly kind: 'valid'; readonly value: unknown }
  | { readonly kind: 'invalid'; readonly violations: string }

/** Never throws and never rejects. Only a Standard Schema may answer with a promise. */
export type Check = (value: unknown) => Checked | Promise<Checked>

/** More violations than this are counted, not listed. */
const MAX_VIOLATIONS = 20

/** Compiles nothing yet: a JSON Schema is compiled at its first check, once. */
export function checkOf(schema: Schema): Check {
  return isStandardSchema(schema) ? checkStandard(schema) : checkJsonSchema(schema)
}

export function isStandardSchema(schema: unknown): schema is StandardSchemaV1 {
  // Some libraries make their schemas callable.
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard: unknown = Reflect.get(schema, '~standard')
  return typeof standard === 'object' && standard !== null && typeof Reflect.get(standard, 'validate') === 'function'
}

/**
 * The JSON Schema a schema states for its input, frozen: a JSON Schema states itself, a Standard Schema through
 * `~standard.jsonSchema` or `toJSONSchema()`. Undefined if it cannot.
 */
export function statedJsonSchema(schema: Schema): JsonSchema | undefined {
  if (!isStandardSchema(schema)) return plain(schema)
  const converter: unknown = Reflect.get(schema['~standard'], 'jsonSchema')
  return (
    converted(converter, 'input', [{ target: 'draft-2020-12' }, { target: 'draft-07' }]) ??
    converted(schema, 'toJSONSchema', [{ io: 'input', target: 'draft-2020-12' }])
  )
}

function converted(owner: unknown, method: string, attempts: readonly object[]): JsonSchema | undefined {
  if ((typeof owner !== 'object' && typeof owner !== 'function') || owner === null) return undefined
  const convert: unknown = Reflect.get(owner, method)
  if (typeof convert !== 'function') return undefined
  for (const options of attempts) {
    try {
      const stated = plain(Reflect.apply(convert, owner, [options]))
      if (stated !== undefined) return withoutDialect(stated)
    } catch {
      // The library cannot convert this schema to this target; that is what throwing means in the specification.
    }
  }
  return undefined
}

/** Through JSON text, since libraries hang hidden keys and undefined values on the schemas they generate. */
function plain(schema: unknown): JsonSchema | undefined {
  const text: string | undefined = JSON.stringify(schema)
  const value = text === undefined ? undefined : toJson(JSON.parse(text))
  return isRecord(value) ? value : undefined
}

const isRecord = (value: Json | undefined): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function withoutDialect({ $schema: _, ...schema }: JsonSchema): JsonSchema {
  return Object.freeze(schema)
}

/** Any thenable: one taken for a result would have no issues, and pass. */
const isPromise = <T>(result: T | PromiseLike<T>): result is PromiseLike<T> =>
  typeof result === 'object' && result !== null && 'then' in result && typeof result.then === 'function'

function checkStandard(schema: StandardSchemaV1): Check {
  const settle = (result: StandardSchemaV1.Result<unknown>): Checked =>
    result.issues === undefined ? { kind: 'valid', value: result.value } : invalid(result.issues.map(issueText))
  return (value) => {
    try {
      const result = schema['~standard'].validate(value)
      return isPromise(result) ? Promise.resolve(result).then(settle).catch(checkThrew) : settle(result)
    } catch (error) {
      return checkThrew(error)
    }
  }
}

function checkJsonSchema(given: JsonSchema): Check {
  const schema = plain(given) ?? {}
  let compiled: ValidateFunction | undefined
  return (value) => {
    try {
      compiled ??= compile(schema)
      return compiled(value) ? { kind: 'valid', value } : invalid((compiled.errors ?? []).map(errorText))
    } catch (error) {
      return checkThrew(error)
    }
  }
}

/** Unknown keywords and formats are annotations; `ownProperties`, or `{}` would have a "constructor". */
const AS_WRITTEN = { strict: false, allErrors: true, validateFormats: false, ownProperties: true } as const

/** One Ajv per schema, so that two schemas may bear the same `$id`; it must not look for the dialect's own schema. */
function compile(schema: JsonSchema): ValidateFunction {
  const options = { ...AS_WRITTEN, validateSchema: false, meta: false, logger: false } as const
  const older = typeof schema.$schema === 'string' && /draft-0[4-7]/.test(schema.$schema)
  const ajv = older ? new Ajv(options) : new Ajv2020(options)
  // `$async` is Ajv's own: it would answer with a promise, which is truthy.
  const { $async: _, ...synchronous } = withoutDialect(schema)
  return ajv.compile(synchronous)
}

/** A schema that cannot be used is a defect of the tool, told as a violation so that a call still gets its answer. */
const checkThrew = (error: unknown): Checked => invalid([`$: could not be checked: ${reasonOf(error)}`])

function invalid(all: readonly string[]): Checked {
  const lines = [...new Set(all)]
  const more = lines.length - MAX_VIOLATIONS
  const listed = lines.slice(0, MAX_VIOLATIONS)
  return { kind: 'invalid', violations: [...listed, ...(more > 0 ? [`and ${more} more`] : [])].join('\n') }
}

function issueText(issue: StandardSchemaV1.Issue): string {
  const keys = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part))
  return `${pathText(keys)}: ${issue.message}`
}

function errorText({ instancePath, message = 'is invalid', keyword, params }: ErrorObject): string {
  const keys = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  return `${pathText(keys)}: ${message}${detailOf(keyword, params)}`
}

/** What Ajv's message leaves out and the model needs for its next try. */
function detailOf(keyword: string, params: Record<string, unknown>): string {
  if (keyword === 'enum') return `: ${JSON.stringify(params.allowedValues)}`
  if (keyword === 'const') return `: ${JSON.stringify(params.allowedValue)}`
  if (keyword === 'additionalProperties') return `: ${JSON.stringify(params.additionalProperty)}`
  return ''
}

/** `$.files[0]["odd key"]` */
const pathText = (keys: readonly PropertyKey[]): string => `$${keys.map(keyText).join('')}`

function keyText(key: PropertyKey): string {
  if (typeof key === 'number') return `[${key}]`
  const name = String(key)
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
}

/** What a thrown value says of itself, whatever it is. */
export function reasonOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error)
  } catch {
    // A thrown object may refuse to be read; nothing is known of it then.
    return 'an unreadable error'
  }
}
