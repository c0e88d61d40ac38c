/** How long a store is waited for: to the ms, with nothing left behind, and with a word of what may be done. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { StoreFailure } from '../../src/log/errors.ts'
import { inTime, itemsInTime, type Patience, STORE_TIMEOUT_MS, sessionPatience } from '../../src/log/patience.ts'
import { collect, settled } from './session-setup.ts'

const patience: Patience = { timeoutMs: 100, wayOut: 'try again' }
const tooLate = new StoreFailure('timeout', 'The store did not answer this within 100 ms: try again')
const never = <T>(): Promise<T> => new Promise(() => {})

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

interface Deferred<T> {
  readonly promise: Promise<T>
  resolve(value: T): void
  reject(error: Error): void
}

function deferred<T>(): Deferred<T> {
  let [resolve, reject] = [(_: T): void => {}, (_: Error): void => {}]
  const promise = new Promise<T>((...settle) => {
    ;[resolve, reject] = settle
  })
  return { promise, resolve, reject }
}

/** What a promise came to so far. */
function watched(promise: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'pending' }
  const note = (outcome: unknown): void => {
    seen.outcome = outcome
  }
  promise.then(note, note)
  return seen
}

/** The real timers behind the fake ones' calls: whether each would keep the process. */
function timersSet(): NodeJS.Timeout[] {
  const { setTimeout: set } = globalThis
  const timers: NodeJS.Timeout[] = []
  vi.stubGlobal('setTimeout', (run: () => void, ms: number) => {
    const timer = set(run, ms)
    timers.push(timer)
    return timer
  })
  return timers
}

async function pass(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms)
  await settled()
}

test('an agent’s session has half a minute, unless it was given another time', () => {
  expect([sessionPatience().timeoutMs, sessionPatience(5).timeoutMs]).toEqual([30_000, 5])
  expect(STORE_TIMEOUT_MS).toBe(30_000)
  expect(sessionPatience().wayOut).toContain('`storeTimeoutMs`')
})

describe('one answer', () => {
  test('that comes in time is given, also when it is a rejection, and its timer is gone', async () => {
    expect(await inTime(Promise.resolve(7), 'answer this', patience)).toBe(7)
    await expect(inTime(Promise.reject(new Error('no')), 'answer this', patience)).rejects.toThrow('no')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that does not come fails at its limit and not before, and says what was asked, for how long, and the way out', async () => {
    const seen = watched(inTime(never(), 'answer this', patience))
    await pass(99)
    expect(seen.outcome).toBe('pending')
    await pass(1)
    expect(seen.outcome).toEqual(tooLate)
    expect(seen.outcome).toMatchObject({ code: 'STORE_FAILURE', reason: 'timeout' })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('that is too late is given back, once; one in time is not', async () => {
    const given: number[] = []
    const late = (value: number): void => void given.push(value)
    await inTime(Promise.resolve(1), 'answer this', patience, { late })
    const slow = deferred<number>()
    const seen = watched(inTime(slow.promise, 'answer this', patience, { late }))
    await pass(100)
    expect([seen.outcome, given]).toEqual([tooLate, []])
    slow.resolve(2)
    await settled()
    expect([seen.outcome, given]).toEqual([tooLate, [2]])
  })

  test('that is too late and a rejection, or cannot be given back, troubles nobody', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      const answers = [deferred<number>(), deferred<number>(), deferred<number>()] as const
      const late = async (): Promise<void> => Promise.reject(new Error('cannot be given back'))
      const seen = answers.map(({ promise }, i) =>
        watched(inTime(promise, 'answer this', patience, i < 2 ? { late } : {})),
      )
      await pass(100)
      answers[0].reject(new Error('late'))
      answers[1].resolve(1)
      answers[2].reject(new Error('late'))
      await settled()
      await settled()
      expect(seen.map(({ outcome }) => outcome)).toEqual([tooLate, tooLate, tooLate])
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })

  test('is waited for by the process, unless it is told not to', () => {
    const timers = timersSet()
    watched(inTime(never(), 'answer this', patience))
    watched(inTime(never(), 'answer this', patience, { holds: false }))
    expect(timers.map((timer) => timer.hasRef())).toEqual([true, false])
  })

  test('may have more time than a timer can be set to', async () => {
    const seen = watched(inTime(never(), 'answer this', { timeoutMs: 2 ** 40, wayOut: 'try again' }))
    await pass(1_000)
    expect(seen.outcome).toBe('pending')
  })
})

describe('a stream', () => {
  /** Gives what is pushed; `ended` counts how often it was told to end. */
  function stream(): { items: AsyncIterable<number>; give: Deferred<IteratorResult<number>>[]; ended: () => number } {
    const give: Deferred<IteratorResult<number>>[] = []
    let ended = 0
    const next = (): Promise<IteratorResult<number>> => {
      const asked = deferred<IteratorResult<number>>()
      give.push(asked)
      return asked.promise
    }
    const end = (): Promise<IteratorResult<number>> => {
      ended += 1
      return Promise.resolve({ done: true, value: undefined })
    }
    const items: AsyncIterable<number> = { [Symbol.asyncIterator]: () => ({ next, return: end }) }
    return { items, give, ended: () => ended }
  }

  async function* counted(to: number): AsyncGenerator<number> {
    for (let n = 0; n < to; n++) yield n
  }

  test('is given whole and in order, and its timer is gone', async () => {
    expect(await collect(itemsInTime(counted(5), 'answer this', patience))).toEqual([0, 1, 2, 3, 4])
    expect(await collect(itemsInTime(counted(0), 'answer this', patience))).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('has the whole limit for each item anew', async () => {
    const { items, give, ended } = stream()
    const iterator = itemsInTime(items, 'answer this', patience)[Symbol.asyncIterator]()
    for (const value of [1, 2, 3]) {
      const seen = watched(iterator.next())
      await pass(99)
      give.at(-1)?.resolve({ done: false, value })
      await settled()
      expect(seen.outcome).toEqual({ done: false, value })
    }
    const seen = watched(iterator.next())
    await pass(99)
    expect(seen.outcome).toBe('pending')
    await pass(1)
    expect(seen.outcome).toEqual(tooLate)
    // What it held is let go of, and an item that still comes changes nothing.
    expect(ended()).toBe(1)
    give.at(-1)?.resolve({ done: false, value: 4 })
    await settled()
    expect([seen.outcome, vi.getTimerCount()]).toEqual([tooLate, 0])
  })

  test('does not count the time of its consumer, and keeps no process for it', async () => {
    const timers = timersSet()
    const { items, give, ended } = stream()
    const iterator = itemsInTime(items, 'answer this', patience)[Symbol.asyncIterator]()
    const first = watched(iterator.next())
    expect(timers.map((timer) => timer.hasRef())).toEqual([true])
    give[0]?.resolve({ done: false, value: 1 })
    await settled()
    expect(timers.map((timer) => timer.hasRef())).toEqual([false])
    await pass(1_000)
    expect([first.outcome, ended()]).toEqual([{ done: false, value: 1 }, 0])
    const second = watched(iterator.next())
    expect(timers.map((timer) => timer.hasRef())).toEqual([true])
    await pass(99)
    expect(second.outcome).toBe('pending')
    await pass(1)
    expect([second.outcome, ended()]).toEqual([tooLate, 1])
  })

  test('that fails fails as it does, and its timer is gone', async () => {
    const { items, give } = stream()
    const iterator = itemsInTime(items, 'answer this', patience)[Symbol.asyncIterator]()
    const seen = watched(iterator.next())
    give[0]?.reject(new Error('broken'))
    await settled()
    expect([seen.outcome, vi.getTimerCount()]).toEqual([new Error('broken'), 0])
  })

  test('that is left early is told so and its timer is gone; that it will not end is told in time', async () => {
    let cleaned = false
    async function* careful(): AsyncGenerator<number> {
      try {
        yield* counted(3)
      } finally {
        cleaned = true
      }
    }
    for await (const n of itemsInTime(careful(), 'answer this', patience)) if (n === 1) break
    expect([cleaned, vi.getTimerCount()]).toEqual([true, 0])

    const stuck: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: false, value: 1 }), return: never }),
    }
    const leaving = async (): Promise<void> => {
      for await (const _ of itemsInTime(stuck, 'answer this', patience)) break
    }
    const seen = watched(leaving())
    await settled()
    await pass(100)
    expect([seen.outcome, vi.getTimerCount()]).toEqual([tooLate, 0])
  })

  test('may be one that cannot be told to end', async () => {
    const plain = (): AsyncIterator<number> => ({ next: () => Promise.resolve({ done: false, value: 1 }) })
    for await (const _ of itemsInTime({ [Symbol.asyncIterator]: plain }, 'answer this', patience)) break
    expect(vi.getTimerCount()).toBe(0)
    const silent = itemsInTime(
      { [Symbol.asyncIterator]: () => ({ next: () => never<IteratorResult<number>>() }) },
      'answer this',
      patience,
    )
    const seen = watched(collect(silent))
    await pass(100)
    expect(seen.outcome).toEqual(tooLate)
  })

  test('that fails while it is told to end, after it was too late, troubles nobody', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    try {
      const end = (): Promise<never> => Promise.reject(new Error('cannot end'))
      const broken = itemsInTime(
        { [Symbol.asyncIterator]: () => ({ next: () => never<IteratorResult<number>>(), return: end }) },
        'answer this',
        patience,
      )
      const seen = watched(collect(broken))
      await pass(100)
      await settled()
      expect(seen.outcome).toEqual(tooLate)
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  })
})
