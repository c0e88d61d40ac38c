/** A dialect is checked when an adapter is made: a misspelt field would silently be its default. */
import { InvalidOption } from '../../errors.ts'
import { digestId } from './call-ids.ts'
import type { Dialect } from './dialect.ts'

/** Throws for a value that the option `at` cannot have. */
type Check = (value: unknown, at: string) => void

/**
 * The dialect, copied and frozen.
 * @throws InvalidOption naming the field, as in `dialect.callIds.pattern`.
 */
export function checkDialect(dialect: Dialect): Dialect {
  if (!isRecord(dialect)) refuse('dialect', 'must be an object of fields, such as one of `dialects` of pawl/adapters')
  fields(CHECKS)(dialect, 'dialect')
  return frozen(dialect)
}

/** A copy that stays what it is, with its lists of words and rules. */
export function frozen(dialect: Dialect): Dialect {
  const copy = structuredClone(dialect)
  for (const field of Object.values(copy)) Object.freeze(field)
  return Object.freeze(copy)
}

const refuse = (at: string, problem: string): never => {
  throw new InvalidOption(at, problem)
}

/** An object with no other fields than these. An undefined one is left out. */
function fields(checks: Readonly<Record<string, Check>>): Check {
  return (value, at) => {
    if (!isRecord(value)) return refuse(at, 'must be an object of fields')
    for (const [name, item] of Object.entries(value)) {
      const check = Object.hasOwn(checks, name) ? checks[name] : undefined
      if (check === undefined) refuse(`${at}.${name}`, `is no field: those are ${Object.keys(checks).join(', ')}`)
      else if (item !== undefined) check(item, `${at}.${name}`)
    }
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const one = (...values: readonly string[]): Check => {
  const must = `must be ${values.map((value) => JSON.stringify(value)).join(' or ')}`
  return (value, at) => (values.some((known) => known === value) ? undefined : refuse(at, must))
}
const flag: Check = (value, at) => (typeof value === 'boolean' ? undefined : refuse(at, 'must be true or false'))
const words: Check = (value, at) => (typeof value === 'string' ? undefined : refuse(at, 'must be a string'))
const said: Check = (value, at) =>
  typeof value === 'string' && value.trim() !== '' ? undefined : refuse(at, 'must be words')

const keys: Check = (value, at) => {
  const are = Array.isArray(value) && value.length > 0 && value.every((key) => typeof key === 'string' && key !== '')
  if (!are) refuse(at, 'must be a list of keys, at least one')
}

const finishWord = one('stop', 'tool_calls', 'length', 'content_filter', 'overflow', 'failed')
const finishWords: Check = (value, at) => {
  if (!isRecord(value)) return refuse(at, 'must be an object from words of the server to what they mean')
  for (const [word, meaning] of Object.entries(value)) finishWord(meaning, `${at}.${word}`)
}

const idLength: Check = (value, at) => {
  const fits = typeof value === 'number' && Number.isSafeInteger(value) && value >= 8 && value <= 64
  if (!fits) refuse(at, 'must be a whole number from 8, below which digests would meet, to 64')
}
const idPattern: Check = (value, at) => {
  if (!(value instanceof RegExp)) refuse(at, 'must be a regular expression')
  else if (value.global || value.sticky) refuse(at, 'must not have the flag g or y: it would remember its last match')
}
const idFields = fields({ maxLength: idLength, pattern: idPattern })

const callIds: Check = (value, at) => {
  idFields(value, at)
  const { maxLength, pattern } = value as NonNullable<Dialect['callIds']>
  const refused = SAMPLES.map((id) => digestId(id, maxLength)).find((digest) => pattern?.test(digest) === false)
  if (refused !== undefined)
    refuse(at, `must take digests, lower-case hex like "${refused}": nothing else could stand in`)
}
const SAMPLES: readonly string[] = Array.from({ length: 32 }, (_, n) => `${n}`)

const CHECKS: { readonly [Field in keyof Required<Dialect>]: Check } = {
  reasoningKeys: keys,
  finish: one('first', 'last'),
  finishWords,
  reasoning: one('reasoning_content', 'reasoning', 'none'),
  reasoningOn: one('all', 'turns-with-calls', 'last-user', 'last-user-calls'),
  reasoningFill: words,
  emptyContent: one('', 'null', 'absent'),
  emptyAnswers: flag,
  mergeUsers: flag,
  mergeAnswers: flag,
  afterResults: said,
  callIds,
  system: one('system', 'developer', 'user'),
  maxTokens: one('max_tokens', 'max_completion_tokens'),
  effort: one(
    'reasoning_effort',
    'reasoning',
    'thinking',
    'thinking-only',
    'enable_thinking',
    'chat_template_kwargs',
    'none',
  ),
  streamUsage: flag,
  parallelCalls: flag,
}
