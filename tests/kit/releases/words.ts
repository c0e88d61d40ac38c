/** The words that stand in a log, by the place where they stand: what a release's logs cover of what it could write. */
import { KNOWN, type SessionEvent } from '../../../src/log/events.ts'
import { createFold, stateName } from '../../../src/machines/fold.ts'

type Word = readonly [place: string, word: string]

/** The places and words of a log; its events are of types that this version knows, or of plug-ins. */
export function wordsIn(events: Iterable<SessionEvent>): readonly Word[] {
  const folded = createFold()
  const words: Word[] = []
  for (const event of events) {
    folded.push(event)
    words.push(['event type', KNOWN.has(event.type) ? event.type : 'a plug-in’s'])
    words.push(['state on the way', stateName(folded.snapshot())], ...wordsOf(event))
  }
  const { context, value } = folded.snapshot()
  for (const { status } of context.calls) words.push(['call status at the end', status])
  return [...words, ['state at the end', stateName({ value })]]
}

function wordsOf(event: SessionEvent): readonly Word[] {
  switch (event.type) {
    case 'turn/end':
      return [['turn/end reason', event.data.reason.kind]]
    case 'step/end':
      return [['step/end outcome', event.data.outcome.kind]]
    case 'turn/cancel':
      return [['turn/cancel cause', event.data.cause.kind]]
    case 'assistant/chunk': {
      const { chunk } = event.data
      return [['chunk type', chunk.type], ...(chunk.type === 'finish' ? [finishOf(chunk)] : [])]
    }
    case 'assistant/message':
      return event.data.calls.map(({ mode }): Word => ['call mode', mode])
    case 'tool/dispatch':
      return [['tool/dispatch onCrash', event.data.onCrash]]
    case 'tool/approval-requested':
      return [['approval purpose', event.data.purpose]]
    case 'tool/approval-resolved':
      return [['approval decision', event.data.decision]]
    case 'llm/retry':
      return [['llm/retry mode', event.data.mode]]
    case 'session/resumed':
      return [['session/resumed recovery', event.data.recovery]]
    case 'request/header':
      return [['request/header reason', event.data.reason]]
    case 'agent/inbox/spliced':
      return [['queue', event.data.queue]]
    default:
      return []
  }
}

const finishOf = ({ reason }: { readonly reason: { readonly kind: string } }): Word => ['finish kind', reason.kind]
