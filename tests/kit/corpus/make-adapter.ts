/** The adapters under test, set up as a corpus file asks. */
import type { Dialect } from '../../../src/services/adapters/chat-completions/dialect.ts'
import { deepseek } from '../../../src/services/adapters/deepseek.ts'
import { openaiCompatible } from '../../../src/services/adapters/openai-compatible.ts'
import type { Clock } from '../../../src/services/clock.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import type { CorpusAdapter } from './format.ts'

export interface Reach {
  readonly baseURL: string
  readonly clock: Clock
}

/** The presets a file without one is played against. */
export const PRESETS = ['openai-compatible', 'deepseek'] as const

/** One adapter for a file. */
export function adapterFor(spec: CorpusAdapter, { baseURL, clock }: Reach): ModelAdapter {
  const { model, firstByteMs, idleMs, endMs, totalMs, eventLength } = spec
  const options = {
    apiKey: 'sk-corpus-key',
    baseURL,
    ...(firstByteMs !== undefined && { firstByteTimeoutMs: firstByteMs }),
    ...(idleMs !== undefined && { idleTimeoutMs: idleMs }),
    ...(endMs !== undefined && { endTimeoutMs: endMs }),
    ...(totalMs !== undefined && { totalTimeoutMs: totalMs }),
    ...(eventLength !== undefined && { maxEventLength: eventLength }),
  }
  if (spec.preset === 'deepseek') {
    return deepseek({ ...options, ...(model !== undefined && { model }) }, { clock, env: {} })
  }
  const dialect = spec.dialect === undefined ? {} : { dialect: spec.dialect as Dialect }
  return openaiCompatible({ ...options, model: model ?? 'any-model', ...dialect }, { clock })
}
