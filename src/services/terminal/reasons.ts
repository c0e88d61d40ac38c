/** How a turn ended, in words and as an exit code. */
import type { CancelCause, Limit, TurnEndReason } from '../../log/events.ts'
import { oneLine } from './text.ts'

/** The reason in a line: `completed`, `error RATE_LIMIT: slow down`, `limit: 12000 of 10000 tokens (turn)`. */
export function reasonLine(reason: TurnEndReason): string {
  switch (reason.kind) {
    case 'blocked':
      return reason.reason === undefined ? 'blocked' : `blocked: ${oneLine(reason.reason, 200)}`
    case 'error':
      return `error ${reason.error.code}: ${oneLine(reason.error.message, 300)}`
    case 'aborted':
      return `cancelled by ${causeLine(reason.cause)}`
    case 'max-steps':
      return `max-steps: ${reason.maxSteps} were taken`
    case 'limit':
      return `limit: ${limitLine(reason.limit)}`
    case 'repeated-call':
      return `repeated-call: ${reason.name} was asked for ${reason.count} times alike`
    case 'interrupted':
      return reason.cause === 'recovery-limit' ? 'interrupted: it crashed too often to be carried on' : 'interrupted'
    case 'stopped-by-policy':
      return `stopped-by-policy ${reason.policy}${reason.reason === undefined ? '' : `: ${oneLine(reason.reason, 200)}`}`
    default:
      return reason.kind
  }
}

function causeLine(cause: CancelCause): string {
  switch (cause.kind) {
    case 'user':
      return 'the user'
    case 'hook':
      return `a hook: ${oneLine(cause.reason, 200)}`
    case 'limit':
      return `a limit: ${limitLine(cause.limit)}`
    case 'repeated-call':
      return `a repeated call: ${cause.name}, ${cause.count} times`
    case 'parent':
      return 'its parent'
    case 'disposed':
      return 'the closing agent'
  }
}

function limitLine({ name, scope, max, spent }: Limit): string {
  const unit = name === 'time' ? ' ms' : name === 'tokens' ? ' tokens' : ' cost'
  return `${spent} of ${max}${unit} (${scope})`
}

/** 0 completed, 2 error or interrupted, 3 blocked, 4 stopped by a bound or a policy, 130 cancelled. */
export function exitCodeOf(reason: TurnEndReason): number {
  switch (reason.kind) {
    case 'completed':
      return 0
    case 'error':
    case 'interrupted':
      return 2
    case 'blocked':
      return 3
    case 'aborted':
      return 130
    default:
      return 4
  }
}
