/** What the services of one agent work with. One that was left behind may ask after a hibernation, and wakes the agent. */
import { createRequestDigester } from '../log/digest.ts'
import type { BoundCause, KnownEvent, Recordable, SessionEvent } from '../log/events.ts'
import type { StreamChunk, UserMessage } from '../log/messages.ts'
import type { Session } from '../log/session.ts'
import type { Clock } from '../services/clock.ts'
import type { HookRegistry } from '../services/hooks/registry.ts'
import type { Limits, RepeatGuard } from '../services/limits.ts'
import type { ModelAdapter } from '../services/llm/adapter.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { AgentRuntime, OpenTurn, Settings } from '../services/runtime.ts'
import type { Tool, ToolReceipt } from '../services/tools/contract.ts'
import type { OfAttempt } from '../services/verdicts.ts'
import type { Agent } from './agent.ts'
import type { BatchObserver } from './observers.ts'
import type { Checked } from './options.ts'

/** The agent as its services know it. */
export interface RuntimeParts {
  readonly checked: Checked
  readonly hooks: HookRegistry
  readonly closing: AgentRuntime['closing']
  readonly holder: Pick<Agent, 'steer' | 'inject'>
  /** The request header was logged by this process. */
  headerLogged: boolean
  /** The agent at work, woken if it sleeps; undefined once there is none. */
  working(): WorkParts | undefined
}

/** The agent at work, as its services know it. */
export interface WorkParts {
  readonly session: Session
  readonly control: { readonly open: OpenTurn }
  readonly budgets: { readonly limits: Limits | undefined; readonly repeats: RepeatGuard | undefined }
  readonly observer: BatchObserver
  readonly contextStands: boolean
  stopFor(cause: BoundCause): void
}

/** `first` is who was at work when the services were begun. */
export const createRuntime = (parts: RuntimeParts, first: WorkParts): AgentRuntime => new ServiceRuntime(parts, first)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class ServiceRuntime implements AgentRuntime {
  readonly #parts: RuntimeParts
  readonly #first: WorkParts
  readonly digester = createRequestDigester()

  constructor(parts: RuntimeParts, first: WorkParts) {
    this.#parts = parts
    this.#first = first
  }

  get #work(): WorkParts {
    return this.#parts.working() ?? this.#first
  }

  get session(): Session {
    return this.#work.session
  }

  get clock(): Clock {
    return this.#parts.checked.clock
  }

  get random(): () => number {
    return this.#parts.checked.random
  }

  get newId(): () => string {
    return this.#parts.checked.newId
  }

  get settings(): Settings {
    return this.#parts.checked.settings
  }

  get mask(): Mask {
    return this.#parts.checked.mask
  }

  get hooks(): HookRegistry {
    return this.#parts.hooks
  }

  get tools(): ReadonlyMap<string, Tool> {
    return this.#parts.checked.tools
  }

  get turn(): OpenTurn {
    return this.#work.control.open
  }

  get closing(): AgentRuntime['closing'] {
    return this.#parts.closing
  }

  get limits(): Limits | undefined {
    return this.#work.budgets.limits
  }

  get repeats(): RepeatGuard | undefined {
    return this.#work.budgets.repeats
  }

  get contextStands(): boolean {
    return this.#work.contextStands
  }

  get headerLogged(): boolean {
    return this.#parts.headerLogged
  }

  set headerLogged(logged: boolean) {
    this.#parts.headerLogged = logged
  }

  adapterOf(provider: string, model: string): ModelAdapter | undefined {
    return this.#parts.checked.adapters.find((one) => one.provider === provider && one.model === model)
  }

  /** A service left behind may still speak while the suspension is being written: nothing may follow that. */
  append(event: Recordable): SessionEvent {
    if (this.closing.aborted) throw this.closing.signal.reason
    return this.session.append(event)
  }

  appendOwn(event: Recordable): SessionEvent {
    if (this.closing.aborted) throw this.closing.signal.reason
    const { session } = this
    const [recorded] = session.recordOwn([event])
    session.seal()
    return recorded!
  }

  appendChunk(place: OfAttempt, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'> {
    if (this.closing.aborted) throw this.closing.signal.reason
    return this.session.appendChunk(place, chunk, request)
  }

  steer(message: UserMessage): ToolReceipt {
    return this.#parts.holder.steer(message)
  }

  inject(message: UserMessage): ToolReceipt {
    return this.#parts.holder.inject(message)
  }

  stopFor(cause: BoundCause): void {
    this.#work.stopFor(cause)
  }

  /** Nobody watches. */
  progress(): void {}

  noteError(error: unknown): void {
    this.#work.observer.noteError(error)
  }
}
