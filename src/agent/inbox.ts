/** The messages that wait, as the agent's holder sees them: read from the chart, changed by commands. */
import type { InboxItem } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'
import type { AgentCommand } from '../machines/commands.ts'
import { isMessage } from '../machines/evolve.ts'
import type { ChartState } from '../machines/fold.ts'
import { DuplicateMessage } from '../services/errors.ts'
import { toMessage } from '../services/input.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { Input } from '../services/tools/contract.ts'
import type { Inbox } from './agent.ts'
import { assertOpen, type Openness } from './assert-open.ts'

export interface InboxParts extends Openness {
  readonly newId: () => string
  readonly mask: Mask
  awake(): { readonly state: ChartState; send(command: AgentCommand): void }
}

/** The messages that were recorded or sent. */
interface Known {
  has(id: string): boolean
  /** Notes one that was sent. */
  add(message: UserMessage): void
}

export const createInbox = (parts: InboxParts, known: Known): Inbox => new AgentInbox(parts, known)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentInbox implements Inbox {
  readonly #parts: InboxParts
  readonly #known: Known

  constructor(parts: InboxParts, known: Known) {
    this.#parts = parts
    this.#known = known
  }

  get nextTurn(): readonly InboxItem[] {
    return this.#parts.awake().state.context.inbox['next-turn']
  }

  get nextStep(): readonly InboxItem[] {
    return this.#parts.awake().state.context.inbox['next-step']
  }

  replace(id: string, input: Input): boolean {
    assertOpen(this.#parts)
    const replacement = toMessage(input, this.#parts.newId(), this.#parts.mask)
    if (!this.#isPending(id)) return false
    if (replacement.id !== id && this.#known.has(replacement.id)) throw new DuplicateMessage(replacement.id)
    this.#known.add(replacement)
    this.#send({ type: 'command.remove', id, replacement })
    return true
  }

  remove(id: string): boolean {
    assertOpen(this.#parts)
    if (!this.#isPending(id)) return false
    this.#send({ type: 'command.remove', id })
    return true
  }

  clear(): void {
    this.#send({ type: 'command.clear' })
  }

  #send(command: AgentCommand): void {
    assertOpen(this.#parts)
    this.#parts.awake().send(command)
  }

  #isPending(id: string): boolean {
    return [...this.nextStep, ...this.nextTurn].some((item) => isMessage(item) && item.message.id === id)
  }
}
