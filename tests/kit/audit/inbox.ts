/** What holds of the two queues: where messages wait, who takes them, and what became of each. */
import type { EventMap, InboxItem, Queue } from '../../../src/log/events.ts'
import type { Frame } from './frame.ts'

export function spliced(frame: Frame, data: EventMap['agent/inbox/spliced']): void {
  const queue = frame.queues[data.queue]
  frame.must(data.start >= 0 && data.start + data.deleteCount <= queue.length, 'a splice stays within its queue')
  frame.must(data.deleteCount > 0 || data.inserted.length > 0, 'a splice changes something')
  frame.must(data.deleteCount === 0 || data.outcome !== undefined, 'what leaves a queue has an outcome')
  const atEnd = data.start === queue.length
  const whole = data.deleteCount === queue.length
  const removed = queue.splice(data.start, data.deleteCount, ...data.inserted)
  for (const item of removed) if (item.kind === 'message') took(frame, item.message.id, data.outcome)
  for (const item of data.inserted) {
    if (item.kind === 'message') inserted(frame, item.message.id, data)
    else owedResult(frame, item, data.queue, atEnd)
  }
  if (data.outcome === 'claimed') claimed(frame, data, whole)
  if (data.wake) woken(frame, data.queue)
  if (!frame.waiting) frame.drain = frame.latch = false
  frame.must(!frame.clearing || data.outcome === 'canceled', 'a cancel that keeps nothing empties the queues')
  frame.expectClear()
}

function took(frame: Frame, id: string, outcome: 'claimed' | 'canceled' | undefined): void {
  frame.must(frame.fates.get(id) === 'pending', 'a message leaves its queue once')
  frame.fates.set(id, outcome ?? 'canceled')
}

function inserted(frame: Frame, id: string, data: EventMap['agent/inbox/spliced']): void {
  const before = frame.fates.get(id)
  frame.must(data.outcome !== 'claimed', 'a claim inserts nothing')
  if (before !== undefined) {
    const puts = frame.cancel?.keepInbox === true || (frame.interrupted !== undefined && frame.cancel === undefined)
    frame.must(before === 'claimed' && puts, 'only a claimed message that is kept comes back')
    frame.must(data.start === 0 && !data.wake, 'what comes back goes to the head and wakes nobody')
  }
  frame.fates.set(id, 'pending')
}

function owedResult(
  frame: Frame,
  item: Extract<InboxItem, { kind: 'tool-result' }>,
  queue: Queue,
  atEnd: boolean,
): void {
  const call = frame.calls.get(item.callId)
  frame.must(
    frame.inStep && item.turn === frame.turn && call?.status === 'answered',
    'a result is owed once it is there',
  )
  frame.must(queue === 'next-step' && atEnd, 'owed results go to the end of next-step')
  frame.must(
    frame.cancel === undefined && frame.step < frame.limits.maxSteps,
    'a result is owed only to a step to come',
  )
  const count = frame.queues['next-step'].filter(
    (other) => other.kind === 'tool-result' && other.callId === item.callId,
  )
  frame.must(count.length === 1, 'a result is owed once')
}

function claimed(frame: Frame, data: EventMap['agent/inbox/spliced'], whole: boolean): void {
  frame.must(frame.open && !frame.inStep && frame.cancel === undefined, 'a claim opens a step of a turn that goes on')
  if (data.queue === 'next-step') {
    frame.must(whole, 'all of next-step is claimed')
    return
  }
  frame.claimedOfTurn++
  const first = frame.step === 0 && frame.claimedOfTurn === 1 && data.start === 0 && data.deleteCount === 1
  frame.must(first, 'a turn claims one of next-turn, at its opening')
}

function woken(frame: Frame, queue: Queue): void {
  if (!frame.open) frame.expect('turn/start', 'what wakes an idle agent starts a turn in its batch')
  if (frame.cancel === undefined) return
  frame.must(queue === 'next-turn', 'what wakes during a cancel is for the turn after it')
  frame.latch = true
}
