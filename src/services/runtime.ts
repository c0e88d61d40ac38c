/**
 * What the actors of one agent work with, found by the agent's ref. Composition fills it in; the chart never sees it,
 * since nothing here may decide how a log folds.
 */
import type { AnyActorRef } from 'xstate'
import type { RequestDigester } from '../log/digest.ts'
import type { BoundCause, KnownEvent, Recordable, SessionEvent } from '../log/events.ts'
import type { LazyAbort } from '../log/lazy-abort.ts'
import type { StreamChunk, UserMessage } from '../log/messages.ts'
import type { Session } from '../log/session.ts'
import type { Clock } from './clock.ts'
import type { Prompt } from './hooks/contract.ts'
import type { HookRegistry } from './hooks/registry.ts'
import type { Limits, RepeatGuard } from './limits.ts'
import type { ModelAdapter, RetryPolicy } from './llm/adapter.ts'
import type { Section } from './llm/sections.ts'
import type { Mask } from './masking/mask.ts'
import type { Materialised, Tool, ToolReceipt } from './tools/contract.ts'
import type { Answer, OfAttempt } from './verdicts.ts'

/** What the agent was configured with, checked and complete. */
export interface Settings {
  readonly system: readonly Section[]
  readonly context: readonly Section[]
  readonly variables: Readonly<Record<string, string>>
  readonly model: ModelAdapter
  readonly maxTokens?: number
  readonly reasoningEffort?: string
  readonly retry?: RetryPolicy
  /** A limit on cost is set: every model asked must state its price. */
  readonly needsPrice: boolean
}

/** The turn that is open in this process. */
export interface OpenTurn {
  /** One signal for everything of the turn; aborts with its cancel, or when the session is lost. */
  readonly signal: AbortSignal
  /** The same, for who need not have a signal. */
  readonly cancel: LazyAbort
  /** What a running request has so far; taken if it does not settle in time. */
  partial: (() => Answer | undefined) | undefined
  /** Ids of what its tools added: taken, also before they are recorded. */
  readonly added: Set<string>
  /** Arguments that were read and checked when their call was authorized, by its id, until its body runs. */
  readonly materialised: Map<string, Materialised>
  /** Hooks that have yet to answer. */
  readonly asked: Set<AskedHook>
  /** The prompt that the open step was prepared with. */
  prompt: { readonly step: number; readonly prompt: Prompt } | undefined
}

/** A hook that was called. */
export interface AskedHook {
  readonly hook: string
  readonly at: { readonly turn: number; readonly step?: number }
  /** Its handlers wait for what they wrap: whatever takes long there is not theirs. */
  inCore: boolean
}

export interface AgentRuntime {
  readonly session: Session
  readonly clock: Clock
  readonly random: () => number
  readonly newId: () => string
  readonly settings: Settings
  readonly hooks: HookRegistry
  readonly tools: ReadonlyMap<string, Tool>
  adapterOf(provider: string, model: string): ModelAdapter | undefined
  readonly turn: OpenTurn
  readonly digester: RequestDigester
  /** Applied to whatever is recorded; here for what is compared with the log, measured or cut before it is. */
  readonly mask: Mask
  /** The agent is closing: nothing new starts. Aborts the model's request, not the tools. */
  readonly closing: { readonly aborted: boolean; readonly signal: AbortSignal; readonly starts: LazyAbort }
  /** Appends beside the machine: into the batch in hand if one is being made, else as a batch of its own. */
  append(event: Recordable): SessionEvent
  /** `append` for an event whose parts were checked and masked when they came in. */
  appendOwn(event: Recordable): SessionEvent
  /** `append` for a chunk of an answer, checked and masked. */
  appendChunk(place: OfAttempt, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'>
  steer(message: UserMessage): ToolReceipt
  inject(message: UserMessage): ToolReceipt
  /** What may be spent; undefined without limits. */
  readonly limits: Limits | undefined
  /** Against calls made again and again; undefined when turned off. */
  readonly repeats: RepeatGuard | undefined
  /** Ends the open turn for a bound that was reached; what waits, waits on. */
  stopFor(cause: BoundCause): void
  /** Somebody watches what a tool says of itself. */
  progress(callId: string, text: string): void
  /** Remembers the value behind a failure, for `agent/error`. */
  noteError(error: unknown): void
  /** The request header was logged by this process: after that only changes are. */
  headerLogged: boolean
  /** The conversation was told of a context that was not taken back. */
  readonly contextStands: boolean
}

const runtimes = new WeakMap<AnyActorRef, AgentRuntime>()

/** Binds an agent's ref to what its actors work with. Done once, before the actor starts. */
export const bindRuntime = (agent: AnyActorRef, runtime: AgentRuntime): void => {
  runtimes.set(agent, runtime)
}

/** @throws Error for a ref that no composition bound: the chart was started without `createAgent` or `agentActor`. */
export function runtimeOf(agent: AnyActorRef): AgentRuntime {
  const runtime = runtimes.get(agent)
  if (runtime === undefined) throw new Error('This agent has no runtime: start it with createAgent or agentActor')
  return runtime
}
