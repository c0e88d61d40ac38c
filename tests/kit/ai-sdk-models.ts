/** Models of the AI SDK for tests: the SDK's own mock where it has one, by hand for the versions it has none for. */
import type { LanguageModelV2, LanguageModelV2StreamPart, LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from 'ai-sdk-provider-newest'

/** A stream of `parts`; what is an Error breaks it. */
export function streamOf<T>(parts: readonly (T | Error)[]): ReadableStream<T> {
  const rest = [...parts]
  return new ReadableStream({
    pull(controller) {
      const part = rest.shift()
      if (part instanceof Error) controller.error(part)
      else if (part === undefined) controller.close()
      else controller.enqueue(part)
    },
  })
}

type Part3 = LanguageModelV3StreamPart

export const usage3 = {
  inputTokens: { total: 10, noCache: 7, cacheRead: 2, cacheWrite: 1 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
}

/** The end of an answer of version 3 or 4. */
export const finish3 = (
  unified: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other' = 'stop',
  raw: string | undefined = unified,
  more: Pick<Extract<Part3, { type: 'finish' }>, 'providerMetadata'> = {},
): Extract<Part3, { type: 'finish' }> => ({ type: 'finish', finishReason: { unified, raw }, usage: usage3, ...more })

type TextParts = { type: 'text-start' | 'text-end'; id: string } | { type: 'text-delta'; id: string; delta: string }

/** Text as one block, as every version has it. */
export const text3 = (text: string, id = '0'): TextParts[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta: text },
  { type: 'text-end', id },
]

/** The SDK's mock; the n-th request gets the n-th answer, the last one again. */
export function mock3(...answers: readonly (readonly (Part3 | Error)[])[]): MockLanguageModelV3 {
  let n = 0
  return new MockLanguageModelV3({
    provider: 'mock',
    modelId: 'mock-3',
    doStream: async () => ({ stream: streamOf(answers[Math.min(n++, answers.length - 1)] ?? []) }),
  })
}

/** A model of version 2; what it was asked with is kept. */
export function mock2(parts: readonly LanguageModelV2StreamPart[]) {
  const calls: Parameters<LanguageModelV2['doStream']>[0][] = []
  const model: LanguageModelV2 = {
    specificationVersion: 'v2',
    provider: 'mock',
    modelId: 'mock-2',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('streams only')),
    async doStream(options) {
      calls.push(options)
      return { stream: streamOf(parts) }
    },
  }
  return { model, calls }
}

/** A model of version 4; what it was asked with is kept. */
export function mock4(parts: readonly LanguageModelV4StreamPart[]) {
  const calls: LanguageModelV4CallOptions[] = []
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'mock',
    modelId: 'mock-4',
    supportedUrls: Promise.resolve({ 'image/*': [/^https:\/\/images\.example\//] }),
    doGenerate: () => Promise.reject(new Error('streams only')),
    async doStream(options) {
      calls.push(options)
      return { stream: streamOf(parts) }
    },
  }
  return { model, calls }
}
