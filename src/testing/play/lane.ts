/**
 * Where paths are played, each in a session of its own: one file, one open store, as in one process with many agents.
 * They die together: who comes to a crash waits until everybody has, or is through, and the store is opened anew once.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogStore } from '../../log/store.ts'
import { sqliteStore } from '../../log/stores/sqlite.ts'

export interface Lane extends AsyncDisposable {
  /** The store as it is open now. */
  readonly store: LogStore
  /** An id that no session of this lane has. */
  newSession(): string
  /** A path begins: from here on a crash waits for it too. */
  enter(): Promise<void>
  /** The path is through, and everything of it dead. */
  leave(): void
  /** What the death of the process means to the store: it is closed, and opened anew from what is on the disk. */
  reopen(): Promise<void>
}

/** How a store is opened, again and again, or the path of a SQLite file. */
export type LaneStore = string | { open(): LogStore }

interface Waiting {
  resolve(): void
  reject(error: unknown): void
}

/** A lane over that store; without one over a new SQLite file, which is removed in the end. Disposing closes the store. */
export async function createLane(at?: LaneStore): Promise<Lane> {
  const folder = at === undefined ? await mkdtemp(join(tmpdir(), 'pawl-path-')) : undefined
  const open = opener(at ?? join(folder ?? '', 'paths.db'))
  const run = `${process.pid}-${Date.now().toString(36)}`
  const removeFolder = async (): Promise<void> => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
  let store: LogStore
  try {
    store = open()
  } catch (thrown) {
    await removeFolder()
    throw thrown
  }
  let sessions = 0
  let inside = 0
  let dead: Waiting[] = []
  let reopening: Promise<void> | undefined

  const dieTogether = (): void => {
    if (dead.length === 0 || dead.length < inside) return
    const all = dead
    dead = []
    reopening = reopen()
    reopening.then(
      () => {
        for (const { resolve } of all) resolve()
      },
      (error: unknown) => {
        for (const { reject } of all) reject(error)
      },
    )
  }

  const reopen = async (): Promise<void> => {
    try {
      await store[Symbol.asyncDispose]()
      store = open()
    } finally {
      reopening = undefined
    }
  }

  return {
    get store() {
      return store
    },
    newSession: () => `path-${run}-${++sessions}`,
    async enter() {
      while (reopening !== undefined) await reopening
      inside += 1
    },
    leave() {
      inside -= 1
      dieTogether()
    },
    reopen: () =>
      new Promise((resolve, reject) => {
        dead.push({ resolve, reject })
        dieTogether()
      }),
    async [Symbol.asyncDispose]() {
      await Promise.resolve(store[Symbol.asyncDispose]()).finally(removeFolder)
    },
  }
}

const opener = (at: LaneStore): (() => LogStore) => (typeof at === 'string' ? () => sqliteStore(at) : () => at.open())
