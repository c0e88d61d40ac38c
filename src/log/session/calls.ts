/** The calls of a session: every id that was used, and where the calls of the open step were scheduled. */
import type { SessionEvent } from '../events.ts'

export interface Calls {
  place(event: SessionEvent): void
  /** An answer of this session scheduled a call of that id. */
  has(callId: string): boolean
  /** The seq of the `tool/call` in the open step, if it has one. */
  scheduledAt(callId: string): number | undefined
  /** All of it. */
  saved(): SavedCalls
}

/** Calls as a checkpoint holds them. */
export interface SavedCalls {
  readonly scheduled: readonly (readonly [callId: string, seq: number])[]
  /** Asked for when somebody wants to know. */
  used(): readonly string[]
}

export const createCalls = (saved?: SavedCalls): Calls => new SessionCalls(saved)

/** A class, because an agent has one of each and a thousand agents share their methods. Its tables come with the first call. */
class SessionCalls implements Calls {
  /** Those used before, until somebody asks. */
  #before: (() => readonly string[]) | undefined
  #used: Set<string> | undefined
  #scheduled: Map<string, number> | undefined

  constructor(saved: SavedCalls | undefined) {
    if (saved === undefined) return
    this.#before = saved.used
    if (saved.scheduled.length > 0) this.#scheduled = new Map(saved.scheduled)
  }

  has(callId: string): boolean {
    this.#look()
    return this.#used?.has(callId) ?? false
  }

  scheduledAt(callId: string): number | undefined {
    return this.#scheduled?.get(callId)
  }

  saved(): SavedCalls {
    this.#look()
    const used = [...(this.#used ?? [])]
    return { scheduled: [...(this.#scheduled ?? [])], used: () => used }
  }

  #look(): void {
    if (this.#before === undefined) return
    const before = this.#before()
    this.#before = undefined
    if (before.length > 0) this.#used = new Set([...before, ...(this.#used ?? [])])
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
