/** Tool calls: scheduled, authorised, run and answered in that order, each once, and never run again unasked. */
import type { EventMap, KnownEvent, OnCrash, PlannedCall } from '../events.ts'
import type { ToolCallBlock } from '../messages.ts'
import type { Frame, Report, Topic, TopicOf } from './topic.ts'

interface Call extends PlannedCall {
  readonly arguments: string | undefined
  state: 'planned' | 'called' | 'awaiting' | 'approved' | 'dispatched' | 'answered'
  /** 0 until its first dispatch. */
  run: number
  onCrash: OnCrash
  dispatchedAt: number
  purpose: 'run' | 'rerun'
}

/** More calls than this in one answer are a failed attempt. */
const MAX_CALLS = 128

export const calls: TopicOf = (frame, report) => {
  /** The calls of the open step, in the model's order. */
  let open: readonly Call[] = []
  const used = new Set<string>()
  const find = (callId: string) => open.find((call) => call.callId === callId)

  const schedule = (data: EventMap['assistant/message']) => {
    checkPlan(data, used, report)
    open = data.calls.map((call) => planned(call, data))
    for (const { callId } of open) used.add(callId)
  }
  const checkStepEnd = () => {
    const missing = open.filter((call) => call.state !== 'answered')
    for (const call of missing)
      report('RESULT-MISSING', `step ${frame.turn}/${frame.step} ends without a result of ${call.callId}`)
    open = []
  }
  const checkLate = (callId: string) => {
    const call = find(callId)
    if (!used.has(callId) || (call && call.state !== 'answered')) {
      report('LATE-RESULT', `${callId} ${call ? 'has no other answer' : 'is no call of this session'}`)
    }
  }

  const topic: Topic = {
    check(event) {
      switch (event.type) {
        case 'step/start':
          open = []
          return
        case 'step/end':
          return checkStepEnd()
        case 'assistant/message':
          return schedule(event.data)
        case 'tool/call':
          return checkCall(frame, report, open, event.data)
        case 'tool/approval-requested':
          return checkRequested(frame, report, find(event.data.callId), event.data)
        case 'tool/approval-resolved':
          return checkResolved(report, find(event.data.callId), event.data)
        case 'tool/dispatch':
          return checkDispatch(frame, report, find(event.data.callId), event)
        case 'tool/result':
          if (event.surfaceOp === 'append')
            checkResult(frame, report, find(event.data.message.source.callId), event.data)
          return
        case 'tool/late-result':
          return checkLate(event.data.callId)
        case 'session/end-seed':
          // An approval given and not yet used does not cross a fork.
          for (const call of open) if (call.state === 'approved') call.state = call.run > 0 ? 'dispatched' : 'called'
          return
        default:
      }
    },
  }
  return topic
}

const blocksOf = (data: EventMap['assistant/message']): readonly ToolCallBlock[] =>
  data.message.content.filter((block): block is ToolCallBlock => block.type === 'tool-call')

function checkPlan(data: EventMap['assistant/message'], used: ReadonlySet<string>, report: Report): void {
  const blocks = blocksOf(data)
  const same = blocks.length === data.calls.length && blocks.every((block, i) => isOf(block, data.calls[i]))
  if (!same) report('CALLS-OF-ANSWER', 'the calls are not those of the message')
  if (data.calls.length > MAX_CALLS) report('CALLS-OF-ANSWER', `${data.calls.length} calls in one answer`)
  const ids = data.calls.map((call) => call.callId)
  const again = ids.find((id, i) => used.has(id) || ids.indexOf(id) !== i)
  if (again !== undefined) report('CALLS-OF-ANSWER', `the call id ${again} is used already`)
}

const isOf = (block: ToolCallBlock, call: PlannedCall | undefined): boolean =>
  call !== undefined && block.id === call.callId && block.name === call.name

const planned = (call: PlannedCall, data: EventMap['assistant/message']): Call => ({
  ...call,
  arguments: blocksOf(data).find((block) => block.id === call.callId)?.arguments,
  state: 'planned',
  run: 0,
  onCrash: 'unknown',
  dispatchedAt: -1,
  purpose: 'run',
})

function checkCall(frame: Frame, report: Report, open: readonly Call[], data: EventMap['tool/call']): void {
  const next = open.find((call) => call.state === 'planned')
  if (next?.callId !== data.callId || next.name !== data.name || next.arguments !== data.arguments) {
    report(
      'CALL-ORDER',
      `${data.callId} (${data.name}) is not the next call${next ? `, which is ${next.callId} (${next.name})` : ''}`,
    )
  }
  const call = open.find((each) => each.callId === data.callId)
  if (call?.state === 'planned') call.state = 'called'
  // Under a cancel calls are recorded only to be answered at once: none of them runs.
  if (!frame.cancel) checkCap(frame, report, open)
}

function checkCap(frame: Frame, report: Report, open: readonly Call[]): void {
  const running = open.filter((call) => call.state !== 'planned' && call.state !== 'answered')
  const { maxParallelToolCalls } = frame.limits
  if (running.length > maxParallelToolCalls)
    report('PARALLEL-CAP', `${running.length} calls at once, ${maxParallelToolCalls} allowed`)
  const exclusive = running.find((call) => call.mode === 'exclusive')
  if (exclusive && running.length > 1)
    report('EXCLUSIVE-ALONE', `${exclusive.callId} is exclusive, and ${running.length} calls run`)
}

type Requested = EventMap['tool/approval-requested']

function checkRequested(frame: Frame, report: Report, call: Call | undefined, data: Requested): void {
  const fits =
    data.purpose === 'run'
      ? call?.state === 'called'
      : call?.state === 'dispatched' && call.onCrash === 'ask' && wasLeft(frame, call)
  if (!call || !fits || data.run !== call.run) {
    report('APPROVAL-STATE', `approval of a ${data.purpose} of ${data.callId}, ${stateOf(call)}`)
  }
  if (!call || call.state === 'answered') return
  call.state = 'awaiting'
  call.purpose = data.purpose
}

function checkResolved(report: Report, call: Call | undefined, data: EventMap['tool/approval-resolved']): void {
  if (call?.state !== 'awaiting' || data.run !== call.run) {
    report('APPROVAL-ONCE', `${data.decision} for run ${data.run} of ${data.callId}, ${stateOf(call)}`)
  }
  // Denied and expired wait for their result, which comes next.
  if (call?.state === 'awaiting')
    call.state = data.decision === 'approved' ? 'approved' : call.run > 0 ? 'dispatched' : 'called'
}

function checkDispatch(frame: Frame, report: Report, call: Call | undefined, event: KnownEvent<'tool/dispatch'>): void {
  const { callId, run, onCrash } = event.data
  const ready =
    call &&
    (call.run > 0
      ? call.state === 'dispatched' || call.state === 'approved'
      : call.state === 'called' || call.state === 'approved')
  if (!ready || run !== call.run + 1) report('DISPATCH-STATE', `run ${run} of ${callId}, ${stateOf(call)}`)
  if (!call) return
  if (call.run > 0 && !mayRunAgain(frame, call)) {
    report('DISPATCH-AGAIN', `${callId} runs again: onCrash ${call.onCrash}, ${stateOf(call)}`)
  }
  Object.assign(call, { state: 'dispatched', run, onCrash, dispatchedAt: event.seq })
}

/** A crash, or a clean close, came between: nobody in this process knows how the run went. */
const wasLeft = (frame: Frame, call: Call): boolean => frame.resumedAt > call.dispatchedAt

function mayRunAgain(frame: Frame, call: Call): boolean {
  if (!wasLeft(frame, call) || frame.seededAt > call.dispatchedAt) return false
  if (call.onCrash === 'ask') return call.state === 'approved' && call.purpose === 'rerun'
  return call.onCrash === 'rerun' || call.onCrash === 'probe'
}

const NEVER_RAN: ReadonlySet<string | undefined> = new Set(['TOOL_NOT_STARTED', 'ABORTED_BEFORE_DISPATCH'])

function checkResult(frame: Frame, report: Report, call: Call | undefined, data: EventMap['tool/result']): void {
  const { callId } = data.message.source
  if (!call || call.state === 'answered') {
    report('RESULT-ONCE', `a result of ${callId}, ${stateOf(call)}`)
    return
  }
  const code = data.error?.code
  const succeeds = data.message.content[0].isError !== true && code === undefined
  if (call.state === 'planned' && !NEVER_RAN.has(code))
    report('RESULT-UNSCHEDULED', `${callId} has a result and no tool/call`)
  if (succeeds && call.run === 0) report('RESULT-UNDISPATCHED', `${callId} succeeds and was not dispatched`)
  // A probe may have found out that a dispatched call did not run.
  if (NEVER_RAN.has(code) && call.run > 0 && call.onCrash !== 'probe')
    report('RESULT-CODE', `${callId} says ${code} after run ${call.run}`)
  if (code === 'TOOL_OUTCOME_UNKNOWN' && call.run === 0) report('RESULT-CODE', `${callId} says ${code} and never ran`)
  if (succeeds && call.run > 0 && !mayStillSucceed(frame, call))
    report('RESULT-AFTER-CRASH', `${callId} succeeds without being run again`)
  call.state = 'answered'
}

function mayStillSucceed(frame: Frame, call: Call): boolean {
  if (frame.seededAt > call.dispatchedAt) return false
  return !wasLeft(frame, call) || call.onCrash === 'probe'
}

const stateOf = (call: Call | undefined): string =>
  call ? `which is ${call.state} at run ${call.run}` : 'which is not open'
