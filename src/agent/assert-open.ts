/** Whether an agent still takes commands. */
import { AgentClosed } from '../services/errors.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'

export interface Openness {
  readonly session: { readonly id: string; readonly failed: AbortSignal; checkOwner(): void }
  readonly status: { readonly value: AgentStatus }
  readonly closing: { readonly begun: boolean }
}

/** @throws AgentClosed for an agent that failed, with its failure as the cause, or that is closing or closed. */
export function assertOpen({ session, status, closing }: Openness): void {
  // An idle agent does not watch whether it was robbed: a command must not learn of it while it records.
  session.checkOwner()
  if (status.value === 'failed') throw new AgentClosed(session.id, { cause: session.failed.reason })
  if (closing.begun) throw new AgentClosed(session.id)
}
