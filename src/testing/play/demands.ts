/**
 * What an input has to bring about, whatever the chart says of it. What a path expects is told by the chart, so a
 * mistake in the chart is expected too; what is told here is told by the words of the inputs alone.
 */
import type { KnownEvent, SessionEvent } from '../../log/events.ts'
import type { PathInput } from '../path-input.ts'

/** How the turn stands before the input, as the log has it. */
export interface TurnBefore {
  readonly open: boolean
  readonly cancelled: boolean
}

export function turnBefore(events: readonly SessionEvent[]): TurnBefore {
  const last = (type: SessionEvent['type']): number => events.findLastIndex((event) => event.type === type)
  const started = last('turn/start')
  const open = started > last('turn/end')
  return { open, cancelled: open && last('turn/cancel') > started }
}

/** What is missing, in words: one line, or none. */
export function missingOf(input: PathInput, before: TurnBefore, events: readonly SessionEvent[]): readonly string[] {
  const demand = demandOf(input, before)
  return demand === undefined || events.some(demand.meets) ? [] : [demand.what]
}

interface Demand {
  readonly what: string
  meets(event: SessionEvent): boolean
}

type Type = keyof EventsByType
type EventsByType = { [E in KnownEvent as E['type']]: E }

const one = <T extends Type>(type: T, what: string, holds: (data: EventsByType[T]['data']) => boolean): Demand => ({
  what: `${type} ${what}`,
  meets: (event) => event.type === type && holds((event as unknown as EventsByType[T]).data),
})

const either = (...demands: readonly Demand[]): Demand => ({
  what: demands.map(({ what }) => what).join(', or '),
  meets: (event) => demands.some((demand) => demand.meets(event)),
})

const inserted = (queue: 'next-turn' | 'next-step', id: string, wake: boolean): Demand =>
  one('agent/inbox/spliced', `of ${id} into ${queue}${wake ? ', waking' : ''}`, (data) => {
    const isThere = data.inserted.some((item) => item.kind === 'message' && item.message.id === id)
    return isThere && data.queue === queue && (data.wake === true) === wake
  })

const ended = (...kinds: readonly string[]): Demand =>
  one('turn/end', kinds.join(' or '), ({ reason }) => kinds.includes(reason.kind))

const CLAIM = one('agent/inbox/spliced', 'that claims', ({ outcome }) => outcome === 'claimed')
const END = one('turn/end', 'of any kind', () => true)

const answeredCall = (callId: string, isError?: boolean, concludes?: boolean): Demand => {
  const how = [isError === undefined ? '' : ` that ${isError ? 'fails' : 'is well'}`, concludes ? ', concluding' : '']
  return one('tool/result', `of ${callId}${how.join('')}`, ({ message, concludesTurn }) => {
    const failed = message.content[0].isError === true
    const isOf = message.source.callId === callId
    return isOf && (isError ?? failed) === failed && (concludes ?? concludesTurn === true) === (concludesTurn === true)
  })
}

const resolved = (callId: string, decision: 'approved' | 'denied' | 'expired'): Demand =>
  one(
    'tool/approval-resolved',
    `${decision} of ${callId}`,
    (data) => data.callId === callId && data.decision === decision,
  )

function demandOf(input: PathInput, { open, cancelled }: TurnBefore): Demand | undefined {
  switch (input.type) {
    case 'followup':
      return inserted('next-turn', input.id, true)
    case 'steer':
      return inserted(cancelled ? 'next-turn' : 'next-step', input.id, true)
    case 'inject':
      return inserted('next-step', input.id, false)
    case 'cancel': {
      if (!open || cancelled) return undefined
      const keeps = input.keepInbox === true
      return one('turn/cancel', keeps ? 'keeping the inbox' : '', (data) => (data.keepInbox === true) === keeps)
    }
    case 'approve':
      return resolved(input.callId, 'approved')
    case 'deny':
      return resolved(input.callId, 'denied')
    case 'expired':
      return resolved(input.callId, 'expired')
    case 'prepared':
      return cancelled ? END : PREPARED[input.decision]
    case 'answered': {
      const ids = input.calls.map(({ callId }) => callId).join()
      const isAsked = `that asks for ${ids || 'nothing'}`
      return one('assistant/message', isAsked, ({ calls }) => calls.map(({ callId }) => callId).join() === ids)
    }
    case 'error-handled':
      if (cancelled || input.decision === undefined) return undefined
      return input.decision === 'retry' ? one('llm/retry', 'at once', ({ delayMs }) => delayMs === 0) : ended('error')
    case 'waited':
      return one('llm/retry-started', '', () => true)
    case 'denied':
      return answeredCall(input.callId, true)
    case 'asked':
      return one('tool/approval-requested', `of ${input.callId}`, ({ callId }) => callId === input.callId)
    case 'allowed':
      return either(
        one('tool/dispatch', `of ${input.callId}`, ({ callId }) => callId === input.callId),
        one('tool/approval-requested', 'instead', ({ callId }) => callId === input.callId),
      )
    case 'settled': {
      const failed = cancelled || input.judged !== undefined || input.outcome === 'error'
      return answeredCall(input.callId, failed, !failed && input.outcome === 'concludes')
    }
    case 'probed':
      if (input.answer === 'not-done') return undefined
      return answeredCall(input.callId, input.answer === 'unknown')
    case 'stopping':
      return cancelled ? END : STOPPING[input.decision]
    case 'settle-timeout':
      return END
    case 'crash':
      if (!open) return undefined
      return one('session/resumed', `to ${input.recovery}`, ({ recovery, cause }) => {
        return recovery === input.recovery || cause === 'recovery-limit'
      })
    default:
      return undefined
  }
}

const PREPARED = {
  enter: one('step/start', '', () => true),
  'enter-none': either(
    one('step/start', '', () => true),
    ended('completed', 'max-tokens'),
  ),
  reject: ended('blocked'),
  fail: ended('error'),
} as const

/** What was left for the next step goes before the reason that a hook gave. */
const STOPPING = {
  none: either(CLAIM, ended('completed', 'max-tokens', 'max-steps')),
  stop: either(CLAIM, ended('stopped-by-policy', 'max-steps')),
  fail: ended('error'),
} as const
