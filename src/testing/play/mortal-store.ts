/** A store as a process has it that may die: from then on nothing reaches it, and nothing is heard of it. */
import type { LogStore, Ownership } from '../../log/store.ts'

export interface MortalStore {
  readonly store: LogStore
  /** Appends never settle from here on, commands end, and nothing is lost or given back any more. */
  die(): void
  /** Gives back what the dead process owned: what an operating system does for one that is gone. */
  release(): Promise<void>
}

export function mortalStore(inner: LogStore, changed: () => void): MortalStore {
  const owned: Ownership[] = []
  const death = new AbortController()
  return {
    store: {
      ...inner,
      async acquire(id, options) {
        const owner = await inner.acquire(id, options)
        owned.push(owner)
        return mortal(owner, death.signal, changed)
      },
    },
    die: () => death.abort(),
    async release() {
      for (const owner of owned) await owner.release()
    },
  }
}

const never = new Promise<never>(() => {})

function mortal(owner: Ownership, death: AbortSignal, changed: () => void): Ownership {
  const lost = new AbortController()
  owner.lost.addEventListener('abort', () => death.aborted || lost.abort(owner.lost.reason), { once: true })
  return {
    header: owner.header,
    epoch: owner.epoch,
    head: owner.head,
    ...(owner.posted === undefined ? {} : { posted: owner.posted }),
    lost: lost.signal,
    async append(events, options) {
      if (death.aborted) return never
      await owner.append(events, options)
      if (death.aborted) return never
      changed()
    },
    ...(owner.checkpoint === undefined ? {} : { checkpoint: async () => owner.checkpoint?.() }),
    ...(owner.keep === undefined ? {} : { keep: (kept) => (death.aborted ? never : (owner.keep?.(kept) ?? never)) }),
    // Often, so that lives of a few dozen events are opened from checkpoints too.
    keepEvery: 25,
    commands: (signal) => owner.commands(AbortSignal.any([signal, death])),
    release: async () => (death.aborted ? undefined : owner.release()),
  }
}
