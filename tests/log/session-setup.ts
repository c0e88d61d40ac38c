/** What the session's tests start from: a session over a memory store whose appends can be held, failed or lost. */
import { onTestFinished, vi } from 'vitest'
import type { Recordable, SessionEvent } from '../../src/log/events.ts'
import type { UserMessage } from '../../src/log/messages.ts'
import { openSession, type Session, type SessionOptions } from '../../src/log/session.ts'
import type { AppendOptions, LogStore, Ownership } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'

export const LIMITS = { maxSteps: 5, maxParallelToolCalls: 2 }

/** What stands between the session and the store: does the real append (or one of other events), or not, or later, or fails. */
export type Interference = (append: (instead?: readonly SessionEvent[]) => Promise<void>, call: number) => Promise<void>

export interface Append {
  readonly events: readonly SessionEvent[]
  readonly options: AppendOptions
}

export interface Setup {
  readonly store: LogStore
  readonly ownership: Ownership
  readonly session: Session
  /** The calls of `append`, in order. */
  readonly appends: readonly Append[]
}

/** A new session, or that of `store` opened again. */
export async function setup(
  options: Partial<SessionOptions> & {
    store?: LogStore
    interfere?: Interference
    steal?: boolean
    /** In place of what the real one has. */
    owned?: Partial<Ownership>
  } = {},
): Promise<Setup> {
  const { store = memoryStore(), interfere = (append) => append(), steal = false, owned, ...rest } = options
  const real = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 }, steal })
  const appends: Append[] = []
  const ownership: Ownership = {
    ...real,
    append(events, request) {
      appends.push({ events, options: request })
      return interfere((instead = events) => real.append(instead, request), appends.length)
    },
    ...owned,
  }
  const session = await openSession(store, ownership, { now: () => 1_000, limits: LIMITS, ...rest })
  onTestFinished(() => session.close().catch(() => {})) // Tests that fail the store expect it to have failed.
  return { store, ownership, session, appends }
}

export const user = (id: string, text = id): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

export const entered = (id: string): Recordable => ({ type: 'user/message', data: user(id) })

export const turnStart = (turn = 1): Recordable => ({ type: 'turn/start', data: { turn } })
export const turnEnd = (turn = 1): Recordable => ({ type: 'turn/end', data: { turn, reason: { kind: 'completed' } } })
export const stepStart = (step = 1, turn = 1): Recordable => ({ type: 'step/start', data: { turn, step } })
export const stepEnd = (step = 1, turn = 1): Recordable => ({
  type: 'step/end',
  data: { turn, step, outcome: { kind: 'completed' } },
})

export const chunk = (text = 'x'): Recordable => ({
  type: 'assistant/chunk',
  data: { turn: 1, step: 1, attempt: 1, chunk: { type: 'text-delta', index: 0, text } },
})

export const call = (callId: string, step = 1): Recordable => ({
  type: 'tool/call',
  data: { turn: 1, step, callId, name: 'look', arguments: '{}' },
})

export const result = (callId: string, step = 1): Recordable => ({
  type: 'tool/result',
  data: {
    turn: 1,
    step,
    message: {
      id: `result-${callId}`,
      role: 'user',
      content: [{ type: 'tool-result', toolCallId: callId, content: [{ type: 'text', text: 'seen' }] }],
      source: { kind: 'tool', callId },
    },
  },
})

export const answer = (callIds: readonly string[] = [], step = 1): Recordable => ({
  type: 'assistant/message',
  data: {
    turn: 1,
    step,
    attempt: 1,
    message: {
      id: 'answer',
      role: 'assistant',
      content: [
        { type: 'text', text: 'Well.' },
        ...callIds.map((id) => ({ type: 'tool-call', id, name: 'look', arguments: '{}' }) as const),
      ],
      source: { kind: 'model', provider: 'p', model: 'm' },
    },
    finish: { kind: callIds.length > 0 ? 'tool-calls' : 'stop' },
    calls: callIds.map((callId) => ({ callId, name: 'look', mode: 'exclusive' })),
    usage: { inputTokens: 3, outputTokens: 4 },
  },
})

/** Timers stand still until they are advanced. */
export function useFakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}

/** How many timers keep the process alive. */
export const holding = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

/** Something to wait for, with the means to end the wait. */
export function latch(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Everything pending on promises alone has run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

export const types = (events: readonly SessionEvent[]): string[] => events.map((event) => event.type)

export function fail(what: string): never {
  throw new Error(what)
}
