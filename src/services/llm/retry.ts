/**
 * The retry planner: whether a failed attempt is tried again, and when. Pure but for the random number it is given;
 * nothing is ever planned past a timer's range.
 */
import type { Retry } from '../../log/events.ts'
import type { LlmFailure } from '../../log/messages.ts'
import { MAX_TIMER_MS } from '../clock.ts'
import { InvalidOption } from '../errors.ts'
import type { RetryChain } from '../inputs.ts'
import type { Backoff, RetryPolicy } from './adapter.ts'

/** A policy with every field filled in. */
export type CompletePolicy = (
  | { readonly mode: 'normal'; readonly maxRetries: number; readonly retryableCodes: readonly string[] }
  | { readonly mode: 'always' }
) & { readonly backoff: Required<Backoff> }

export const RETRYABLE_CODES: readonly string[] = Object.freeze([
  'EMPTY_RESPONSE',
  'RATE_LIMIT',
  'SERVER',
  'TIMEOUT',
  'TRANSPORT',
])

/**
 * Checks a policy and fills in its defaults: normal, 2 retries of the transient codes, 500 ms doubling to 10 s, a tenth
 * of jitter. The result is frozen: hooks are shown it.
 * @throws InvalidOption naming the field.
 */
export function completePolicy(policy: RetryPolicy = {}, option = 'retry'): CompletePolicy {
  const check: Check = (ok, field, must) => {
    if (!ok) throw new InvalidOption(`${option}.${field}`, `must be ${must}`)
  }
  const mode = policy.mode ?? 'normal'
  check(mode === 'normal' || mode === 'always', 'mode', '"normal" or "always"')
  // A policy that was switched to `always` may keep what only the other mode reads.
  checkKeys(policy, POLICY_KEYS, '', check)
  const backoff = completeBackoff(policy.backoff ?? {}, check)
  if (policy.mode === 'always') return Object.freeze({ mode: 'always', backoff })
  const { maxRetries = 2, retryableCodes = RETRYABLE_CODES } = policy
  check(Number.isSafeInteger(maxRetries) && maxRetries >= 0, 'maxRetries', 'a whole number of at least 0')
  check(areCodes(retryableCodes), 'retryableCodes', 'distinct codes, at least one')
  return Object.freeze({ mode: 'normal', maxRetries, retryableCodes: Object.freeze([...retryableCodes]), backoff })
}

type Check = (ok: boolean, field: string, must: string) => void

const POLICY_KEYS: readonly string[] = ['mode', 'backoff', 'maxRetries', 'retryableCodes']
const BACKOFF_KEYS: readonly string[] = ['initialDelayMs', 'maxDelayMs', 'jitterRatio']

/** A misspelt field would silently be its default. */
function checkKeys(given: object, known: readonly string[], prefix: string, check: Check): void {
  for (const key of Object.keys(given)) {
    check(known.includes(key), `${prefix}${key}`, `left out: the fields are ${known.join(', ')}`)
  }
}

const areCodes = (codes: unknown): boolean =>
  Array.isArray(codes) &&
  codes.length > 0 &&
  codes.every((code) => typeof code === 'string' && code !== '') &&
  new Set(codes).size === codes.length

function completeBackoff(backoff: Backoff, check: Check): Required<Backoff> {
  checkKeys(backoff, BACKOFF_KEYS, 'backoff.', check)
  const { initialDelayMs = 500, maxDelayMs = 10_000, jitterRatio = 0.1 } = backoff
  const isDelay = (ms: number): boolean => Number.isFinite(ms) && ms > 0 && ms <= MAX_TIMER_MS
  check(isDelay(maxDelayMs), 'backoff.maxDelayMs', `ms above 0, at most ${MAX_TIMER_MS}`)
  check(
    isDelay(initialDelayMs) && initialDelayMs <= maxDelayMs,
    'backoff.initialDelayMs',
    'ms above 0, at most maxDelayMs',
  )
  check(jitterRatio >= 0 && jitterRatio <= 1, 'backoff.jitterRatio', 'between 0 and 1')
  return Object.freeze({ initialDelayMs, maxDelayMs, jitterRatio })
}

export interface RetryRequest {
  readonly policy: CompletePolicy
  readonly provider: string
  readonly failure: LlmFailure
  /** The chain so far; a new step, provider or policy begins another. */
  readonly chain: RetryChain | null
  readonly newId: () => string
  /** 0 to 1. */
  readonly random: () => number
}

/** The retry to record, or undefined: the failure is final. */
export function planRetry({ policy, provider, failure, chain, newId, random }: RetryRequest): Retry | undefined {
  const policyKey = keyOf(policy)
  const goesOn = chain !== null && chain.provider === provider && chain.policyKey === policyKey
  const retry = goesOn ? chain.retry + 1 : 1
  if (policy.mode === 'normal' && (!policy.retryableCodes.includes(failure.code) || retry > policy.maxRetries)) {
    return undefined
  }
  const delayMs = delayOf(policy, failure, retry, random)
  if (delayMs === undefined) return undefined
  const retryId = goesOn ? chain.retryId : newId()
  const plan = { retryId, provider, policyKey, retry, delayMs, failure }
  return policy.mode === 'normal'
    ? { ...plan, mode: 'normal', maxRetries: policy.maxRetries }
    : { ...plan, mode: 'always' }
}

const keyOf = ({ backoff, ...policy }: CompletePolicy): string => {
  const { initialDelayMs, maxDelayMs, jitterRatio } = backoff
  const head = policy.mode === 'normal' ? ['normal', policy.maxRetries, [...policy.retryableCodes].sort()] : ['always']
  return JSON.stringify([...head, initialDelayMs, maxDelayMs, jitterRatio])
}

/** The policy behind a key of `planRetry`, as an option; undefined for any other text. */
export function policyOfKey(policyKey: string): RetryPolicy | undefined {
  try {
    const key: unknown = JSON.parse(policyKey)
    if (!Array.isArray(key)) return undefined
    const [initialDelayMs, maxDelayMs, jitterRatio] = key.slice(-3)
    const backoff: Backoff = { initialDelayMs, maxDelayMs, jitterRatio }
    const policy: RetryPolicy =
      key[0] === 'always' ? { mode: 'always', backoff } : { maxRetries: key[1], retryableCodes: key[2], backoff }
    return keyOf(completePolicy(policy)) === policyKey ? policy : undefined
  } catch {
    // What JSON.parse refuses, or a policy that cannot be: no key of ours.
    return undefined
  }
}

/**
 * What the provider asks for is waited up to the cap, and a little longer by chance: whoever was refused together would
 * come back together. Over the cap a normal policy gives up and `always` waits its own.
 */
function delayOf(
  { mode, backoff }: CompletePolicy,
  failure: LlmFailure,
  retry: number,
  random: () => number,
): number | undefined {
  const asked = failure.providerRetryAfterMs
  const { initialDelayMs, maxDelayMs, jitterRatio } = backoff
  if (asked !== undefined && asked <= maxDelayMs) return Math.min(asked * (1 + jitterRatio * random()), MAX_TIMER_MS)
  if (asked !== undefined && mode === 'normal') return undefined
  const grown = Math.min(initialDelayMs * 2 ** Math.min(retry - 1, 1024), maxDelayMs)
  return Math.min(grown * (1 - jitterRatio + 2 * jitterRatio * random()), maxDelayMs)
}
