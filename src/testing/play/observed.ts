/** What a user's own code did, told in inputs: a real tool is seen by its result in the log. */
import type { SessionEvent } from '../../log/events.ts'
import { type Applied, applyInput } from '../closed-loop.ts'
import type { LoopState } from '../loop-state.ts'
import type { PathEvent } from '../path.ts'
import type { PathInput } from '../path-input.ts'

/** The last input of `done`, with what the events tell of its call; undefined as long as they do not. */
export function withResult(
  done: readonly PathInput[],
  callId: string,
  events: readonly SessionEvent[],
): readonly PathInput[] | undefined {
  const at = events.findIndex((event) => isResultOf(callId, event))
  const last = done.at(-1)
  if (at < 0 || last === undefined) return undefined
  const ids = addedBy(events.slice(at + 1))
  const added = ids.length === 0 ? {} : { added: ids }
  // What the path itself judged is as the path says, whatever the body did.
  const isJudged = last.type === 'denied' || (last.type === 'settled' && last.judged !== undefined)
  const told: PathInput = isJudged
    ? { ...last, ...added }
    : { type: 'settled', callId, outcome: outcomeIn(events[at]), ...added }
  return [...done.slice(0, -1), told]
}

const isResultOf = (callId: string, event: SessionEvent): boolean =>
  event.type === 'tool/result' && event.data.message.source.callId === callId

/** Each is put into the inbox by an event of its own, right after the result. */
function addedBy(events: readonly SessionEvent[]): readonly string[] {
  const ids: string[] = []
  for (const event of events) {
    if (event.type !== 'agent/inbox/spliced') break
    const [item, ...others] = event.data.inserted
    if (item?.kind !== 'message' || others.length > 0) break
    ids.push(item.message.id)
  }
  return ids
}

function outcomeIn(event: SessionEvent | undefined): 'ok' | 'error' | 'concludes' {
  if (event?.type !== 'tool/result') return 'ok'
  // A body that ended well under a cancel is answered as aborted: the closed loop knows that.
  if (event.data.message.content[0].isError === true && event.data.error?.code !== 'ABORTED') return 'error'
  return event.data.concludesTurn ? 'concludes' : 'ok'
}

/** All of them at one moment. */
export function applyAll(before: LoopState, inputs: readonly PathInput[]): Applied {
  const events: PathEvent[] = []
  let state = before
  for (const [index, input] of inputs.entries()) {
    const applied = applyInput(index === 0 ? state : { ...state, now: state.now - 1 }, input)
    events.push(...applied.events)
    state = applied.state
  }
  return { state, events }
}
