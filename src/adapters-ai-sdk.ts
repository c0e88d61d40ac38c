/** `pawl/adapters/ai-sdk`: any language model of the AI SDK. Nothing of the SDK is needed to load it. */
export type { AiSdkModel } from './services/adapters/ai-sdk/model.ts'
export type { AiSdkOptions, ProviderOptions } from './services/adapters/ai-sdk/options.ts'
export { aiSdk } from './services/adapters/ai-sdk.ts'
