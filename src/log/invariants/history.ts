/** The conversation: replacements that can be, and a history every provider accepts. */
import { InvalidEvent } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { unpaired } from '../projections/pairing.ts'
import type { Frame, Report, TopicOf } from './topic.ts'

export const history: TopicOf = (frame, report) => {
  let replaced = false
  const checkPairing = () => {
    const wrong = unpaired(frame.surface.messages())
    if (wrong !== undefined) report('HISTORY-PAIRING', wrong)
  }
  return {
    check(event) {
      // Only a replacement can break what the rules of calls hold together, so the walk is made after one, and at the end.
      if (replaced) checkPairing()
      replaced = typeof event.surfaceOp === 'object' && !frame.stepOpen
      if (typeof event.surfaceOp !== 'object') return
      if (frame.stepOpen) report('REPLACE-IN-STEP', `step ${frame.turn}/${frame.step} is open`)
      checkReplace(frame, event, report)
    },
    end() {
      if (!frame.stepOpen) checkPairing()
    },
  }
}

function checkReplace(frame: Frame, event: SessionEvent, report: Report): void {
  try {
    frame.surface.check(event)
  } catch (error) {
    if (!(error instanceof InvalidEvent)) throw error
    report('SURFACE-REPLACE', error.message)
  }
}
