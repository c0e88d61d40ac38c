/** The session as its agent shows it: what a holder may read, and the two things they may add. */
import type { Observable } from 'rxjs'
import type { SessionEvent } from '../log/events.ts'
import type { Message } from '../log/messages.ts'
import { observableOf, type ReadOptions, type Session } from '../log/session.ts'
import type { SessionHeader } from '../log/store.ts'
import { toMessage } from '../services/input.ts'
import { maskingErrors } from '../services/masking/errors.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { SessionView } from './agent.ts'
import { assertOpen, type Openness } from './assert-open.ts'

export interface ViewParts extends Openness {
  readonly header: SessionHeader
  readonly head: number
  readonly newId: () => string
  readonly mask: Mask
  /** Wakes nobody. */
  events(options?: ReadOptions): AsyncIterable<SessionEvent>
  flush(): Promise<void>
  awake(): { readonly session: Session }
}

export const createSessionView = (parts: ViewParts): SessionView => new AgentSessionView(parts)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentSessionView implements SessionView {
  readonly #parts: ViewParts

  constructor(parts: ViewParts) {
    this.#parts = parts
  }

  get id(): string {
    return this.#parts.id
  }

  get header(): SessionHeader {
    return this.#parts.header
  }

  get head(): number {
    return this.#parts.head
  }

  get events$(): Observable<SessionEvent> {
    return observableOf((signal) => this.events({ live: true, signal }))
  }

  events(options?: ReadOptions): AsyncIterable<SessionEvent> {
    return this.#parts.events(options)
  }

  messages(): readonly Message[] {
    return this.#parts.awake().session.messages()
  }

  flush(): Promise<void> {
    return this.#parts.flush()
  }

  note(type: string, data: unknown): SessionEvent {
    const { session } = this.#parts.awake()
    return maskingErrors(this.#parts.mask, () => session.note(type, data))
  }

  replace({ start, end, message }: Parameters<SessionView['replace']>[0]): SessionEvent {
    const { newId, mask } = this.#parts
    assertOpen(this.#parts)
    return this.#parts.awake().session.replace({ start, end, message: toMessage(message, newId(), mask) })
  }
}
