import { getEventListeners } from 'node:events'
import { toArray } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { StoreFailure } from '../../src/log/errors.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import type { Session } from '../../src/log/session.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { chunk, collect, entered, latch, settled, setup, turnEnd, turnStart } from './session-setup.ts'

const seqs = (events: readonly SessionEvent[]): number[] => events.map((event) => event.seq)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, seq) => seq)

/** A memory store that counts how often it is read. */
function countedStore(): LogStore & { reads: number } {
  const store = memoryStore()
  const counted = {
    ...store,
    reads: 0,
    read: (...given: Parameters<LogStore['read']>) => {
      counted.reads += 1
      return store.read(...given)
    },
  }
  return counted
}

/** A live reader that stops at its first event until it is resumed. */
function heldReader(session: Session): { read: number[]; resume: () => void; reading: Promise<void> } {
  const read: number[] = []
  const { opened, open } = latch()
  const reading = (async () => {
    for await (const event of session.events({ live: true })) {
      read.push(event.seq)
      await opened
    }
  })()
  return { read, resume: open, reading }
}

describe('reading what is durable', () => {
  test('shows no event before it was acknowledged', async () => {
    const gate = latch()
    const seen: number[] = []
    // The store has the events before it says so: a reader must wait for the word.
    const { session } = await setup({ interfere: (append) => append().then(() => gate.opened) })
    session.record([turnStart(), entered('a')])
    session.seal()
    const reading = (async () => {
      for await (const event of session.events({ live: true })) seen.push(event.seq)
    })()
    await settled()
    expect(await collect(session.events())).toEqual([])
    expect(seen).toEqual([])
    gate.open()
    await session.flush()
    await settled()
    expect(seen).toEqual([0, 1])
    expect(seqs(await collect(session.events({ from: 1 })))).toEqual([1])
    await session.close()
    await reading
  })

  test('ends at the head of the moment it was asked', async () => {
    const { session } = await setup()
    session.append(turnStart())
    session.append(turnEnd())
    await session.flush()
    const asked = session.events()
    session.append(turnStart(2))
    await session.flush()
    expect(seqs(await collect(asked))).toEqual([0, 1])
  })

  test('holds after close, live too', async () => {
    const { session } = await setup()
    session.append(turnStart())
    await session.close()
    expect(seqs(await collect(session.events()))).toEqual([0])
    expect(seqs(await collect(session.events({ live: true })))).toEqual([0])
  })
})

describe('reading live', () => {
  test('[RUN-28] [RUN-30] goes on from the stored log without gap or duplicate, however fast the reader is', async () => {
    const { session } = await setup({ windowMs: 1 })
    for (let n = 0; n < 50; n++) session.append(chunk())
    const readers = [0, 1, 7].map(async (pause) => {
      const seen: number[] = []
      for await (const event of session.events({ live: true })) {
        seen.push(event.seq)
        if (pause > 0 && event.seq % pause === 0) await settled()
      }
      return seen
    })
    for (let n = 0; n < 50; n++) {
      session.append(n % 5 === 0 ? entered(`m${n}`) : chunk())
      if (n % 3 === 0) await session.flush()
      if (n % 7 === 0) await settled()
    }
    await session.close()
    for (const reader of readers) expect(await reader).toEqual(upTo(100))
  })

  test('a reader that lags a little behind is passed what came meanwhile, and nothing is read again', async () => {
    const store = countedStore()
    const { session } = await setup({ store })
    const { read, resume } = heldReader(session)
    session.append(turnStart())
    await session.flush()
    await settled()
    const before = store.reads
    for (const id of ['a', 'b', 'c']) {
      session.append(entered(id))
      await session.flush()
    }
    resume()
    await settled()
    expect([read, store.reads - before]).toEqual([upTo(4), 0])
  })

  test('a reader that keeps up is passed a group of any size', async () => {
    const store = countedStore()
    const { session } = await setup({ store })
    const reading = collect(session.events({ live: true }))
    await settled()
    const before = store.reads
    session.record(upTo(40).map(() => chunk('x'.repeat(10_000))))
    await session.close()
    expect([seqs(await reading), store.reads - before]).toEqual([upTo(40), 0])
  })

  test('a reader that lags far behind when the session closes gets all of it', async () => {
    const { session } = await setup()
    const { read, resume, reading } = heldReader(session)
    for (let n = 0; n < 60; n++) {
      session.append(chunk('x'.repeat(10_000)))
      await session.flush()
    }
    await session.close()
    resume()
    await reading
    expect(read).toEqual(upTo(60))
  })

  test('a reader that lags far behind goes back to the store instead of holding what piles up', async () => {
    const store = countedStore()
    const { session } = await setup({ store })
    const read: number[] = []
    const resume = latch()
    session.append(turnStart())
    await session.flush()
    const reading = (async () => {
      for await (const event of session.events({ live: true })) {
        read.push(event.seq)
        if (read.length === 2) await resume.opened
      }
    })()
    await settled()
    const before = store.reads
    for (let n = 1; n < 60; n++) {
      session.append(chunk('x'.repeat(10_000)))
      await session.flush()
    }
    resume.open()
    await settled()
    expect(store.reads).toBe(before + 1)
    session.append(turnEnd())
    await session.close()
    await reading
    expect(read).toEqual(upTo(61))
    expect(store.reads).toBe(before + 1)
  })

  test('from a seq that is yet to come starts there', async () => {
    const { session } = await setup()
    const reading = collect(session.events({ from: 2, live: true }))
    for (const turn of [1, 2, 3, 4]) session.append(turnStart(turn))
    await session.close()
    expect(seqs(await reading)).toEqual([2, 3])
  })

  test('ends quietly when its signal aborts', async () => {
    const { session } = await setup()
    const leaving = new AbortController()
    const reading = collect(session.events({ live: true, signal: leaving.signal }))
    session.append(turnStart())
    await session.flush()
    await settled()
    leaving.abort()
    expect(seqs(await reading)).toEqual([0])
  })

  test('shows nothing of a group after its signal aborted', async () => {
    const { session } = await setup()
    const leaving = new AbortController()
    const seen: number[] = []
    const reading = (async () => {
      for await (const event of session.events({ live: true, signal: leaving.signal })) {
        seen.push(event.seq)
        leaving.abort()
      }
    })()
    await settled()
    session.record([turnStart(), entered('a'), entered('b')])
    await session.flush()
    await reading
    expect(seen).toEqual([0])
  })

  test('lets go of its signal when it leaves', async () => {
    const { session } = await setup()
    const { signal } = new AbortController()
    const listeners: number[] = []
    const reading = (async () => {
      for await (const _ of session.events({ live: true, signal })) {
        listeners.push(getEventListeners(signal, 'abort').length)
        break
      }
    })()
    await settled()
    session.append(turnStart())
    await reading
    listeners.push(getEventListeners(signal, 'abort').length)
    expect(listeners).toEqual([1, 0])
  })

  test('shows all that is durable and then the failure', async () => {
    const failure = new StoreFailure('full', 'disk full')
    const { session } = await setup({
      interfere: (append, n) => (n === 1 ? append() : Promise.reject(failure)),
    })
    const seen: number[] = []
    const reading = (async () => {
      for await (const event of session.events({ live: true })) seen.push(event.seq)
    })()
    session.append(turnStart())
    session.append(turnEnd())
    await expect(reading).rejects.toBe(failure)
    expect(seen).toEqual([0])
  })

  test('a store that lost what it acknowledged is an error, not an endless wait', async () => {
    const store = memoryStore()
    const { session } = await setup({ store: { ...store, read: (id) => store.read(id, { from: 1_000 }) } })
    session.append(turnStart())
    await session.flush()
    await expect(collect(session.events({ live: true }))).rejects.toMatchObject({
      code: 'INVALID_LOG',
      seq: 0,
      rule: 'CONTIGUOUS',
      message: expect.stringContaining('does not return an event it acknowledged'),
    })
  })
})

describe('events$', () => {
  test('replays from the first event, goes on live, and completes on close', async () => {
    const { session } = await setup()
    session.append(turnStart())
    await session.flush()
    const all = new Promise<SessionEvent[]>((resolve, reject) => {
      session.events$.pipe(toArray()).subscribe({ next: resolve, error: reject })
    })
    await settled()
    session.append(turnEnd())
    await session.close()
    expect(seqs(await all)).toEqual([0, 1])
  })

  test('errors with the failure', async () => {
    const failure = new StoreFailure('full', 'disk full')
    const { session } = await setup({ interfere: () => Promise.reject(failure) })
    const error = new Promise((resolve) => session.events$.subscribe({ error: resolve }))
    session.append(turnStart())
    expect(await error).toBe(failure)
  })

  test('stops reading when nobody listens any more', async () => {
    const { session } = await setup()
    const seen: number[] = []
    const subscription = session.events$.subscribe((event) => {
      seen.push(event.seq)
      subscription.unsubscribe()
    })
    session.append(turnStart())
    session.append(turnEnd())
    await session.flush()
    await settled()
    expect(seen).toEqual([0])
  })

  test('reads no more of the store once nobody listens', async () => {
    const store = memoryStore()
    const pulled: number[] = []
    async function* read(...given: Parameters<LogStore['read']>) {
      for await (const event of store.read(...given)) {
        pulled.push(event.seq)
        yield event
      }
    }
    const { session } = await setup({ store: { ...store, read } })
    session.record(upTo(9).map((n) => entered(`m${n}`)))
    await session.flush()
    const subscription = session.events$.subscribe(() => subscription.unsubscribe())
    await settled()
    expect(pulled).toEqual([0])
  })
})
