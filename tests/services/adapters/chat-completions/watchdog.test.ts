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
  expect(watchdog.expired).toMatchObject({ code: 'TIMEOUT' })
})

test('the first byte starts the wait for an event, and later bytes do not start it again', async () => {
  const { watchdog, clock, aborts } = watch()
  await watchdog.during(async () => {
    clock.advance(90)
    watchdog.sawByte()
    clock.advance(40)
    watchdog.sawByte()
    clock.advance(9)
    expect(aborts()).toBe(0)
    clock.advance(1)
  })
  expect(aborts()).toBe(1)
})

test('time between reads is nobody’s, and each event gets the whole limit', async () => {
  const { watchdog, clock, waitFor } = watch({ totalMs: 120 })
  watchdog.sawByte()
  for (const _ of [1, 2, 3]) {
    await waitFor(39)
    clock.advance(1_000)
  }
  expect(watchdog.expired).toBeUndefined()
  await waitFor(3)
  expect(watchdog.expired?.message).toContain('120 ms')
})

test('a read that throws leaves no timer behind', async () => {
  const { watchdog, clock } = watch()
  await expect(watchdog.during(() => Promise.reject(new Error('x')))).rejects.toThrow('x')
  expect(clock.pending).toBe(0)
})
