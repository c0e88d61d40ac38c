/** `pawl/adapters`: models, each translated to one stream of chunks. */
export { type Cassette, type CassetteOptions, cassette } from './services/adapters/cassette.ts'
export type { Dialect, FinishWord } from './services/adapters/chat-completions/dialect.ts'
export { type DeepseekOptions, deepseek } from './services/adapters/deepseek.ts'
export { demo } from './services/adapters/demo.ts'
export { type DialectName, dialects } from './services/adapters/dialects.ts'
export { type OpenaiCompatibleOptions, openaiCompatible } from './services/adapters/openai-compatible.ts'
export {
  type Attempt,
  chunks,
  fails,
  finish,
  type Gate,
  gate,
  hangs,
  type Part,
  pause,
  reasoning,
  type ScriptedOptions,
  scripted,
  text,
  toolCall,
  usage,
} from './services/adapters/scripted.ts'
export type { Backoff, ModelAdapter, PreparedCall, RetryPolicy } from './services/llm/adapter.ts'
