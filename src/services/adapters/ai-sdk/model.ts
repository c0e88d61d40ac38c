/**
 * What a language model of the AI SDK is to Pawl: the part of its specification that is used, for each version of it.
 * Types of our own, so that nobody needs the SDK's package to compile; a test holds them to the SDK's. What a model
 * streams is not typed here: it is looked at as it comes.
 */

/** JSON that its taker may change; the log's own is frozen. */
export type PlainJson = null | boolean | number | string | PlainJson[] | { [key: string]: PlainJson }

/** Options, or metadata given back, by provider. */
export type PlainOptions = { [provider: string]: { [key: string]: PlainJson } }

/** The specification's versions that differ in what they take. */
export type Version = keyof Shapes

/** What each version calls a file in a message, an image in a tool's result, and a part only that version has. */
interface Shapes {
  v2: {
    file: string | URL
    image: { type: 'media'; data: string; mediaType: string }
    extra: never
  }
  v3: {
    file: string | URL
    image: { type: 'image-data'; data: string; mediaType: string } | { type: 'image-url'; url: string }
    extra: never
  }
  v4: {
    file: TaggedFile
    image: { type: 'file'; data: TaggedFile; mediaType: string }
    extra:
      | ({ type: 'custom'; kind: `${string}.${string}` } & WithOptions)
      | ({ type: 'reasoning-file'; data: TaggedFile; mediaType: string } & WithOptions)
  }
}

/** `data` is base64. */
export type TaggedFile = { type: 'data'; data: string } | { type: 'url'; url: URL }

export type FileOf<V extends Version> = Shapes[V]['file']
export type ImageOf<V extends Version> = Shapes[V]['image']
export type ExtraOf<V extends Version> = Shapes[V]['extra']

interface WithOptions {
  providerOptions?: PlainOptions
}

export type TextPart = { type: 'text'; text: string } & WithOptions
type ReasoningPart = { type: 'reasoning'; text: string } & WithOptions
export type FilePart<V extends Version> = {
  type: 'file'
  data: FileOf<V>
  mediaType: string
  filename?: string
} & WithOptions
type CallPart = {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: PlainJson
  providerExecuted?: boolean
} & WithOptions
export type ResultPart<V extends Version> = {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: OutputOf<V>
} & WithOptions
export type OutputOf<V extends Version> =
  | { type: 'text' | 'error-text'; value: string }
  | { type: 'json' | 'error-json'; value: PlainJson }
  | { type: 'content'; value: ({ type: 'text'; text: string } | ImageOf<V>)[] }

export type AssistantPart<V extends Version> =
  | TextPart
  | ReasoningPart
  | FilePart<V>
  | CallPart
  | ResultPart<V>
  | ExtraOf<V>

export type PromptMessage<V extends Version> =
  | { role: 'system'; content: string }
  | { role: 'user'; content: (TextPart | FilePart<V>)[] }
  | { role: 'assistant'; content: AssistantPart<V>[] }
  | { role: 'tool'; content: ResultPart<V>[] }

/** How hard a model of version 4 is asked to think. */
export type Reasoning = 'provider-default' | 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

export interface FunctionTool {
  type: 'function'
  name: string
  description: string
  inputSchema: { [key: string]: PlainJson }
}

/** All that a model is asked with. */
export interface CallOptions<V extends Version> {
  prompt: PromptMessage<V>[]
  abortSignal: AbortSignal
  includeRawChunks: false
  maxOutputTokens?: number
  temperature?: number
  stopSequences?: string[]
  tools?: FunctionTool[]
  providerOptions?: PlainOptions
}

/** Which URLs a model fetches itself: patterns by media type, which may hold a `*`. */
export type SupportedUrls = { readonly [mediaType: string]: readonly RegExp[] }

/** A stream of parts under way. */
export interface PartStream {
  readonly stream: { getReader(): PartReader }
  readonly response?: { readonly headers?: { readonly [name: string]: string } }
}

export interface PartReader {
  read(): Promise<{ readonly done: boolean; readonly value?: unknown }>
  cancel(): Promise<void>
}

interface Model<V extends Version, Options> {
  readonly specificationVersion: V
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: SupportedUrls | PromiseLike<SupportedUrls>
  doStream(options: Options): PromiseLike<PartStream>
}

/** A language model of the AI SDK, as its providers make them: `openai('gpt-5')`, `anthropic('claude-sonnet-4-5')`. */
export type AiSdkModel =
  | Model<'v2', CallOptions<'v2'>>
  | Model<'v3', CallOptions<'v3'>>
  | Model<'v4', CallOptions<'v4'> & { reasoning?: Reasoning }>
