/** How hard a model is asked to think. Only version 4 of the specification has a word for it. */
import type { LlmCallConfig } from '../../../log/requests.ts'
import { LlmError } from '../../errors.ts'
import type { AiSdkModel, Reasoning } from './model.ts'
import type { AiSdkOptions } from './options.ts'

const EFFORTS: readonly Reasoning[] = ['provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The word of version 4 for an effort, if it has one; 'off' is its 'none'. */
export const reasoningOf = (effort: string | undefined): Reasoning | undefined =>
  effort === 'off' ? 'none' : EFFORTS.find((known) => known === effort)

/**
 * An effort that nothing would carry to the model is refused before anything is sent.
 * @throws LlmError UNSUPPORTED_REASONING_EFFORT
 */
export function checkEffort(
  { reasoningEffort }: LlmCallConfig,
  { specificationVersion, modelId }: Pick<AiSdkModel, 'specificationVersion' | 'modelId'>,
  { providerOptions }: AiSdkOptions,
): void {
  if (reasoningEffort === undefined || typeof providerOptions === 'function') return
  const known = specificationVersion === 'v4'
  if (known && reasoningOf(reasoningEffort) !== undefined) return
  const why = known
    ? `has no reasoning effort "${reasoningEffort}"`
    : 'takes a reasoning effort only as its provider’s own'
  throw new LlmError({
    message: `Model "${modelId}" ${why}: pass \`providerOptions\` as a function that says it`,
    code: 'UNSUPPORTED_REASONING_EFFORT',
  })
}
