/** What must come next: some events are only half of a batch, and a log that holds them without the rest is broken. */
import type { EventMap, SessionEvent } from '../events.ts'
import { isMoving } from '../events.ts'
import type { Rule } from './rules.ts'
import type { Frame, TopicOf } from './topic.ts'
import { messageWaits } from './topic.ts'

interface Due {
  readonly rule: Rule
  readonly after: string
  readonly type: string
  readonly callId?: string
}

export const consequences: TopicOf = (frame, report) => {
  let due: Due | undefined
  // A waking splice under a cancel: its turn comes after the one being cancelled.
  let latch = false

  const settle = (event: SessionEvent) => {
    if (!due || !isMoving(event)) return
    // A fork may cut a batch in two; what was due is the parent's.
    const met = event.type === due.type && (due.callId === undefined || due.callId === callIdOf(event))
    if (!met && event.type !== 'session/end-seed') {
      report(due.rule, `${due.type} must come after ${due.after}, not ${event.type}`)
    }
    due = undefined
  }

  return {
    check(event) {
      settle(event)
      switch (event.type) {
        case 'agent/inbox/spliced':
          if (event.data.wake && !frame.turnOpen) {
            due = { rule: 'WAKE-STARTS-TURN', after: 'a waking splice at rest', type: 'turn/start' }
          }
          latch = (latch || (event.data.wake === true && frame.cancel !== null)) && stillWaits(frame, event.data)
          return
        case 'turn/start':
        case 'session/end-seed':
          latch = false
          return
        case 'turn/end':
          if (startsNext(frame, event.data.reason.kind, latch)) {
            due = { rule: 'OWED-STARTS-TURN', after: `the end of turn ${frame.turn}`, type: 'turn/start' }
          }
          return
        case 'tool/approval-resolved':
          due = afterApproval(event.data)
          return
        default:
      }
    },
  }
}

const callIdOf = (event: SessionEvent): string | undefined => {
  if (event.type === 'tool/dispatch') return event.data.callId
  return event.type === 'tool/result' ? event.data.message.source.callId : undefined
}

const afterApproval = ({ decision, callId }: EventMap['tool/approval-resolved']): Due => ({
  rule: 'APPROVAL-CONSEQUENCE',
  after: `the call ${callId} was ${decision}`,
  type: decision === 'approved' ? 'tool/dispatch' : 'tool/result',
  callId,
})

/** A message will wait once the splice is done. */
function stillWaits(frame: Frame, data: EventMap['agent/inbox/spliced']): boolean {
  const queue = frame.inbox[data.queue].toSpliced(data.start, data.deleteCount, ...data.inserted)
  return messageWaits({ ...frame.inbox, [data.queue]: queue })
}

/** Ends that are nobody's wish to stop go on to what waits; an interrupted turn starts nothing. */
function startsNext(frame: Frame, kind: string, latch: boolean): boolean {
  if (frame.interrupted || !messageWaits(frame.inbox)) return false
  return latch || ((kind === 'completed' || kind === 'max-tokens') && frame.step > 0)
}
