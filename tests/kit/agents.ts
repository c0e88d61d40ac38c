/**
 * Agents for tests: every one of them is held to the central claim after each batch, that folding its log gives its
 * live state, and when it closes its log is verified, and every event of it checked and masked once more.
 */
import { SimulatedClock } from 'xstate'
import { createUnlessAborted } from '../../src/agent/create.ts'
import type { Agent, AgentOptions } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore, Ownership } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { type ChartState, createFold } from '../../src/machines/fold.ts'
import { verify } from '../../src/machines/verify.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import { createMask } from '../../src/services/masking/mask.ts'
import { untrustworthy } from './careful.ts'

/**
 * Agents of these statuses hibernate at once, in every test: `PAWL_SLEEPS=idle`, or `idle,waiting`. Nothing may come of
 * it, but that a turn which waits is suspended and resumed.
 */
const SLEEPS: ReadonlySet<string> = new Set(process.env.PAWL_SLEEPS?.split(','))

/** Thrown, and so failing the test, when the fold of the log differs from the live state. */
export class FoldDiffers extends Error {}

export interface StartedAgent extends AsyncDisposable {
  readonly agent: Agent
  readonly store: LogStore
  /** The durable log so far, flushed first. */
  log(): Promise<readonly SessionEvent[]>
  /** How often fold and live were compared. */
  readonly checks: () => number
}

/** Message ids, call ids and the like count up from 1, so that logs are equal from run to run. */
export function countingIds(prefix = 'id'): () => string {
  let n = 0
  return () => `${prefix}-${++n}`
}

/**
 * Starts an agent on a memory store (unless given), with counting ids and a model that says 'ok' (unless given). On
 * disposal it is closed and its log verified.
 */
export async function startAgent(options: Partial<AgentOptions> = {}): Promise<StartedAgent> {
  const store = options.store ?? memoryStore()
  const sessionId = options.sessionId ?? 'session'
  const before = await stored(store, sessionId)
  const folded = createFold()
  for (const event of before) folded.push(event)
  let checks = 0
  /** Live states the fold has yet to reach: a command of an observer runs before its own events are told. */
  const ahead: string[] = []
  let opened = false
  let held: Agent | undefined
  const watch = (agent: Agent): void => {
    opened = true
    held = agent
    agent.on('session/event', (event) => {
      folded.push(event)
      while (ahead.length > 0 && ahead[0] === textOf(folded.snapshot())) ahead.shift()
    })
  }
  const onReached = (live: ChartState): void => {
    if (held === undefined) return
    checks += 1
    const reached = textOf(live)
    if (ahead.length > 0 || textOf(folded.snapshot()) !== reached) ahead.push(reached)
    if (SLEEPS.has(held.status)) queueMicrotask(() => held?.hibernate())
  }
  const checkFold = (): void => {
    if (ahead.length === 0) return
    throw new FoldDiffers(`fold and live differ:\n${textOf(folded.snapshot())}\n${ahead[0]}`)
  }
  const agent = await createUnlessAborted(
    {
      model: scripted(() => 'ok'),
      newId: countingIds(`i${before.length}`),
      random: () => 0.5,
      ...options,
      // What opening puts into the log before there is an agent is folded as stored.
      store: onAppend(store, (events) => {
        if (!opened) for (const event of events) folded.push(event)
      }),
      sessionId,
      plugins: [watch, ...(options.plugins ?? [])],
    },
    { onReached },
  )
  return {
    agent,
    store,
    async log() {
      await agent.session.flush()
      checkFold()
      return stored(store, sessionId)
    },
    checks: () => checks,
    async [Symbol.asyncDispose]() {
      await agent.close().catch(() => {})
      checkFold()
      const log = await stored(store, sessionId)
      const untrusted = untrustworthy(log, createMask(options))
      if (untrusted !== undefined) throw new Error(`the log holds what was never checked: ${untrusted}`)
      const verdict = verify(log)
      if (!verdict.ok) throw new Error(`the log breaks its rules: ${JSON.stringify(verdict.violations)}`)
    },
  }
}

/** The store, telling of what is appended through it, up to the owner's first rest. */
function onAppend(store: LogStore, tell: (events: readonly SessionEvent[]) => void): LogStore {
  const wrapped = new WeakMap<Ownership, Ownership>()
  return {
    ...store,
    async acquire(id, options) {
      const owner = await store.acquire(id, options)
      const told: Ownership = {
        ...owner,
        async append(events, request) {
          await owner.append(events, request)
          tell(events)
        },
      }
      wrapped.set(told, owner)
      return told
    },
    ...(store.rest && { rest: (ownership, owner) => store.rest?.(wrapped.get(ownership) ?? ownership, owner) }),
  }
}

const textOf = ({ value, context }: { readonly value: unknown; readonly context: unknown }): string =>
  JSON.stringify({ value, context })

/** All durable events of a session; none if it is not there. */
export async function stored(store: LogStore, sessionId: string): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = []
  if ((await store.header(sessionId)) === undefined) return events
  for await (const event of store.read(sessionId)) events.push(event)
  return events
}

/** Event types in order, a run of chunks as one `assistant/chunk*`. */
export function typesOf(events: readonly SessionEvent[]): readonly string[] {
  const types: string[] = []
  for (const { type } of events) {
    const name = type === 'assistant/chunk' ? 'assistant/chunk*' : type
    if (name !== 'assistant/chunk*' || types.at(-1) !== name) types.push(name)
  }
  return types
}

/** The events of one type, narrowed. */
export const ofType = <T extends SessionEvent['type']>(
  events: readonly SessionEvent[],
  type: T,
): readonly Extract<SessionEvent, { type: T }>[] =>
  events.filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type)

/**
 * Hooks that decide nothing and give the event loop a turn. What a turn records at once shares an append; with these each
 * of its batches has an append of its own, so that a store can fail, or a crash come, between any two.
 */
export const unhurriedHooks: Partial<Hooks> = {
  'system-prompt/assemble': unhurried,
  'agent/pre-step': unhurried,
  'agent/request': unhurried,
  'tools/pre-execute': unhurried,
  'tools/execute': unhurried,
  'tools/post-execute': unhurried,
  'agent/turn-stopping': async () => settle(1),
}

async function unhurried<R>(_: unknown, next: () => Promise<R>): Promise<R> {
  await settle(1)
  const decided = await next()
  await settle(1)
  return decided
}

/** A clock that moves only when told: `clock.increment(ms)`. */
export const simulatedClock = (): SimulatedClock => new SimulatedClock()

/** Lets everything that is only a matter of microtasks and immediates happen. */
export async function settle(rounds = 5): Promise<void> {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve))
}
