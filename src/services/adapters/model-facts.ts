/**
 * What is known of models without asking anybody: data, with the day it was read and the page it was read from. An
 * adapter's options override all of it.
 */
import type { Price } from '../../log/events.ts'
import type { Dialect } from './chat-completions/dialect.ts'
import { dialects } from './dialects.ts'

/** What an adapter knows of its model. */
export interface ModelFacts {
  /** Tokens. */
  readonly contextWindow?: number
  /** Tokens of output that a request asks for which says nothing. */
  readonly maxTokens?: number
  /** The most tokens of output that the model gives; a request for more is refused. */
  readonly outputCap?: number
  /** Per million tokens, in US dollars. */
  readonly price?: Price
}

interface Family {
  readonly models: RegExp
  readonly dialect: Dialect
  readonly facts: ModelFacts
}

/**
 * Read on 2026-11-30 from https://api-docs.deepseek.com/quick_start/pricing. Prices are those of peak hours; others are
 * half of that, so a limit on cost is kept at any hour. The first family that matches counts, the last takes any name.
 *
 * 'deepseek-chat' and 'deepseek-reasoner' are answered by the public API no more
 * (https://api-docs.deepseek.com/updates), by other servers they are.
 */
const DEEPSEEK: readonly Family[] = [
  {
    models: /(?:^|\/)deepseek-(?:reasoner|r1)\b/i,
    dialect: dialects.deepseekR1,
    facts: { contextWindow: 128_000, maxTokens: 64_000, outputCap: 64_000 },
  },
  {
    models: /(?:^|\/)deepseek-v3\b/i,
    dialect: dialects.deepseekV3,
    facts: { contextWindow: 128_000, maxTokens: 64_000, outputCap: 64_000 },
  },
  {
    models: /^deepseek-(?:v4-)?flash\b/i,
    dialect: dialects.deepseek,
    facts: {
      contextWindow: 1_000_000,
      maxTokens: 256_000,
      outputCap: 384_000,
      price: { input: 0.3, output: 1.2, cacheRead: 0.006 },
    },
  },
  {
    models: /^deepseek-v4-pro\b/i,
    dialect: dialects.deepseek,
    facts: {
      contextWindow: 1_000_000,
      maxTokens: 256_000,
      outputCap: 384_000,
      price: { input: 1.32, output: 3.96, cacheRead: 0.044 },
    },
  },
  {
    models: /^/,
    dialect: dialects.deepseek,
    facts: { contextWindow: 1_000_000, maxTokens: 256_000, outputCap: 384_000 },
  },
]

/** What is known of a model of DeepSeek by its name. The price is that of the public API. */
export function deepseekFamily(model: string): { readonly dialect: Dialect; readonly facts: ModelFacts } {
  const { dialect, facts } = DEEPSEEK.find(({ models }) => models.test(model)) ?? UNKNOWN
  return { dialect, facts }
}

const UNKNOWN = { dialect: dialects.deepseek, facts: {} }
