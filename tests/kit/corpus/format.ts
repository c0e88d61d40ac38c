/** What a corpus file says. The shapes are those of `tests/corpus/format.schema.json`; `docs/conformance.md` explains them. */
import type { Json } from '../../../src/log/json.ts'

type JsonObject = { readonly [key: string]: Json }

/** A piece of a body. On the top level each is one network chunk; inside a `join` they are one together. */
export type Piece =
  | string
  | { readonly hex: string }
  | { readonly base64: string }
  /** One event: `data: `, the value as JSON, a blank line. */
  | { readonly data: Json }
  /** Pieces in one network chunk, or cut anew into chunks of `every` bytes. */
  | { readonly join: readonly Piece[]; readonly every?: number }
  | { readonly repeat: number; readonly of: readonly Piece[] }
  /** Nothing comes for so many ms. */
  | { readonly wait: number }
  /** The last piece: nothing more comes while the connection stays open, or the connection breaks. */
  | { readonly end: 'open' | 'reset' }

export interface CorpusReply {
  /** 200 by default. */
  readonly status?: number
  /** Beside `content-type: text/event-stream`, which they may replace. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: readonly Piece[]
}

/** How the reader under test is set up. Limits in ms and characters. */
export interface CorpusAdapter {
  readonly preset?: 'openai-compatible' | 'deepseek'
  readonly model?: string
  readonly dialect?: JsonObject
  readonly firstByteMs?: number
  readonly idleMs?: number
  readonly endMs?: number
  readonly totalMs?: number
  readonly eventLength?: number
}

interface CorpusHead {
  readonly format: 1
  readonly row: string
  readonly title: string
  /** Public reports of the failure: `owner/repo#number`, or an address. */
  readonly sources: readonly string[]
  /** Why the expectation is what it is, where others might expect something else. */
  readonly decision?: string
}

/** A reply, and what a reader makes of it. */
export interface AnswerFile extends CorpusHead {
  readonly kind: 'answer'
  readonly adapter?: CorpusAdapter
  /** What time it is, ISO 8601. */
  readonly now?: string
  /** ms that the consumer takes over each chunk. */
  readonly consumerMs?: number
  /** ms of processor time that reading it as written may take: for what must not cost its square. */
  readonly cpuMs?: number
  readonly reply: CorpusReply
  readonly expect: JsonObject
}

/** A message of a history. */
export type CorpusMessage =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant'
      readonly text?: string
      readonly reasoning?: string
      readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
      /** Who said it; the adapter asked now, by default. */
      readonly provider?: string
      readonly model?: string
    }
  | { readonly role: 'tool'; readonly call: string; readonly text: string }

/** A history, and the request a writer makes of it. */
export interface RequestFile extends CorpusHead {
  readonly kind: 'request'
  readonly adapter?: CorpusAdapter
  readonly history: readonly CorpusMessage[]
  readonly expect: JsonObject
}

export interface CorpusTool {
  readonly name: string
  readonly mode?: 'exclusive' | 'parallel'
  readonly parameters?: JsonObject
  readonly needsApproval?: boolean
  /** Its text; 'ok' by default. */
  readonly returns?: string
  /** Calls whose arguments have these members never return. */
  readonly hangsFor?: JsonObject
}

/** One thing that is done, or looked at, in a conversation. */
export type CorpusAct =
  | { readonly run: string }
  | { readonly followup: string }
  | { readonly wait: 'quiet' | 'idle' }
  /** Until so many events of a type are in the log. */
  | { readonly until: string; readonly count?: number }
  | { readonly advance: number }
  | { readonly cancel: true }
  | { readonly approve: string }
  | { readonly deny: string; readonly reason?: string }
  /** The process is gone, nothing was closed. */
  | { readonly kill: true }
  | { readonly close: true }
  /** The session is opened again, or refused. */
  | { readonly open: true | { readonly refused: string; readonly rule?: string } }
  /** The messages from one place of the conversation to another become one. */
  | { readonly compact: string; readonly from: number; readonly to: number }
  /** In the stored log the result of one call becomes that of another. */
  | { readonly damage: { readonly result: string; readonly becomes: string } }
  | { readonly expect: JsonObject }

/** A server, an agent that talks to it, and what comes of it. */
export interface ConversationFile extends CorpusHead {
  readonly kind: 'conversation'
  readonly adapter?: CorpusAdapter
  readonly now?: string
  /** So many agents do the same at once; 1 by default. */
  readonly agents?: number
  /** Another model of the same server, asked from the second attempt on. */
  readonly fallback?: string
  readonly options?: JsonObject
  readonly tools?: readonly CorpusTool[]
  /** In the order the requests come; each serves one of them, or as many as it says. */
  readonly exchanges: readonly {
    readonly request?: JsonObject
    readonly reply: CorpusReply
    readonly times?: number
  }[]
  readonly play: readonly CorpusAct[]
}

/** A row that no file can hold: the test that does. */
export interface ElsewhereFile extends CorpusHead {
  readonly kind: 'elsewhere'
  readonly test: string
  /** Stands in the name of the test. */
  readonly name: string
  readonly why: string
}

export type CorpusFile = AnswerFile | RequestFile | ConversationFile | ElsewhereFile
