/** Tool calls: scheduled, authorised, run and answered in that order, each once, and never run again unasked. */
import { argumentsDigest } from '../digest.ts'
import type { EventMap, InboxItem, KnownEvent, OnCrash, PlannedCall } from '../events.ts'
import type { ToolCallBlock } from '../messages.ts'
import type { Frame, Report, Topic, TopicOf } from './topic.ts'

interface Call extends PlannedCall {
  readonly arguments: string | undefined
  state: 'planned' | 'called' | 'awaiting' | 'approved' | 'refused' | 'dispatched' | 'answered'
  /** Seq of its tool/call; -1 before. */
  calledAt: number
  /** Seq of the last tool/approval-requested; -1 before. */
  askedAt: number
  /** 0 until its first dispatch. */
  run: number
  onCrash: OnCrash
  dispatchedAt: number
  purpose: 'run' | 'rerun'
}

interface InRun {
  readonly turn: number
  readonly step: number
  readonly run: number
}

/** More calls than this in one answer are a failed attempt. */
const MAX_CALLS = 128

export const calls: TopicOf = (frame, report) => {
  /** The calls of the open step, in the model's order. */
  let open: readonly Call[] = []
  const used = new Set<string>()
  /** Calls whose own word would be late: answered, and not yet heard. */
  const unheard = new Map<string, InRun>()
  const find = (callId: string) => open.find((call) => call.callId === callId)

  const schedule = (data: EventMap['assistant/message']) => {
    checkPlan(data, used, report)
    open = data.calls.map((call) => planned(call, data))
    for (const { callId } of open) used.add(callId)
  }
  const checkStepEnd = (outcome: string) => {
    if (outcome === 'tool-calls' && frame.step < frame.limits.maxSteps && itemsOf(frame).length !== open.length)
      report('RESULT-ITEM-CALLS', `step ${frame.turn}/${frame.step} ends and its results are not owed`)
    const missing = open.filter((call) => call.state !== 'answered')
    for (const call of missing)
      report('RESULT-MISSING', `step ${frame.turn}/${frame.step} ends without a result of ${call.callId}`)
    open = []
  }
  const checkLate = ({ callId, turn, step, run }: EventMap['tool/late-result']) => {
    const at = unheard.get(callId)
    unheard.delete(callId)
    if (at?.run !== run || at.turn !== turn || at.step !== step)
      report('LATE-RESULT', `run ${run} of ${callId} in ${turn}/${step} was not answered without it, or spoke before`)
  }

  const settle = (event: KnownEvent<'tool/result'>) => {
    const { callId } = event.data.message.source
    const call = find(callId)
    if (call && call.state === 'dispatched') unheard.set(callId, { turn: frame.turn, step: frame.step, run: call.run })
    checkResult(frame, report, call, event)
  }

  const topic: Topic = {
    check(event) {
      switch (event.type) {
        case 'step/start':
          open = []
          return
        case 'step/end':
          return checkStepEnd(event.data.outcome.kind)
        case 'assistant/message':
          return schedule(event.data)
        case 'tool/call':
          return checkCall(frame, report, open, event)
        case 'agent/inbox/spliced':
          return checkItems(report, open, event.data.inserted)
        case 'tool/approval-requested':
          return checkRequested(frame, report, find(event.data.callId), event)
        case 'tool/approval-resolved':
          return checkResolved(report, find(event.data.callId), event.data)
        case 'tool/dispatch':
          return checkDispatch(frame, report, find(event.data.callId), event)
        case 'tool/result':
          return event.surfaceOp === 'append' ? settle(event) : undefined
        case 'tool/late-result':
          return checkLate(event.data)
        case 'session/end-seed':
          // An answer given and not yet acted on does not cross a fork.
          for (const call of open) {
            if (call.state === 'approved') call.state = call.run > 0 ? 'dispatched' : 'called'
            else if (call.state === 'refused') call.state = 'awaiting'
          }
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
  calledAt: -1,
  askedAt: -1,
  run: 0,
  onCrash: 'unknown',
  dispatchedAt: -1,
  purpose: 'run',
})

const itemsOf = (frame: Frame) => frame.inbox['next-step'].filter((item) => item.kind === 'tool-result')

function checkItems(report: Report, open: readonly Call[], inserted: readonly InboxItem[]): void {
  const items = inserted.filter((item) => item.kind === 'tool-result')
  if (items.length === 0) return
  const same = items.length === open.length && items.every(({ callId }, i) => open[i]?.callId === callId)
  if (!same || open.some((call) => call.state !== 'answered'))
    report('RESULT-ITEM-CALLS', `${items.map(({ callId }) => callId).join(', ')} are not the step’s answered calls`)
}

function checkCall(frame: Frame, report: Report, open: readonly Call[], { seq, data }: KnownEvent<'tool/call'>): void {
  const next = open.find((call) => call.state === 'planned')
  if (next?.callId !== data.callId || next.name !== data.name || next.arguments !== data.arguments) {
    report(
      'CALL-ORDER',
      `${data.callId} (${data.name}) is not the next call${next ? `, which is ${next.callId} (${next.name})` : ''}`,
    )
  }
  const call = open.find((each) => each.callId === data.callId)
  if (call?.state === 'planned') Object.assign(call, { state: 'called', calledAt: seq })
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

type Requested = KnownEvent<'tool/approval-requested'>

function checkRequested(frame: Frame, report: Report, call: Call | undefined, { seq, data }: Requested): void {
  const fits =
    data.purpose === 'run'
      ? call?.state === 'called'
      : call?.state === 'dispatched' && call.onCrash === 'ask' && wasLeft(frame, call)
  if (!call || !fits || data.run !== call.run) {
    report('APPROVAL-STATE', `approval of a ${data.purpose} of ${data.callId}, ${stateOf(call)}`)
  }
  const asked = call?.arguments !== undefined && call.name === data.name && argumentsDigest(call.arguments)
  if (call && asked !== data.argumentsDigest)
    report('APPROVAL-SUBJECT', `it is for ${data.name} with ${data.argumentsDigest}, not what ${data.callId} asks`)
  if (!call || call.state === 'answered') return
  Object.assign(call, { state: 'awaiting', askedAt: seq, purpose: data.purpose })
}

function checkResolved(report: Report, call: Call | undefined, data: EventMap['tool/approval-resolved']): void {
  if (call?.state !== 'awaiting' || data.run !== call.run) {
    report('APPROVAL-ONCE', `${data.decision} for run ${data.run} of ${data.callId}, ${stateOf(call)}`)
  }
  // Denied and expired wait for their result, which comes next.
  if (call?.state === 'awaiting') call.state = data.decision === 'approved' ? 'approved' : 'refused'
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

function checkResult(frame: Frame, report: Report, call: Call | undefined, event: KnownEvent<'tool/result'>): void {
  const { message, error, concludesTurn } = event.data
  const { callId } = message.source
  if (!call || call.state === 'answered') {
    report('RESULT-ONCE', `a result of ${callId}, ${stateOf(call)}`)
    return
  }
  const code = error?.code
  const isError = message.content[0].isError === true
  if (call.state === 'planned' && !NEVER_RAN.has(code))
    report('RESULT-UNSCHEDULED', `${callId} has a result and no tool/call`)
  if (!isError && call.run === 0) report('RESULT-UNDISPATCHED', `${callId} succeeds and was not dispatched`)
  if (error && !isError) report('RESULT-ERROR', `${callId} has the error ${code} and succeeds`)
  if (concludesTurn && isError) report('RESULT-ERROR', `${callId} fails and concludes the turn`)
  checkCode(frame, report, call, code)
  checkSource(report, call, event.sourceEventSeqs)
  call.state = 'answered'
}

function checkCode(frame: Frame, report: Report, call: Call, code: string | undefined): void {
  const says = `${call.callId} says ${code ?? 'no code'}, ${stateOf(call)}`
  const left = isLeft(frame, call)
  const ending = frame.cancel !== null || frame.interrupted
  // A probe may have found out that a dispatched call did not run.
  const mayHaveRun = call.run > 0 && call.onCrash !== 'probe'
  if (NEVER_RAN.has(code) && (mayHaveRun || !(ending || isCut(frame, call)))) report('RESULT-CODE', says)
  if (code === 'TOOL_OUTCOME_UNKNOWN' && !(call.run > 0 && (left || ending || call.state === 'refused')))
    report('RESULT-CODE', says)
  const synthetic = NEVER_RAN.has(code) || code === 'TOOL_OUTCOME_UNKNOWN'
  if (call.state === 'awaiting' || (ending && call.state !== 'dispatched')) {
    if (!synthetic) report('RESULT-UNASKED', says)
  }
  if (call.state === 'refused' && code !== (call.run > 0 ? 'TOOL_OUTCOME_UNKNOWN' : undefined))
    report('RESULT-UNASKED', says)
  if (call.run > 0 && left && code !== 'TOOL_OUTCOME_UNKNOWN' && !mayTell(frame, call))
    report('RESULT-AFTER-CRASH', says)
}

/** Only a probe can tell how a run went that a crash cut short, and in a fork not even that. */
const mayTell = (frame: Frame, call: Call): boolean => call.onCrash === 'probe' && frame.seededAt <= call.dispatchedAt

/** Nobody in this process saw it run: a crash, a clean close or a fork came after its dispatch. */
const isLeft = (frame: Frame, call: Call): boolean => wasLeft(frame, call) || frame.seededAt > call.dispatchedAt

/** It awaited approval when a fork was made: the question is its parent's. */
const isCut = (frame: Frame, call: Call): boolean => call.state === 'awaiting' && frame.seededAt > call.askedAt

function checkSource(report: Report, call: Call, sources: readonly number[] | undefined): void {
  const cites = sources?.length === 1 && sources[0] === call.calledAt
  if (call.calledAt >= 0 && sources !== undefined && !cites)
    report(
      'RESULT-SOURCE',
      `${call.callId} was scheduled at seq ${call.calledAt}, its result cites ${sources.join(', ')}`,
    )
}

const stateOf = (call: Call | undefined): string =>
  call ? `which is ${call.state} at run ${call.run}` : 'which is not open'
