/** What a tool is to the loop. `tool()` in `tool.ts` makes one; the services run it. */
import type { OnCrash, ToolMode } from '../../log/events.ts'
import type { Json } from '../../log/json.ts'
import type { ContentBlock, UserMessage } from '../../log/messages.ts'
import type { JsonSchema, ToolSchema } from '../../log/requests.ts'

/** What a person may hand over: text (source `user`), blocks, or a whole message. */
export type Input = string | readonly ContentBlock[] | UserMessage

/** One call, as hooks and probes see it. `arguments` is the model's raw string, `args` what it parsed to. */
export interface ToolCallInfo {
  readonly turn: number
  readonly step: number
  readonly callId: string
  readonly name: string
  readonly arguments: string
  readonly args: unknown
  readonly signal: AbortSignal
}

/** What a probe gets: the call whose body was running when the process died. */
export type ProbeContext = ToolCallInfo & { readonly run: number; readonly idempotencyKey: string }

export type ProbeAnswer =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'not-done' }
  | { readonly kind: 'unknown' }

/** Handed to a tool's body. */
export interface ToolContext {
  /** Aborts with the turn, or when the tool's time is up. Its scope ends with the call. */
  readonly signal: AbortSignal
  readonly sessionId: string
  readonly turn: number
  readonly step: number
  readonly callId: string
  /** 1 for the first run. */
  readonly run: number
  /** The same over re-runs of a call, another in a fork. */
  readonly idempotencyKey: string
  steer(message: Input): ToolReceipt
  inject(message: Input): ToolReceipt
  /** Adds a message after the results of this step. */
  addContext(message: Input): void
  /** The turn ends with this step, if the tool succeeds. */
  concludeTurn(): void
  /** Says what is going on, to whoever watches; not logged. */
  progress(text: string): void
}

/** The receipt of a message sent from a tool; `Receipt` of the agent is one. */
export interface ToolReceipt {
  readonly id: string
  readonly accepted: Promise<{ seq: number }>
}

/** What became of a call's arguments: parsed and valid, or why not. */
export type ArgsOutcome =
  | { readonly kind: 'ok'; readonly args: unknown }
  | { readonly kind: 'invalid'; readonly message: string }

/** What a tool gave back, made JSON and checked; `meta` is kept in `tool/result`. */
export type OutputOutcome =
  | { readonly kind: 'ok'; readonly value: Json; readonly content: readonly ContentBlock[] }
  | { readonly kind: 'invalid'; readonly message: string }

/** The outcome of a call, as hooks see it and the log keeps it. */
export type ToolOutcome =
  | { readonly kind: 'ok'; readonly value: Json; readonly content: readonly ContentBlock[] }
  | { readonly kind: 'error'; readonly text: string; readonly error?: { readonly name: string; readonly code: string } }

/**
 * A registered tool. Made by `tool()`; every method is total on its own errors: a wrong argument is an outcome, only
 * the body and the user's own callbacks may throw.
 */
export interface Tool {
  readonly name: string
  readonly description: string
  /** What the model is shown: name, description, parameters. */
  readonly schema: ToolSchema
  readonly parameters: JsonSchema
  /** ms; none by default. */
  readonly timeoutMs?: number
  /** ms after which an approval expires; none by default. */
  readonly approvalExpiresMs?: number
  /** Excluded from repeated-call detection. */
  readonly repeatable: boolean
  /** What a crash while the body runs means; a probe is logged as 'probe'. */
  readonly onCrash: OnCrash
  probe?(context: ProbeContext): Promise<ProbeAnswer>
  /** Validates what the raw arguments parsed to. */
  parse(args: unknown): Promise<ArgsOutcome>
  /** Nobody but the body is given what `parse` made of the arguments: they need not be parsed again for it. */
  readonly parsesForBody?: true
  /** 'parallel' only if the classifier says exactly that for arguments that are valid; fails closed. */
  modeOf(args: unknown): ToolMode
  needsApproval(args: unknown): Promise<boolean>
  execute(args: unknown, context: ToolContext): unknown
  /** Checks a returned value and renders it for the model. */
  render(value: unknown): Promise<OutputOutcome>
  meta?(args: unknown, value: unknown): Json
}

/** `args` is what hooks see: parsed if it could be, else the raw string. Only those of kind 'ok' reach the body. */
export type Materialised =
  | { readonly kind: 'ok'; readonly args: unknown }
  | { readonly kind: 'invalid'; readonly args: unknown; readonly message: string }
