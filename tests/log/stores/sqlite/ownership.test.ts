/** An append whose writer died before it answered: the log itself says whether it took place. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { StoreFailure } from '../../../../src/log/errors.ts'
import type { Ownership } from '../../../../src/log/store.ts'
import { createLeases } from '../../../../src/log/stores/sqlite/leases.ts'
import { Tenure } from '../../../../src/log/stores/sqlite/ownership.ts'
import type { Reply } from '../../../../src/log/stores/sqlite/protocol.ts'
import { createPulse } from '../../../../src/log/stores/sqlite/pulse.ts'
import { fill, refusal } from '../../../kit/store-contract/fixtures.ts'
import { ledgerBench } from '../sqlite-fixtures.ts'

const DEAD: Reply = { kind: 'failed', reason: 'io', message: 'the writer ended', doubtful: true }

/** Owns a session of a new file; `last` says what the writer does before it dies, once it is set. */
function ownedSession(): { owner: Ownership; writer: { last: 'commit' | 'nothing' | undefined } } {
  const { reader, commit, own } = ledgerBench()
  const writer: { last: 'commit' | 'nothing' | undefined } = { last: undefined }
  const leases = createLeases(() => reader)
  onTestFinished(() => leases.loseAll(() => new StoreFailure('io', 'the test is over')))
  const acquired = own('s')
  const tenure = new Tenure(acquired, {
    async ask(request) {
      const reply = writer.last === 'nothing' ? DEAD : commit(request)[0]
      return writer.last === undefined && reply !== undefined ? reply : DEAD
    },
    look: async (query) => query(reader),
    lookNow: (query) => query(reader),
    leases,
    logs: createPulse(() => 0),
    posts: createPulse(() => 0),
  })
  return { owner: tenure.wake(acquired.head), writer }
}

test('an append that was committed before the writer died has succeeded', async () => {
  const { owner, writer } = ownedSession()
  await fill(owner, 0, 2)
  writer.last = 'commit'
  await fill(owner, 2, 3)
})

test('an append that was not committed before the writer died has failed', async () => {
  const { owner, writer } = ownedSession()
  await fill(owner, 0, 2)
  writer.last = 'nothing'
  expect(await refusal(fill(owner, 2, 3), StoreFailure)).toMatchObject({ reason: 'io' })
})

test('a session that was taken before its owner had heard that it has it is lost all the same', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { connection, reader, own } = ledgerBench()
  const leases = createLeases(() => reader)
  const lost: number[] = []
  const add = ({ session, epoch, owner }: ReturnType<typeof own>): void =>
    leases.add({ session, epoch, owner, lose: () => lost.push(session) })
  const other = own('other')
  const mine = own('mine')
  add(other)
  connection.exec(
    `UPDATE meta SET value = 9 WHERE key = 'epoch'; UPDATE sessions SET epoch = 9 WHERE id = ${mine.session}`,
  )
  vi.advanceTimersByTime(1_000)
  add(mine)
  vi.advanceTimersByTime(1_000)
  expect(lost).toEqual([mine.session])
  leases.loseAll(() => new StoreFailure('io', 'the test is over'))
})
