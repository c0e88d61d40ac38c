/**
 * Servers of the chat-completions wire, each as data. What a preset says has a source: the provider's own page, or a
 * report that shows the server's words. What nothing is known of is left to the default.
 */
import type { Dialect } from './chat-completions/dialect.ts'
import { frozen } from './chat-completions/dialect-check.ts'

/** A server by its name. `baseURL` and `key`, an environment variable, are those of the provider's own; none if it has none. */
export interface Server {
  readonly dialect: Dialect
  readonly baseURL?: string
  readonly key?: string
}

const OUT_OF_RESOURCES = { insufficient_system_resource: 'failed' } as const

/** All servers that are known, by the names of `dialects`. */
export const servers = {
  /**
   * https://platform.openai.com/docs/api-reference/chat/create: `max_tokens` is deprecated and refused by models that
   * reason, instructions are a developer's, and call ids are at most 40 characters.
   */
  openai: {
    baseURL: 'https://api.openai.com/v1',
    key: 'OPENAI_API_KEY',
    dialect: { maxTokens: 'max_completion_tokens', system: 'developer' },
  },
  /**
   * DeepSeek V4, https://api-docs.deepseek.com/guides/thinking_mode: while it thinks, an answer whose reasoning is
   * missing is refused (also one without calls: github.com/openclaw/openclaw#73417, where an empty one passes).
   * `finish_reason`: https://api-docs.deepseek.com/api/create-chat-completion.
   */
  deepseek: {
    baseURL: 'https://api.deepseek.com',
    key: 'DEEPSEEK_API_KEY',
    dialect: {
      reasoning: 'reasoning_content',
      reasoningFill: '',
      effort: 'thinking',
      finishWords: OUT_OF_RESOURCES,
    },
  },
  /**
   * DeepSeek V3.1 and V3.2, https://api-docs.deepseek.com/guides/thinking_mode as of V3.2: reasoning goes back while
   * a question's tools are called, and is dropped with the next question.
   */
  deepseekV3: {
    dialect: {
      reasoning: 'reasoning_content',
      reasoningOn: 'last-user',
      effort: 'thinking',
      finishWords: OUT_OF_RESOURCES,
    },
  },
  /**
   * DeepSeek R1, https://api-docs.deepseek.com/guides/reasoning_model: reasoning that comes back is refused with 400,
   * and so are two user messages in a row.
   */
  deepseekR1: { dialect: { effort: 'thinking', mergeUsers: true, finishWords: OUT_OF_RESOURCES } },
  /**
   * https://docs.mistral.ai/api: no `stream_options` (usage comes by itself), its words for the end. Ids are 9 letters
   * or digits (github.com/mistralai/mistral-common, validator.py); a user after results is refused
   * (github.com/avante-corp/avante.nvim#2695).
   */
  mistral: {
    baseURL: 'https://api.mistral.ai/v1',
    key: 'MISTRAL_API_KEY',
    dialect: {
      callIds: { maxLength: 9, pattern: /^[a-zA-Z0-9]{9}$/ },
      afterResults: 'OK.',
      streamUsage: false,
      finishWords: { model_length: 'length', error: 'failed' },
    },
  },
  /** https://console.groq.com/docs/api-reference: `max_tokens` is deprecated. Reasoning comes under `reasoning`. */
  groq: {
    baseURL: 'https://api.groq.com/openai/v1',
    key: 'GROQ_API_KEY',
    dialect: { maxTokens: 'max_completion_tokens' },
  },
  /**
   * https://openrouter.ai/docs/use-cases/reasoning-tokens: an object says the effort; reasoning goes back as text or as
   * the details that came with it, which always do.
   */
  openrouter: {
    baseURL: 'https://openrouter.ai/api/v1',
    key: 'OPENROUTER_API_KEY',
    dialect: { reasoning: 'reasoning', effort: 'reasoning', finishWords: { error: 'failed' } },
  },
  /** https://docs.together.ai/reference/chat-completions: `eos` is one of its words for the end. */
  together: {
    baseURL: 'https://api.together.xyz/v1',
    key: 'TOGETHER_API_KEY',
    dialect: { finishWords: { eos: 'stop' } },
  },
  /** https://docs.fireworks.ai/guides/reasoning: reasoning comes and goes back as `reasoning_content`. */
  fireworks: {
    baseURL: 'https://api.fireworks.ai/inference/v1',
    key: 'FIREWORKS_API_KEY',
    dialect: { reasoning: 'reasoning_content' },
  },
  /**
   * https://docs.vllm.ai/en/latest/features/reasoning_outputs: `reasoning`, formerly `reasoning_content`; thinking is
   * a matter of the chat template. It goes back: https://docs.vllm.ai/en/latest/features/interleaved_thinking.
   */
  vllm: {
    dialect: {
      reasoning: 'reasoning',
      effort: 'chat_template_kwargs',
      finishWords: { abort: 'failed', error: 'failed' },
    },
  },
  /**
   * https://github.com/ggml-org/llama.cpp, docs/function-calling.md and tools/server/README.md: several calls in one
   * answer are off unless they are asked for, and thinking is a matter of the chat template. Some of its templates want
   * user messages and answers in turns (github.com/charmbracelet/crush#279).
   */
  llamaCpp: {
    dialect: {
      reasoning: 'reasoning_content',
      effort: 'chat_template_kwargs',
      parallelCalls: true,
      mergeUsers: true,
      mergeAnswers: true,
    },
  },
  /** https://docs.ollama.com/api/openai-compatibility: reasoning comes and goes back as `reasoning`. */
  ollama: { baseURL: 'http://localhost:11434/v1', dialect: { reasoning: 'reasoning' } },
  /** https://lmstudio.ai/docs/developer/openai-compat: nothing that differs. */
  lmStudio: { baseURL: 'http://localhost:1234/v1', dialect: {} },
  /** https://docs.x.ai/docs/api-reference: `max_tokens` is deprecated. */
  xai: {
    baseURL: 'https://api.x.ai/v1',
    key: 'XAI_API_KEY',
    dialect: { maxTokens: 'max_completion_tokens' },
  },
  /** https://www.alibabacloud.com/help/en/model-studio/deep-thinking: thinking is switched by `enable_thinking`. */
  qwen: {
    baseURL: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
    key: 'DASHSCOPE_API_KEY',
    dialect: { effort: 'enable_thinking' },
  },
  /**
   * https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model: reasoning goes back, and a call without it is
   * refused; an empty one counts as missing to some of its models (github.com/bestruirui/octopus#251).
   */
  moonshot: {
    baseURL: 'https://api.moonshot.ai/v1',
    key: 'MOONSHOT_API_KEY',
    dialect: {
      reasoning: 'reasoning_content',
      reasoningFill: ' ',
      effort: 'thinking-only',
      maxTokens: 'max_completion_tokens',
    },
  },
  /**
   * https://docs.z.ai/guides/capabilities/thinking-mode: reasoning goes back with the results. No `stream_options`, and
   * words of its own for the end: https://docs.z.ai/api-reference/llm/chat-completion.
   */
  zhipu: {
    baseURL: 'https://api.z.ai/api/paas/v4',
    key: 'ZAI_API_KEY',
    dialect: {
      reasoning: 'reasoning_content',
      effort: 'thinking-only',
      streamUsage: false,
      finishWords: { sensitive: 'content_filter', model_context_window_exceeded: 'overflow', network_error: 'failed' },
    },
  },
} satisfies Readonly<Record<string, Server>>

export type DialectName = keyof typeof servers

const names = Object.keys(servers) as readonly DialectName[]

/** The dialect of each known server; `{ ...dialects.vllm, mergeUsers: true }` is one of your own. Frozen. */
export const dialects = Object.freeze(
  Object.fromEntries(names.map((name) => [name, frozen(servers[name].dialect)])),
) as { readonly [Name in DialectName]: Dialect }

/** The server of that name, if it is a known one. */
export const serverOf = (name: string): Server | undefined =>
  Object.hasOwn(servers, name) ? servers[name as DialectName] : undefined
