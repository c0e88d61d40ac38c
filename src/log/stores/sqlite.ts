/**
 * A store in one SQLite file: for one machine, any number of processes. Needs Node 22.13 or later, or `libsql`.
 * What an append resolved for is on the disk.
 */
import type { LogStore } from '../store.ts'
import { createStore } from './sqlite/store.ts'

/**
 * The store at `path`, which is created (0600, its folder 0700) with the first session. Returns at once: what is wrong
 * with the file is told by the first call. `busyTimeoutMs` (5,000) bounds how long a locked file is waited for.
 * `backup` writes a consistent copy of the whole store to a file that must not exist. Every method throws StoreFailure.
 */
export function sqliteStore(
  path: string,
  { busyTimeoutMs = 5_000 }: { busyTimeoutMs?: number } = {},
): LogStore & { backup(to: string): Promise<void> } {
  return createStore(path, { busyTimeoutMs })
}
