/** Who may answer which question: bound to the call, its run and the digest of its arguments, and answered once. */
import type { SessionEvent } from '../log/events.ts'
import type { AgentContext } from '../machines/evolve.ts'
import { callOf } from '../machines/tool-records.ts'
import { ApprovalRefused } from '../services/errors.ts'
import type { PendingApproval } from './agent.ts'

export interface Answer {
  readonly callId: string
  readonly run: number
  readonly digest: string
}

type Decision = 'approved' | 'denied' | 'expired'

export interface Approvals {
  place(event: SessionEvent): void
  decisionOf(answer: Pick<Answer, 'callId' | 'run'>): Decision | undefined
  /** Why the answer cannot be taken; undefined if it can. */
  refusal(context: AgentContext, answer: Answer, now: number): ApprovalRefused | undefined
  /** What was decided. */
  saved(): SavedApprovals
  /** Takes it back, before any event. */
  restore(saved: SavedApprovals): void
}

/** Decisions as a checkpoint holds them, by run and call. */
export type SavedApprovals = readonly (readonly [key: string, decision: Decision])[]

export const pendingApprovals = ({ calls }: AgentContext): readonly PendingApproval[] =>
  calls.flatMap(({ callId, run, name, arguments: raw, status, approval }) =>
    status === 'awaiting' && approval !== undefined ? [{ callId, run, name, arguments: raw, ...approval }] : [],
  )

export const createApprovals = (): Approvals => new AgentApprovals()

const key = (callId: string, run: number): string => `${run} ${callId}`

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentApprovals implements Approvals {
  /** What was decided, by call and run; made with the first decision. */
  #decided: Map<string, Decision> | undefined

  saved(): SavedApprovals {
    return [...(this.#decided ?? [])]
  }

  restore(saved: SavedApprovals): void {
    this.#decided = saved.length === 0 ? undefined : new Map(saved)
  }

  place(event: SessionEvent): void {
    // A fork that begins between an approval and its dispatch asks again.
    if (event.type === 'tool/approval-requested') this.#decided?.delete(key(event.data.callId, event.data.run))
    if (event.type !== 'tool/approval-resolved') return
    this.#decided ??= new Map()
    this.#decided.set(key(event.data.callId, event.data.run), event.data.decision)
  }

  decisionOf({ callId, run }: Pick<Answer, 'callId' | 'run'>): Decision | undefined {
    return this.#decided?.get(key(callId, run))
  }

  refusal(context: AgentContext, { callId, run, digest }: Answer, now: number): ApprovalRefused | undefined {
    const refused = (message: string, code: ConstructorParameters<typeof ApprovalRefused>[2]) =>
      new ApprovalRefused(callId, message, code)
    const decision = this.decisionOf({ callId, run })
    if (decision === 'expired') return refused('its approval has expired', 'APPROVAL_EXPIRED')
    if (decision !== undefined) return refused(`it was already ${decision}`, 'APPROVAL_ALREADY_RESOLVED')
    const call = callOf(context, callId)
    if (call?.status !== 'awaiting' || call.approval === undefined || call.run !== run) {
      return refused(`nobody asked for approval of run ${run}`, 'APPROVAL_NOT_PENDING')
    }
    const { argumentsDigest, expiresAt } = call.approval
    if (argumentsDigest !== digest) {
      return refused('the digest is not that of its arguments: look at them again', 'APPROVAL_DIGEST_MISMATCH')
    }
    return expiresAt !== undefined && expiresAt <= now
      ? refused('its approval has expired', 'APPROVAL_EXPIRED')
      : undefined
  }
}
