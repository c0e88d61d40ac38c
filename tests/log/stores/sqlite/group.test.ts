/** Group commit: what a failing transaction does to those in it, and how a doubtful COMMIT is settled. */
import { expect, test } from 'vitest'
import { encodeEvents } from '../../../../src/log/stores/sqlite/batch.ts'
import { storeFailure, type Value } from '../../../../src/log/stores/sqlite/driver.ts'
import type { AppendRequest, Reply } from '../../../../src/log/stores/sqlite/protocol.ts'
import { chunks, header, range } from '../../../kit/store-contract/fixtures.ts'
import { type Acquired, type LedgerBench, ledgerBench } from '../sqlite-fixtures.ts'

/** What happens at each COMMIT to come: `lost` is done and reported as failed, `failed` is not done; then all is well. */
type Commit = 'lost' | 'failed'

interface Bench extends LedgerBench {
  commits: Commit[]
  /** Appends of this many events fail while they are written. */
  failing: number | undefined
  rows(): number
  begins: number
}

function bench(): Bench {
  const faults: Pick<Bench, 'commits' | 'failing' | 'begins'> = { commits: [], failing: undefined, begins: 0 }
  const made = ledgerBench((inner) => ({
    ...inner,
    exec(sql) {
      if (sql === 'BEGIN IMMEDIATE') faults.begins += 1
      const fault = sql === 'COMMIT' ? faults.commits.shift() : undefined
      if (fault !== 'failed') inner.exec(sql)
      if (fault !== undefined) throw storeFailure('io', inner.path, `COMMIT ${fault}`)
    },
    statement(sql) {
      const statement = inner.statement(sql)
      if (!sql.startsWith('INSERT INTO log')) return statement
      return { ...statement, run: (...values) => refuseFailing(statement.run(...values), values, inner.path) }
    },
  }))
  const refuseFailing = (changes: number, [, first, last]: readonly Value[], path: string): number => {
    if (Number(last) - Number(first) + 1 === faults.failing) throw storeFailure('full', path, 'no room')
    return changes
  }
  const rows = (): number => made.connection.statement('SELECT 1 FROM log').all().length
  return Object.assign(faults, made, { rows })
}

const appending = (owner: Acquired, from: number, count: number): AppendRequest => ({
  kind: 'append',
  session: owner.session,
  epoch: owner.epoch,
  expectedSeq: from,
  batch: encodeEvents(chunks(from, count)),
  takes: [],
})

const kinds = (replies: readonly Reply[]): string[] => replies.map(({ kind }) => kind)

test('requests that wait together share one transaction', () => {
  const made = bench()
  const owners = range(0, 10).map((i) => made.own(`s${i}`))
  made.begins = 0
  expect(kinds(made.commit(...owners.map((owner) => appending(owner, 0, 3))))).toEqual(owners.map(() => 'done'))
  expect(made.rows()).toBe(10)
  expect(made.begins).toBe(1)
})

test('a group is bounded: what is over waits for the next one', () => {
  const made = bench()
  const owner = made.own('s')
  const large = range(0, 12).map((i) => ({
    ...appending(owner, i, 1),
    batch: encodeEvents(chunks(i, 1, 'x'.repeat(1_000_000))),
  }))
  const replies = made.commit(...large)
  expect(replies.length).toBeGreaterThan(0)
  expect(replies.length).toBeLessThan(6)
  expect(made.rows()).toBe(replies.length)
})

test.each<Commit>(['lost', 'failed'])(
  'after a COMMIT that was %s each append is in the log once, and is told so',
  (fault) => {
    const made = bench()
    const owners = [made.own('a'), made.own('b'), made.own('c')]
    made.commits = [fault]
    expect(kinds(made.commit(...owners.map((owner) => appending(owner, 0, 2))))).toEqual(['done', 'done', 'done'])
    expect(made.rows()).toBe(3)
    expect(kinds(made.commit(...owners.map((owner) => appending(owner, 2, 1))))).toEqual(['done', 'done', 'done'])
  },
)

test('an append whose COMMIT is lost twice is still found in the log', () => {
  const made = bench()
  const owner = made.own('a')
  made.commits = ['failed', 'lost']
  expect(kinds(made.commit(appending(owner, 0, 2)))).toEqual(['done'])
  expect(made.rows()).toBe(1)
})

test('when no COMMIT works, every append fails with its reason and nothing is written', () => {
  const made = bench()
  const owners = [made.own('a'), made.own('b')]
  made.commits = ['failed', 'failed', 'failed']
  const replies = made.commit(...owners.map((owner) => appending(owner, 0, 2)))
  expect(replies).toMatchObject([
    { kind: 'failed', reason: 'io' },
    { kind: 'failed', reason: 'io' },
  ])
  expect(made.rows()).toBe(0)
})

test('of a group that is rolled back, only the request that cannot be written fails', () => {
  const made = bench()
  const owners = ['a', 'b', 'c', 'd'].map(made.own)
  made.failing = 7
  const requests = owners.map((owner, i) => appending(owner, 0, i === 2 ? 7 : 2))
  // The fourth was not reached: it stays in the queue.
  expect(kinds(made.commit(...requests))).toEqual(['done', 'done', 'failed'])
  expect(made.rows()).toBe(2)
})

test.each<Commit>(['lost', 'failed'])(
  'an acquire whose COMMIT was %s gets the session, under an epoch of its own',
  (fault) => {
    const made = bench()
    const first = made.own('other')
    made.commits = [fault]
    const owner = made.own('s')
    expect(owner.epoch).toBeGreaterThan(first.epoch)
    expect(kinds(made.commit(appending(owner, 0, 1)))).toEqual(['done'])
  },
)

test.each<Commit>(['lost', 'failed'])('a delete whose COMMIT was %s is a delete', (fault) => {
  const made = bench()
  const { session, epoch } = made.own('s')
  made.commit({ kind: 'release', session, epoch })
  made.commits = [fault]
  expect(kinds(made.commit({ kind: 'delete', name: 's' }))).toEqual(['done'])
  expect(kinds(made.commit({ kind: 'delete', name: 's' }))).toEqual(['not-found'])
})

test('an acquire that is rolled back leaves the session free', () => {
  const made = bench()
  made.commits = ['failed', 'failed']
  const create = { header: JSON.stringify(header('s')), createdAt: 1 }
  expect(kinds(made.commit({ kind: 'acquire', name: 's', steal: false, ...create }))).toEqual(['failed'])
  made.own('s')
})
