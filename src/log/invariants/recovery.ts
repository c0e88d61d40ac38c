/** Recovery: what `session/resumed` counts. Progress begins the count anew; what a crash cut short adds one to it. */
import type { EventMap, SessionEvent } from '../events.ts'
import type { Frame, TopicOf } from './topic.ts'

type Status = 'planned' | 'called' | 'awaiting' | 'dispatched' | 'answered'

export const recovery: TopicOf = (frame, report) => {
  let resumes = 0
  let suspended = false
  let waits = false
  /** A call of the open step was answered by the log itself, which is no progress. */
  let synthetic = false
  /** The calls of the open step; empty while no answer asks for any. */
  const calls = new Map<string, Status>()

  const inFlight = (): boolean => {
    if (suspended || !frame.turnOpen) return false
    if (calls.size === 0) return !waits
    return [...calls.values()].some((status) => status === 'called' || status === 'dispatched')
  }
  const checkResumed = (data: EventMap['session/resumed']) => {
    const expected = resumes + (inFlight() ? 1 : 0)
    if (data.resumes !== expected) report('RESUME-COUNT', `it says ${data.resumes}, the log gives ${expected}`)
    if (data.cause !== undefined && data.recovery !== 'interrupt') report('RESUME-COUNT', `${data.cause} interrupts`)
    resumes = data.resumes
    suspended = false
  }
  const settle = (event: SessionEvent & { type: 'tool/result' }) => {
    calls.set(event.data.message.source.callId, 'answered')
    if (SYNTHETIC.has(event.data.error?.code)) synthetic = true
    else resumes = 0
  }
  const endStep = (data: EventMap['step/end']) => {
    if (data.outcome.kind !== 'interrupted' && !synthetic) resumes = 0
    calls.clear()
    waits = false
  }

  return {
    check(event) {
      switch (event.type) {
        case 'turn/start':
          resumes = 0
          return
        case 'step/start':
          calls.clear()
          waits = synthetic = false
          return
        case 'assistant/message':
          for (const { callId } of event.data.calls) calls.set(callId, 'planned')
          return
        case 'llm/retry':
        case 'llm/retry-started':
          waits = event.type === 'llm/retry'
          return
        case 'tool/result':
          if (event.surfaceOp === 'append') settle(event)
          return
        case 'step/end':
          return endStep(event.data)
        case 'session/suspended':
          suspended = true
          return
        case 'session/end-seed':
          suspended = false
          resumes = 0
          return
        case 'session/resumed':
          return checkResumed(event.data)
        default:
          noteCall(frame, calls, event)
      }
    },
  }
}

const SYNTHETIC: ReadonlySet<string | undefined> = new Set([
  'TOOL_OUTCOME_UNKNOWN',
  'TOOL_NOT_STARTED',
  'ABORTED_BEFORE_DISPATCH',
])

function noteCall({ turn }: Frame, calls: Map<string, Status>, event: SessionEvent): void {
  switch (event.type) {
    case 'tool/approval-resolved':
      // Approved, it is dispatched next; denied or expired, it has its result. Else a fork cut that off.
      if (event.data.decision === 'approved') calls.set(event.data.callId, 'called')
      return
    case 'tool/call':
    case 'tool/approval-requested':
    case 'tool/dispatch':
      if (event.data.turn === turn) calls.set(event.data.callId, STATUS[event.type])
      return
    default:
  }
}

const STATUS = {
  'tool/call': 'called',
  'tool/approval-requested': 'awaiting',
  'tool/dispatch': 'dispatched',
} as const satisfies Readonly<Record<string, Status>>
