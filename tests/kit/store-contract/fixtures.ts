/** What the store contract's tests share: opening, sample events, and collecting what a store streams. */
import { expect, onTestFinished, test } from 'vitest'
import { PawlError } from '../../../src/log/errors.ts'
import type { KnownEvent, SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, Ownership, PostedCommand, SessionHeader } from '../../../src/log/store.ts'

/** A store under test. `second` is another instance on the same data, `reopen` closes this one and opens it anew. */
export interface OpenedStore {
  readonly store: LogStore
  readonly reopen?: () => Promise<LogStore>
  readonly second?: () => Promise<LogStore>
  dispose(): void | PromiseLike<void>
}

/** Opens an empty store; called once a test. */
export type OpenStore = () => Promise<OpenedStore>

/** Opens a store for this test and disposes of it afterwards. */
export async function opened(open: OpenStore): Promise<OpenedStore> {
  const fixture = await open()
  onTestFinished(() => fixture.dispose())
  return fixture
}

export const openedStore = async (open: OpenStore): Promise<LogStore> => (await opened(open)).store

/** 2023-11-14, so that no test depends on the day it runs. */
export const EPOCH_MS = 1_700_000_000_000

export const header = (id: string, facts: Partial<SessionHeader> = {}): SessionHeader => ({
  format: 1,
  id,
  createdAt: EPOCH_MS,
  ...facts,
})

/** Acquires `id`, creating it if it is missing. */
export const own = (store: LogStore, id = 's'): Promise<Ownership> => store.acquire(id, { create: header(id) })

/** A small event; its time is its seq in ms after `EPOCH_MS`. */
export const chunk = (seq: number, text = `piece ${seq}`): KnownEvent<'assistant/chunk'> => ({
  type: 'assistant/chunk',
  seq,
  time: EPOCH_MS + seq,
  data: { turn: 1, step: 1, attempt: 1, chunk: { type: 'text-delta', index: 0, text } },
})

/** `count` small events from seq `from` on. */
export const chunks = (from: number, count: number, text?: string): SessionEvent[] =>
  Array.from({ length: count }, (_, i) => chunk(from + i, text))

/** Appends `count` small events from seq `from` on, as one batch. */
export const fill = (owner: Ownership, from: number, count: number): Promise<void> =>
  owner.append(chunks(from, count), { expectedSeq: from })

export const command = (id: string): PostedCommand => ({
  id,
  kind: 'followup',
  message: { id, role: 'user', content: [{ type: 'text', text: `please ${id}` }], source: { kind: 'user' } },
})

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The first `count` items; fewer only if the iterable ends. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const all: T[] = []
  if (count === 0) return all
  for await (const item of items) if (all.push(item) === count) break
  return all
}

/** Every event of a session, as it is read back. */
export const logOf = (store: LogStore, id = 's'): Promise<SessionEvent[]> => collect(store.read(id))

export const seqsOf = async (events: AsyncIterable<SessionEvent>): Promise<number[]> =>
  (await collect(events)).map((event) => event.seq)

export const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

/** A signal nobody aborts before the test is over. */
export function whileTesting(): AbortSignal {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  return controller.signal
}

/** Resolves when `signal` aborts, with its reason. */
export const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true })
  })

/** The error `work` was rejected with; fails if it was not, or with another class. */
export async function refusal<E extends PawlError>(
  work: Promise<unknown>,
  kind: new (...args: never[]) => E,
): Promise<E> {
  const [result] = await Promise.allSettled([work])
  if (result.status === 'rejected' && result.reason instanceof kind) return result.reason
  return expect.fail(
    `expected a rejection with ${kind.name}, got ${result.status === 'rejected' ? `${result.reason}` : 'a value'}`,
  )
}

/** What must hold of every error a store throws: one of ours, with a message. */
export const anyRefusal = (work: Promise<unknown>): Promise<PawlError> => refusal(work, PawlError)

/** Lets everything that is ready run, timers excepted. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

type Test = (name: string, body: () => Promise<void>) => void

/** Skips by name, with the reason in the title, where a store cannot do it. */
export const testUnless = (reason: string | undefined): Test =>
  reason === undefined ? test : (name, body) => test.skip(`${name} (skipped: ${reason})`, body)
