/**
 * How a chat-completions server is reached, and what is known of its model; checked when an adapter is made, so that a
 * wrong option fails early.
 */
import type { Price } from '../../../log/events.ts'
import { MAX_TIMER_MS } from '../../clock.ts'
import { InvalidOption } from '../../errors.ts'
import type { RetryPolicy } from '../../llm/adapter.ts'
import type { Limits } from './watchdog.ts'

export interface WireOptions {
  /** Sent as a bearer token. Never part of any error. */
  readonly apiKey?: string
  /** http or https; `/chat/completions` is added to its path, its query is kept and never shown. */
  readonly baseURL?: string
  readonly retry?: RetryPolicy
  /**
   * ms of waiting from the request to the first byte of the body, headers not counted; 60,000 by default. Node gives a
   * connection that does not come about 10 s of its own.
   */
  readonly firstByteTimeoutMs?: number
  /**
   * ms of waiting from one piece of the answer to the next; 300,000 by default. What brings nothing of it does not
   * count: comments, blank lines, payloads without content, finish or usage.
   */
  readonly idleTimeoutMs?: number
  /**
   * ms of waiting, once the model has said why it stopped, for what a server may send after it: usage, the end mark;
   * 5,000 by default. The answer is whole without them; the tokens that it never told are then estimated.
   */
  readonly endTimeoutMs?: number
  /** ms of waiting for one answer in all, the consumer's own time not counted; none by default. */
  readonly totalTimeoutMs?: number
  /** Characters of one unfinished event that are kept; 16 Mi by default. */
  readonly maxEventLength?: number
  /** Tokens the model can have before it, if that is known. */
  readonly contextWindow?: number
  /**
   * The most tokens the model can answer with: sent with requests that say nothing, and a request for more is refused
   * with INVALID_REQUEST, unsent.
   */
  readonly maxTokens?: number
  /** Per million tokens, in a currency of your choice: what a limit on cost is counted in. */
  readonly price?: Price
}

const DEFAULT_FIRST_BYTE_MS = 60_000
const DEFAULT_IDLE_MS = 300_000
const DEFAULT_END_MS = 5_000
export const DEFAULT_MAX_EVENT_LENGTH = 16 * 1024 * 1024

/**
 * Checks options of any adapter of this wire.
 * @throws InvalidOption
 */
export function checkWireOptions(options: WireOptions): void {
  for (const name of ['firstByteTimeoutMs', 'idleTimeoutMs', 'endTimeoutMs', 'totalTimeoutMs'] as const) {
    const ms = options[name]
    if (ms !== undefined && !(ms > 0 && ms <= MAX_TIMER_MS)) {
      throw new InvalidOption(name, `${ms} is no limit: give ms above 0, at most ${MAX_TIMER_MS}`)
    }
  }
  const { maxEventLength, baseURL } = options
  if (maxEventLength !== undefined && !(Number.isSafeInteger(maxEventLength) && maxEventLength > 0)) {
    throw new InvalidOption('maxEventLength', 'give a whole number of characters above 0')
  }
  const problem = baseURL === undefined ? undefined : problemOfBase(baseURL)
  if (problem !== undefined) throw new InvalidOption('baseURL', problem)
  checkFacts(options)
}

function checkFacts({ price, ...options }: WireOptions): void {
  for (const name of ['contextWindow', 'maxTokens'] as const) {
    const tokens = options[name]
    if (tokens !== undefined && !(Number.isSafeInteger(tokens) && tokens > 0)) {
      throw new InvalidOption(name, 'give a whole number of tokens above 0')
    }
  }
  if (price === undefined) return
  for (const name of ['input', 'output'] as const) {
    if (price[name] === undefined) throw new InvalidOption(`price.${name}`, 'must be given')
  }
  for (const [name, amount] of Object.entries(price)) {
    if (!PRICED.includes(name)) throw new InvalidOption(`price.${name}`, `is no field: those are ${PRICED.join(', ')}`)
    if (amount !== undefined && !(Number.isFinite(amount) && amount >= 0)) {
      throw new InvalidOption(`price.${name}`, 'give an amount per million tokens, 0 or more')
    }
  }
}

const PRICED: readonly string[] = ['input', 'output', 'cacheRead', 'cacheWrite']

/** What the options say of the model. */
export const knownOf = ({ contextWindow, maxTokens }: WireOptions) => ({
  ...(contextWindow !== undefined && { contextWindow }),
  ...(maxTokens !== undefined && { maxTokens, outputCap: maxTokens }),
})

/** What is wrong with a base URL, without showing it: it may hold a secret. */
export function problemOfBase(base: string): string | undefined {
  if (!URL.canParse(base)) return 'is no URL: give one like "https://host/v1"'
  const { protocol, username, password } = new URL(base)
  if (protocol !== 'http:' && protocol !== 'https:') return `has the scheme "${protocol}": use http or https`
  return username || password ? 'holds a user name or password: pass `apiKey` instead' : undefined
}

/** Where completions are asked for. */
export function endpointOf(base: string): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/chat/completions`
  url.hash = ''
  return url
}

/** A URL as errors may show it: no query. */
export const shownUrl = (url: URL): string => `${url.origin}${url.pathname}`

/** The limits the options set, or their defaults. */
export const limitsOf = (options: WireOptions): Limits => ({
  firstByteMs: options.firstByteTimeoutMs ?? DEFAULT_FIRST_BYTE_MS,
  idleMs: options.idleTimeoutMs ?? DEFAULT_IDLE_MS,
  endMs: options.endTimeoutMs ?? DEFAULT_END_MS,
  ...(options.totalTimeoutMs !== undefined && { totalMs: options.totalTimeoutMs }),
})

/** True for a key that a header can carry. */
export const isUsableKey = (key: string): boolean => /^[\x21-\x7e]+$/.test(key)
