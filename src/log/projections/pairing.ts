/** Calls and results: providers refuse a history in which one stands without the other, or out of order. */
import type { Message } from '../messages.ts'
import { callIds } from './surface.ts'

/** What is wrong with a history: a call without its result right after it, or a result on its own. */
export function unpaired(messages: readonly Message[]): string | undefined {
  let awaited: readonly string[] = []
  for (const message of messages) {
    const result = message.source.kind === 'tool' ? message.source.callId : undefined
    if (result !== awaited[0]) {
      return awaited[0] === undefined
        ? `the result of ${result} follows no call`
        : `the call ${awaited[0]} is not followed by its result`
    }
    if (result !== undefined) awaited = awaited.slice(1)
    else if (message.role === 'assistant') awaited = callIds(message)
  }
  return awaited[0] === undefined ? undefined : `the call ${awaited[0]} has no result`
}
