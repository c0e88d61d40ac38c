/** The inbox: splices fit their queue, and every message that ever waited has exactly one fate. */
import type { EventMap, InboxItem, SessionEvent } from '../events.ts'
import type { TopicOf } from './topic.ts'

type Splice = EventMap['agent/inbox/spliced']

/** `inherited`: it waited in the parent of this fork, which knows what became of it. */
type Fate = 'pending' | 'claimed' | 'entered' | 'dropped' | 'canceled' | 'inherited'

export const inboxRules: TopicOf = (frame, report) => {
  const fates = new Map<string, Fate>()
  /** Ids of answers and results: those of a model and of tools. */
  const told = new Set<string>()
  /** Ids claimed and not yet entered: those of one turn at most. */
  const claimed = new Set<string>()
  let entering = false
  let claimedTurn = false
  /** Results were claimed for the step to come, or messages have entered it: there is something to ask of. */
  let claimedResults = false
  /** Items put back so far, as a turn ends. */
  const returned = { 'next-turn': 0, 'next-step': 0 }

  const settle = (id: string, fate: Fate) => {
    fates.set(id, fate)
    if (fate === 'claimed') claimed.add(id)
    else claimed.delete(id)
  }
  const dropClaimed = () => {
    for (const id of claimed) settle(id, 'dropped')
  }

  const checkSplice = (data: Splice) => {
    const waiting = frame.inbox[data.queue]
    const removed = waiting.slice(data.start, data.start + data.deleteCount)
    if (removed.length !== data.deleteCount || data.start > waiting.length) {
      report('SPLICE-COUNT', `${data.deleteCount} at ${data.start} of ${data.queue}, which holds ${waiting.length}`)
    }
    if (data.deleteCount === 0 && data.inserted.length === 0) report('SPLICE-EMPTY', 'it changes nothing')
    if (data.deleteCount > 0 !== (data.outcome !== undefined)) {
      report('SPLICE-OUTCOME', `it removes ${data.deleteCount} with outcome ${data.outcome ?? 'absent'}`)
    }
    if (data.outcome === 'claimed') checkClaim(data, waiting.length)
    const ids = removed.flatMap(idOf)
    checkPlace(data, waiting.length)
    if (data.wake) checkWake(data)
    for (const id of ids) settle(id, data.outcome === 'claimed' ? 'claimed' : 'canceled')
    for (const item of data.inserted) checkInserted(item, data, ids)
  }

  /** New items go to the end, a replacement where it replaces, what is put back to the head, one load after the other. */
  const checkPlace = (data: Splice, length: number) => {
    const { queue, start, inserted } = data
    const [first] = inserted
    if (first === undefined) return
    const returns = first.kind === 'message' && fates.get(first.message.id) === 'claimed'
    const place = returns ? returned[queue] : data.deleteCount > 0 ? start : length
    if (returns) returned[queue] += inserted.length
    if (start !== place) report('SPLICE-PLACE', `inserted at ${start} of ${queue}, not at ${place}`)
  }

  const checkWake = (data: Splice) => {
    const fits = data.deleteCount === 0 && data.inserted.length === 1 && data.inserted[0]?.kind === 'message'
    const late = frame.cancel !== null && data.queue !== 'next-turn'
    const back = data.inserted.some((item) => item.kind === 'message' && fates.get(item.message.id) === 'claimed')
    if (!fits || late || back) report('WAKE-PLACE', `a splice of ${data.queue} wakes that brings no new message there`)
  }

  const checkClaim = (data: Splice, length: number) => {
    if (!frame.turnOpen || frame.stepOpen || frame.cancel) report('CLAIM-PLACE', 'claimed where no step is to come')
    if (data.inserted.length > 0) report('CLAIM-PLACE', 'a claim inserts nothing')
    const all = data.queue === 'next-turn' ? data.deleteCount === 1 : data.deleteCount === length
    if (data.start !== 0 || !all) report('CLAIM-WHOLE', `${data.deleteCount} at ${data.start} of ${data.queue}`)
    claimedResults ||= frame.inbox[data.queue].some((item) => item.kind === 'tool-result')
    if (data.queue !== 'next-turn') return
    if (frame.step > 0 || claimedTurn || data.deleteCount > 1) {
      report('CLAIM-PLACE', `more than one item of next-turn for turn ${frame.turn}`)
    }
    claimedTurn = true
  }

  const checkInserted = (item: InboxItem, data: Splice, replaced: readonly string[]) => {
    if (item.kind === 'tool-result') {
      const fits = frame.stepOpen && !frame.cancel && data.queue === 'next-step' && item.turn === frame.turn
      if (!fits) report('RESULT-ITEM-PLACE', `the result of ${item.callId} in ${data.queue}`)
      return
    }
    const { id } = item.message
    const fate = replaced.includes(id) ? undefined : fates.get(id)
    if (fate === 'claimed') {
      const mayReturn = frame.interrupted || (frame.cancel !== null && frame.keepsInbox)
      if (!mayReturn)
        report('MESSAGE-FATE', `message ${id} is put back, with neither an interruption nor a cancel that keeps it`)
    } else if (fate !== undefined && fate !== 'inherited') {
      report('MESSAGE-ID', `message ${id} is inserted again; it is ${fate}`)
    }
    settle(id, 'pending')
  }

  const checkEntered = (event: SessionEvent & { type: 'user/message' }) => {
    const { id } = event.data
    const fate = fates.get(id)
    const replacing = event.surfaceOp !== 'append'
    if (!entering && !replacing) report('MESSAGE-PLACE', `message ${id} enters, but not right after step/start`)
    if (fate !== undefined && (replacing || fate !== 'claimed'))
      report('MESSAGE-FATE', `message ${id} enters; it is ${fate}`)
    settle(id, 'entered')
  }

  const checkTold = (id: string) => {
    if (told.has(id)) report('MESSAGE-ID', `${id} is the id of an answer or a result already`)
    told.add(id)
  }

  const checkTurnEnd = () => {
    const keeps = frame.cancel ? frame.keepsInbox : frame.interrupted
    if (keeps)
      for (const id of claimed) report('CLAIM-LOST', `message ${id} was claimed and is neither entered nor put back`)
    const left = frame.inbox['next-step'].find((item) => item.kind === 'tool-result')
    if (left) report('RESULT-ITEM-OUTLIVES', `the result of ${left.callId} still waits when turn ${frame.turn} ends`)
    dropClaimed()
  }

  return {
    check(event) {
      if (event.type === 'user/message') {
        claimedResults ||= entering
        return checkEntered(event)
      }
      if (entering && !claimedResults)
        report('STEP-INPUT', `step ${frame.turn}/${frame.step} has nothing to tell the model`)
      // The messages of a step enter in one run; what was claimed and is not among them, pre-step left out.
      if (entering) {
        dropClaimed()
        claimedResults = false
      }
      entering = event.type === 'step/start'
      if (entering && !frame.prepares)
        report('STEP-INPUT', `step ${frame.turn}/${frame.step + 1} starts without a claim`)
      if (event.type === 'agent/inbox/spliced') checkSplice(event.data)
      else if (event.type === 'turn/start') {
        claimedTurn = claimedResults = false
        returned['next-turn'] = returned['next-step'] = 0
      } else if (event.type === 'turn/end') checkTurnEnd()
      else if (event.type === 'assistant/message') checkTold(event.data.message.id)
      else if (event.type === 'tool/result' && event.surfaceOp === 'append') checkTold(event.data.message.id)
      else if (event.type === 'session/end-seed') {
        for (const item of [...frame.inbox['next-turn'], ...frame.inbox['next-step']]) {
          for (const id of idOf(item)) settle(id, 'inherited')
        }
      }
    },
  }
}

const idOf = (item: InboxItem): readonly string[] => (item.kind === 'message' ? [item.message.id] : [])
