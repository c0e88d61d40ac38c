/** Checkpoints for tests: of any beginning of a log, by the folds that an opening makes, and a store that gives them. */
import type { LivingAgent } from '../../src/agent/living.ts'
import { type AgentOptions, checkOptions } from '../../src/agent/options.ts'
import { Presence } from '../../src/agent/presence.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { type CheckpointContent, encodeCheckpoint } from '../../src/log/session/checkpoint.ts'
import { createFolded, type Folded } from '../../src/log/session/folded.ts'
import type { Checkpoint, LogStore, Ownership, SessionHeader } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'

export const HEADER: SessionHeader = { format: 1, id: 'session', createdAt: 0 }

const OWNERSHIP: Ownership = {
  header: HEADER,
  epoch: 1,
  head: 0,
  lost: new AbortController().signal,
  append: async () => {},
  async *commands() {},
  release: async () => {},
}

/** All that an opening folds: the session's folds, and the agent that folds along. */
export interface Folds {
  readonly folded: Folded
  readonly living: LivingAgent
  push(event: SessionEvent): void
  content(): CheckpointContent
}

/** Those of an empty log, or of the one that left `from`. */
export function createFolds(from?: CheckpointContent, options: Partial<AgentOptions> = {}): Folds {
  const given = { model: scripted(() => 'ok'), ...options }
  const presence = new Presence({
    store: memoryStore(),
    ownership: OWNERSHIP,
    options: given,
    checked: checkOptions(given),
    watch: {},
  })
  const living = presence.awake()
  const folded = createFolded(from?.folds)
  if (from !== undefined && !living.restore(from.holder)) throw new Error('The agent does not take this checkpoint')
  return {
    folded,
    living,
    push(event) {
      folded.place(event)
      living.onLoaded(event)
    },
    content: () => ({ folds: folded.saved(), holder: living.save() }),
  }
}

/** All of it as plain data, with what is long in it. */
export function plainContent({ folds, holder }: CheckpointContent): unknown {
  const { calls, standings, surface, ...short } = folds
  const plain = {
    ...short,
    calls: { scheduled: calls.scheduled, used: calls.used() },
    standings: { ...standings, records: standings.records() },
    surface: surface().map(({ seq, type, data }) => ({ seq, type, data })),
    holder,
  }
  return JSON.parse(JSON.stringify(plain))
}

/** The checkpoint that an agent with these options would keep of a log. */
export async function checkpointOf(
  events: readonly SessionEvent[],
  header: SessionHeader = HEADER,
  options: Partial<AgentOptions> = {},
): Promise<Checkpoint> {
  const folds = createFolds(undefined, options)
  for (const event of events) folds.push(event)
  const place = { header, maker: folds.living.maker }
  return { seq: events.length, body: await encodeCheckpoint(place, folds.content()) }
}

export interface CheckpointStore extends LogStore {
  /** The last checkpoint of each session. */
  readonly kept: Map<string, Checkpoint>
  /** What each opening was given, by the seq of its checkpoint; -1 where there was none. */
  readonly given: number[]
  /** From which seq on each opening read. */
  readonly readFrom: number[]
}

/** Over any store; `every` is after how many events it wants another. */
export function checkpointStore(inner: LogStore, every = 1_000): CheckpointStore {
  const kept = new Map<string, Checkpoint>()
  const given: number[] = []
  const readFrom: number[] = []
  const { pages: _, rest, ...others } = inner
  const wrapped = new WeakMap<Ownership, Ownership>()
  const wrap = (id: string, owner: Ownership): Ownership => {
    const wrapper: Ownership = {
      ...owner,
      keepEvery: every,
      async checkpoint() {
        given.push(kept.get(id)?.seq ?? -1)
        return kept.get(id)
      },
      checkpointNow: () => kept.get(id),
      async keep(checkpoint) {
        kept.set(id, checkpoint)
      },
    }
    wrapped.set(wrapper, owner)
    return wrapper
  }
  return {
    ...others,
    ...(rest && {
      rest(ownership, owner) {
        const own = wrapped.get(ownership)
        const resting = own && rest(own, owner)
        return (
          resting && {
            wake: (head) => wrap(ownership.header.id, resting.wake(head)),
            release: () => resting.release(),
          }
        )
      },
    }),
    kept,
    given,
    readFrom,
    read(id, options) {
      readFrom.push(options?.from ?? 0)
      return inner.read(id, options)
    },
    async acquire(id, options) {
      return wrap(id, await inner.acquire(id, options))
    },
  }
}
