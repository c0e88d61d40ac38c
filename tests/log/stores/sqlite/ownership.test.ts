/** An append whose writer died before it answered: the log itself says whether it took place. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { StoreFailure } from '../../../../src/log/errors.ts'
import type { Ownership } from '../../../../src/log/store.ts'
import { connect } from '../../../../src/log/stores/sqlite/driver.ts'
import { commitGroup } from '../../../../src/log/stores/sqlite/group.ts'
import { createLeases } from '../../../../src/log/stores/sqlite/leases.ts'
import { createOwnership } from '../../../../src/log/stores/sqlite/ownership.ts'
import { makePlace } from '../../../../src/log/stores/sqlite/place.ts'
import type { Reply, Request } from '../../../../src/log/stores/sqlite/protocol.ts'
import { createPulse } from '../../../../src/log/stores/sqlite/pulse.ts'
import { createReader } from '../../../../src/log/stores/sqlite/reader.ts'
import { openWriter } from '../../../../src/log/stores/sqlite/schema.ts'
import type { Ledger } from '../../../../src/log/stores/sqlite/transactions.ts'
import { fill, header, refusal } from '../../../kit/store-contract/fixtures.ts'

const DEAD: Reply = { kind: 'failed', reason: 'io', message: 'the writer ended', doubtful: true }

/** Owns a session of a new file; `dying` says what the writer still does before it dies, once it is set. */
function ownedSession(): { owner: Ownership; dying: { after: 'committing' | 'nothing' | undefined } } {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-ownership-'))
  const path = makePlace(join(folder, 'pawl.db'))
  const ledger: Ledger = {
    connection: openWriter(path, { busyTimeoutMs: 100 }),
    owner: undefined,
    held: new Map(),
    undo: [],
  }
  const reader = createReader(connect(path))
  const leases = createLeases(() => reader)
  const dying: { after: 'committing' | 'nothing' | undefined } = { after: undefined }
  onTestFinished(() => {
    leases.loseAll(() => new StoreFailure('io', 'the test is over'))
    reader.connection.close()
    ledger.connection.close()
    ledger.owner?.release()
    rmSync(folder, { recursive: true })
  })

  const commit = (request: Request): Reply => commitGroup(ledger, [request], 100)[0] ?? DEAD
  const create = { header: JSON.stringify(header('s')), createdAt: 1 }
  const acquired = commit({ kind: 'acquire', name: 's', steal: false, ...create })
  if (acquired.kind !== 'acquired') return expect.fail(`not acquired: ${acquired.kind}`)
  const owner = createOwnership(acquired, {
    async ask(request) {
      const reply = dying.after === 'nothing' ? DEAD : commit(request)
      return dying.after === undefined ? reply : DEAD
    },
    look: async (query) => query(reader),
    leases,
    logs: createPulse(() => 0),
    posts: createPulse(() => 0),
  })
  return { owner, dying }
}

test('an append that was committed before the writer died has succeeded', async () => {
  const { owner, dying } = ownedSession()
  await fill(owner, 0, 2)
  dying.after = 'committing'
  await fill(owner, 2, 3)
})

test('an append that was not committed before the writer died has failed', async () => {
  const { owner, dying } = ownedSession()
  await fill(owner, 0, 2)
  dying.after = 'nothing'
  expect(await refusal(fill(owner, 2, 3), StoreFailure)).toMatchObject({ reason: 'io' })
})
