/**
 * Any thrown value as an `LlmFailure`. A failure is believed only where it is plain own data; whatever else was
 * thrown, hostile getters and cycles included, still gives a message and a code, and reading it never throws.
 */
import { PawlError } from '../../log/errors.ts'
import type { FinishReason, LlmFailure } from '../../log/messages.ts'

/** Deeper causes and further members are left out; no message grows past this. */
const MAX_DEPTH = 8
const MAX_MEMBERS = 8
const MAX_MESSAGE = 4_000
const MAX_CODE = 256

const UNREADABLE = '(unreadable)'

/**
 * The failure a thrown value stands for, frozen: the one it states (an `LlmError`, or anything that carries an equally
 * valid `failure` with the same `code` as own data), else its rendered causes with the code of a `PawlError` or
 * `UNKNOWN`.
 */
export function failureOf(thrown: unknown): LlmFailure {
  const stated = statedFailure(thrown)
  if (stated !== undefined) return loggable(stated)
  const message = renderCauses(thrown) || 'The model request failed and gave no reason'
  return Object.freeze({ message, code: ownCode(thrown) ?? 'UNKNOWN' })
}

/** What a failure may take of the events that name it, in characters. */
const MAX_FAILURE = 65_536

/** The failure itself, unless it is too long for the log: then the beginning of its words. */
export function loggable(failure: LlmFailure): LlmFailure {
  if (JSON.stringify(failure).length <= MAX_FAILURE) return failure
  const { message, code, status, providerRetryAfterMs, requestId } = failure
  return Object.freeze({
    message: `${message.slice(0, MAX_MESSAGE)}…`,
    code: code.slice(0, MAX_CODE),
    ...(status === undefined ? {} : { status }),
    ...(providerRetryAfterMs === undefined ? {} : { providerRetryAfterMs }),
    ...(requestId === undefined ? {} : { requestId: requestId.slice(0, MAX_CODE) }),
  })
}

/** How a request that threw has finished: `aborted` if its signal is, or the failure says so; else `error`. */
export function finishOf(thrown: unknown, signal: AbortSignal): FinishReason {
  const failure = failureOf(thrown)
  return { kind: signal.aborted || failure.code === 'ABORTED' ? 'aborted' : 'error', failure }
}

/**
 * The message of a thrown value and of what caused it: `message [member; member]: cause`. A cause whose text its
 * wrapper already repeats is said once; what cannot be read gives a placeholder for that part alone.
 */
export function renderCauses(thrown: unknown): string {
  const text = render(thrown, new Set())
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text
}

function render(value: unknown, above: ReadonlySet<unknown>): string {
  if (!isObject(value)) return readable(() => String(value))
  if (above.has(value)) return '(a cycle)'
  if (above.size >= MAX_DEPTH) return '…'
  const within = new Set(above).add(value)
  const own = messageOf(value) + members(value, within)
  const cause = causeOf(value)
  if (cause === undefined) return own
  const rendered = cause === UNREADABLE ? UNREADABLE : render(cause, within)
  return own.includes(rendered) ? own : `${own}: ${rendered}`
}

function messageOf(value: object): string {
  return readable(() => {
    const message: unknown = Reflect.get(value, 'message')
    if (typeof message === 'string' && message !== '') return message
    return value instanceof Error ? value.name : 'a thrown object without a message'
  })
}

function members(value: object, within: ReadonlySet<unknown>): string {
  if (!isAggregate(value)) return ''
  const list = attempt(() => [...value.errors].slice(0, MAX_MEMBERS))
  if (list === undefined) return ` [${UNREADABLE}]`
  return list.length === 0 ? '' : ` [${list.map((member) => render(member, within)).join('; ')}]`
}

const causeOf = (value: object): unknown => {
  if (!isError(value)) return undefined
  const read = attempt(() => ({ cause: value.cause }))
  return read === undefined ? UNREADABLE : read.cause
}

function statedFailure(thrown: unknown): LlmFailure | undefined {
  const failure = readFailure(ownData(thrown, 'failure'))
  return failure !== undefined && ownData(thrown, 'code') === failure.code ? failure : undefined
}

/** A value that has the shape of a failure, with every fact in range and no other key. */
function readFailure(value: unknown): LlmFailure | undefined {
  const message = ownData(value, 'message')
  const code = ownData(value, 'code')
  if (!isText(message) || !isText(code)) return undefined
  const optional = { status: isStatus, providerRetryAfterMs: isWait, requestId: isText }
  const facts: Record<string, unknown> = { message, code }
  for (const key of attempt(() => Reflect.ownKeys(value as object)) ?? []) {
    if (key === 'message' || key === 'code') continue
    const fact = ownData(value, key)
    if (!Object.hasOwn(optional, key) || !optional[key as keyof typeof optional](fact)) return undefined
    facts[key as string] = fact
  }
  return Object.freeze(facts) as LlmFailure
}

/** The code of an error of ours; codes of others (`ECONNRESET`) are no vocabulary of a failure. */
function ownCode(thrown: unknown): string | undefined {
  const code = attempt(() => (thrown instanceof PawlError ? ownData(thrown, 'code') : undefined))
  return isText(code) ? code : undefined
}

/** An own data property; accessors are not run. */
function ownData(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined
  return attempt(() => Object.getOwnPropertyDescriptor(value, key)?.value)
}

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'
/** Asking a revoked proxy for its prototype throws; then it is no error. */
const isError = (value: object): value is Error => attempt(() => value instanceof Error) ?? false
const isAggregate = (value: object): value is AggregateError => attempt(() => value instanceof AggregateError) ?? false
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const isStatus = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 100 && Number(value) <= 599
const isWait = (value: unknown): boolean => Number.isFinite(value) && Number(value) > 0

const readable = (read: () => string): string => attempt(read) ?? UNREADABLE

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    // A getter, a proxy trap or a toString of the thrown value threw; nothing else runs in here.
    return undefined
  }
}
