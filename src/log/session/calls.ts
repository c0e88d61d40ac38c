/** The calls of a session: every id that was used, and where the calls of the open step were scheduled. */
import type { SessionEvent } from '../events.ts'

export interface Calls {
  place(event: SessionEvent): void
  /** An answer of this session scheduled a call of that id. */
  has(callId: string): boolean
  /** The seq of the `tool/call` in the open step, if it has one. */
  scheduledAt(callId: string): number | undefined
}

export const createCalls = (): Calls => new SessionCalls()

/** A class, because an agent has one of each and a thousand agents share their methods. Its tables come with the first call. */
class SessionCalls implements Calls {
  #used: Set<string> | undefined
  #scheduled: Map<string, number> | undefined

  has(callId: string): boolean {
    return this.#used?.has(callId) ?? false
  }

  scheduledAt(callId: string): number | undefined {
    return this.#scheduled?.get(callId)
  }

  place(event: SessionEvent): void {
    switch (event.type) {
      case 'assistant/message':
        for (const call of event.data.calls) {
          this.#used ??= new Set()
          this.#used.add(call.callId)
        }
        return
      case 'tool/call':
        this.#scheduled ??= new Map()
        this.#scheduled.set(event.data.callId, event.seq)
        return
      case 'step/end':
        this.#scheduled = undefined
        return
    }
  }
}
