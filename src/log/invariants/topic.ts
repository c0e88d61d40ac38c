/** What the topics of the invariants share: one interface, and the frame each event is judged in. */
import type { AttemptTracker } from '../attempts.ts'
import { type CancelCause, isBound, type SessionEvent, type StepOutcome, type TurnLimits } from '../events.ts'
import { type InboxState, inbox } from '../projections/inbox.ts'
import type { Surface } from '../projections/surface.ts'
import type { Rule } from './rules.ts'

/** Notes a breach by the event being checked. */
export type Report = (rule: Rule, message: string) => void

/** One topic of rules. Its memory is what is open, and ids. */
export interface Topic {
  /** Judges the next event in the frame that the events before it made. */
  check(event: SessionEvent): void
  /** No batch is under way: what had to come next would have. */
  rest?(): void
  /** The log is over. */
  end?(): void
}

export type TopicOf = (frame: Frame, report: Report) => Topic

/** Where the log stands before the event being checked. Topics read it; only `advance` changes it. */
export interface Frame {
  readonly turn: number
  readonly turnOpen: boolean
  readonly step: number
  readonly stepOpen: boolean
  readonly limits: TurnLimits
  readonly cancel: CancelCause | null
  /** The cancel puts back what was claimed. */
  readonly keepsInbox: boolean
  /** The open turn was reopened to be interrupted. */
  readonly interrupted: boolean
  /** What that recovery says of itself. */
  readonly recoveryCause: 'recovery-limit' | undefined
  readonly lastOutcome: StepOutcome | null
  /** Something was claimed for a step that has not started. */
  readonly prepares: boolean
  /** The last step left nothing to go on for: the turn is about to end. */
  readonly stopping: boolean
  /** A step of the turn was cut by the token limit. */
  readonly cut: boolean
  /** Seqs of the last `session/resumed` and `session/end-seed`; -1 before the first. */
  readonly resumedAt: number
  readonly seededAt: number
  readonly inbox: InboxState
  readonly attempts: AttemptTracker
  readonly surface: Surface
}

export function openFrame(surface: Surface, attempts: AttemptTracker): Frame {
  return {
    turn: 0,
    turnOpen: false,
    step: 0,
    stepOpen: false,
    limits: { maxSteps: 0, maxParallelToolCalls: 0 },
    cancel: null,
    keepsInbox: false,
    interrupted: false,
    recoveryCause: undefined,
    lastOutcome: null,
    prepares: false,
    stopping: false,
    cut: false,
    resumedAt: -1,
    seededAt: -1,
    inbox: inbox.initial,
    attempts,
    surface,
  }
}

/** Moves the frame past an event, in place: the topics hold on to it. */
export function advance(frame: Frame, event: SessionEvent): void {
  const changes = changesOf(frame, event)
  if (changes) Object.assign(frame, changes)
}

const fresh = {
  cancel: null,
  keepsInbox: false,
  interrupted: false,
  recoveryCause: undefined,
  lastOutcome: null,
  prepares: false,
  stopping: false,
  cut: false,
}

function changesOf(frame: Frame, event: SessionEvent): Partial<Frame> | undefined {
  switch (event.type) {
    case 'turn/start':
      return { ...fresh, turn: event.data.turn, turnOpen: true, step: 0, stepOpen: false, limits: event.data.limits }
    case 'turn/cancel': {
      const { cause, keepInbox } = event.data
      return { cancel: cause, keepsInbox: keepInbox === true || isBound(cause) }
    }
    case 'turn/end':
      return { ...fresh, turnOpen: false, stepOpen: false }
    case 'step/start':
      return { step: event.data.step, stepOpen: true, prepares: false }
    case 'step/end': {
      const { outcome } = event.data
      const stopping = mayStop(frame, outcome.kind)
      return { stepOpen: false, lastOutcome: outcome, stopping, cut: frame.cut || outcome.kind === 'max-tokens' }
    }
    case 'session/resumed': {
      const interrupted = frame.turnOpen && event.data.recovery === 'interrupt'
      return { resumedAt: event.seq, interrupted, recoveryCause: event.data.cause }
    }
    case 'session/end-seed':
      return { seededAt: event.seq, inbox: inbox.evolve(frame.inbox, event) }
    case 'agent/inbox/spliced':
      return {
        inbox: inbox.evolve(frame.inbox, event),
        ...(event.data.outcome === 'claimed' ? { prepares: true, stopping: false } : {}),
      }
    default:
      return undefined
  }
}

/** After this step the hooks have their say; after any other the turn goes on or ends at once. */
export const mayStop = (frame: Frame, outcome: StepOutcome['kind']): boolean =>
  frame.cancel === null && STOPPING.has(outcome) && frame.inbox['next-step'].length === 0

const STOPPING: ReadonlySet<StepOutcome['kind']> = new Set(['completed', 'concluded', 'max-tokens'])

/** A message waits in one of the queues. */
export const messageWaits = (state: InboxState): boolean =>
  state['next-turn'].some((item) => item.kind === 'message') ||
  state['next-step'].some((item) => item.kind === 'message')
