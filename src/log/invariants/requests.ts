/** What a request is made of beside its messages: its header, logged when it changes, and which model it asks. */

import type { AttemptPlace } from '../attempts.ts'
import type { EventMap } from '../events.ts'
import { equalJson, type Json } from '../json.ts'
import type { TopicOf } from './topic.ts'

type Header = EventMap['request/header']
type Context = EventMap['request/context']

export const requests: TopicOf = (frame, report) => {
  let header: Header | undefined
  let context: Context | undefined
  let asking: AttemptPlace | undefined

  const checkHeader = (data: Header) => {
    if ((header === undefined) !== (data.reason === 'initial'))
      report('HEADER-REASON', `${data.reason}, and ${header ? 'there is one already' : 'it is the first'}`)
    // A process that opens the session states its header whether it has changed or not.
    if (data.reason === 'change' && header && equal(header.header, data.header))
      report('HEADER-REASON', 'it changes nothing')
    header = data
  }
  const checkContext = (data: Context) => {
    if (context && equal(context, data)) report('REQUEST-CONTEXT', 'it says what was said before')
    context = data
  }
  const checkFirst = (data: EventMap['assistant/chunk']) => {
    const { turn, step, attempt } = data
    if (asking?.attempt === attempt && asking.step === step && asking.turn === turn) return
    asking = { turn, step, attempt }
    const config = frame.attempts.current()?.header?.config
    if (!config || (config.provider === context?.provider && config.model === context.model)) return
    report('REQUEST-CONTEXT', `${config.provider} ${config.model} is asked, and no request/context says so`)
  }

  return {
    check(event) {
      if (event.type === 'request/header') checkHeader(event.data)
      else if (event.type === 'request/context') checkContext(event.data)
      else if (event.type === 'assistant/chunk') checkFirst(event.data)
    },
  }
}

/** Parts of events are JSON; their types are interfaces, which TypeScript will not take for it. */
const equal = (a: unknown, b: unknown): boolean => equalJson(a as Json, b as Json)
