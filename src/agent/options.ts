/** What an agent is made with: the public options, checked once, so that nothing later has to doubt them. */
import type { InspectionEvent } from 'xstate'
import type { TurnLimits } from '../log/events.ts'
import { STORE_TIMEOUT_MS } from '../log/patience.ts'
import type { LogStore } from '../log/store.ts'
import { type Clock, MAX_TIMER_MS, systemClock } from '../services/clock.ts'
import { InvalidOption } from '../services/errors.ts'
import type { Hooks } from '../services/hooks/contract.ts'
import type { Bounds, RepeatBounds, ScopedBounds } from '../services/limits.ts'
import type { ModelAdapter, RetryPolicy } from '../services/llm/adapter.ts'
import { completePolicy } from '../services/llm/retry.ts'
import type { Section } from '../services/llm/sections.ts'
import { createMask, type Mask } from '../services/masking/mask.ts'
import type { Settings } from '../services/runtime.ts'
import type { Tool } from '../services/tools/contract.ts'
import { ownTool } from '../services/tools/foreign.ts'
import type { Agent } from './agent.ts'

/** Bounds on what a turn or a session may spend: tokens, ms, currency units. */
export type Limits = Bounds

/** Extends an agent when it is made; what it returns is called when the agent closes. */
export type Plugin = (agent: Agent) => void | (() => void | Promise<void>)

/** Everything but `model` has a default. */
export interface AgentOptions {
  readonly model: ModelAdapter
  /** Others, reachable from the `agent/request` hook. The same provider and model twice is InvalidOption. */
  readonly models?: readonly ModelAdapter[]
  /** Memory by default, which is said once. */
  readonly store?: LogStore
  /** Opened, or created if it is not there; a new id by default. */
  readonly sessionId?: string
  /** Takes the session from an owner that still lives: that one is fenced. */
  readonly steal?: boolean
  /** Gives creation up, within a second also when a store does not answer; means nothing once the agent is there. */
  readonly signal?: AbortSignal
  /** Told to the model as the system text; `{{name}}` is a variable. */
  readonly system?: string | readonly Section[]
  /** Told to the model as a message, when it changes. */
  readonly context?: readonly Section[]
  readonly variables?: Readonly<Record<string, string>>
  readonly tools?: readonly Tool[]
  readonly hooks?: Partial<Hooks>
  readonly plugins?: readonly Plugin[]
  /** Steps a turn may take; 50. */
  readonly maxSteps?: number
  /** Tokens of one answer; the adapter's. */
  readonly maxTokens?: number
  readonly reasoningEffort?: string
  /** 10. */
  readonly maxParallelToolCalls?: number
  /** ms that hooks and tools have to settle after a cancel, and a plug-in to be disposed of; 10,000. */
  readonly settleTimeoutMs?: number
  /** 'continue' carries an open turn on when its log is opened again; 'interrupt' closes it. */
  readonly recovery?: 'continue' | 'interrupt'
  /** Openings in a row that found work in flight, after which the turn is interrupted; 3. */
  readonly maxResumes?: number
  /** Comes before the adapter's. */
  readonly retry?: RetryPolicy
  /** None by default. A turn that reaches one ends with reason 'limit'; time waiting for people or retries is free. */
  readonly limits?: { readonly turn?: Limits; readonly session?: Limits }
  /** The same call with the same arguments in one turn: the model is warned, then the turn ends; 3 and 6. */
  readonly repeatedCalls?: RepeatBounds | false
  /**
   * Values that are masked as `[secret]` before anything is recorded, at least 4 characters each; so the model, and a tool
   * that is given one by the model, sees the mark. What looks like a credential is masked without being listed.
   */
  readonly secrets?: readonly string[]
  /**
   * A folder of this user's for what a failing store did not take: it goes where it belongs when the session is next
   * opened with the same folder. Without one it is a line on stderr.
   */
  readonly fallbackDir?: string
  /** ms that the store has for each answer, and for each event of a log that is read; 30,000. */
  readonly storeTimeoutMs?: number
  /**
   * ms at rest, or waiting for an approval or a retry that is longer off, after which the agent hibernates; never by
   * default. As `agent.hibernate()`.
   */
  readonly idleAfterMs?: number
  readonly clock?: Clock
  /** 0 to 1. */
  readonly random?: () => number
  readonly newId?: () => string
  readonly inspect?: (event: InspectionEvent) => void
}

/** The options with their defaults. */
export interface Checked {
  readonly settings: Settings
  /** `model` first; no two of the same provider and model. */
  readonly adapters: readonly ModelAdapter[]
  readonly tools: ReadonlyMap<string, Tool>
  /** What each `turn/start` is stamped with. */
  readonly turnLimits: TurnLimits
  readonly settleTimeoutMs: number
  readonly storeTimeoutMs: number
  readonly idleAfterMs: number | undefined
  readonly recovery: 'continue' | 'interrupt'
  readonly maxResumes: number
  readonly limits: ScopedBounds | undefined
  readonly repeatedCalls: RepeatBounds | false
  readonly mask: Mask
  readonly clock: Clock
  readonly random: () => number
  readonly newId: () => string
}

/** @throws InvalidOption naming the first option that cannot be. */
export function checkOptions(options: AgentOptions): Checked {
  const { maxSteps = 50, maxParallelToolCalls = 10, settleTimeoutMs = 10_000, maxResumes = 3 } = options
  const { recovery = 'continue', storeTimeoutMs = STORE_TIMEOUT_MS, sessionId, maxTokens, idleAfterMs } = options
  demand('maxSteps', isCount(maxSteps), 'a whole number of at least 1')
  demand('maxParallelToolCalls', isCount(maxParallelToolCalls), 'a whole number of at least 1')
  demand('maxTokens', maxTokens === undefined || isCount(maxTokens), 'a whole number of at least 1')
  demand('maxResumes', maxResumes === 0 || isCount(maxResumes), 'a whole number of at least 0')
  demand('settleTimeoutMs', isDelay(settleTimeoutMs), `ms above 0, at most ${MAX_TIMER_MS}`)
  demand('storeTimeoutMs', isDelay(storeTimeoutMs), `ms above 0, at most ${MAX_TIMER_MS}`)
  demand('idleAfterMs', idleAfterMs === undefined || isDelay(idleAfterMs), `ms above 0, at most ${MAX_TIMER_MS}`)
  demand('recovery', recovery === 'continue' || recovery === 'interrupt', '"continue" or "interrupt"')
  demand('sessionId', sessionId === undefined || isName(sessionId), 'text of 1 to 256 characters')
  demand('fallbackDir', options.fallbackDir !== '', 'the path of a folder')
  if (options.retry !== undefined) completePolicy(options.retry)
  return shared({
    settings: settingsOf(options),
    adapters: adaptersOf(options),
    tools: toolsOf(options.tools ?? []),
    turnLimits: Object.freeze({ maxSteps, maxParallelToolCalls }),
    settleTimeoutMs,
    storeTimeoutMs,
    idleAfterMs,
    recovery,
    maxResumes,
    limits: limitsOf(options),
    repeatedCalls: repeatsOf(options),
    mask: createMask(options),
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    newId: options.newId === undefined ? randomId : checkedIds(options.newId),
  })
}

/** What was checked last for each model: agents that are made alike have one of it. */
const lately = new WeakMap<ModelAdapter, WeakRef<Checked>>()

function shared(checked: Checked): Checked {
  const { model } = checked.settings
  const before = lately.get(model)?.deref()
  if (before !== undefined && isAlike(before, checked)) return before
  lately.set(model, new WeakRef(checked))
  return checked
}

/** Made of the same values. */
function isAlike(one: Checked, other: Checked): boolean {
  const [settings, others] = [one.settings, other.settings]
  return (
    hasSame({ ...one, ...APART }, { ...other, ...APART }) &&
    hasSame({ ...settings, system: null }, { ...others, system: null }) &&
    settings.system.length === others.system.length &&
    settings.system.every((section, i) => hasSame(section, others.system[i] ?? {})) &&
    hasSame(one.adapters, other.adapters) &&
    hasSame([...one.tools.values()], [...other.tools.values()]) &&
    hasSame(one.turnLimits, other.turnLimits)
  )
}

/** Looked at by what is in them. */
const APART = { settings: null, adapters: null, tools: null, turnLimits: null }

function hasSame(one: object, other: object): boolean {
  const entries = Object.entries(one)
  const others = new Map<string, unknown>(Object.entries(other))
  return entries.length === others.size && entries.every(([key, value]) => others.has(key) && others.get(key) === value)
}

function limitsOf({ limits }: AgentOptions): ScopedBounds | undefined {
  for (const scope of ['turn', 'session'] as const) {
    for (const bound of ['tokens', 'timeMs', 'cost'] as const) {
      const max = limits?.[scope]?.[bound]
      demand(`limits.${scope}.${bound}`, max === undefined || (Number.isFinite(max) && max > 0), 'a number above 0')
    }
  }
  return limits
}

const randomId = (): string => crypto.randomUUID()

/** Ids go into the log as they are: one that is none would be read back by nobody. */
const checkedIds = (newId: () => string) => (): string => {
  const id = newId()
  demand('newId', isName(id), 'a function that gives text of 1 to 256 characters')
  return id
}

/** What most agents have is one object for all of them; so are the next three. */
const REPEATS: RepeatBounds = Object.freeze({ warnAfter: 3, stopAfter: 6 })
const NO_SECTIONS: readonly Section[] = Object.freeze([])
const NO_VARIABLES = Object.freeze({})
const NO_TOOLS: ReadonlyMap<string, Tool> = new Map()

function repeatsOf({ repeatedCalls = REPEATS }: AgentOptions): RepeatBounds | false {
  if (repeatedCalls === false) return false
  const { warnAfter, stopAfter } = repeatedCalls
  demand('repeatedCalls.warnAfter', isCount(warnAfter), 'a whole number of at least 1')
  demand('repeatedCalls.stopAfter', isCount(stopAfter) && stopAfter >= warnAfter, 'a whole number from warnAfter on')
  return repeatedCalls
}

function demand(option: string, holds: boolean, what: string): void {
  if (!holds) throw new InvalidOption(option, `must be ${what}`)
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 1
const isDelay = (ms: number): boolean => Number.isFinite(ms) && ms > 0 && ms <= MAX_TIMER_MS
/** NUL and lone surrogates are no text that every store can keep. */
const isName = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && value.length <= 256 && !/[\0\p{Surrogate}]/u.test(value)

function settingsOf(options: AgentOptions): Settings {
  const { model, system, context, variables, maxTokens, reasoningEffort, retry, limits } = options
  return {
    needsPrice: limits?.turn?.cost !== undefined || limits?.session?.cost !== undefined,
    system: typeof system === 'string' ? [{ name: 'system', text: system }] : (system ?? NO_SECTIONS),
    context: context ?? NO_SECTIONS,
    variables: variables ?? NO_VARIABLES,
    model,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(reasoningEffort === undefined ? {} : { reasoningEffort }),
    ...(retry === undefined ? {} : { retry }),
  }
}

function adaptersOf({ model, models = [] }: AgentOptions): readonly ModelAdapter[] {
  demand('model', isAdapter(model), 'a model adapter, such as deepseek() or scripted([...])')
  completePolicy(model.retry, 'model.retry')
  const adapters = [model]
  for (const [index, other] of models.entries()) {
    demand('models', isAdapter(other), 'a list of model adapters')
    completePolicy(other.retry, `models[${index}].retry`)
    if (adapters.some((known) => known.provider === other.provider && known.model === other.model)) {
      throw new InvalidOption('models', `"${other.model}" of provider "${other.provider}" is there twice`)
    }
    adapters.push(other)
  }
  return adapters
}

const isAdapter = (value: ModelAdapter | undefined): boolean =>
  isName(value?.provider) && isName(value?.model) && typeof value?.stream === 'function'

function toolsOf(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  if (tools.length === 0) return NO_TOOLS
  const named = new Map<string, Tool>()
  for (const tool of tools) {
    demand('tools', typeof tool?.execute === 'function' && isName(tool.name), 'a list of tools made by tool()')
    if (named.has(tool.name)) throw new InvalidOption('tools', `there are two tools named "${tool.name}"`)
    named.set(tool.name, ownTool(tool))
  }
  return named
}
