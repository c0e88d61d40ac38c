/** The calls of a session: every id that was used, and where the calls of the open step were scheduled. */
import type { SessionEvent } from '../events.ts'

export interface Calls {
  place(event: SessionEvent): void
  /** An answer of this session scheduled a call of that id. */
  has(callId: string): boolean
  /** The seq of the `tool/call` in the open step, if it has one. */
  scheduledAt(callId: string): number | undefined
}

export function createCalls(): Calls {
  const used = new Set<string>()
  const scheduled = new Map<string, number>()
  return {
    has: (callId) => used.has(callId),
    scheduledAt: (callId) => scheduled.get(callId),
    place(event) {
      switch (event.type) {
        case 'assistant/message':
          for (const call of event.data.calls) used.add(call.callId)
          return
        case 'tool/call':
          scheduled.set(event.data.callId, event.seq)
          return
        case 'step/start':
        case 'step/end':
          return scheduled.clear()
        default:
          return
      }
    },
  }
}
