/** The SQLite store between processes, some of which are killed. Build first: the children run from `dist`. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { SessionBusy } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore } from '../../../src/log/store.ts'
import { driverName } from '../../../src/log/stores/sqlite/driver.ts'
import { collect, command, fill, logOf, own, range, refusal, whileTesting } from '../../kit/store-contract/fixtures.ts'
import { childProcess, newFile, storeOn, told } from './sqlite-fixtures.ts'

vi.setConfig({ testTimeout: 60_000 })

const dataOf = (events: readonly SessionEvent[]): unknown[] => events.map(({ data }) => data)

const ownerFiles = (path: string): string[] => readdirSync(dirname(path)).filter((name) => name.includes('-owner-'))

/** Everything the store shows of "s" up to the `turn/start` that `finish` appends; the children append none. */
async function followed(store: LogStore): Promise<SessionEvent[]> {
  const seen: SessionEvent[] = []
  for await (const event of store.subscribe('s', { from: 0, signal: whileTesting() })) {
    seen.push(event)
    if (event.type === 'turn/start') break
  }
  return seen
}

/** Resolves once readers see the event of that seq. */
async function shown(store: LogStore, seq: number): Promise<void> {
  for await (const _ of store.subscribe('s', { from: seq, signal: whileTesting() })) return
}

async function finish(store: LogStore): Promise<void> {
  const owner = await store.acquire('s')
  const data = { turn: 1, limits: { maxSteps: 1, maxParallelToolCalls: 1 } }
  await owner.append([{ type: 'turn/start', seq: owner.head, time: 1, data }], { expectedSeq: owner.head })
}

describe('owners in several processes', () => {
  test('a living owner elsewhere is named, and the session of a killed one is free at once', async () => {
    const path = newFile()
    const owner = childProcess('own', path)
    const epoch = await owner.hears('owned')
    const store = storeOn(path)
    expect((await refusal(own(store), SessionBusy)).owner).toContain(`${owner.process.pid}`)
    expect(await collect(store.list())).toMatchObject([{ owned: true }])
    await owner.kill()
    expect(await collect(store.list())).toMatchObject([{ owned: false }])
    expect((await own(store)).epoch).toBeGreaterThan(Number(epoch))
  })

  test('a killed owner leaves a file, which the next owner sweeps away', async () => {
    const path = newFile()
    const owner = childProcess('own', path)
    await owner.hears('owned')
    await owner.kill()
    const [left] = ownerFiles(path)
    await own(storeOn(path))
    expect(left).toBeDefined()
    expect(ownerFiles(path)).toHaveLength(1)
    expect(ownerFiles(path)).not.toContain(left)
  })

  test('an idle owner is told when another process steals its session', async () => {
    const path = newFile()
    const owner = childProcess('own', path)
    await owner.hears('owned')
    await storeOn(path).acquire('s', { steal: true })
    expect(await owner.hears('lost')).toBe('FENCED')
  })

  test('[LOG-14] processes that contend for a session take turns: one log, every append in it, no epoch twice', async () => {
    const path = newFile()
    const children = range(0, 3).map(() => childProcess('contend', path, '15'))
    expect(await Promise.all(children.map((child) => child.ended))).toEqual([0, 0, 0])
    const events = await logOf(storeOn(path))
    expect(events.map(({ seq }) => seq)).toEqual(range(0, 45))
    const epochs = events.map(({ data }) => JSON.parse(JSON.stringify(data)).epoch)
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b))
  })
})

describe('crashes', () => {
  test('a reader that follows writers which are killed and replaced sees the log, all of it and nothing else', async () => {
    const path = newFile()
    const store = storeOn(path)
    await (await own(store)).release()
    const view = followed(store)
    let acknowledged = 0
    for (const life of range(0, 5)) {
      const writer = childProcess('append', path)
      await told(writer, 5 + life * 7)
      await writer.kill()
      acknowledged = Number(writer.told.at(-1)?.head)
    }
    await finish(store)
    const log = await logOf(store)
    expect(await view).toEqual(log)
    expect(log.map(({ seq }) => seq)).toEqual(range(0, log.length))
    expect(log.length).toBeGreaterThan(acknowledged)
  })

  test('a reader that follows owners killed between an append and its acknowledgement sees no event that is not in the log', async () => {
    const path = newFile()
    const store = storeOn(path)
    await (await own(store)).release()
    const view = followed(store)
    for (const how of ['asleep', 'killed', 'asleep', 'killed']) {
      const head = (await logOf(store)).length
      const writer = childProcess('unheard', path, how)
      // The second event of the batch whose answer is never read.
      if (how === 'asleep') await shown(store, head + 2)
      else expect(await writer.ended).toBe('SIGKILL')
      await writer.kill()
      expect(writer.told).toEqual([])
      expect((await logOf(store)).length - head).toBeOneOf(how === 'asleep' ? [3] : [1, 3])
    }
    await finish(store)
    const log = await logOf(store)
    expect(await view).toEqual(log)
    expect(log.map(({ seq }) => seq)).toEqual(range(0, log.length))
  })

  test('a batch that a crash interrupts is whole or not there', async () => {
    const path = newFile()
    for (const count of [3, 8, 13]) {
      const writer = childProcess('append', path)
      await told(writer, count)
      await writer.kill()
    }
    const events = await logOf(storeOn(path))
    const batches = dataOf(events).map((data) => JSON.parse(JSON.stringify(data)))
    for (const [at, { epoch, size, i }] of batches.entries()) {
      // The rest of its batch follows each event.
      expect(batches.slice(at, at + size - i)).toEqual(range(i, size).map((n) => ({ epoch, size, i: n })))
    }
  })

  test('a command is taken once, whenever its owner dies, and its sender hears of it', async () => {
    const path = newFile()
    const store = storeOn(path)
    await (await own(store)).release()
    const ids = range(0, 12).map((i) => `c${i}`)
    for (const id of ids) await store.post('s', command(id))
    const outcomes = Promise.all(ids.map((id) => store.outcome('s', id, whileTesting())))
    expect(await childProcess('take', path, '3').ended).toBe('SIGKILL')
    expect(await childProcess('take', path, '5').ended).toBe('SIGKILL')
    childProcess('take', path, '99')
    const taken = await outcomes
    expect(dataOf(await logOf(store))).toEqual(ids.map((took) => ({ took })))
    expect(taken).toEqual(ids.map((_, seq) => ({ kind: 'taken', seq })))
  })

  test('a process that leaves with appends on their way waits for them', async () => {
    const path = newFile()
    expect(await childProcess('leave', path).ended).toBe(3)
    expect(await logOf(storeOn(path))).toHaveLength(50)
  })

  test('a process that only owns a session and waits for commands ends by itself', async () => {
    const path = newFile()
    expect(await childProcess('idle', path).ended).toBe(0)
    expect(await logOf(storeOn(path))).toHaveLength(1)
  })
})

describe('two drivers', () => {
  const needsBoth = test.skipIf(driverName() !== 'node:sqlite')

  needsBoth(
    'a file written under libsql is read and written under node:sqlite, and back (Node 22.13 or later)',
    async () => {
      const path = newFile()
      const drivers: unknown[] = []
      for (const flags of [['--no-experimental-sqlite'], [], ['--no-experimental-sqlite']]) {
        const child = childProcess('write', path, '40', flags)
        drivers.push(await child.hears('driver'))
        // node:sqlite's own is kept from the user; another one of its kind is not.
        expect(await child.hears('warnings')).toEqual(['of something else'])
        expect(await child.ended).toBe(0)
      }
      expect(drivers).toEqual(['libsql', 'node:sqlite', 'libsql'])
      const store = storeOn(path)
      const events = await logOf(store)
      expect(dataOf(events)).toEqual(range(0, 120).map((seq) => ({ text: 'é\u0000𝒳', i: seq % 40 })))
      await fill(await own(store), 120, 1)
    },
  )

  test('the database lies alone once everybody has closed it', async () => {
    const path = newFile()
    expect(await childProcess('write', path, '3').ended).toBe(0)
    expect(existsSync(path)).toBe(true)
    expect(readdirSync(dirname(path))).toEqual(['pawl.db'])
  })
})
