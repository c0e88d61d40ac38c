/** Turns and steps: how they nest, count and end, and what a cancel or an interruption means for it. */
import type { EventMap, SessionEvent } from '../events.ts'
import type { Frame, Report, TopicOf } from './topic.ts'
import { messageWaits } from './topic.ts'

export const lifecycle: TopicOf = (frame, report) => ({
  check(event) {
    checkAfterCancel(frame, report, event)
    switch (event.type) {
      case 'turn/start':
        return checkTurnStart(frame, report, event.data)
      case 'turn/cancel':
        checkOpenTurn(frame, report, event)
        if (frame.cancel) report('CANCEL-ONCE', `turn ${frame.turn} is cancelled already`)
        return
      case 'turn/end':
        checkOpenTurn(frame, report, event)
        if (frame.stepOpen) report('TURN-NESTING', `turn ${frame.turn} ends with step ${frame.step} open`)
        return
      case 'session/suspended':
        if (!frame.turnOpen) report('TURN-NESTING', 'suspended with no turn open')
        return
      case 'step/start':
        return checkStepStart(frame, report, event.data)
      case 'step/end':
        if (!inOpenStep(frame, event.data)) report('STEP-NESTING', `step/end ${nameOf(event.data)}, ${standing(frame)}`)
        return
      case 'request/header':
      case 'request/context':
        if (!frame.turnOpen) report('STEP-SCOPE', `${event.type} with no turn open`)
        return
      case 'agent/hook-failed':
        return checkHook(frame, report, event.data)
      default:
        checkScope(frame, report, event)
    }
  },
})

/** A hook may be heard of when its turn is long over; before a step it already names the one to come. */
function checkHook(frame: Frame, report: Report, { turn, step }: EventMap['agent/hook-failed']): void {
  const known = turn < frame.turn || (turn === frame.turn && (step ?? 0) <= frame.step + 1)
  if (!known) report('STEP-SCOPE', `a hook of ${turn}/${step ?? 0} failed, ${standing(frame)}`)
}

function checkTurnStart(frame: Frame, report: Report, data: EventMap['turn/start']): void {
  if (frame.turnOpen) report('TURN-NESTING', `turn ${data.turn} starts while turn ${frame.turn} is open`)
  if (data.turn !== frame.turn + 1) report('TURN-NUMBERING', `turn ${data.turn} follows turn ${frame.turn}`)
  if (!messageWaits(frame.inbox)) report('TURN-WITHOUT-INPUT', `turn ${data.turn} starts with no message waiting`)
}

function checkOpenTurn(frame: Frame, report: Report, event: { type: string; data: { turn: number } }): void {
  if (frame.turnOpen && event.data.turn === frame.turn) return
  report('TURN-NESTING', `${event.type} of turn ${event.data.turn}, ${standing(frame)}`)
}

function checkStepStart(frame: Frame, report: Report, data: EventMap['step/start']): void {
  if (!frame.turnOpen || frame.stepOpen || data.turn !== frame.turn) {
    report('STEP-NESTING', `step/start ${nameOf(data)}, ${standing(frame)}`)
  }
  if (data.step !== frame.step + 1) report('STEP-NUMBERING', `step ${data.step} follows step ${frame.step}`)
  if (data.step > frame.limits.maxSteps) report('MAX-STEPS', `step ${data.step} of ${frame.limits.maxSteps}`)
}

/** What starts something: none of it may follow `turn/cancel`, or a recovery that interrupts. */
const STARTING: ReadonlySet<string> = new Set([
  'step/start',
  'llm/retry',
  'llm/retry-started',
  'tool/approval-requested',
  'tool/dispatch',
])

function checkAfterCancel(frame: Frame, report: Report, event: SessionEvent): void {
  if (!(frame.cancel || frame.interrupted) || !STARTING.has(event.type)) return
  report(
    'AFTER-CANCEL',
    `${event.type} though turn ${frame.turn} is ${frame.cancel ? 'cancelled' : 'to be interrupted'}`,
  )
}

function checkScope(frame: Frame, report: Report, event: SessionEvent): void {
  switch (event.type) {
    case 'tool/result':
      // A replacement rewrites what was said long ago, wherever the log is.
      if (event.surfaceOp !== 'append') return
      break
    case 'assistant/chunk':
    case 'assistant/message':
    case 'llm/retry':
    case 'llm/retry-started':
    case 'tool/call':
    case 'tool/approval-requested':
    case 'tool/approval-resolved':
    case 'tool/dispatch':
      break
    default:
      return
  }
  if (!inOpenStep(frame, event.data)) report('STEP-SCOPE', `${event.type} of ${nameOf(event.data)}, ${standing(frame)}`)
}

type InStep = { readonly turn: number; readonly step: number }

const inOpenStep = (frame: Frame, at: InStep): boolean =>
  frame.stepOpen && at.turn === frame.turn && at.step === frame.step

const nameOf = (at: InStep): string => `${at.turn}/${at.step}`

const standing = (frame: Frame): string => {
  if (frame.stepOpen) return `while step ${nameOf(frame)} is open`
  return frame.turnOpen ? `while turn ${frame.turn} is open, with no step` : 'with no turn open'
}
