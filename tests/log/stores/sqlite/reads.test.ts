/** Following a log: nothing may go unnoticed between the look that found nothing and the wait. */
import { expect, test } from 'vitest'
import { encodeEvents } from '../../../../src/log/stores/sqlite/batch.ts'
import type { Pulse } from '../../../../src/log/stores/sqlite/pulse.ts'
import { createReads } from '../../../../src/log/stores/sqlite/reads.ts'
import { chunks, whileTesting } from '../../../kit/store-contract/fixtures.ts'
import { ledgerBench } from '../sqlite-fixtures.ts'

/** As if every change had been noticed, and its waiters woken, before the one at hand began to wait. */
const NEVER_AGAIN: Pulse = { wait: () => new Promise(() => {}), add() {}, poll() {}, wake() {} }

test('a subscriber that was busy when an event came looks again before it waits', async () => {
  const { path, reader, commit, own } = ledgerBench()
  const { session, epoch } = own('s')
  const append = (seq: number): void => {
    commit({ kind: 'append', session, epoch, expectedSeq: seq, batch: encodeEvents(chunks(seq, 1)), takes: [] })
  }
  const reads = createReads({
    path,
    look: async (query) => query(reader),
    lookNow: (query) => query(reader),
    logs: NEVER_AGAIN,
    owning: () => () => true,
  })
  append(0)
  const events = reads.subscribe('s', { from: 0, signal: whileTesting() })[Symbol.asyncIterator]()
  expect(await events.next()).toMatchObject({ value: { seq: 0 } })
  append(1)
  expect(await events.next()).toMatchObject({ value: { seq: 1 } })
})
