/** What can go wrong with the file: each failure has its reason, names the file, and loses nothing that was there. */
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { SessionNotFound, StoreFailure, type StoreFailureReason } from '../../../src/log/errors.ts'
import { type Connection, connect } from '../../../src/log/stores/sqlite/driver.ts'
import { MIGRATIONS, migrate } from '../../../src/log/stores/sqlite/schema.ts'
import { sqliteStore } from '../../../src/log/stores/sqlite.ts'
import {
  chunk,
  chunks,
  collect,
  command,
  fill,
  header,
  logOf,
  own,
  range,
  refusal,
  whileTesting,
} from '../../kit/store-contract/fixtures.ts'
import { childProcess, close, newFile, newFolder, storeOn } from './sqlite-fixtures.ts'

vi.setConfig({ testTimeout: 60_000 })

const modeOf = (path: string): number => statSync(path).mode & 0o777

/** What a run of a system's tool says: 0 where it worked. */
const run = (tool: string, ...args: string[]): number | null => spawnSync(tool, args).status

async function failure(work: Promise<unknown>, reason: StoreFailureReason, path: string): Promise<StoreFailure> {
  const failed = await refusal(work, StoreFailure)
  expect(failed).toMatchObject({ reason, code: 'STORE_FAILURE' })
  expect(failed.message).toContain(path)
  return failed
}

/** A file with session "s" of `count` events, that nobody has open. */
async function written(count: number): Promise<string> {
  const path = newFile()
  const store = storeOn(path)
  const owner = await own(store)
  for (let seq = 0; seq < count; seq += 100) await fill(owner, seq, Math.min(100, count - seq))
  await close(store)
  return path
}

/** A connection beside the store's, closed after the test. */
function beside(path: string): Connection {
  const connection = connect(path)
  onTestFinished(() => connection.close())
  return connection
}

describe('where the file is', () => {
  test('folder, database, write-ahead log and owner file are for their user alone', async () => {
    const path = join(newFolder(), 'state', 'pawl', 'pawl.db')
    const store = storeOn(path)
    await fill(await own(store), 0, 1)
    await logOf(store)
    const files = readdirSync(dirname(path))
    expect(files.map((name) => name.replace(/-owner-.*/, '-owner')).sort()).toEqual(
      ['', '-owner', '-shm', '-wal'].map((end) => `pawl.db${end}`),
    )
    for (const name of files) expect(modeOf(join(dirname(path), name))).toBe(0o600)
    expect(modeOf(dirname(path))).toBe(0o700)
  })

  test('asking makes nothing: a missing file has no sessions, and there is none afterwards', async () => {
    const path = join(newFolder(), 'not', 'there.db')
    const store = storeOn(path)
    await refusal(logOf(store), SessionNotFound)
    await refusal(collect(store.subscribe('s', { from: 0, signal: whileTesting() })), SessionNotFound)
    await refusal(store.acquire('s'), SessionNotFound)
    await refusal(store.post('s', command('c')), SessionNotFound)
    await refusal(store.delete('s'), SessionNotFound)
    expect(await store.header('s')).toBeUndefined()
    expect(await collect(store.list())).toEqual([])
    expect(existsSync(dirname(path))).toBe(false)
  })

  test('two paths to one file are one store', async () => {
    const path = await written(2)
    const detour = join(dirname(path), '..', dirname(path).split('/').at(-1) ?? '', 'pawl.db')
    const [here, there] = [storeOn(path), storeOn(detour)]
    await own(here)
    expect(await collect(there.list())).toMatchObject([{ owned: true }])
  })

  test.runIf(process.platform === 'linux')(
    '[LOG-17] a network file system is refused, and nothing is made on it',
    async () => {
      const path = join(newFolder(), 'mount', 'pawl.db')
      const store = storeOn(path, { statfs: () => ({ type: 0x6969 }) })
      expect((await failure(own(store), 'network-file-system', path)).message).toContain('NFS')
      expect(existsSync(dirname(path))).toBe(false)
      // CIFS, as a platform with signed 32 bits tells it.
      const signed = storeOn(await written(1), { statfs: () => ({ type: -11317950 }) })
      expect(await refusal(signed.header('s'), StoreFailure)).toMatchObject({ reason: 'network-file-system' })
    },
  )

  test('a folder that is a file is said to be wrong', async () => {
    const file = newFile()
    writeFileSync(file, 'not a folder')
    await failure(own(storeOn(join(file, 'pawl.db'))), 'io', file)
  })
})

describe('a file that cannot be written', () => {
  test('[LOG-14] locked for longer than `busyTimeoutMs` is a failure; unlocked again it serves', async () => {
    const path = await written(3)
    const store = sqliteStore(path, { busyTimeoutMs: 60 })
    onTestFinished(() => close(store))
    const owner = await own(store)
    const other = beside(path)
    other.exec('BEGIN IMMEDIATE')
    await failure(fill(owner, 3, 1), 'locked', path)
    expect(await logOf(store)).toHaveLength(3)
    other.exec('ROLLBACK')
    await fill(owner, 3, 1)
  })

  test('locked for less than `busyTimeoutMs` is waited for', async () => {
    const path = await written(3)
    const store = storeOn(path)
    const owner = await own(store)
    const other = beside(path)
    other.exec('BEGIN IMMEDIATE')
    const appended = fill(owner, 3, 1)
    setTimeout(() => other.exec('ROLLBACK'), 80)
    await appended
    expect(await logOf(store)).toHaveLength(4)
  })

  test('read-only is a failure of its own, and what is there can be read', async ({ skip }) => {
    const probe = newFile()
    writeFileSync(probe, '')
    if (run('chattr', '+i', probe) !== 0) skip('chattr +i is not permitted')
    run('chattr', '-i', probe)
    // By another process: SQLite would use again what this one had opened before the file became immutable.
    const path = newFile()
    expect(await childProcess('write', path, '3').ended).toBe(0)
    expect(run('chattr', '+i', path)).toBe(0)
    onTestFinished(() => void run('chattr', '-i', path))
    const store = storeOn(path)
    await failure(own(store), 'read-only', path)
    expect(await logOf(store)).toHaveLength(3)
    await close(store)
    run('chattr', '-i', path)
    await fill(await own(storeOn(path)), 3, 1)
  })

  test('[LOG-07] full takes all of a batch or nothing, and leaves room for who asks for less', async () => {
    const path = newFile()
    const store = storeOn(path, { pragmas: ['max_page_count = 60'] })
    const [large, small] = await Promise.all([own(store, 'large'), own(store, 'small')])
    const [tooMuch, enough] = await Promise.allSettled([
      large.append(chunks(0, 400, 'x'.repeat(1_000)), { expectedSeq: 0 }),
      fill(small, 0, 3),
    ])
    expect(tooMuch).toMatchObject({ status: 'rejected', reason: { reason: 'full' } })
    expect(enough.status).toBe('fulfilled')
    expect(await logOf(store, 'large')).toEqual([])
    expect(await logOf(store, 'small')).toHaveLength(3)
    await fill(large, 0, 1)
  })

  test('[LOG-07] a disk that fills up loses nothing that was acknowledged', async ({ skip }) => {
    const folder = newFolder()
    if (run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder) !== 0) skip('mount is not permitted')
    onTestFinished(() => void run('umount', '-l', folder))
    const path = join(folder, 'pawl.db')
    const store = storeOn(path)
    const owner = await own(store)
    let head = 0
    const filling = async (): Promise<void> => {
      for (; head < 100_000; head += 10) await owner.append(chunks(head, 10, 'x'.repeat(2_000)), { expectedSeq: head })
    }
    await failure(filling(), 'full', path)
    expect(head).toBeGreaterThan(0)
    expect((await logOf(store)).map(({ seq }) => seq)).toEqual(range(0, head))
  })
})

describe('a file that is taken away', () => {
  test.each(['deleted', 'replaced by a copy'])(
    '%s while it is open, it is never said to have kept anything',
    async (how) => {
      const path = newFile()
      const store = storeOn(path)
      const owner = await own(store)
      await fill(owner, 0, 3)
      const copy = join(dirname(path), 'copy.db')
      await store.backup(copy)
      for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`)
      if (how !== 'deleted') renameSync(copy, path)
      await failure(fill(owner, 3, 1), 'io', path)
    },
  )
})

test('names that SQLite could not tell apart are refused', async () => {
  const store = storeOn(newFile())
  for (const name of ['\ud800', '\udfff', 'a\0b']) {
    await refusal(own(store, name), StoreFailure)
    await refusal(store.header(name), StoreFailure)
  }
  const owner = await own(store, 'a 😀 \ufffd')
  await refusal(store.post(owner.header.id, command('\ud800')), StoreFailure)
  expect((await collect(store.list())).map(({ id }) => id)).toEqual([owner.header.id])
})

describe('a damaged file', () => {
  /** Overwrites bytes of a file nobody has open. */
  function overwrite(path: string, from: number, bytes: number): void {
    const descriptor = openSync(path, 'r+')
    writeSync(descriptor, Buffer.alloc(bytes, 0xa5), 0, bytes, from)
    closeSync(descriptor)
  }

  test('[LOG-18] one that is no database any more is refused by whoever asks, and left as it is', async () => {
    const path = await written(300)
    overwrite(path, 0, 4096)
    const before = readFileSync(path)
    const store = storeOn(path)
    await failure(own(store), 'damaged', path)
    await failure(store.header('s'), 'damaged', path)
    await failure(logOf(store), 'damaged', path)
    await close(store)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('[LOG-18] one with a page overwritten shows no wrong event, and says that it is damaged', async () => {
    const path = await written(3_000)
    overwrite(path, 4096 * 20, 4096 * 12)
    const store = storeOn(path)
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const event of store.read('s')) seen.push(event)
    })()
    await failure(reading, 'damaged', path)
    expect(seen).toEqual(chunks(0, seen.length))
  })

  test('a header that is no JSON is damage, told by each acquire: none keeps what it could not open', async () => {
    const path = await written(10)
    const other = beside(path)
    other.exec("UPDATE sessions SET header = '{'")
    const store = storeOn(path)
    for (const _ of range(0, 2)) {
      expect((await failure(own(store), 'damaged', path)).message).toContain('the header of s is not JSON')
    }
    other.statement('UPDATE sessions SET header = ?').run(JSON.stringify(header('s')))
    expect((await own(storeOn(path))).head).toBe(10)
  })

  test('a row whose events are not what the row says is damage', async () => {
    const path = await written(250)
    const other = beside(path)
    other.exec(`UPDATE log SET body = CAST('[{"seq":7}]' AS BLOB) WHERE first_seq = 100`)
    const store = storeOn(path)
    expect((await failure(logOf(store), 'damaged', path)).message).toContain('100 to 199')
    other.exec('DELETE FROM log WHERE first_seq = 100')
    expect((await failure(logOf(store), 'damaged', path)).message).toContain('no event 100')
  })

  test.each(['[{"seq":0},null]', '[{"seq":0},{"seq":2}]', '[{"seq":0},{"seq":0}]'])(
    'so is a row of %s',
    async (row) => {
      const path = await written(2)
      beside(path).statement('UPDATE log SET body = CAST(? AS BLOB), encoding = 1').run(row)
      await failure(logOf(storeOn(path)), 'damaged', path)
    },
  )

  test('an empty file beside a write-ahead log is not taken for a new one', async () => {
    const path = await written(3)
    writeFileSync(`${path}-wal`, 'the only copy')
    truncateSync(path)
    await failure(own(storeOn(path)), 'damaged', path)
    expect(readFileSync(`${path}-wal`, 'utf8')).toBe('the only copy')
  })

  test('a database of something else is not touched', async () => {
    const path = newFile()
    const other = connect(path)
    other.exec('CREATE TABLE theirs (a)')
    other.close()
    const before = readFileSync(path)
    const store = storeOn(path)
    await failure(store.header('s'), 'damaged', path)
    await failure(own(store), 'damaged', path)
    await close(store)
    const tables = beside(path).statement('SELECT name FROM sqlite_master').all()
    expect(tables).toMatchObject([{ name: 'theirs' }])
    expect(before.length).toBe(statSync(path).size)
  })
})

describe('versions of the schema', () => {
  const newer = [...MIGRATIONS, 'ALTER TABLE sessions ADD COLUMN later TEXT']
  const backups = (path: string): string[] => readdirSync(dirname(path)).filter((name) => name.endsWith('.backup'))

  test('[persist-015] a newer one is refused by readers and writers', async () => {
    const path = await written(3)
    const other = connect(path)
    migrate(other, newer)
    other.close()
    const store = storeOn(path)
    await failure(own(store), 'newer-schema', path)
    await failure(logOf(store), 'newer-schema', path)
  })

  test('an older one is migrated, after a copy of what was there', async () => {
    const path = await written(3)
    const other = beside(path)
    migrate(other, newer)
    expect(other.statement('SELECT later FROM sessions').all()).toMatchObject([{ later: null }])
    const [copy] = backups(path).map((name) => join(dirname(path), name))
    expect(copy).toBeDefined()
    expect(modeOf(copy ?? '')).toBe(0o600)
    expect(await logOf(storeOn(copy ?? ''))).toEqual(chunks(0, 3))
    migrate(other, newer)
    expect(backups(path)).toHaveLength(1)
  })

  test('a migration that fails leaves the file as it was', async () => {
    const path = await written(3)
    const other = connect(path)
    expect(() => migrate(other, [...newer, 'CREATE TABLE sessions (a)'])).toThrow(StoreFailure)
    other.close()
    expect(await logOf(storeOn(path))).toEqual(chunks(0, 3))
  })
})

describe('a backup', () => {
  test('is a store of its own, with what was there when it was made', async () => {
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    await fill(owner, 0, 500)
    const to = join(dirname(path), 'copy.db')
    await store.backup(to)
    await fill(owner, 500, 1)
    expect(modeOf(to)).toBe(0o600)
    const copy = storeOn(to)
    expect(await logOf(copy)).toEqual(chunks(0, 500))
    const other = await copy.acquire('s')
    expect(other.epoch).toBeGreaterThan(owner.epoch)
    await other.append([chunk(500)], { expectedSeq: 500 })
    expect(owner.lost.aborted).toBe(false)
  })

  test('two to one place leave one whole copy, and whoever loses is told that it is there', async () => {
    const path = await written(3_000)
    const store = storeOn(path)
    const to = join(dirname(path), 'copy.db')
    const both = await Promise.allSettled([store.backup(to), store.backup(to)])
    for (const { status, ...rest } of both) {
      if (status === 'rejected')
        expect(rest).toMatchObject({ reason: { message: expect.stringContaining('never replaces') } })
    }
    expect(await logOf(storeOn(to))).toEqual(chunks(0, 3_000))
    expect(readdirSync(dirname(path)).filter((name) => name.endsWith('.partial'))).toEqual([])
  })

  test('touches no other file, also not the store it copies', async () => {
    const path = join(newFolder(), 'copy.db.partial')
    const store = storeOn(path)
    await fill(await own(store), 0, 3)
    await store.backup(join(dirname(path), 'copy.db'))
    await close(store)
    expect(await logOf(storeOn(path))).toEqual(chunks(0, 3))
  })

  test('never replaces a file, and is not made of nothing', async () => {
    const path = await written(3)
    const to = join(dirname(path), 'precious')
    writeFileSync(to, 'mine')
    await failure(storeOn(path).backup(to), 'io', to)
    expect(readFileSync(to, 'utf8')).toBe('mine')
    const nothing = newFile()
    await failure(storeOn(nothing).backup(join(dirname(nothing), 'copy.db')), 'io', nothing)
    expect(readdirSync(dirname(nothing))).toEqual([])
  })
})

test('making a store touches no file and starts nothing; what is wrong is told by the first call', async () => {
  const file = newFile()
  writeFileSync(file, 'no database')
  const store = sqliteStore(file)
  await failure(store.acquire('s', { create: header('s') }), 'damaged', file)
  await close(store)
  expect(readdirSync(dirname(file))).toEqual(['pawl.db'])
})
