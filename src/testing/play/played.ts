/** What a path is played with, and what comes of it. */
import type { AgentOptions } from '../../agent.ts'
import type { SessionEvent } from '../../log/events.ts'
import type { Hooks } from '../../services/hooks/contract.ts'
import type { PathInput } from '../path-input.ts'

/** What came of a path. */
export interface PlayedPath {
  /** The whole durable log; of the last fork, if there was one. */
  readonly events: readonly SessionEvent[]
  /** What happened, in order: the inputs of the path, or what a user's own code made of them. */
  readonly inputs: readonly PathInput[]
  /** Inputs that nothing waited for any more, after a user's own code had decided otherwise than the path. */
  readonly skipped: number
  /** How often what is was held to what must be. */
  readonly comparisons: number
  readonly crashes: number
  /** How the turns ended, in order: kinds of `TurnEndReason`. */
  readonly ends: readonly string[]
}

export interface PlayerOptions {
  readonly hooks: Partial<Hooks>
  readonly agent: Partial<AgentOptions>
  /** Real ms to wait for what must happen. */
  readonly patienceMs: number
}
