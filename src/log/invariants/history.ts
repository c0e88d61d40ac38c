/** The conversation: replacements that can be, and a history every provider accepts. */
import { InvalidEvent } from '../errors.ts'
import type { SessionEvent } from '../events.ts'
import type { Message } from '../messages.ts'
import { callIds } from '../projections/surface.ts'
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

/** What is wrong with a history: a call without its result right after it, or a result on its own. */
function unpaired(messages: readonly Message[]): string | undefined {
  let awaited: readonly string[] = []
  for (const message of messages) {
    const result = message.source.kind === 'tool' ? message.source.callId : undefined
    if (result !== awaited[0]) {
      return awaited[0] === undefined
        ? `the result of ${result} follows no call`
        : `the call ${awaited[0]} is not followed by its result`
    }
    if (result !== undefined) awaited = awaited.slice(1)
    else if (message.role === 'assistant') awaited = callIds(message)
  }
  return awaited[0] === undefined ? undefined : `the call ${awaited[0]} has no result`
}
