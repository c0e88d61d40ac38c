/** The conversation: replacements that can be, and a history every provider accepts, at each request and at rest. */
import type { AttemptPlace } from '../attempts.ts'
import { InvalidEvent } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import { createPairing } from '../projections/pairing.ts'
import type { Frame, Report, TopicOf } from './topic.ts'

export const history: TopicOf = (frame, report) => {
  const requests = createPairing()
  const rests = createPairing()
  let asking: AttemptPlace | undefined
  let replaced = false
  const checkRest = () => {
    const wrong = rests.unpaired(frame.surface.messages())
    if (wrong !== undefined) report('HISTORY-PAIRING', wrong)
  }
  /** Before an attempt's first chunk: what the model was shown. */
  const checkRequest = ({ turn, step, attempt }: AttemptPlace) => {
    if (asking?.attempt === attempt && asking.step === step && asking.turn === turn) return
    asking = { turn, step, attempt }
    const shown = frame.attempts.current()?.messages
    const wrong = shown && requests.unpaired(shown)
    if (wrong !== undefined) report('HISTORY-PAIRING', wrong)
  }
  return {
    check(event) {
      if (replaced) checkRest()
      replaced = typeof event.surfaceOp === 'object' && !frame.stepOpen
      if (event.type === 'assistant/chunk') checkRequest(event.data)
      if (typeof event.surfaceOp !== 'object') return
      if (frame.stepOpen) report('REPLACE-IN-STEP', `step ${frame.turn}/${frame.step} is open`)
      checkReplace(frame, event, report)
    },
    end() {
      if (!frame.stepOpen) checkRest()
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
