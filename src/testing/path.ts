/** What a path is: inputs, and what each of them must bring about. */
import type { OnCrash, Recordable, ToolMode } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type { AgentSnapshot } from '../machines/fold.ts'
import type { Tool } from '../services/tools/contract.ts'
import type { PathInput } from './path-input.ts'

/** A tool as paths see it. Without `tool` the player makes one that does what the path says. */
export interface PathTool {
  readonly name: string
  readonly mode: ToolMode
  readonly onCrash: OnCrash
  readonly needsApproval: boolean
  /** What the model of a path calls it with. */
  readonly args: Json
  /** A real one: its body decides what a call is answered with. */
  readonly tool?: Tool
}

/** What an agent has to be configured with, for a path to be true of it. */
export interface PathSetup {
  readonly maxSteps: number
  readonly maxParallelToolCalls: number
  readonly maxRetries: number
  readonly maxResumes: number
  readonly tools: readonly PathTool[]
}

/** A durable event as a path tells it: when it happens, in simulated epoch ms, but not its seq, since chunks lie between. */
export type PathEvent = Recordable & { readonly time: number }

/** One input, the durable events that move the machine or enter the conversation, and where they leave the agent. */
export interface PathStep {
  readonly input: PathInput
  readonly events: readonly PathEvent[]
  readonly state: Pick<AgentSnapshot, 'value' | 'context'>
}

export interface AgentPath {
  /** In words, unique among the paths it was made with, such as `crash while waiting to retry, then cancel`. */
  readonly label: string
  readonly setup: PathSetup
  readonly steps: readonly PathStep[]
  /** How its turns end, in order: kinds of `TurnEndReason`. */
  readonly ends: readonly string[]
}

/** Times every path is played with, in ms. One ms passes before each input. */
export const TIMES = { retryDelay: 1_000, approvalExpires: 60_000, settleTimeout: 10_000 } as const
