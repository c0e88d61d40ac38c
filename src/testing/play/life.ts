/** One life of the agent of a path: from an opening of its session to its death or its close. */
import { type Agent, type AgentOptions, createAgent } from '../../agent.ts'
import type { LogStore } from '../../log/store.ts'
import type { AgentContext } from '../../machines/evolve.ts'
import type { AgentSnapshot } from '../../machines/fold.ts'
import type { Hooks } from '../../services/hooks/contract.ts'
import { type PathSetup, TIMES } from '../path.ts'
import { TOKENS } from '../stimulus.ts'
import { createPathClock, type PathClock } from './clock.ts'
import { createPathHooks } from './hooks.ts'
import { createPathModel } from './model.ts'
import { mortalStore } from './mortal-store.ts'
import { immediate } from './patience.ts'
import { Surroundings } from './surroundings.ts'
import { createPathTools } from './tools.ts'

export interface LifeOptions {
  readonly setup: PathSetup
  readonly store: LogStore
  readonly sessionId: string
  readonly recovery: 'continue' | 'interrupt'
  /** Epoch ms of the clock at the opening. */
  readonly now: number
  readonly newId: () => string
  /** The user's own. */
  readonly hooks: Partial<Hooks>
  readonly agent: Partial<AgentOptions>
  /** Names of bodies that ran in this life or one before. */
  readonly ran: Set<string>
}

export interface Life {
  readonly agent: Agent
  readonly clock: PathClock
  readonly surroundings: Surroundings
  snapshot(): AgentSnapshot
  /** Counts whatever happens. */
  changes(): number
  /** Resolves with the next thing that happens after there were that many. */
  changed(since: number): Promise<void>
  /** Closes, and leaves the turn open. */
  suspend(): Promise<void>
  /** Drops every actor: no goodbye, nothing more is written or heard. */
  die(): void
  /** What the dead life owned is free again. */
  release(): Promise<void>
}

export async function openLife(options: LifeOptions): Promise<Life> {
  const clock = createPathClock(options.now)
  const changes = createChanges()
  const mortal = mortalStore(options.store, changes.note)
  let known: Agent | undefined
  const snapshot = (): AgentSnapshot => {
    if (known === undefined) throw new Error('The agent was asked for before it was there')
    return known.actor.getSnapshot()
  }
  const surroundings = new Surroundings({
    actors: () => snapshot().children,
    changed: changes.note,
    ran: options.ran,
  })
  const agent = await createAgent({
    ...options.agent,
    ...configured(options, surroundings, () => snapshot().context),
    store: mortal.store,
    clock,
    plugins: [
      (opened) => {
        known = opened
        opened.actor.subscribe({ next: changes.note, error: changes.note })
      },
      ...(options.agent.plugins ?? []),
    ],
  })
  return {
    agent,
    clock,
    surroundings,
    snapshot,
    changes: changes.count,
    changed: changes.since,
    suspend: () => suspend(agent, clock),
    die() {
      mortal.die()
      agent.actor.stop()
    },
    release: () => mortal.release(),
  }
}

async function suspend(agent: Agent, clock: PathClock): Promise<void> {
  let closed = false
  const closing = agent.close({ graceMs: 0 }).finally(() => {
    closed = true
  })
  while (!closed) {
    // A body that runs has its grace, which is over at once.
    clock.travel(clock.now())
    await Promise.race([closing, immediate()])
  }
}

function configured(
  { setup, sessionId, recovery, newId, hooks, agent }: LifeOptions,
  surroundings: Surroundings,
  context: () => AgentContext,
): AgentOptions {
  return {
    model: createPathModel({ surroundings, tools: setup.tools, context }),
    tools: createPathTools(surroundings, setup.tools),
    hooks: createPathHooks({ surroundings, own: { ...agent.hooks, ...hooks }, context }),
    sessionId,
    recovery,
    newId,
    random: () => 0.5,
    maxSteps: setup.maxSteps,
    maxParallelToolCalls: setup.maxParallelToolCalls,
    maxResumes: setup.maxResumes,
    settleTimeoutMs: TIMES.settleTimeout,
    retry: {
      maxRetries: setup.maxRetries,
      backoff: { initialDelayMs: TIMES.retryDelay, maxDelayMs: TIMES.retryDelay, jitterRatio: 0 },
    },
    limits: { turn: { tokens: TOKENS.max } },
    repeatedCalls: false,
  }
}

function createChanges() {
  let count = 0
  let waiting: (() => void)[] = []
  return {
    count: () => count,
    note(): void {
      count += 1
      const told = waiting
      waiting = []
      for (const resolve of told) resolve()
    },
    since: (seen: number): Promise<void> =>
      count > seen ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
  }
}
