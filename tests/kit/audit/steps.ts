/** What holds of steps: the messages that enter, the attempts of their request, its one answer, and how they end. */
import type { EventMap, KnownEvent, StepOutcome } from '../../../src/log/events.ts'
import type { AuditedCall, Frame } from './frame.ts'

// Steps and requests

export function stepStarted(frame: Frame, data: EventMap['step/start']): void {
  frame.must(frame.open && !frame.inStep && data.turn === frame.turn, 'a step opens in an open turn')
  frame.must(data.step === frame.step + 1 && data.step <= frame.limits.maxSteps, 'steps are counted, and bounded')
  frame.must(frame.cancel === undefined && frame.interrupted === undefined, 'nothing new starts in a turn being ended')
  frame.step = data.step
  frame.inStep = frame.entering = true
  frame.attempt = 1
  frame.answer = frame.retry = frame.outcome = undefined
  frame.calls = new Map()
  frame.unscheduled = []
}

export function entered(frame: Frame, id: string): void {
  frame.must(frame.entering, 'messages enter at the opening of a step')
  const fate = frame.fates.get(id)
  frame.must(fate === undefined || fate === 'claimed', 'a message enters once, after its claim')
  frame.fates.set(id, 'entered')
}

/** After the last message that enters, a hook has left out what is still claimed. */
export function endEntering(frame: Frame): void {
  if (!frame.entering) return
  frame.entering = false
  for (const [id, fate] of frame.fates) if (fate === 'claimed') frame.fates.set(id, 'dropped')
}

export function chunk(frame: Frame, data: EventMap['assistant/chunk']): void {
  frame.must(frame.inStep && frame.isHere(data) && !frame.answer, 'a chunk belongs to an open request')
  frame.must(data.attempt === frame.attempt, 'a chunk is of the attempt in progress')
}

export function answered(frame: Frame, data: EventMap['assistant/message']): void {
  frame.must(frame.inStep && frame.isHere(data) && frame.answer === undefined, 'a step has one answer')
  frame.must(data.attempt === frame.attempt && !frame.waits, 'the answer is of the attempt in progress')
  frame.must(
    !data.interrupted || (frame.cancel !== undefined && data.calls.length === 0),
    'only a cancel cuts an answer',
  )
  frame.answer = data
  for (const { callId, mode } of data.calls) {
    frame.must(!frame.seenCalls.has(callId), 'a call id is used once in a session')
    frame.seenCalls.add(callId)
    frame.unscheduled.push(callId)
    frame.calls.set(callId, {
      mode,
      status: 'planned',
      run: 0,
      onCrash: undefined,
      dispatchedAt: -1,
      rerunApproved: false,
      concludes: false,
      synthetic: false,
    })
  }
}

export function retryPlanned(frame: Frame, event: KnownEvent<'llm/retry'>): void {
  const asking = frame.inStep && frame.isHere(event.data) && frame.answer === undefined
  frame.must(asking && event.data.attempt === frame.attempt && !frame.waits, 'a retry follows a failed attempt')
  frame.must(frame.cancel === undefined, 'a cancelled turn retries nothing')
  frame.retry = event
}

export function retryStarted(frame: Frame, { time, data }: KnownEvent<'llm/retry-started'>): void {
  const { retry } = frame
  frame.must(frame.waits && frame.isHere(data) && data.attempt === frame.attempt + 1, 'a retry begins after its wait')
  frame.must(
    retry !== undefined && data.retryId === retry.data.retryId && data.retry === retry.data.retry,
    'the retry is the one planned',
  )
  frame.must(retry !== undefined && time >= retry.time + retry.data.delayMs, 'a retry begins after its delay')
  frame.must(frame.cancel === undefined, 'a cancelled turn retries nothing')
  frame.attempt = data.attempt
}

export function stepEnded(frame: Frame, { outcome, ...at }: EventMap['step/end']): void {
  const calls = [...frame.calls.values()]
  frame.must(frame.inStep && frame.isHere(at), 'an open step ends')
  frame.must(
    calls.every(({ status }) => status === 'answered'),
    'every call has a result when its step ends',
  )
  outcomeFits(frame, outcome.kind, calls)
  frame.inStep = false
  frame.outcome = outcome
  frame.maxTokens ||= outcome.kind === 'max-tokens'
  if (outcome.kind !== 'interrupted' && !calls.some(({ synthetic }) => synthetic)) frame.resumes = 0
}

function outcomeFits(frame: Frame, kind: StepOutcome['kind'], calls: readonly AuditedCall[]): void {
  frame.must((kind === 'aborted') === (frame.cancel !== undefined), 'a cancelled step is aborted, and no other is')
  const concluded = calls.some(({ concludes }) => concludes)
  if (kind === 'completed')
    frame.must(calls.length === 0 && frame.answer?.finish.kind !== 'max-tokens', 'completed: an answer without calls')
  if (kind === 'max-tokens') frame.must(frame.answer?.finish.kind === 'max-tokens', 'max-tokens: an answer cut short')
  if (kind === 'concluded') frame.must(concluded, 'concluded: by a result that says so')
  if (kind === 'interrupted') frame.must(frame.interrupted !== undefined, 'only recovery interrupts')
  if (kind !== 'tool-calls') return
  frame.must(calls.length > 0 && !concluded, 'tool-calls: calls, none of which concludes the turn')
  const owed = frame.queues['next-step'].filter((item) => item.kind === 'tool-result').map(({ callId }) => callId)
  const all = [...frame.calls.keys()].every((callId) => owed.includes(callId))
  frame.must(all || frame.step >= frame.limits.maxSteps, 'the model is owed every result')
}
