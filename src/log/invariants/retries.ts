/** Retries: each follows a failed attempt, counts within its policy, and starts the next attempt once. */
import type { EventMap } from '../events.ts'
import { askingNow } from './stream.ts'
import type { TopicOf } from './topic.ts'

type Retry = EventMap['llm/retry']

export const retries: TopicOf = (frame, report) => {
  /** The last retry of each provider and policy in the open step. */
  const chains = new Map<string, Retry>()
  let waiting: Retry | undefined

  const checkRetry = (data: Retry) => {
    if (!frame.attempts.isAsking(data))
      report('RETRY-ATTEMPT', `a retry of attempt ${data.attempt}, ${askingNow(frame)}`)
    const key = JSON.stringify([data.provider, data.policyKey])
    const before = chains.get(key)
    const expected = (before?.retry ?? 0) + 1
    if (data.retry !== expected) report('RETRY-NUMBERING', `retry ${data.retry} where ${expected} is next`)
    if (data.mode === 'normal' && data.retry > data.maxRetries)
      report('RETRY-NUMBERING', `retry ${data.retry} of ${data.maxRetries}`)
    const borrowed = [...chains.values()].some((other) => other !== before && other.retryId === data.retryId)
    if ((before && before.retryId !== data.retryId) || borrowed)
      report('RETRY-NUMBERING', `${data.retryId} is not the id of this chain`)
    chains.set(key, data)
    waiting = data
  }
  const checkStarted = (data: EventMap['llm/retry-started']) => {
    const fits =
      waiting &&
      data.retryId === waiting.retryId &&
      data.retry === waiting.retry &&
      data.attempt === waiting.attempt + 1
    if (!fits) {
      const awaited = waiting ? `retry ${waiting.retry} of ${waiting.retryId} is waited for` : 'none is waited for'
      report('RETRY-STARTED', `retry ${data.retry} of ${data.retryId} as attempt ${data.attempt}; ${awaited}`)
    }
    waiting = undefined
  }

  return {
    check(event) {
      if (event.type === 'llm/retry') checkRetry(event.data)
      else if (event.type === 'llm/retry-started') checkStarted(event.data)
      else if (event.type === 'step/start' || event.type === 'step/end') {
        chains.clear()
        waiting = undefined
      }
    },
  }
}
