/** Models of real provider packages, pointed at a server of the test's own. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { AiSdkModel } from '../../src/services/adapters/ai-sdk/model.ts'

/** What every model here authenticates with. */
export const KEY = 'sk-test-0123456789abcdef'

/** Makes a model that asks `baseURL`. */
export type Make = (baseURL: string) => AiSdkModel

export const compatible: Make = (baseURL) =>
  createOpenAICompatible({ name: 'local', baseURL, apiKey: KEY, includeUsage: true })('m')
export const anthropic: Make = (baseURL) => createAnthropic({ baseURL, apiKey: KEY })('claude-sonnet-4-5')
export const openaiChat: Make = (baseURL) => createOpenAI({ baseURL, apiKey: KEY }).chat('gpt-4.1')
export const openaiResponses: Make = (baseURL) => createOpenAI({ baseURL, apiKey: KEY })('gpt-5')
