/** What a recording tells of a model it asked: what it filled in, what it can read and costs, and how its failures were retried. */
import { equalJson, type Json } from '../../../log/json.ts'
import type { LlmCallConfig } from '../../../log/requests.ts'
import type { PreparedCall, RetryPolicy } from '../../llm/adapter.ts'
import { policyOfKey, RETRYABLE_CODES } from '../../llm/retry.ts'
import type { ModelName, RecordedAttempt } from './recording.ts'

/** The attempts that asked this model. */
export const attemptsOf = (attempts: readonly RecordedAttempt[], name: ModelName): readonly RecordedAttempt[] =>
  attempts.filter(({ header }) => header?.config.provider === name.provider && header.config.model === name.model)

/**
 * The config completed as the recorded adapter did: by the attempt that this config leads to, else by the first of
 * `ahead`, else by the last there is. What differs stays: it is for the comparison to tell.
 */
export function preparedAs(
  config: LlmCallConfig,
  attempts: { readonly ahead: readonly RecordedAttempt[]; readonly all: readonly RecordedAttempt[] },
): PreparedCall {
  const { ahead, all } = attempts
  const same = ahead.find((attempt) => equal(completed(config, attempt).config, attempt.header?.config))
  const like = same ?? ahead[0] ?? all.at(-1)
  return like ? completed(config, like) : { config }
}

function completed(config: LlmCallConfig, { header, context }: RecordedAttempt): PreparedCall {
  const recorded = header?.config
  const marked = header?.adapterDefaults
  const effort = marked?.reasoningEffort && config.reasoningEffort === undefined ? recorded?.reasoningEffort : undefined
  const maxTokens = marked?.maxTokens && config.maxTokens === undefined ? recorded?.maxTokens : undefined
  const filled = {
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  }
  const adapterDefaults = {
    ...(effort === undefined ? {} : { reasoningEffort: true as const }),
    ...(maxTokens === undefined ? {} : { maxTokens: true as const }),
  }
  return {
    config: { ...config, ...filled },
    ...(Object.keys(adapterDefaults).length > 0 ? { adapterDefaults } : {}),
    ...(context?.contextWindow === undefined ? {} : { contextWindow: context.contextWindow }),
    ...(context?.price === undefined ? {} : { price: context.price }),
  }
}

/**
 * The policy that retries what was retried and nothing else; undefined where the default one does. One that retried for
 * ever is bounded by what it retried: a failure of the cassette itself must end the turn.
 */
export function retryOf(attempts: readonly RecordedAttempt[]): RetryPolicy | undefined {
  const retries = attempts.flatMap(({ retry }) => (retry ? [retry] : []))
  const policy = retries.map(({ policyKey }) => policyOfKey(policyKey)).find((found) => found !== undefined)
  if (policy?.mode !== 'always')
    return policy ?? (retries.length === 0 && gaveUp(attempts) ? { maxRetries: 0 } : undefined)
  return {
    maxRetries: Math.max(...retries.map(({ retry }) => retry)),
    retryableCodes: [...new Set(retries.map(({ failure }) => failure.code))],
    ...(policy.backoff && { backoff: policy.backoff }),
  }
}

/** A failure stood that the default policy would have retried. */
const gaveUp = (attempts: readonly RecordedAttempt[]): boolean =>
  attempts.some(({ chunks, ending }) => {
    const last = chunks.at(-1)
    const reason = last?.type === 'finish' ? last.reason : undefined
    const failure = ending.kind === 'failed' ? ending.failure : reason?.kind === 'error' ? reason.failure : undefined
    return failure !== undefined && RETRYABLE_CODES.includes(failure.code)
  })

/** Configs are JSON; their type is an interface, which TypeScript will not take for it. */
const equal = (a: LlmCallConfig, b: LlmCallConfig | undefined): boolean =>
  b !== undefined && equalJson({ ...a } as unknown as Json, { ...b } as unknown as Json)
