/** Answers pending approvals as the command was told: all, by asking, or not at all. */
import type { Agent, PendingApproval } from '../agent.ts'
import { askApproval } from '../services/terminal/approval-prompt.ts'
import { oneLine } from '../services/terminal/text.ts'
import type { Console } from './console.ts'

export type ApprovalPolicy = 'all' | 'ask' | 'leave'

export interface Approvals {
  /** Resolves when the agent waits for approvals that nobody here answers. */
  readonly leftWaiting: Promise<'waiting'>
  /** Looks at what is pending; called as events become durable. */
  look(): void
  dispose(): void
}

/** Watches an agent's approvals until `dispose`. */
export function answerApprovals(agent: Agent, policy: ApprovalPolicy, console: Console): Approvals {
  const asked = new Map<string, AbortController>()
  let questions: Promise<void> = Promise.resolve()
  let left = policy === 'leave'
  let resolveWaiting: (outcome: 'waiting') => void = () => {}
  const leftWaiting = new Promise<'waiting'>((resolve) => {
    resolveWaiting = resolve
  })

  const answer = async (call: PendingApproval, allow: boolean, by: string): Promise<void> => {
    const about = { digest: call.argumentsDigest, run: call.run, by }
    await (allow ? agent.approve(call.callId, about) : agent.deny(call.callId, about)).catch((error: unknown) => {
      // Answered elsewhere, expired, or the agent is closing: the log has what counts, this is only news.
      console.note(oneLine(error instanceof Error ? error.message : String(error), 200))
    })
  }

  const ask = async (call: PendingApproval, signal: AbortSignal): Promise<void> => {
    if (signal.aborted || left) return
    const streams = { input: process.stdin, output: process.stderr, signal }
    const allow = await askApproval(call, console.palette.err, streams).catch(() => 'withdrawn' as const)
    if (allow === 'withdrawn') return console.note('')
    if (allow !== undefined) return answer(call, allow, 'terminal')
    left = true
    look()
  }

  function look(): void {
    const pending = agent.approvals()
    const keys = new Set(pending.map(keyOf))
    for (const [key, question] of asked) if (!keys.has(key)) question.abort()
    if (left) {
      if (pending.length > 0 && agent.status === 'waiting') resolveWaiting('waiting')
      return
    }
    for (const call of pending.filter((one) => !asked.has(keyOf(one)))) {
      const question = new AbortController()
      asked.set(keyOf(call), question)
      if (policy === 'all') void answer(call, true, '--yes')
      else questions = questions.then(() => ask(call, question.signal))
    }
  }

  const statuses = agent.status$.subscribe(look)
  look()
  return {
    leftWaiting,
    look,
    dispose() {
      left = true
      statuses.unsubscribe()
      for (const question of asked.values()) question.abort()
    },
  }
}

const keyOf = (call: PendingApproval): string => `${call.callId} ${call.run}`
