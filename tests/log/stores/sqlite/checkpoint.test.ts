/** Checkpoints in the file: good only for the very rows they cover, and rows that are few and large once they are covered. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Ownership } from '../../../../src/log/store.ts'
import { type Connection, connect, type Value } from '../../../../src/log/stores/sqlite/driver.ts'
import { MIGRATIONS, migrate } from '../../../../src/log/stores/sqlite/schema.ts'
import { chunk, chunks, fill, logOf, own, range } from '../../../kit/store-contract/fixtures.ts'
import { childProcess, close, newFile, storeOn, told } from '../sqlite-fixtures.ts'
import { legacyRow } from './rows/legacy-row.ts'

vi.setConfig({ testTimeout: 60_000 })

const body = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
const keep = async (owner: Ownership, seq: number): Promise<void> => owner.keep?.({ seq, body: body(`up to ${seq}`) })
const keptSeq = async (owner: Ownership): Promise<number | undefined> => (await owner.checkpoint?.())?.seq

function beside(path: string): Connection {
  const connection = connect(path)
  onTestFinished(() => connection.close())
  return connection
}

const rowsOf = (connection: Connection, session = 1): readonly { first: number; bytes: number }[] =>
  connection
    .statement('SELECT first_seq, length(body) AS bytes FROM log WHERE session = ? ORDER BY first_seq')
    .all(session)
    .map((row) => ({ first: Number(row.first_seq), bytes: Number(row.bytes) }))

/** A session of `count` events, one a row, with a checkpoint over `covered` of them. */
async function written(count: number, covered: number, path = newFile()): Promise<string> {
  const store = storeOn(path)
  const owner = await own(store)
  for (const seq of range(0, covered)) await fill(owner, seq, 1)
  await keep(owner, covered)
  for (const seq of range(covered, count)) await fill(owner, seq, 1)
  await close(store)
  return path
}

/** What the next owner is given. */
async function given(path: string, id = 's'): Promise<number | undefined> {
  const store = storeOn(path)
  const owner = await own(store, id)
  const seq = await keptSeq(owner)
  await owner.release()
  return seq
}

describe('what a checkpoint covers is checked to the byte', () => {
  test.each([
    ['a row', 'UPDATE log SET body = zeroblob(length(body)) WHERE first_seq = 0'],
    ['the last bytes of a row', "UPDATE log SET body = CAST(substr(body, 1, length(body) - 1) || '}' AS BLOB)"],
    ['the end of a row', 'UPDATE log SET last_seq = last_seq + 1 WHERE first_seq = 0'],
    ['an encoding', 'UPDATE log SET encoding = 9 WHERE first_seq = 0'],
    ['that a row is there', 'DELETE FROM log WHERE first_seq = 0'],
    ['its digest', "UPDATE checkpoints SET digest = 'x' || substr(digest, 2)"],
    ['its seq, to one inside a row', 'UPDATE checkpoints SET seq = 5'],
    ['its seq, to one before it', 'UPDATE checkpoints SET seq = 0'],
    ['its seq, to one beyond it', 'UPDATE checkpoints SET seq = 41'],
    ['its seq, to one beyond the head', 'UPDATE checkpoints SET seq = 1000'],
    ['its body', 'UPDATE checkpoints SET body = zeroblob(length(body))'],
    ['the end of its body', 'UPDATE checkpoints SET body = substr(body, 1, length(body) - 1)'],
    ['its checksum', 'UPDATE checkpoints SET checksum = checksum + 1'],
    ['the kind of a column', "UPDATE checkpoints SET body = 'text'"],
    ["its session's header", "UPDATE sessions SET header = replace(header, '1700', '1701')"],
  ])('a change of %s makes it none, and the next one is good again', async (_, sql) => {
    const path = await written(45, 40)
    expect(await given(path)).toBe(40)
    const other = beside(path)
    const before = other.statement('SELECT * FROM log').all()
    other.exec(sql)
    const store = storeOn(path)
    const owner = await own(store)
    expect(await keptSeq(owner)).toBeUndefined()
    if (!sql.startsWith('UPDATE log') && !sql.startsWith('DELETE')) {
      expect(before.length).toBeLessThan(20)
      expect(await logOf(store)).toEqual(chunks(0, 45))
      await keep(owner, 45)
      expect(await keptSeq(owner)).toBe(45)
    }
  })

  test('a change that is taken back, and one of what comes after it, leave it good', async () => {
    const path = await written(45, 40)
    const other = beside(path)
    other.exec('UPDATE log SET encoding = 4 WHERE first_seq = 0')
    expect(await given(path)).toBeUndefined()
    other.exec('UPDATE log SET encoding = 3 WHERE first_seq = 0')
    expect(await given(path)).toBe(40)
    other.exec('DELETE FROM log WHERE first_seq >= 40')
    expect(await given(path)).toBe(40)
  })

  test('one of another session is none, also where both logs are the same', async () => {
    const path = newFile()
    const store = storeOn(path)
    for (const id of ['a', 'b']) {
      const owner = await own(store, id)
      await fill(owner, 0, 5)
      if (id === 'a') await keep(owner, 5)
    }
    await close(store)
    beside(
      path,
    ).exec(`INSERT INTO checkpoints SELECT (SELECT id FROM sessions WHERE name = 'b'), seq, digest, settled_seq,
      settled_digest, checksum, body FROM checkpoints`)
    expect([await given(path, 'a'), await given(path, 'b')]).toEqual([5, undefined])
  })

  test('an older one that is put back is good for what it covers, as long as its rows are as they were', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    await fill(owner, 0, 5)
    await keep(owner, 5)
    const other = beside(path)
    const old = other.statement('SELECT seq, digest, checksum, body FROM checkpoints').get() ?? {}
    await fill(owner, 5, 5)
    await keep(owner, 10)
    other
      .statement('UPDATE checkpoints SET seq = ?, digest = ?, checksum = ?, body = ?')
      .run(...['seq', 'digest', 'checksum', 'body'].map((name) => plain(old[name])))
    expect(await keptSeq(owner)).toBe(5)
  })

  test('one that was chained from what was changed is not the last that is wrong', async () => {
    const path = await written(45, 40)
    beside(path).exec("UPDATE checkpoints SET settled_digest = 'wrong', settled_seq = 0, digest = 'wrong'")
    const store = storeOn(path)
    const owner = await own(store)
    expect(await keptSeq(owner)).toBeUndefined()
    await keep(owner, 45)
    expect(await keptSeq(owner)).toBe(45)
  })

  test('to ask for it writes nothing', async () => {
    const path = await written(45, 40)
    const store = storeOn(path)
    const owner = await own(store)
    const other = beside(path)
    const version = (): unknown => other.statement('PRAGMA data_version').get()?.data_version
    const before = version()
    expect(await keptSeq(owner)).toBe(40)
    expect(version()).toBe(before)
  })
})

const plain = (value: unknown): Value => (typeof value === 'bigint' ? Number(value) : (value as Value))

describe('rows that a checkpoint covers', () => {
  test('are few and large, in a log of any length, and hold the same events', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    // Long enough for several parts, in appends of one and of many events.
    let seq = 0
    for (; seq < 3_000; seq += 100) await owner.append(chunks(seq, 100, 'word '.repeat(8)), { expectedSeq: seq })
    for (; seq < 3_600; seq++) await owner.append([chunk(seq, `${seq}`)], { expectedSeq: seq })
    const other = beside(path)
    const before = rowsOf(other)
    await keep(owner, seq)
    const after = rowsOf(other)
    expect(before.length).toBeGreaterThan(600)
    expect(after.length).toBeLessThanOrEqual(8)
    expect((await logOf(store)).slice(0, 3_000)).toEqual(chunks(0, 3_000, 'word '.repeat(8)))
    expect((await logOf(store)).slice(3_000)).toEqual(range(3_000, 3_600).map((at) => chunk(at, `${at}`)))
    expect(await keptSeq(owner)).toBe(seq)
    // Large ones are not written again.
    for (; seq < 3_640; seq++) await owner.append([chunk(seq, `${seq}`)], { expectedSeq: seq })
    await keep(owner, seq)
    const large = after.filter(({ bytes }) => bytes >= 32 * 1024)
    expect(large.length).toBeGreaterThan(0)
    expect(rowsOf(other)).toEqual(expect.arrayContaining(large))
    expect(await keptSeq(owner)).toBe(seq)
  })

  test('are settled in parts, between which other sessions append', async () => {
    const path = newFile()
    const store = storeOn(path)
    const [long, other] = [await own(store, 'long'), await own(store, 'other')]
    const text = 'x'.repeat(900)
    for (let seq = 0; seq < 2_000; seq += 40) await long.append(chunks(seq, 40, text), { expectedSeq: seq })
    const order: string[] = []
    const keeping = keep(long, 2_000).then(() => order.push('kept'))
    await fill(other, 0, 1)
    order.push('appended')
    await keeping
    expect(order).toEqual(['appended', 'kept'])
    expect(await logOf(store, 'long')).toEqual(chunks(0, 2_000, text))
    expect(await keptSeq(long)).toBe(2_000)
  })

  test('of 0.1.0 are put together with those of today', async () => {
    const path = await written(3, 0)
    const other = beside(path)
    const old = range(3, 63).map((seq) => ({ ...chunk(seq), data: { ...chunk(seq).data, later: [seq] } }))
    for (const event of old) {
      const { first, last, encoding, body: bytes } = legacyRow([event])
      other
        .statement('INSERT INTO log (session, first_seq, last_seq, epoch, encoding, body) VALUES (1, ?, ?, 1, ?, ?)')
        .run(first, last, encoding, bytes)
    }
    other.exec('UPDATE sessions SET head = 63')
    const store = storeOn(path)
    const owner = await own(store)
    await fill(owner, 63, 2)
    const before = JSON.stringify(await logOf(store))
    await keep(owner, 65)
    expect(rowsOf(other)).toHaveLength(1)
    expect(JSON.stringify(await logOf(store))).toBe(before)
  })

  test('stay as they are where one of them is damaged: the log says so, as before', async () => {
    const path = await written(60, 0)
    const other = beside(path)
    other.exec('UPDATE log SET body = zeroblob(length(body)) WHERE first_seq = 30')
    const store = storeOn(path)
    const owner = await own(store)
    await keep(owner, 60)
    expect(rowsOf(other)).toHaveLength(60)
    await expect(logOf(store)).rejects.toMatchObject({ reason: 'damaged' })
  })

  test('are not touched by a keep that ends inside one of them', async () => {
    const path = await written(40, 40)
    const store = storeOn(path)
    const owner = await own(store)
    const other = beside(path)
    const before = rowsOf(other)
    await keep(owner, 17)
    expect(rowsOf(other)).toEqual(before)
    expect(await keptSeq(owner)).toBe(40)
  })
})

describe('a file of the first version', () => {
  /** With session "s" of five events and a command. */
  async function first(): Promise<string> {
    const path = await written(5, 0)
    const other = connect(path)
    other.exec('DROP TABLE checkpoints; ALTER TABLE mailbox DROP COLUMN taken_at; PRAGMA user_version = 1')
    other.close()
    return path
  }

  test('is read as it lies, and migrated by who writes', async () => {
    const path = await first()
    const other = beside(path)
    const version = (): unknown => other.statement('PRAGMA user_version').get()?.user_version
    const store = storeOn(path)
    expect(await logOf(store)).toEqual(chunks(0, 5))
    expect(Number(version())).toBe(1)
    const owner = await own(store)
    expect(Number(version())).toBe(MIGRATIONS.length)
    await fill(owner, 5, 1)
    await keep(owner, 6)
    expect(await keptSeq(owner)).toBe(6)
    expect(await logOf(store)).toEqual(chunks(0, 6))
  })

  test('made by the first migration alone has what the second builds on', async () => {
    const path = newFile()
    const other = beside(path)
    migrate(other, MIGRATIONS.slice(0, 1))
    const owner = await own(storeOn(path))
    await fill(owner, 0, 2)
    await keep(owner, 2)
    expect(await keptSeq(owner)).toBe(2)
  })
})

test('a process that is killed while it appends and keeps leaves a whole log, and a good checkpoint or none', async () => {
  const path = newFile()
  for (const facts of [3, 17, 40]) {
    const writer = childProcess('keep', path)
    await told(writer, facts)
    await writer.kill()
    const acknowledged = Number(writer.told.findLast((fact) => 'head' in fact)?.head ?? 0)
    const kept = Number(writer.told.findLast((fact) => 'kept' in fact)?.kept ?? 0)
    const store = storeOn(path)
    const owner = await own(store)
    const log = await logOf(store)
    expect(log.map(({ seq }) => seq)).toEqual(range(0, owner.head))
    expect(log.map(({ data }) => data)).toEqual(range(0, owner.head).map((n) => ({ n })))
    expect(owner.head).toBeGreaterThanOrEqual(acknowledged)
    const found = await owner.checkpoint?.()
    expect(found?.seq ?? 0).toBeGreaterThanOrEqual(kept)
    if (found !== undefined) expect(Buffer.from(found.body).toString()).toBe(`up to ${found.seq}`)
    await close(store)
  }
})
