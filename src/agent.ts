/** `createAgent`: the one way in. It checks what it is given, takes the session, and starts its agent. */
import type { Agent } from './agent/agent.ts'
import { createUnlessAborted } from './agent/create.ts'
import type { AgentOptions } from './agent/options.ts'

export type {
  Agent,
  ApproveOptions,
  CloseOptions,
  DeliverOptions,
  DenyOptions,
  Inbox,
  PendingApproval,
  SessionView,
} from './agent/agent.ts'
export type { AgentOptions, Limits, Plugin } from './agent/options.ts'
export type { Entered, Receipt } from './agent/receipts.ts'
export type { TurnResult } from './agent/turns.ts'

/**
 * Opens or creates a session and starts its agent. A log that was left in the middle of a turn is carried on.
 * @throws InvalidOption; SessionBusy while another agent has the session; InvalidLog, LogTooNew for a log that cannot
 * be read; StoreFailure; the reason of `signal`.
 */
export const createAgent = (options: AgentOptions): Promise<Agent> => createUnlessAborted(options)
