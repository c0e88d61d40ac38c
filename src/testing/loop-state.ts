/** Where a path has come to: the agent's state, and what of its surroundings the log does not tell. */
import type { AgentSnapshot } from '../machines/fold.ts'
import { type PathSetup, TIMES } from './path.ts'

type Place = Pick<AgentSnapshot, 'value' | 'context'>

/** What the model of the open attempt has done: nothing yet, begun to speak, or failed and its failure is being judged. */
export type Asked = 'silent' | 'spoke' | Failing

/** What the policy thinks of a failure. */
export type Failing = { readonly failed: 'for now' | 'for good' }

/** Where an agent is, and what of its surroundings the log does not tell. */
export interface LoopState extends Place {
  readonly setup: PathSetup
  /** Simulated epoch ms. */
  readonly now: number
  readonly asked: Asked
  /** When the open turn was cancelled. */
  readonly cancelledAt: number | undefined
}

/** The input cannot happen in this state. */
export class InputRefused extends Error {
  override readonly name = 'InputRefused'
}

export const isStreaming = ({ value }: Pick<AgentSnapshot, 'value'>): boolean =>
  typeof value === 'object' && value.stepRequest === 'streaming'

export const isWaiting = ({ value }: Pick<AgentSnapshot, 'value'>): boolean =>
  typeof value === 'object' && value.stepRequest === 'waiting'

/** When a cancel's time to settle is over. */
export const settleTime = ({ cancelledAt, now }: LoopState): number => (cancelledAt ?? now) + TIMES.settleTimeout
