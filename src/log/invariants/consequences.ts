/** What must come next: some events are only half of a batch, and a log that holds them without the rest is broken. */
import type { EventMap, KnownEvent, Queue, SessionEvent } from '../events.ts'
import { isMoving } from '../events.ts'
import type { InboxState } from '../projections/inbox.ts'
import type { Rule } from './rules.ts'
import type { Frame, TopicOf } from './topic.ts'
import { mayStop, messageWaits } from './topic.ts'

interface Due {
  readonly rule: Rule
  readonly after: string
  /** What must come, in words. */
  readonly what: string
  readonly meets: (event: SessionEvent) => boolean
}

export const consequences: TopicOf = (frame, report) => {
  let due: Due | undefined
  // A waking splice under a cancel: its turn comes after the one being cancelled.
  let latch = false
  /** A cancel that keeps nothing was recorded, and something waits still. */
  let clearing = false
  /** Nothing may happen before the session is reopened. */
  let closed = false

  const settle = (event: SessionEvent) => {
    if (!due) return
    // A fork may cut a batch in two; what was due is the parent's.
    if (event.type !== 'session/end-seed' && !due.meets(event)) {
      report(due.rule, `${due.what} must come after ${due.after}, not ${event.type}`)
    }
    due = undefined
  }
  const checkClearing = (event: SessionEvent) => {
    if (!clearing) return
    clearing = event.type === 'agent/inbox/spliced' && waitsAfter(frame, event.data)
    if (!isCancellation(event) && event.type !== 'session/end-seed')
      report('CANCEL-CLEARS', `${event.type} while something waits that the cancel drops`)
  }
  const checkClosed = (event: SessionEvent) => {
    if (!closed || event.type === 'turn/cancel' || isCancellation(event)) return
    closed = false
    if (event.type !== 'session/resumed' && event.type !== 'session/end-seed')
      report('RESUME-FIRST', `${event.type} before the session is resumed`)
  }

  return {
    rest() {
      if (due) report(due.rule, `${due.what} did not come after ${due.after}`)
      if (clearing) report('CANCEL-CLEARS', 'something waits still that the cancel drops')
    },
    check(event) {
      if (closed && OF_SERVICES.has(event.type)) report('RESUME-FIRST', `${event.type} before the session is resumed`)
      if (!isMoving(event)) return
      settle(event)
      checkClearing(event)
      checkClosed(event)
      switch (event.type) {
        case 'agent/inbox/spliced':
          due = afterSplice(frame, event.data)
          latch = (latch || (event.data.wake === true && frame.cancel !== null)) && messagesAfter(frame, event.data)
          return
        case 'turn/start':
          latch = false
          due = claimDue(
            frame.inbox['next-step'].length > 0 ? 'next-step' : 'next-turn',
            `turn/start ${event.data.turn}`,
          )
          return
        case 'turn/cancel':
          clearing = event.data.keepInbox !== true && waits(frame.inbox)
          return
        case 'session/suspended':
          closed = true
          return
        case 'session/end-seed':
          latch = false
          closed = frame.turnOpen
          return
        case 'step/end':
          due = afterStep(frame, event.data)
          return
        case 'turn/end':
          if (startsNext(frame, event.data.reason.kind, latch))
            due = dueOf('OWED-STARTS-TURN', `the end of turn ${frame.turn}`, 'turn/start')
          return
        case 'tool/call':
          if (frame.cancel) due = resultDue('CANCEL-ANSWERS', `a call under a cancel`, event.data.callId)
          return
        case 'tool/approval-resolved':
          due = afterApproval(event.data)
          return
        default:
      }
    },
  }
}

/** What moves nothing, and is recorded by what works for an open turn. */
const OF_SERVICES: ReadonlySet<string> = new Set([
  'request/header',
  'request/context',
  'assistant/chunk',
  'agent/hook-failed',
  'tool/late-result',
] satisfies SessionEvent['type'][])

type Splice = EventMap['agent/inbox/spliced']

const dueOf = (rule: Rule, after: string, type: SessionEvent['type']): Due => ({
  rule,
  after,
  what: type,
  meets: (event) => event.type === type,
})

const claimDue = (queue: Queue, after: string): Due => ({
  rule: 'TURN-CLAIMS',
  after,
  what: `a claim of ${queue}`,
  meets: (event) => isClaim(event) && event.data.queue === queue,
})

const resultDue = (rule: Rule, after: string, callId: string): Due => ({
  rule,
  after,
  what: `the result of ${callId}`,
  meets: (event) => event.type === 'tool/result' && event.data.message.source.callId === callId,
})

const isClaim = (event: SessionEvent): event is KnownEvent<'agent/inbox/spliced'> =>
  event.type === 'agent/inbox/spliced' && event.data.outcome === 'claimed'

const isCancellation = (event: SessionEvent): boolean =>
  event.type === 'agent/inbox/spliced' && event.data.outcome === 'canceled' && event.data.inserted.length === 0

/** At rest a splice that wakes starts its turn; as a turn opens both queues are claimed. */
function afterSplice(frame: Frame, data: Splice): Due | undefined {
  if (data.wake && !frame.turnOpen) return dueOf('WAKE-STARTS-TURN', 'a waking splice at rest', 'turn/start')
  const opening = data.outcome === 'claimed' && data.queue === 'next-step' && frame.step === 0
  return opening && frame.inbox['next-turn'].length > 0 ? claimDue('next-turn', 'the claim of next-step') : undefined
}

function afterApproval({ decision, callId }: EventMap['tool/approval-resolved']): Due {
  const after = `the call ${callId} was ${decision}`
  if (decision !== 'approved') return resultDue('APPROVAL-CONSEQUENCE', after, callId)
  const meets = (event: SessionEvent) => event.type === 'tool/dispatch' && event.data.callId === callId
  return { rule: 'APPROVAL-CONSEQUENCE', after, what: 'tool/dispatch', meets }
}

/** What waits for the next step is claimed at once, if there may be one; else the turn ends. */
function afterStep(frame: Frame, { outcome, step }: EventMap['step/end']): Due | undefined {
  if (mayStop(frame, outcome.kind)) return undefined
  const goesOn = GOES_ON.has(outcome.kind) && frame.inbox['next-step'].length > 0 && step < frame.limits.maxSteps
  const meets = (event: SessionEvent) => (goesOn ? isClaim(event) : event.type === 'turn/end' || isCancellation(event))
  const what = goesOn ? 'a claim of next-step' : 'the end of the turn'
  return { rule: 'STEP-CONSEQUENCE', after: `step ${frame.turn}/${step} ended ${outcome.kind}`, what, meets }
}

const GOES_ON: ReadonlySet<string> = new Set(['completed', 'tool-calls', 'concluded', 'max-tokens'])

const waits = (state: InboxState): boolean => state['next-turn'].length > 0 || state['next-step'].length > 0

const spliced = (frame: Frame, { queue, start, deleteCount, inserted }: Splice): InboxState => ({
  ...frame.inbox,
  [queue]: frame.inbox[queue].toSpliced(start, deleteCount, ...inserted),
})

/** Something will wait, or a message will, once the splice is done. */
const waitsAfter = (frame: Frame, data: Splice): boolean => waits(spliced(frame, data))
const messagesAfter = (frame: Frame, data: Splice): boolean => messageWaits(spliced(frame, data))

/** Ends that are nobody's wish to stop go on to what waits; an interrupted turn starts nothing. */
function startsNext(frame: Frame, kind: string, latch: boolean): boolean {
  if (frame.interrupted || !messageWaits(frame.inbox)) return false
  return latch || ((kind === 'completed' || kind === 'max-tokens') && frame.step > 0)
}
