/** Whether an agent still takes commands. */
import { AgentClosed } from '../services/errors.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'

export interface Openness {
  readonly id: string
  readonly status: AgentStatus
  /** What the session or the chart failed with. */
  readonly failure: unknown
  readonly closing: { readonly begun: boolean }
  /** Fails the agent if its session was taken. */
  checkOwner(): void
}

/** @throws AgentClosed for an agent that failed, with its failure as the cause, or that is closing or closed. */
export function assertOpen(agent: Openness): void {
  // An idle agent does not watch whether it was robbed: a command must not learn of it while it records.
  agent.checkOwner()
  if (agent.status === 'failed') throw new AgentClosed(agent.id, { cause: agent.failure })
  if (agent.closing.begun) throw new AgentClosed(agent.id)
}
