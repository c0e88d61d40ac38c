/**
 * What a provider's package throws, as a failure. Its errors are told by the names they bear, so that copies of the SDK
 * in any number and version are understood; a request's headers, body and query are never part of a message.
 */
import { PawlError } from '../../../log/errors.ts'
import type { LlmFailure } from '../../../log/messages.ts'
import { failureOf, renderCauses } from '../../llm/failure.ts'
import { createMask } from '../../masking/mask.ts'
import { failureOfFrame, failureOfStatus, requestIdIn } from '../chat-completions/refusal.ts'
import { isObject, objectIn, textIn, type WireObject } from '../chat-completions/wire-json.ts'
import { CLOSED } from './finish.ts'

/** What is known beside what was thrown. */
export interface Facts {
  /** Of the response, if there was one. */
  readonly headers: { readonly [name: string]: string }
  /** The provider's id of the answer, '' if unknown. */
  readonly id: string
  /** Epoch ms. */
  readonly now: number
}

/** The failure of a value that a model threw, or gave as an `error` part. */
export function failureOfModel(thrown: unknown, facts: Facts): LlmFailure {
  const failure = thrown instanceof PawlError ? failureOf(thrown) : failureOfForeign(thrown, facts.now)
  const requestId = failure.requestId ?? requestIdIn(headersOf(facts.headers)).requestId ?? facts.id.slice(0, 200)
  return Object.freeze({
    ...failure,
    message: discreet(failure.message),
    ...(requestId !== '' && { requestId }),
  })
}

/** Whatever a foreign error's accessors do, there is a failure. */
function failureOfForeign(thrown: unknown, now: number): LlmFailure {
  try {
    return known(thrown, now) ?? unknown(thrown)
  } catch {
    // Reading what was thrown threw: only its own code can land here.
    return unknown(thrown)
  }
}

/** Never by a failure that it carries: what a provider's server said may stand there, as if it were ours. */
const unknown = (thrown: unknown): LlmFailure => ({
  message: renderCauses(thrown) || 'The provider failed and gave no reason',
  code: 'UNKNOWN',
})

function known(thrown: unknown, now: number): LlmFailure | undefined {
  if (typeof thrown === 'string') return failureOfFrame({ error: thrown })
  const causes = causesOf(thrown)
  const refusal = causes.find(({ statusCode }) => isRefusal(statusCode))
  if (refusal !== undefined) return refused(refusal, now)
  const named = causes.map(failureByName).find((failure) => failure !== undefined)
  if (named !== undefined) return named
  if (isObject(thrown) && !(thrown instanceof Error)) return failureOfFrame({ error: frameOf(thrown) })
  return failureOfTransport(causes, thrown) ?? (causes.some(isCallError) ? unreadable(causes) : undefined)
}

const MAX_CAUSES = 8

/** What was thrown, and what caused it, as far as it goes. */
function causesOf(thrown: unknown): readonly WireObject[] {
  const causes: WireObject[] = []
  for (let at = thrown; isObject(at) && !causes.includes(at) && causes.length < MAX_CAUSES; at = at.cause) {
    causes.push(at)
  }
  return causes
}

const isRefusal = (status: unknown): status is number =>
  typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599

function refused(error: WireObject, now: number): LlmFailure {
  const message = textIn(error.message)
  return failureOfStatus({
    status: Number(error.statusCode),
    headers: headersOf(error.responseHeaders),
    // One that came inside a stream has no body: its own words say as much.
    body: textIn(error.responseBody) || stated(frameOf(error)),
    ...(message !== '' && { said: message }),
    now,
  })
}

/** An error as a body; '' for one that says nothing. */
const stated = (frame: WireObject): string =>
  Object.values(frame).some((word) => word !== '') ? JSON.stringify({ error: frame }) : ''

/** Anthropic's API has another name for the same header. */
function headersOf(headers: unknown): { get(name: string): string | null } {
  const fields = isObject(headers) ? Object.entries(headers) : []
  const values = new Map(fields.map(([name, value]) => [name.toLowerCase(), textIn(value)]))
  return {
    get: (name) => values.get(name) ?? (name === 'x-request-id' ? values.get('request-id') : undefined) ?? null,
  }
}

/** The SDK's own errors, by name: from whatever copy of it they come, they bear the same. */
const CODES: Readonly<Record<string, string>> = {
  AI_LoadAPIKeyError: 'MISSING_CREDENTIAL',
  AI_LoadSettingError: 'MISSING_CREDENTIAL',
  AI_InvalidArgumentError: 'INVALID_REQUEST',
  AI_InvalidPromptError: 'INVALID_REQUEST',
  AI_NoSuchModelError: 'INVALID_REQUEST',
  AI_NoSuchProviderReferenceError: 'INVALID_REQUEST',
  AI_UnsupportedFunctionalityError: 'UNSUPPORTED_CONTENT',
  AI_InvalidResponseDataError: 'MALFORMED_RESPONSE',
  AI_JSONParseError: 'MALFORMED_RESPONSE',
  AI_TypeValidationError: 'MALFORMED_RESPONSE',
  AI_EmptyResponseBodyError: 'EMPTY_RESPONSE',
  AI_NoContentGeneratedError: 'EMPTY_RESPONSE',
}

/** Such errors show what they could not read, which may be long. */
const SHOWN = 400

function failureByName(error: WireObject): LlmFailure | undefined {
  const code = namesOf(error)
    .map((name) => (Object.hasOwn(CODES, name) ? CODES[name] : undefined))
    .find((known) => known !== undefined)
  if (code === undefined) return undefined
  const message = textIn(error.message)
  if (code === 'MALFORMED_RESPONSE' && /without a finish reason/.test(message)) return CLOSED
  return { message: message.slice(0, SHOWN) || 'The provider failed and gave no reason', code }
}

const MARKER = 'vercel.ai.error.'

/** A class that extends one of the SDK's bears a marker beside a name of its own. */
const namesOf = (error: WireObject): readonly string[] => [
  textIn(error.name),
  ...Object.getOwnPropertySymbols(error).map((symbol) => (Symbol.keyFor(symbol) ?? '').slice(MARKER.length)),
]

const isCallError = (error: WireObject): boolean => namesOf(error).includes('AI_APICallError')

/** An error's own words alone, as the rest may be anything. */
function frameOf(thrown: WireObject): WireObject {
  const { error, response } = thrown
  const stated = [error, objectIn(response).error, thrown].find(isObject) ?? {}
  const word = (value: unknown) => (typeof value === 'number' ? value : textIn(value))
  return {
    message: textIn(stated.message),
    type: word(stated.type),
    code: word(stated.code),
    param: word(stated.param),
  }
}

const TIMEOUT = /(?:Headers|Body|Connect) Timeout Error|TimeoutError/
const BROKEN = /^(?:fetch failed|failed to fetch|terminated|network ?error|other side closed|Cannot connect to API)/i

function failureOfTransport(causes: readonly WireObject[], thrown: unknown): LlmFailure | undefined {
  const said = renderCauses(thrown)
  const names = causes.map(({ name }) => textIn(name))
  const code = TIMEOUT.test(`${said} ${names.join(' ')}`) ? 'TIMEOUT' : 'TRANSPORT'
  const isBroken = causes.some(
    ({ message, code: of }) => BROKEN.test(textIn(message)) || /^(?:E[A-Z]+|UND_ERR_\w+)$/.test(textIn(of)),
  )
  if (!isBroken && code !== 'TIMEOUT' && !names.includes('AbortError')) return undefined
  return { message: `The connection to the provider broke: ${said}`, code }
}

const unreadable = (causes: readonly WireObject[]): LlmFailure => ({
  message: `The provider could not read the answer: ${textIn(causes[0]?.message).slice(0, SHOWN)}`,
  code: causes.some(({ statusCode }) => typeof statusCode === 'number') ? 'MALFORMED_RESPONSE' : 'TRANSPORT',
})

const MAX_MESSAGE = 2_000
const QUERY = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s?#"'<>]+)\?[^\s"'<>]*/gi
const mask = createMask()

/** A message without what looks like a credential, and without queries, should a server or a cause repeat them. */
const discreet = (message: string): string => mask.text(message.replace(QUERY, '$1?[hidden]')).slice(0, MAX_MESSAGE)
