/** Who writes: this thread at first, a worker from a store's first events on, and never both. */
import { spawnSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SessionBusy, StoreFailure } from '../../../../src/log/errors.ts'
import type { SessionEvent } from '../../../../src/log/events.ts'
import { connect } from '../../../../src/log/stores/sqlite/driver.ts'
import { chunk, collect, command, own, range, refusal } from '../../../kit/store-contract/fixtures.ts'
import { close, newFile, storeOn } from '../sqlite-fixtures.ts'

interface Threads {
  readonly started: readonly Worker[]
  /** Resolves once the first one has started. */
  readonly ready: Promise<void>
  /** How many requests went to them. */
  asked(): number
}

/** The threads that are started from here to the end of the test. */
function watchThreads(): Threads {
  const started: Worker[] = []
  let tell = (): void => {}
  let asked = 0
  const ready = new Promise<void>((resolve) => {
    tell = resolve
  })
  const onWorker = (message: unknown): void => {
    const { worker } = message as { worker: Worker }
    started.push(worker)
    const post = worker.postMessage.bind(worker)
    worker.postMessage = (message: unknown, ...rest: [never?]) => {
      if (typeof message === 'object' && message !== null && 'request' in message) asked += 1
      post(message, ...rest)
    }
    worker.on('message', (said) => said === 'ready' && setImmediate(tell))
    worker.unref()
  }
  subscribe('worker_threads', onWorker)
  onTestFinished(() => void unsubscribe('worker_threads', onWorker))
  return { started, ready, asked: () => asked }
}

/** So often at most is something tried until the thread has taken over. */
const MOST = 20_000

const seqs = (events: readonly SessionEvent[]): readonly number[] => events.map(({ seq }) => seq)

describe('no thread is started', () => {
  test('by opening a session, reading, posting, listing, giving back and deleting', async () => {
    const { started } = watchThreads()
    const path = newFile()
    const store = storeOn(path)
    const owner = await own(store)
    await owner.append([], { expectedSeq: 0, summary: { state: 'idle' } })
    await store.post('s', command('a'))
    expect(await collect(store.read('s'))).toEqual([])
    expect(await collect(store.list())).toHaveLength(1)
    await owner.release()
    await store.delete('s')
    await close(store)
    expect(await collect(storeOn(path).list())).toEqual([])
    expect(started).toHaveLength(0)
  })
})

describe('the first events start one', () => {
  test('and none of them waits for it, is lost on the way, or is there twice', async () => {
    const { started, ready, asked } = watchThreads()
    const store = storeOn(newFile())
    const owners = await Promise.all(['a', 'b', 'c'].map((id) => own(store, id)))
    let taken = false
    void ready.then(() => {
      taken = true
    })
    const heads = await Promise.all(
      owners.map(async (owner) => {
        let seq = 0
        for (let after = 0; after < 20 && seq < MOST; seq += 2) {
          await owner.append([chunk(seq), chunk(seq + 1)], { expectedSeq: seq })
          if (taken) after += 1
        }
        return seq
      }),
    )
    expect([started.length, taken]).toEqual([1, true])
    // Though there was no pause between appends.
    expect(asked()).toBeGreaterThan(20)
    for (const [i, id] of ['a', 'b', 'c'].entries()) {
      expect(seqs(await collect(store.read(id)))).toEqual(range(0, heads[i] ?? 0))
    }
    for (const [i, owner] of owners.entries())
      await owner.append([chunk(heads[i] ?? 0)], { expectedSeq: heads[i] ?? 0 })
  })

  test('and the store owns what it owned at every moment of it', async () => {
    const { ready } = watchThreads()
    const path = newFile()
    const store = storeOn(path)
    const contender = storeOn(path)
    const [first, second] = [await own(store, 'a'), await own(store, 'b')]
    await first.append([chunk(0)], { expectedSeq: 0 })
    let taken = false
    void ready.then(() => {
      taken = true
    })
    for (let [after, n] = [0, 0]; after < 5 && n < MOST; n++, after += taken ? 1 : 0) {
      for (const id of ['a', 'b']) await refusal(contender.acquire(id), SessionBusy)
    }
    expect(taken).toBe(true)
    await second.append([chunk(0)], { expectedSeq: 0 })
    await second.release()
    await contender.acquire('b')
    await close(store)
    await contender.acquire('a')
  })

  test('and a session can be taken, given back and taken again while it starts', async () => {
    const { ready } = watchThreads()
    const store = storeOn(newFile())
    let last = 0
    let taken = false
    void ready.then(() => {
      taken = true
    })
    for (let after = 0; after < 10 && last < MOST; after += taken ? 1 : 0) {
      const owner = await own(store)
      expect(owner.head).toBe(last)
      await owner.append([chunk(last)], { expectedSeq: last })
      last += 1
      // Not waited for: what is asked next comes after it.
      void owner.release()
    }
    expect(taken).toBe(true)
    expect(seqs(await collect(store.read('s')))).toEqual(range(0, last))
  })

  test('and closing at once keeps what was acknowledged, and frees the session', async () => {
    const path = newFile()
    for (const n of range(0, 5)) {
      const store = storeOn(path)
      const owner = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
      expect(owner.head).toBe(n)
      await owner.append([chunk(n)], { expectedSeq: n })
      await close(store)
    }
  })

  test('and where none can start, this thread goes on and says so', () => {
    const path = newFile()
    const entry = fileURLToPath(new URL('../../../../dist/log.js', import.meta.url))
    const script = `
      import { sqliteStore } from ${JSON.stringify(entry)}
      const store = sqliteStore(${JSON.stringify(path)})
      const owner = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
      for (let seq = 0; seq < 200; seq++) {
        await owner.append([{ type: 'a/b', seq, time: 1, data: seq, ignorable: true }], { expectedSeq: seq })
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await owner.release()
      await store[Symbol.asyncDispose]()
      let events = 0
      for await (const _ of sqliteStore(${JSON.stringify(path)}).read('s')) events += 1
      console.log(events)`
    // This flag is for what Node runs itself, and a worker's file is not that.
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      timeout: 30_000,
    })
    expect(stdout.trim()).toBe('200')
    expect(stderr === '' || stderr.includes('written on the main thread')).toBe(true)
  })
})

describe('a file that another has locked', () => {
  test('is waited for without holding up the event loop', async () => {
    const path = newFile()
    await close(await opened(path))
    const blocker = connect(path)
    blocker.exec('BEGIN IMMEDIATE')
    let settled = false
    const acquired = own(storeOn(path)).finally(() => {
      settled = true
    })
    for (const _ of range(0, 20)) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(settled).toBe(false)
    blocker.exec('COMMIT')
    blocker.close()
    expect((await acquired).head).toBe(1)
  })

  test('for so long that it is given up is the answer, and the next try may come through', async () => {
    const path = newFile()
    await close(await opened(path))
    const blocker = connect(path)
    blocker.exec('BEGIN IMMEDIATE')
    const store = storeOn(path, { busyTimeoutMs: 60 })
    expect((await refusal(own(store), StoreFailure)).reason).toBe('locked')
    blocker.exec('ROLLBACK')
    blocker.close()
    expect((await own(store)).head).toBe(1)
  })
})

/** A store that has written one event to a new file. */
async function opened(path: string): Promise<ReturnType<typeof storeOn>> {
  const store = storeOn(path)
  const owner = await own(store)
  await owner.append([chunk(0)], { expectedSeq: 0 })
  return store
}
