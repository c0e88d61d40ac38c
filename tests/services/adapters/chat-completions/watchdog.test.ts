import { expect, test } from 'vitest'
import { createWatchdog, type Limits } from '../../../../src/services/adapters/chat-completions/watchdog.ts'
import { manualClock } from '../../../kit/manual-clock.ts'

function watch(limits: Partial<Limits> = {}) {
  const clock = manualClock()
  let aborts = 0
  const all = { firstByteMs: 100, idleMs: 50, ...limits }
  const watchdog = createWatchdog(all, { clock, abort: () => aborts++ })
  const waitFor = (ms: number) => watchdog.during(async () => clock.advance(ms))
  return { clock, watchdog, waitFor, aborts: () => aborts }
}

test('the wait for the first byte is one, over headers and body', async () => {
  const { watchdog, waitFor, aborts } = watch()
  await waitFor(60)
  expect(aborts()).toBe(0)
  await waitFor(39)
  expect(watchdog.expired).toBeUndefined()
  await waitFor(1)
  expect(aborts()).toBe(1)
  expect(watchdog.expired).toEqual({
    code: 'TIMEOUT',
    message: 'The server sent nothing within 100 ms (firstByteTimeoutMs)',
  })
})

test('the first byte starts the wait for an event, and later bytes do not start it again', async () => {
  const { watchdog, waitFor } = watch()
  await waitFor(90)
  for (const ms of [40, 9]) {
    watchdog.sawByte()
    await waitFor(ms)
    expect(watchdog.expired).toBeUndefined()
  }
  watchdog.sawByte()
  await waitFor(1)
  expect(watchdog.expired).toEqual({ code: 'TIMEOUT', message: 'The server sent no event for 50 ms (idleTimeoutMs)' })
})

test('time between reads is nobody’s, and each event gets the whole limit', async () => {
  const { watchdog, clock, waitFor } = watch({ totalMs: 120 })
  watchdog.sawByte()
  for (const _ of [1, 2, 3]) {
    await waitFor(39)
    watchdog.sawProgress()
    clock.advance(1_000)
  }
  expect(watchdog.expired).toBeUndefined()
  await waitFor(3)
  expect(watchdog.expired).toEqual({
    code: 'TIMEOUT',
    message: 'The answer took more than 120 ms of waiting (totalTimeoutMs)',
  })
})

test('what may follow a finish is waited for once, whatever comes meanwhile', async () => {
  const { watchdog, waitFor } = watch({ endMs: 20 })
  watchdog.sawByte()
  await waitFor(40)
  watchdog.sawProgress()
  watchdog.sawFinish()
  for (const ms of [10, 9]) {
    await waitFor(ms)
    watchdog.sawProgress()
    watchdog.sawFinish()
    expect(watchdog.expired).toBeUndefined()
  }
  await waitFor(1)
  expect(watchdog.expired).toEqual({
    code: 'TIMEOUT',
    message: 'The server did not end the answer within 20 ms of its finish (endTimeoutMs)',
  })
})

test.each([{ endMs: 60 }, {}])('it is never waited for longer than for a piece of the answer (%j)', async (limits) => {
  const { watchdog, waitFor } = watch(limits)
  watchdog.sawByte()
  watchdog.sawFinish()
  await waitFor(49)
  expect(watchdog.expired).toBeUndefined()
  await waitFor(1)
  expect(watchdog.expired?.message).toContain('50 ms (idleTimeoutMs)')
})

test('reads that are all too short for a timer to fire end all the same', async () => {
  const time = manualClock()
  // Time passes once the timer is taken away, so none ever fires.
  const clock = { ...time, clearTimeout: (id: unknown) => [time.clearTimeout(id), time.advance(1)] }
  const watchdog = createWatchdog({ firstByteMs: 100, idleMs: 50 }, { clock, abort: () => {} })
  watchdog.sawByte()
  for (let reads = 0; reads < 50; reads++) await watchdog.during(async () => {})
  await expect(watchdog.during(async () => {})).rejects.toThrow('no event for 50 ms')
})

test('a clock that is set back takes nothing from what was waited', async () => {
  let now = 1_000
  const clock = { ...manualClock(), now: () => now }
  const watchdog = createWatchdog({ firstByteMs: 100, idleMs: 50 }, { clock, abort: () => {} })
  const waitFor = (ms: number) =>
    watchdog.during(async () => {
      now += ms
    })
  await waitFor(60)
  await waitFor(-500)
  await waitFor(40)
  await expect(waitFor(1)).rejects.toThrow('firstByteTimeoutMs')
})

test('a read that throws leaves no timer behind', async () => {
  const { watchdog, clock } = watch()
  await expect(watchdog.during(() => Promise.reject(new Error('x')))).rejects.toThrow('x')
  expect(clock.pending).toBe(0)
})
