import { describe, expect, test, vi } from 'vitest'
import { chunk, entered, holding, settled, setup, turnStart, useFakeTimers } from './session-setup.ts'

describe('the window of chunks', () => {
  test('the first chunk goes at once, those after it together when the window ends', async () => {
    useFakeTimers()
    const { session, appends } = await setup() // 20 ms, as nothing else is said.
    session.append(chunk('1'))
    await settled()
    for (const text of ['2', '3']) session.append(chunk(text))
    await settled()
    vi.advanceTimersByTime(19)
    expect(appends.map(({ events }) => events.length)).toEqual([1])
    vi.advanceTimersByTime(1)
    await settled()
    session.append(chunk('4'))
    expect(appends.map(({ events }) => events.length)).toEqual([1, 2])
    vi.advanceTimersByTime(20)
    expect(appends.map(({ events }) => events.length)).toEqual([1, 2, 1])
  })

  test('after a quiet window the next chunk goes at once again', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk())
    await settled()
    vi.advanceTimersByTime(20)
    session.append(chunk())
    expect(appends).toHaveLength(2)
  })

  test.each([
    { what: 'a flush', hurry: 'flush' },
    { what: 'another event', hurry: 'event' },
    { what: 'a taken command', hurry: 'take' },
    { what: '64 kB', hurry: 'bytes' },
  ] as const)('$what ends the wait', async ({ hurry }) => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk('1'))
    await settled()
    session.append(chunk('2'))
    expect(appends).toHaveLength(1)
    if (hurry === 'flush') void session.flush()
    if (hurry === 'event') session.append(entered('a'))
    if (hurry === 'take') session.take('c1', { kind: 'taken' })
    if (hurry === 'take') session.seal()
    if (hurry === 'bytes') session.append(chunk('x'.repeat(65_536)))
    expect(appends).toHaveLength(2)
  })

  test('64 kB that end the wait do not begin it anew', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 100 })
    let now = 0
    const append = async (atMs: number, text: string): Promise<number> => {
      vi.advanceTimersByTime(atMs - now)
      now = atMs
      session.append(chunk(text))
      await settled()
      return appends.length
    }
    expect(await append(0, '1')).toBe(1)
    expect(await append(50, 'x'.repeat(65_536))).toBe(2)
    expect(await append(120, 'the first of a new window')).toBe(3)
    expect(await append(130, 'waits until 220')).toBe(3)
    expect(await append(219, 'as does this')).toBe(3)
    expect(await append(220, 'waits until 320')).toBe(4)
  })

  test('a flush of what is in flight hurries no chunk that comes later', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(chunk('1'))
    await session.flush()
    session.append(chunk('2'))
    expect(appends).toHaveLength(1)
  })

  test('a flush by an observer hurries the chunk it was told of', async () => {
    useFakeTimers()
    const { session, appends } = await setup({
      windowMs: 20,
      onSealed(events) {
        if (events[0]?.seq === 1) void session.flush()
      },
    })
    session.append(chunk('1'))
    await settled()
    session.append(chunk('2'))
    expect(appends).toHaveLength(2)
  })

  test('other events open none: the chunk after one goes at once', async () => {
    useFakeTimers()
    const { session, appends } = await setup({ windowMs: 20 })
    session.append(turnStart())
    await settled()
    session.append(chunk())
    expect(appends).toHaveLength(2)
  })

  test('its timer holds the process only while a chunk waits', async () => {
    const { session } = await setup({ windowMs: 1_000 })
    const before = holding()
    session.append(chunk('1'))
    expect(holding()).toBe(before)
    await settled()
    const between = holding()
    session.append(chunk('2'))
    expect(holding()).toBe(between + 1)
    session.append(entered('a'))
    expect(holding()).toBe(between)
  })

  test('a window of nothing lets no chunk wait', async () => {
    const { session, appends } = await setup({ windowMs: 0 })
    session.append(chunk('1'))
    await settled()
    session.append(chunk('2'))
    expect(appends).toHaveLength(2)
  })
})
