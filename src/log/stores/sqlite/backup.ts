/** A consistent copy of the whole database, taken while it is in use. */

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import type { FailedReply } from './protocol.ts'
import { workerEntry } from './worker-entry.ts'

export interface CopierData {
  readonly path: string
  readonly to: string
}

export type FromCopier = { readonly kind: 'done' } | FailedReply

/** Copies the database at `path` to `to`, which appears only once it is whole. @throws StoreFailure, also if `to` exists */
export async function backUp(path: string, to: string): Promise<void> {
  if (existsSync(to)) throw storeFailure('io', to, 'a backup never replaces a file that exists')
  const worker = new Worker(workerEntry('copier'), { workerData: { path, to } satisfies CopierData })
  const [reply] = await once(worker, 'message').catch((error: unknown) => {
    throw storeFailure('io', to, error instanceof Error ? error.message : String(error), error)
  })
  const outcome: FromCopier = reply
  if (outcome.kind === 'failed') throw new StoreFailure(outcome.reason, outcome.message)
}
