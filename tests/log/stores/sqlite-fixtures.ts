/** What the tests of the SQLite store share: a folder each, and child processes that end with the test. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { LogStore } from '../../../src/log/store.ts'
import { createStore, type StoreSettings } from '../../../src/log/stores/sqlite/store.ts'

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
export function childProcess(task: string, path: string, argument = '', flags: readonly string[] = []): Child {
  const script = fileURLToPath(new URL('./sqlite-child.mjs', import.meta.url))
  const child = fork(script, [task, path, argument], {
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

/** Resolves once `count` facts were told. */
export async function told(child: Child, count: number): Promise<void> {
  while (child.told.length < count) await once(child.process, 'message')
}
