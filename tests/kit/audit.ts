/**
 * What must hold of any log, told from its events alone: nothing here knows the chart. Written against the design, so
 * that a mistake in the chart and its reducer is not repeated here.
 */
import { isMoving, type SessionEvent } from '../../src/log/events.ts'
import * as calls from './audit/calls.ts'
import { type Audit, type AuditOptions, Frame } from './audit/frame.ts'
import * as inbox from './audit/inbox.ts'
import * as steps from './audit/steps.ts'
import * as turns from './audit/turns.ts'

/** Reads a whole log, from seq 0, and tells everything in it that must not be. */
export function audit(log: readonly SessionEvent[], { done = false, ...options }: AuditOptions = {}): Audit {
  const frame = new Frame(options)
  for (const event of log) read(frame, event)
  if (done) conclude(frame)
  return frame
}

function read(frame: Frame, event: SessionEvent): void {
  frame.seq = event.seq
  frame.must(event.seq === (frame.last?.seq ?? -1) + 1, 'seq is contiguous')
  frame.must(event.time >= frame.time, 'time never goes back')
  frame.time = event.time
  if (isMoving(event)) {
    const allowed = frame.next === undefined || event.type === frame.next.type || event.type === 'session/end-seed'
    frame.must(allowed, frame.next?.why ?? '')
    frame.next = undefined
  }
  if (event.type !== 'user/message') steps.endEntering(frame)
  apply(frame, event)
  frame.last = event
  if (isMoving(event)) frame.lastMoving = event
}

function apply(frame: Frame, event: SessionEvent): void {
  switch (event.type) {
    case 'agent/inbox/spliced':
      inbox.spliced(frame, event.data)
      break
    case 'turn/start':
      turns.turnStarted(frame, event)
      break
    case 'turn/cancel':
      turns.turnCancelled(frame, event.data)
      break
    case 'turn/end':
      turns.turnEnded(frame, event.data)
      break
    case 'step/start':
      steps.stepStarted(frame, event.data)
      break
    case 'step/end':
      steps.stepEnded(frame, event.data)
      break
    case 'user/message':
      // What takes the place of a part of the conversation entered no step.
      if (typeof event.surfaceOp !== 'object') steps.entered(frame, event.data.id)
      break
    case 'assistant/chunk':
      steps.chunk(frame, event.data)
      break
    case 'assistant/message':
      steps.answered(frame, event.data)
      break
    case 'llm/retry':
      steps.retryPlanned(frame, event)
      break
    case 'llm/retry-started':
      steps.retryStarted(frame, event)
      break
    case 'tool/call':
      calls.called(frame, event.data)
      break
    case 'tool/approval-requested':
      calls.questioned(frame, event.data)
      break
    case 'tool/approval-resolved':
      calls.resolved(frame, event.data)
      break
    case 'tool/dispatch':
      calls.dispatched(frame, event.data)
      break
    case 'tool/result':
      calls.resulted(frame, event.data)
      break
    case 'session/resumed':
      turns.resumed(frame, event.data)
      break
    case 'session/suspended':
      frame.must(frame.open, 'only an open turn is suspended')
      break
    case 'session/end-seed':
      turns.seedEnded(frame)
      break
  }
}

/** The run is over: nothing may be left open, claimed or owed. */
function conclude(frame: Frame): void {
  frame.must(!frame.open && !frame.inStep, 'no turn is left open')
  frame.must(frame.next === undefined, 'nothing is owed at the end')
  frame.must(![...frame.fates.values()].includes('claimed'), 'no message stays claimed for ever')
}
