/** What holds of turns: how they start, are cancelled and end, and what a crash or a fork does to them. */
import type { EventMap, KnownEvent } from '../../../src/log/events.ts'
import { type Frame, QUEUES } from './frame.ts'

// Turns

export function turnStarted(frame: Frame, { seq, data }: KnownEvent<'turn/start'>): void {
  frame.must(!frame.open && data.turn === frame.turn + 1, 'turns follow each other')
  frame.must(frame.waiting, 'a turn has something to begin with')
  const before = frame.lastMoving
  const woken = before?.type === 'agent/inbox/spliced' && before.data.wake === true
  const commanded = frame.firstOfBatch?.has(seq) ?? true
  frame.must(woken || frame.drain || frame.latch || commanded, 'what is parked starts nothing by itself')
  frame.turn = data.turn
  frame.limits = data.limits
  frame.step = frame.claimedOfTurn = frame.resumes = 0
  frame.open = true
  frame.maxTokens = frame.drain = frame.latch = false
  frame.cancel = frame.interrupted = frame.outcome = undefined
}

export function turnCancelled(frame: Frame, data: EventMap['turn/cancel']): void {
  frame.must(frame.open && data.turn === frame.turn, 'an open turn is cancelled')
  frame.must(frame.cancel === undefined, 'a turn is cancelled once')
  frame.cancel = data
  frame.clearing = !data.keepInbox
  frame.expectClear()
}

export function turnEnded(frame: Frame, { turn, reason }: EventMap['turn/end']): void {
  frame.must(frame.open && !frame.inStep && turn === frame.turn, 'an open turn ends, its steps before it')
  frame.endings.set(reason.kind, (frame.endings.get(reason.kind) ?? 0) + 1)
  reasonFits(frame, reason)
  const owed = frame.queues['next-step'].some((item) => item.kind === 'tool-result')
  frame.must(!owed, 'owed results do not outlive their turn')
  dropClaimed(frame, reason.kind === 'interrupted' || frame.cancel?.keepInbox === true)
  frame.open = false
  const drains = reason.kind === 'completed' || reason.kind === 'max-tokens'
  frame.drain = drains && frame.step > 0 && frame.waiting
  frame.cancel = frame.interrupted = undefined
  if (frame.drain || frame.latch) frame.expect('turn/start', 'idle starts what is owed')
}

/** Causes of a cancel, and reasons of an end, that are one and the same. */
const BOUNDS: readonly string[] = ['limit', 'repeated-call']

function reasonFits(frame: Frame, reason: EventMap['turn/end']['reason']): void {
  const { kind } = reason
  const cause = frame.cancel?.cause.kind
  const cancelled = kind === 'aborted' || BOUNDS.includes(kind)
  frame.must(cancelled === (cause !== undefined), 'a cancelled turn ends by its cancel, and no other does')
  const bound = cause !== undefined && BOUNDS.includes(cause)
  frame.must(!cancelled || kind === (bound ? cause : 'aborted'), 'the reason is the cause')
  const toolsAnswered = frame.outcome?.kind === 'tool-calls'
  const spent = frame.step >= frame.limits.maxSteps
  const steered = frame.queues['next-step'].length > 0
  if (kind === 'max-steps') frame.must((toolsAnswered || steered) && spent, 'max-steps: something wanted another step')
  if (kind === 'completed' || kind === 'max-tokens') {
    const skipped = frame.lastMoving?.type === 'agent/inbox/spliced'
    frame.must(!toolsAnswered || skipped, 'a turn whose model is owed results goes on')
    const decided = frame.hooks && kind === 'completed'
    frame.must(decided || (kind === 'max-tokens') === frame.maxTokens, 'a step cut by the token limit sets the reason')
  }
  if (kind === 'interrupted') {
    frame.must(frame.interrupted !== undefined, 'only recovery interrupts')
    frame.must('cause' in reason === (frame.interrupted?.cause !== undefined), 'the cause of an interruption is kept')
  } else frame.must(frame.interrupted === undefined || cancelled, 'an interrupted turn ends so')
}

/** Claimed messages that did not enter are gone, unless they had to be kept. */
function dropClaimed(frame: Frame, kept: boolean): void {
  for (const [id, fate] of frame.fates) {
    if (fate !== 'claimed') continue
    frame.must(!kept, 'a claimed message that is kept goes back to its queue')
    frame.fates.set(id, 'dropped')
  }
}

// Crashes and forks

export function resumed(frame: Frame, data: EventMap['session/resumed']): void {
  const counted = data.resumes - frame.resumes
  frame.must(counted === 0 || counted === 1, 'resumes count one by one, from the last progress')
  if (frame.lastMoving?.type === 'session/suspended') frame.must(counted === 0, 'a clean close is not counted')
  frame.must(data.cause === undefined || data.recovery === 'interrupt', 'the recovery limit interrupts')
  frame.resumes = data.resumes
  frame.resumedAt = frame.seq
  frame.interrupted = data.recovery === 'interrupt' ? data : undefined
  const asking = frame.inStep && frame.answer === undefined && !frame.waits
  if (asking && frame.cancel === undefined && frame.interrupted === undefined) frame.attempt++
}

export function seedEnded(frame: Frame): void {
  frame.seedAt = frame.seq
  for (const queue of QUEUES) {
    for (const item of frame.queues[queue]) if (item.kind === 'message') frame.fates.set(item.message.id, 'left')
    frame.queues[queue] = frame.queues[queue].filter((item) => item.kind === 'tool-result')
  }
  for (const call of frame.calls.values())
    if (call.status === 'approved') call.status = call.run > 0 ? 'dispatched' : 'called'
  frame.drain = frame.latch = false
  frame.resumes = 0
  frame.clearing = false
}
