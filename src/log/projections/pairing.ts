/** Calls and results: providers refuse a history in which one stands without the other, or out of order. */
import type { Message } from '../messages.ts'
import { beginsWith, callIds } from './surface.ts'

/** What is wrong with a history: a call without its result right after it, or a result on its own. */
export const unpaired = (messages: readonly Message[]): string | undefined => createPairing().unpaired(messages)

export interface Pairing {
  /** Equals `unpaired(messages)`. */
  unpaired(messages: readonly Message[]): string | undefined
}

/** For the histories of one conversation: each usually extends the one before, and only what is new is read. */
export function createPairing(): Pairing {
  let read: readonly Message[] = []
  let awaited: readonly string[] = []
  return {
    unpaired(messages) {
      if (!beginsWith(messages, read)) {
        read = []
        awaited = []
      }
      for (let i = read.length; i < messages.length; i++) {
        const next = after(awaited, messages[i] as Message)
        if (typeof next === 'string') {
          read = []
          awaited = []
          return next
        }
        awaited = next
      }
      read = messages
      return awaited[0] === undefined ? undefined : `the call ${awaited[0]} has no result`
    },
  }
}

/** The calls that still want their result after the message, or what is wrong with it. */
function after(awaited: readonly string[], message: Message): readonly string[] | string {
  const result = message.source.kind === 'tool' ? message.source.callId : undefined
  if (result !== awaited[0]) {
    return awaited[0] === undefined
      ? `the result of ${result} follows no call`
      : `the call ${awaited[0]} is not followed by its result`
  }
  if (result !== undefined) return awaited.slice(1)
  return message.role === 'assistant' ? callIds(message) : awaited
}
