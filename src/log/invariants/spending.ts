/** Bounds: a turn that ends because something was spent, or said again, is borne out by what the log itself counts. */
import type { BoundCause, EventMap, SessionEvent } from '../events.ts'
import { isBound } from '../events.ts'
import type { ToolCallBlock } from '../messages.ts'
import { createMeter } from '../projections/meter.ts'
import { createRepeats } from '../projections/repeats.ts'
import type { TopicOf } from './topic.ts'

type Limit = Extract<BoundCause, { kind: 'limit' }>['limit']
type Repeated = Extract<BoundCause, { kind: 'repeated-call' }>

export const spending: TopicOf = (_, report) => {
  const meter = createMeter()
  const repeats = createRepeats()
  /** A turn was cancelled for a call that its answer, which comes next, makes again. */
  let repeated: Repeated | undefined

  const checkLimit = ({ name, scope, max, spent, estimated }: Limit, now: number) => {
    const counted = meter.spent(scope, now)
    const all = { tokens: counted.tokens, time: counted.timeMs, cost: counted.cost }[name]
    // Time goes on between the reading and the record; nothing else does.
    const fits = name === 'time' ? spent <= all : spent === all
    if (!fits) report('LIMIT-SPENT', `it says ${spent} of ${name}, the log counts ${all}`)
    if (spent < max) report('LIMIT-SPENT', `${spent} of ${name} is less than ${max}`)
    if ((estimated === true) !== (counted.estimated && name !== 'time'))
      report('LIMIT-SPENT', `its ${name} are ${estimated ? '' : 'not '}said to be estimated`)
  }
  const checkCancel = ({ cause, keepInbox }: EventMap['turn/cancel'], time: number) => {
    if (isBound(cause) && !keepInbox) report('LIMIT-KEEPS', `the cancel by ${cause.kind} does not keep the inbox`)
    if (cause.kind === 'limit') checkLimit(cause.limit, time)
    repeated = cause.kind === 'repeated-call' ? cause : undefined
  }
  const checkRepeated = (event: SessionEvent) => {
    if (!repeated || event.type === 'session/end-seed') return
    const { name, count } = repeated
    repeated = undefined
    const counts = event.type === 'assistant/message' ? countsIn(event.data, name) : []
    if (!counts.includes(count)) report('REPEATED-CALL', `no call of ${name} is made for the ${count}th time`)
  }
  /** How often the turn has then made each call of the answer, one after the other. */
  const countsIn = ({ message }: EventMap['assistant/message'], name: string): readonly number[] => {
    const here = createRepeats()
    return message.content.flatMap((block) => {
      if (block.type !== 'tool-call') return []
      const call = block as ToolCallBlock
      here.add(call.name, call.arguments)
      const count = repeats.count(call.name, call.arguments) + here.count(call.name, call.arguments)
      return call.name === name ? [count] : []
    })
  }

  return {
    check(event) {
      checkRepeated(event)
      if (event.type === 'turn/cancel') checkCancel(event.data, event.time)
      meter.place(event)
      repeats.place(event)
    },
  }
}
