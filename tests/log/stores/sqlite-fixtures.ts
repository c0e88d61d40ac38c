/** What the tests of the SQLite store share: a folder each, and child processes that end with the test. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { LogStore } from '../../../src/log/store.ts'
import { type Connection, connect } from '../../../src/log/stores/sqlite/driver.ts'
import { commitGroup, GROUP } from '../../../src/log/stores/sqlite/group.ts'
import { makePlace } from '../../../src/log/stores/sqlite/place.ts'
import type { Reply, Request } from '../../../src/log/stores/sqlite/protocol.ts'
import { createReader, type Reader } from '../../../src/log/stores/sqlite/reader.ts'
import { openWriter } from '../../../src/log/stores/sqlite/schema.ts'
import { createStore, type StoreSettings } from '../../../src/log/stores/sqlite/store.ts'
import type { Ledger } from '../../../src/log/stores/sqlite/transactions.ts'
import { header } from '../../kit/store-contract/fixtures.ts'

/** A folder that is gone after the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-sqlite-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A path in a new folder, with no file there. */
export const newFile = (): string => join(newFolder(), 'pawl.db')

/** A store on `path` that is closed after the test. */
export function storeOn(path: string, settings: Partial<StoreSettings> = {}): ReturnType<typeof createStore> {
  const store = createStore(path, { busyTimeoutMs: 5_000, ...settings })
  onTestFinished(() => close(store))
  return store
}

export const close = (store: LogStore): PromiseLike<void> => store[Symbol.asyncDispose]()

export interface Child {
  readonly process: ChildProcess
  /** Every fact it told so far. */
  readonly told: Record<string, unknown>[]
  /** Resolves with the first fact of that name, told before or later; rejects when the child ends without one. */
  hears(name: string): Promise<unknown>
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>
  kill(): Promise<void>
}

/** Runs a task of `sqlite-child.mjs`; `flags` are for Node. */
export const childProcess = (task: string, path: string, argument = '', flags: readonly string[] = []): Child =>
  childOf(fileURLToPath(new URL('./sqlite-child.mjs', import.meta.url)), [task, path, argument], flags)

/** Runs a script that tells facts over IPC. */
export function childOf(script: string, argv: readonly string[], flags: readonly string[] = []): Child {
  const child = fork(script, [...argv], {
    execArgv: [...flags],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const told: Record<string, unknown>[] = []
  const listeners = new Set<() => void>()
  child.on('message', (fact: Record<string, unknown>) => {
    told.push(fact)
    for (const listener of [...listeners]) listener()
  })
  const ended = once(child, 'exit').then(([code, signal]): number | NodeJS.Signals => signal ?? code)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  return {
    process: child,
    told,
    ended,
    kill,
    hears: (name) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const fact = told.find((one) => name in one)
          if (fact === undefined) return
          listeners.delete(look)
          resolve(fact[name])
        }
        listeners.add(look)
        void ended.then((how) => reject(new Error(`the child ended (${how}) before it told "${name}"`)))
        look()
      }),
  }
}

/** Resolves once `count` facts were told; rejects when the child ends before. */
export async function told(child: Child, count: number): Promise<void> {
  const ended = child.ended.then((how) =>
    Promise.reject(new Error(`the child ended (${how}) after ${child.told.length}`)),
  )
  while (child.told.length < count) await Promise.race([once(child.process, 'message'), ended])
  ended.catch(() => {})
}

export type Acquired = Reply & { readonly kind: 'acquired' }

/** The writer's work without its thread, on a new file. */
export interface LedgerBench {
  readonly path: string
  readonly connection: Connection
  readonly reader: Reader
  /** Commits what fits in one group of `requests`. */
  commit(...requests: Request[]): readonly Reply[]
  /** Acquires a session that is made if missing. */
  own(name: string): Acquired
}

/** `wrap` puts faults between the writer and its connection. */
export function ledgerBench(wrap = (connection: Connection): Connection => connection): LedgerBench {
  const path = makePlace(newFile())
  const connection = openWriter(path, { busyTimeoutMs: 100 })
  const ledger: Ledger = { connection: wrap(connection), owner: undefined, held: new Map(), undo: [] }
  const reader = createReader(connect(path))
  onTestFinished(() => {
    reader.connection.close()
    connection.close()
    ledger.owner?.release()
  })
  // However slow the machine is.
  const bounds = { ...GROUP, ms: Number.POSITIVE_INFINITY }
  const commit = (...requests: Request[]): readonly Reply[] =>
    commitGroup(ledger, requests, { busyTimeoutMs: 100, bounds })
  return {
    path,
    connection,
    reader,
    commit,
    own(name) {
      const [reply] = commit({
        kind: 'acquire',
        name,
        steal: false,
        header: JSON.stringify(header(name)),
        createdAt: 1,
      })
      return reply?.kind === 'acquired' ? reply : expect.fail(`not acquired: ${JSON.stringify(reply)}`)
    },
  }
}
