/** The SQLite store: the contract, plain and behind a slow line. Build first: its writer runs from `dist`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import type { LogStore } from '../../../src/log/store.ts'
import { sqliteStore } from '../../../src/log/stores/sqlite.ts'
import { faultyStore } from '../../kit/faulty-store.ts'
import type { OpenedStore } from '../../kit/store-contract/fixtures.ts'
import { storeContract } from '../../kit/store-contract.ts'

// Each test starts a thread, on however busy a machine.
vi.setConfig({ testTimeout: 60_000 })

const plain = (store: LogStore): LogStore => store

/** Every store that is opened here is on the same new file. */
async function openSqlite(wrap: (store: LogStore) => LogStore): Promise<OpenedStore> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-sqlite-'))
  const stores: LogStore[] = []
  const another = async (): Promise<LogStore> => {
    const store = wrap(sqliteStore(join(folder, 'pawl.db')))
    stores.push(store)
    return store
  }
  const store = await another()
  return {
    store,
    second: another,
    async reopen() {
      await store[Symbol.asyncDispose]()
      return another()
    },
    async dispose() {
      for (const one of stores) await one[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
}

storeContract('sqlite', () => openSqlite(plain))

storeContract('sqlite, late and out of order,', () =>
  openSqlite((store) => faultyStore(store, { seed: 7, maxTurns: 5 })),
)
