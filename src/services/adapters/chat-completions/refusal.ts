/**
 * What a server answered instead of an answer, as a failure: by status, or by an error that came inside the stream.
 * Only facts of a known kind are taken over; a body is never copied as a whole.
 */
import type { LlmFailure } from '../../../log/messages.ts'
import { note } from './diagnostics.ts'
import { retryAfterMs } from './retry-after.ts'
import { isObject, jsonText, objectIn, parseJson, textIn, type WireObject } from './wire-json.ts'
import { codeOfWord, saysOverflow, saysQuota } from './wording.ts'

/** A response that is no success: `body` is what could be read of it, JSON or not. */
export interface Refusal {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: string
  /** What was said where the body says nothing. */
  readonly said?: string
  /** Epoch ms. */
  readonly now: number
}

/** The failure of a response by its status; the message is the server's, if it has one. */
export function failureOfStatus({ status, headers, body, said, now }: Refusal): LlmFailure {
  const parsed = parseJson(body.trim())
  const stated = statedIn(parsed?.value)
  const wait = retryAfterMs(headers, { status, now })
  const words =
    stated.message || said || `The server answered with status ${status}${beginningOf(headers, body.trim())}`
  const message = withFacts(words, stated)
  return {
    message: status === 402 ? `${message} (top up the account, or use the key of another)` : message,
    code: codeOfStatus(status, stated),
    status,
    ...(wait !== undefined && { providerRetryAfterMs: wait }),
    ...requestIdIn(headers),
  }
}

/** A body without words that are known: a gateway's page, JSON of a shape of its own. Often it alone says what is wrong. */
function beginningOf(headers: Refusal['headers'], text: string): string {
  return text === '' ? '' : ` and ${headers.get('content-type') ?? 'no content type'}: ${text.slice(0, 120)}`
}

/** The id a provider gave the request. An empty first header is not made up for by the second. */
export function requestIdIn(headers: Refusal['headers']): { readonly requestId?: string } {
  const id = (headers.get('x-request-id') ?? headers.get('x-deepseek-request-id') ?? '').slice(0, 200)
  return id === '' ? {} : { requestId: id }
}

/** The error a payload holds; undefined if it holds none. `event` is the name of the event it came in. */
export function errorIn(payload: WireObject, event: string | undefined): LlmFailure | undefined {
  if (payload.error) return failureOfFrame(payload)
  if (event === 'error' || payload.object === 'error') return failureOfFrame({ error: payload })
  return undefined
}

/** The failure of an error that came inside a stream: its own code decides, then its words, else it is the server's. */
export function failureOfFrame(frame: unknown): LlmFailure {
  const stated = statedIn(frame)
  note('error-frame', () => jsonText(frame) ?? stated.message)
  const status = Number(stated.code)
  const known = Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined
  return {
    message: withFacts(stated.message || 'The server reported an error inside the stream', stated),
    code: known === undefined ? codeOfFrame(stated) : codeOfStatus(known, stated),
    ...(known !== undefined && { status: known }),
  }
}

/** Leaves room for the facts, each of which is short, in what a failure may say. */
const MAX_WORDS = 1_500

/** The server's words, and what it stated beside them: where the words are vague, it alone says what is wrong. */
function withFacts(message: string, stated: Stated): string {
  const words = message.slice(0, MAX_WORDS)
  const facts = (['code', 'type', 'param'] as const)
    .filter((key) => stated[key] !== '' && !words.includes(stated[key]))
    .map((key) => `${key} ${stated[key]}`)
  return facts.length > 0 ? `${words} (${facts.join(', ')})` : words
}

interface Stated {
  readonly message: string
  readonly code: string
  readonly type: string
  readonly param: string
}

/** Errors come as `{ error: { message, code, type } }`, `{ error: 'text' }`, `{ message }`, `{ detail }`, or in a list. */
function statedIn(body: unknown): Stated {
  const outer = objectIn(Array.isArray(body) ? body[0] : body)
  if (typeof outer.error === 'string') return { message: outer.error, code: '', type: '', param: '' }
  const error = isObject(outer.error) ? outer.error : outer
  return {
    message: textIn(error.message) || textIn(outer.message) || textIn(outer.detail),
    code: word(error.code),
    type: word(error.type),
    param: word(error.param),
  }
}

const word = (value: unknown): string => (typeof value === 'number' ? `${value}` : textIn(value)).slice(0, 100)

/** The order is the rule: who asks, then how much, then what it costs, then how often, then what is asked. */
function codeOfStatus(status: number, stated: Stated): string {
  const words = `${stated.code} ${stated.type} ${stated.message}`
  if (status === 401 || status === 403) return 'AUTH'
  if (status === 413) return 'INVALID_REQUEST'
  if (saysQuota(words)) return 'QUOTA'
  if (status === 402) return codeOfWords(stated.code) ?? codeOfWords(stated.type) ?? 'QUOTA'
  if (status === 429) return 'RATE_LIMIT'
  if (status === 400) return saysOverflow(words) ? 'CONTEXT_WINDOW_EXCEEDED' : 'INVALID_REQUEST'
  return status >= 500 ? 'SERVER' : `HTTP_${status}`
}

function codeOfFrame({ code, type, message }: Stated): string {
  return (
    codeOfWords(code) ??
    (code === '' ? undefined : codeOfWord(code)) ??
    codeOfWords(type) ??
    codeOfWords(message) ??
    'SERVER'
  )
}

function codeOfWords(words: string): string | undefined {
  if (saysQuota(words)) return 'QUOTA'
  if (saysOverflow(words)) return 'CONTEXT_WINDOW_EXCEEDED'
  return WORDS.find(([pattern]) => pattern.test(words))?.[1]
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/rate[ _-]?limit|too many requests/i, 'RATE_LIMIT'],
  [/invalid[ _-]?api[ _-]?key|authentication|unauthori[sz]ed|permission/i, 'AUTH'],
  [/content[ _-]?filter|content[ _-]?policy/i, 'CONTENT_FILTER'],
  [/invalid[ _-]?request/i, 'INVALID_REQUEST'],
  [/server|overloaded|unavailable|internal|upstream/i, 'SERVER'],
  [/time[ _-]?out|timed out/i, 'TIMEOUT'],
]
