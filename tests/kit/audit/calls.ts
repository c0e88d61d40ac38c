/** What holds of tool calls: each scheduled, allowed, run and answered in its time, and run again only if it may be. */
import type { EventMap } from '../../../src/log/events.ts'
import { type AuditedCall, type Frame, SYNTHETIC } from './frame.ts'

export function called(frame: Frame, data: EventMap['tool/call']): void {
  const call = frame.callAt(data)
  if (call === undefined) return
  frame.must(
    call.status === 'planned' && frame.unscheduled.shift() === data.callId,
    'calls are scheduled in the model’s order',
  )
  call.status = 'called'
  if (frame.cancel !== undefined) {
    frame.expect('tool/result', 'a call scheduled during a cancel is answered at once')
    return
  }
  const busy = [...frame.calls.values()].filter(({ status }) => status !== 'planned' && status !== 'answered')
  frame.must(busy.length <= frame.limits.maxParallelToolCalls, 'no more calls at once than allowed')
  frame.must(busy.length === 1 || busy.every(({ mode }) => mode === 'parallel'), 'an exclusive call runs alone')
}

export function questioned(frame: Frame, data: EventMap['tool/approval-requested']): void {
  const call = frame.callAt(data)
  if (call === undefined) return
  frame.must(frame.cancel === undefined, 'a cancelled turn asks nobody')
  frame.must(data.run === call.run, 'a question names the run it is about')
  const rerun = call.status === 'dispatched' && call.onCrash === 'ask' && frame.wasCutShort(call)
  frame.must(data.purpose === 'run' ? call.status === 'called' && call.run === 0 : rerun, 'a question has its time')
  call.status = 'awaiting'
  call.rerunApproved = data.purpose === 'rerun'
}

export function resolved(frame: Frame, data: EventMap['tool/approval-resolved']): void {
  const call = frame.callAt(data)
  if (call === undefined) return
  frame.must(call.status === 'awaiting' && data.run === call.run, 'an open question is answered')
  const approved = data.decision === 'approved'
  if (approved) call.status = 'approved'
  frame.expect(approved ? 'tool/dispatch' : 'tool/result', 'an answered question is acted on at once')
}

export function dispatched(frame: Frame, data: EventMap['tool/dispatch']): void {
  const call = frame.callAt(data)
  if (call === undefined) return
  frame.must(frame.cancel === undefined && frame.interrupted === undefined, 'a turn being ended dispatches nothing')
  frame.must(data.run === call.run + 1, 'runs are counted')
  frame.must(call.run === 0 ? mayRun(call) : mayRunAgain(frame, call), 'a call runs when the log allows it')
  call.status = 'dispatched'
  call.run = data.run
  call.onCrash = data.onCrash
  call.dispatchedAt = frame.seq
  call.rerunApproved = false
}

const mayRun = ({ status }: AuditedCall): boolean => status === 'called' || status === 'approved'

function mayRunAgain(frame: Frame, call: AuditedCall): boolean {
  if (!frame.wasCutShort(call)) return false
  if (call.onCrash === 'ask') return call.status === 'approved' && call.rerunApproved
  return call.status === 'dispatched' && (call.onCrash === 'rerun' || call.onCrash === 'probe')
}

export function resulted(frame: Frame, { message, error, concludesTurn, ...at }: EventMap['tool/result']): void {
  const { callId } = message.source
  const call = frame.callAt({ ...at, callId })
  if (call === undefined) return
  const code = error?.code ?? ''
  frame.must(call.status !== 'answered', 'a call has one result')
  frame.must(call.status !== 'planned' || code === 'TOOL_NOT_STARTED', 'a result follows its call')
  if (call.status === 'planned') frame.unscheduled = frame.unscheduled.filter((other) => other !== callId)
  codeFits(frame, call, callId, code)
  call.status = 'answered'
  call.concludes = concludesTurn === true
  call.synthetic = SYNTHETIC.includes(code)
  if (!call.synthetic) frame.resumes = 0
}

function codeFits(frame: Frame, call: AuditedCall, callId: string, code: string): void {
  const refused = frame.last?.type === 'tool/approval-resolved' && frame.last.data.decision !== 'approved'
  const saysNever = code === 'ABORTED_BEFORE_DISPATCH' || code === 'TOOL_NOT_STARTED' || (refused && code === '')
  const probed = call.onCrash === 'probe' && frame.wasCutShort(call)
  const ran = frame.bodies?.some(({ key, at }) => key.startsWith(`${callId}.`) && at <= frame.seq) ?? false
  if (saysNever) frame.must(probed || (call.run === 0 && !ran), 'what is said never to have begun never did')
  if (code === 'TOOL_OUTCOME_UNKNOWN') frame.must(call.run > 0, 'only what began has an unknown outcome')
  const bySomebody = SYNTHETIC.includes(code) || refused
  const own = call.status === 'dispatched' || (call.status === 'called' && call.run === 0)
  const crashed = code === 'UNKNOWN' || refused
  frame.must(bySomebody || own || crashed, 'a result of its own comes from a call under way')
}
