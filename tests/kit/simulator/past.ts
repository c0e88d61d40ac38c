/** What a world is made with: how its people and actors behave, and what earlier lives of its agent left. */
import type { SessionEvent } from '../../../src/log/events.ts'
import type { RecoveryOptions } from '../../../src/machines/resumption.ts'

export interface WorldOptions extends RecoveryOptions {
  readonly maxParallelToolCalls: number
  readonly maxSteps: number
  /** How often an actor answers while it is being started, never, or throws; else it answers later. */
  readonly atOnce: number
  readonly never: number
  readonly throws: number
  /** How often an observer gives a command after a batch. */
  readonly observers: number
  readonly approvals: boolean
}

/** Something done in the world that no crash takes back. `at` is how much of the log was durable before it. */
export interface Deed {
  readonly kind: 'body' | 'request'
  /** Names it: no deed may be done twice. */
  readonly key: string
  readonly at: number
}

/** What outlives a crash. */
export interface Past {
  readonly log: readonly SessionEvent[]
  /** How long the log was after each batch. */
  readonly batches: readonly number[]
  readonly deeds: readonly Deed[]
}
