/** The inbox: splices fit their queue, and every message that ever waited has exactly one fate. */
import type { EventMap, InboxItem, SessionEvent } from '../events.ts'
import type { TopicOf } from './topic.ts'

type Splice = EventMap['agent/inbox/spliced']

/** `inherited`: it waited in the parent of this fork, which knows what became of it. */
type Fate = 'pending' | 'claimed' | 'entered' | 'dropped' | 'canceled' | 'inherited'

export const inboxRules: TopicOf = (frame, report) => {
  const fates = new Map<string, Fate>()
  /** Ids claimed and not yet entered: those of one turn at most. */
  const claimed = new Set<string>()
  let entering = false
  let claimedTurn = false

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
    if (data.outcome === 'claimed') checkClaim(data)
    const ids = removed.flatMap(idOf)
    for (const id of ids) settle(id, data.outcome === 'claimed' ? 'claimed' : 'canceled')
    for (const item of data.inserted) checkInserted(item, data, ids)
  }

  const checkClaim = (data: Splice) => {
    if (!frame.turnOpen || frame.stepOpen || frame.cancel) report('CLAIM-PLACE', 'claimed where no step is to come')
    if (data.inserted.length > 0) report('CLAIM-PLACE', 'a claim inserts nothing')
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
      if (event.type === 'user/message') return checkEntered(event)
      // The messages of a step enter in one run; what was claimed and is not among them, pre-step left out.
      if (entering) dropClaimed()
      entering = event.type === 'step/start'
      if (event.type === 'agent/inbox/spliced') checkSplice(event.data)
      else if (event.type === 'turn/start') claimedTurn = false
      else if (event.type === 'turn/end') checkTurnEnd()
      else if (event.type === 'session/end-seed') {
        for (const item of [...frame.inbox['next-turn'], ...frame.inbox['next-step']]) {
          for (const id of idOf(item)) settle(id, 'inherited')
        }
      }
    },
  }
}

const idOf = (item: InboxItem): readonly string[] => (item.kind === 'message' ? [item.message.id] : [])
