/** What a file holds once its sessions rest: few rows for many appends, and no more mail than somebody may ask for. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Ownership } from '../../../../src/log/store.ts'
import { type Connection, connect } from '../../../../src/log/stores/sqlite/driver.ts'
import {
  chunk,
  chunks,
  command,
  fill,
  logOf,
  own,
  range,
  take,
  whileTesting,
} from '../../../kit/store-contract/fixtures.ts'
import { childProcess, newFile, storeOn, told } from '../sqlite-fixtures.ts'

vi.setConfig({ testTimeout: 60_000 })

function beside(path: string): Connection {
  const connection = connect(path)
  onTestFinished(() => connection.close())
  return connection
}

const countOf = (connection: Connection, table: 'log' | 'mailbox'): number =>
  connection.statement(`SELECT 1 FROM ${table}`).all().length

async function appendSmall(owner: Ownership, from: number, to: number): Promise<void> {
  for (const seq of range(from, to)) await fill(owner, seq, 1)
}

describe('rows at rest', () => {
  test('are few, however many appends there were, over any number of owners', async () => {
    const path = newFile()
    const store = storeOn(path)
    for (const from of [0, 30, 60, 90]) {
      const owner = await own(store)
      await appendSmall(owner, from, from + 30)
      await owner.release()
    }
    expect(countOf(beside(path), 'log')).toBe(1)
    expect(await logOf(store)).toEqual(chunks(0, 120))
    await fill(await own(store), 120, 2)
    expect(await logOf(store)).toEqual(chunks(0, 122))
  })

  test('are left alone where they are few, so that a short visit writes nothing twice', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    await appendSmall(owner, 0, 9)
    await owner.release()
    expect(countOf(beside(path), 'log')).toBe(9)
  })

  test('that a checkpoint covers stay as they are: it is as good as before', async () => {
    const path = newFile()
    const store = storeOn(path)
    const first = await own(store)
    await appendSmall(first, 0, 10)
    await first.keep?.({ seq: 10, body: new Uint8Array([1]) })
    await appendSmall(first, 10, 40)
    await first.release()
    expect(countOf(beside(path), 'log')).toBe(11)
    const second = await own(store)
    expect((await second.checkpoint?.())?.seq).toBe(10)
    expect(await logOf(store)).toEqual(chunks(0, 40))
  })

  test('large ones are not written again', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    await owner.append([chunk(0, 'x'.repeat(40_000))], { expectedSeq: 0 })
    const other = beside(path)
    const place = (): unknown => other.statement('SELECT rowid AS n FROM log WHERE first_seq = 0').get()?.n
    const before = place()
    await appendSmall(owner, 1, 40)
    await owner.release()
    expect(countOf(other, 'log')).toBe(2)
    expect(place()).toBe(before)
  })

  test('one who follows the log in another instance misses nothing and gets nothing twice', async () => {
    const path = newFile()
    const [here, there] = [storeOn(path), storeOn(path)]
    await (await own(here)).release()
    const views = [0, 7, 45].map((from) => take(there.subscribe('s', { from, signal: whileTesting() }), 150 - from))
    for (const from of [0, 50, 100]) {
      const owner = await own(here)
      await appendSmall(owner, from, from + 50)
      await owner.release()
    }
    expect(await Promise.all(views)).toEqual([0, 7, 45].map((from) => chunks(from, 150 - from)))
  })

  test('whoever gives a session up and takes it at once gets it', async () => {
    const store = storeOn(newFile())
    const owner = await own(store)
    await appendSmall(owner, 0, 30)
    void owner.release()
    await fill(await own(store), 30, 1)
    expect(await logOf(store)).toEqual(chunks(0, 31))
  })

  test('an owner that is put out puts no rows together', async () => {
    const path = newFile()
    const store = storeOn(path)
    const loser = await own(store)
    await appendSmall(loser, 0, 30)
    const winner = await storeOn(path).acquire('s', { steal: true })
    await loser.release()
    await fill(winner, 30, 1)
    expect(countOf(beside(path), 'log')).toBe(31)
  })

  test('are whole, whenever their process is killed', async () => {
    const path = newFile()
    for (const visits of [2, 5, 8]) {
      const visitor = childProcess('visit', path)
      await told(visitor, visits)
      await visitor.kill()
      const log = await logOf(storeOn(path))
      expect(log.map(({ data }) => data)).toEqual(range(0, log.length).map((n) => ({ n })))
      expect(log.length).toBeGreaterThanOrEqual(Number(visitor.told.at(-1)?.head))
    }
  })
})

describe('mail at rest', () => {
  test('what a command said goes when it is taken, and what became of it a day after, but for the last hundred', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    const ids = range(0, 130).map((i) => `c${i}`)
    for (const id of ids) await store.post('s', command(id))
    await store.post('s', command('open'))
    const takes = ids.map((id, seq) => ({ id, outcome: { kind: 'taken', seq } as const }))
    await owner.append([], { expectedSeq: 0, takes })
    const other = beside(path)
    expect(other.statement("SELECT 1 FROM mailbox WHERE command != ''").all()).toHaveLength(1)
    await owner.release()
    expect(countOf(other, 'mailbox')).toBe(131)
    other.exec('UPDATE mailbox SET taken_at = taken_at - 86400000')
    const next = await own(store)
    await next.release()
    expect(countOf(other, 'mailbox')).toBe(101)
    expect(await store.outcome('s', 'c30', whileTesting())).toEqual({ kind: 'taken', seq: 30 })
    expect(other.statement("SELECT 1 FROM mailbox WHERE id = 'c29'").get()).toBeUndefined()
  })

  test('a command that is posted again within the day is the same command', async () => {
    const store = storeOn(newFile())
    const owner = await own(store)
    await store.post('s', command('c'))
    await owner.append([], { expectedSeq: 0, takes: [{ id: 'c', outcome: { kind: 'taken', seq: 3 } }] })
    await owner.release()
    await store.post('s', command('c'))
    await store.post('s', command('end'))
    const [first] = await take((await own(store)).commands(whileTesting()), 1)
    expect(first?.id).toBe('end')
    expect(await store.outcome('s', 'c', whileTesting())).toEqual({ kind: 'taken', seq: 3 })
  })
})
