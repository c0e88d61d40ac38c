/** How steps and turns end: the outcome is what the step came to, and the reason follows from outcomes, cancel and recovery. */
import { type EventMap, isBound } from '../events.ts'
import { equalJson, type Json } from '../json.ts'
import type { Frame, Report, TopicOf } from './topic.ts'

type Reason = EventMap['turn/end']['reason']
type Outcome = EventMap['step/end']['outcome']

/** What the open step has come to so far. */
interface Came {
  readonly answer: EventMap['assistant/message'] | undefined
  readonly concludes: boolean
}

const NOTHING: Came = { answer: undefined, concludes: false }

export const endings: TopicOf = (frame, report) => {
  let came = NOTHING
  return {
    check(event) {
      switch (event.type) {
        case 'step/start':
          came = NOTHING
          return
        case 'assistant/message':
          came = { ...came, answer: event.data }
          return
        case 'tool/result':
          if (event.surfaceOp === 'append' && event.data.concludesTurn) came = { ...came, concludes: true }
          return
        case 'step/end':
          return checkOutcome(frame, report, event.data.outcome, came)
        case 'turn/end':
          return checkReason(frame, report, event.data.reason)
        default:
      }
    },
  }
}

function checkOutcome(frame: Frame, report: Report, { kind }: Outcome, came: Came): void {
  const expected = expectedOutcome(frame, came)
  if (kind !== expected) report('STEP-OUTCOME', `step ${frame.turn}/${frame.step} ends ${kind}, not ${expected}`)
}

function expectedOutcome(frame: Frame, { answer, concludes }: Came): Outcome['kind'] {
  if (frame.cancel) return 'aborted'
  if (frame.interrupted) return 'interrupted'
  if (answer === undefined) return 'error'
  if (answer.calls.length > 0) return concludes ? 'concluded' : 'tool-calls'
  return answer.finish.kind === 'max-tokens' ? 'max-tokens' : 'completed'
}

function checkReason(frame: Frame, report: Report, reason: Reason): void {
  if (frame.cancel) checkCancelled(frame, report, reason)
  else checkUncancelled(frame, report, reason)
}

function checkUncancelled(frame: Frame, report: Report, reason: Reason): void {
  const { kind } = reason
  if (kind === 'aborted' || kind === 'limit' || kind === 'repeated-call') {
    report('CANCEL-REASON', `turn ${frame.turn} ends ${kind}, not cancelled`)
  }
  if (frame.interrupted !== (kind === 'interrupted')) {
    report('INTERRUPT-REASON', `turn ${frame.turn} ends ${kind}, ${frame.interrupted ? '' : 'not '}to be interrupted`)
  }
  if (kind === 'interrupted') {
    if (reason.cause !== frame.recoveryCause) report('INTERRUPT-REASON', 'it has another cause than its recovery')
    return
  }
  checkOwed(frame, report, reason)
  checkOwn(frame, report, reason)
}

/** A cancelled turn ends by its cancel, word for word. */
function checkCancelled({ turn, cancel }: Frame, report: Report, reason: Reason): void {
  if (!cancel) return
  const expected: Reason = isBound(cancel) ? cancel : { kind: 'aborted', cause: cancel }
  if (!same(reason, expected)) report('CANCEL-REASON', `turn ${turn} ends ${reason.kind}, cancelled by ${cancel.kind}`)
}

function checkOwed(frame: Frame, report: Report, reason: Reason): void {
  const { kind } = reason
  const owed = frame.lastOutcome?.kind === 'tool-calls'
  if (owed && (kind === 'completed' || kind === 'max-tokens')) {
    report('RESULTS-OWED', `turn ${frame.turn} ends ${kind} though the model has not seen the last results`)
  }
  if (kind !== 'max-steps') return
  const wanted = owed || frame.inbox['next-step'].length > 0
  if (!(wanted && frame.step >= frame.limits.maxSteps)) {
    report('MAX-STEPS', `turn ${frame.turn} ends max-steps after step ${frame.step} with nothing to go on for`)
  }
  if (reason.maxSteps !== frame.limits.maxSteps)
    report('MAX-STEPS', `it says ${reason.maxSteps} steps, the turn has ${frame.limits.maxSteps}`)
}

/** A turn that nothing cut short: its reason is one that the place it ends in can give. */
function checkOwn(frame: Frame, report: Report, reason: Reason): void {
  const { kind } = reason
  const failed = frame.prepares || frame.lastOutcome?.kind !== 'error' ? undefined : frame.lastOutcome.error
  const fits = failed ? kind === 'error' && same(reason.error, failed) : mayEnd(frame, kind)
  if (!fits) report('TURN-REASON', `turn ${frame.turn} ends ${kind} ${whereItEnds(frame)}`)
}

function mayEnd(frame: Frame, kind: Reason['kind']): boolean {
  switch (kind) {
    case 'blocked':
      return frame.prepares
    case 'error':
      return frame.prepares || frame.stopping
    case 'stopped-by-policy':
      return frame.stopping
    case 'completed':
      // Where it stops a hook may say so in spite of the token limit.
      return frame.stopping || !frame.cut
    case 'max-tokens':
      return frame.cut
    default:
      return true
  }
}

const whereItEnds = ({ prepares, lastOutcome }: Frame): string => {
  if (prepares) return 'before a step'
  return lastOutcome ? `after a step that ended ${lastOutcome.kind}` : 'without a step'
}

/** Parts of events are JSON; their types are interfaces, which TypeScript will not take for it. */
const same = (a: unknown, b: unknown): boolean => equalJson(a as Json, b as Json)
