/** What the services of one agent work with, told from the agent at work. */
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
import type { LivingAgent } from './living.ts'

export const createRuntime = (living: LivingAgent, agent: Agent): AgentRuntime => new LivingRuntime(living, agent)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class LivingRuntime implements AgentRuntime {
  readonly #living: LivingAgent
  readonly #agent: Agent
  readonly digester = createRequestDigester()
  headerLogged = false

  constructor(living: LivingAgent, agent: Agent) {
    this.#living = living
    this.#agent = agent
  }

  get session(): Session {
    return this.#living.session
  }

  get clock(): Clock {
    return this.#living.checked.clock
  }

  get random(): () => number {
    return this.#living.checked.random
  }

  get newId(): () => string {
    return this.#living.checked.newId
  }

  get settings(): Settings {
    return this.#living.checked.settings
  }

  get mask(): Mask {
    return this.#living.mask
  }

  get hooks(): HookRegistry {
    return this.#living.hooks
  }

  get tools(): ReadonlyMap<string, Tool> {
    return this.#living.checked.tools
  }

  get turn(): OpenTurn {
    return this.#living.control.open
  }

  get closing(): AgentRuntime['closing'] {
    return this.#living.closing
  }

  get limits(): Limits | undefined {
    return this.#living.budgets.limits
  }

  get repeats(): RepeatGuard | undefined {
    return this.#living.budgets.repeats
  }

  get contextStands(): boolean {
    return this.#living.contextStands
  }

  adapterOf(provider: string, model: string): ModelAdapter | undefined {
    return this.#living.checked.adapters.find((one) => one.provider === provider && one.model === model)
  }

  /** A service left behind may still speak while the suspension is being written: nothing may follow that. */
  append(event: Recordable): SessionEvent {
    if (this.closing.aborted) throw this.closing.signal.reason
    return this.#living.session.append(event)
  }

  appendOwn(event: Recordable): SessionEvent {
    if (this.closing.aborted) throw this.closing.signal.reason
    const { session } = this.#living
    const [recorded] = session.recordOwn([event])
    session.seal()
    return recorded as SessionEvent
  }

  appendChunk(place: OfAttempt, chunk: StreamChunk, request?: string): KnownEvent<'assistant/chunk'> {
    if (this.closing.aborted) throw this.closing.signal.reason
    return this.#living.session.appendChunk(place, chunk, request)
  }

  steer(message: UserMessage): ToolReceipt {
    return this.#agent.steer(message)
  }

  inject(message: UserMessage): ToolReceipt {
    return this.#agent.inject(message)
  }

  stopFor(cause: BoundCause): void {
    this.#living.stopFor(cause)
  }

  /** Nobody watches. */
  progress(): void {}

  noteError(error: unknown): void {
    this.#living.observer.noteError(error)
  }
}
