/** The session as its agent shows it: what a holder may read, and the two things they may add. */
import type { Observable } from 'rxjs'
import type { SessionEvent } from '../log/events.ts'
import type { Message } from '../log/messages.ts'
import type { ReadOptions, Session } from '../log/session.ts'
import type { SessionHeader } from '../log/store.ts'
import { toMessage } from '../services/input.ts'
import { maskingErrors } from '../services/masking/errors.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { SessionView } from './agent.ts'
import { assertOpen, type Openness } from './assert-open.ts'

export interface ViewParts extends Openness {
  readonly session: Session
  readonly newId: () => string
  readonly mask: Mask
}

export const createSessionView = (parts: ViewParts): SessionView => new AgentSessionView(parts)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentSessionView implements SessionView {
  readonly #parts: ViewParts
  readonly id: string
  readonly header: SessionHeader

  constructor(parts: ViewParts) {
    this.#parts = parts
    this.id = parts.session.id
    this.header = parts.session.header
  }
  get head(): number {
    return this.#parts.session.head
  }

  get events$(): Observable<SessionEvent> {
    return this.#parts.session.events$
  }

  events(options?: ReadOptions): AsyncIterable<SessionEvent> {
    return this.#parts.session.events(options)
  }

  messages(): readonly Message[] {
    return this.#parts.session.messages()
  }

  flush(): Promise<void> {
    return this.#parts.session.flush()
  }

  note(type: string, data: unknown): SessionEvent {
    const { session, mask } = this.#parts
    return maskingErrors(mask, () => session.note(type, data))
  }

  replace({ start, end, message }: Parameters<SessionView['replace']>[0]): SessionEvent {
    const { session, newId, mask } = this.#parts
    assertOpen(this.#parts)
    return session.replace({ start, end, message: toMessage(message, newId(), mask) })
  }
}
