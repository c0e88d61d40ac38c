/** The first of several aborts, and nothing left behind in the others: they outlive thousands of requests. */
import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { LazyAbort } from '../../src/log/lazy-abort.ts'
import { either } from '../../src/services/either.ts'
import { eitherOf } from '../../src/services/either-of.ts'

describe('either of two that need no signal', () => {
  test.each([0, 1])('aborts with the first that does, here number %i', (first) => {
    const sources = [new LazyAbort(), new LazyAbort()] as const
    const { abort, release } = eitherOf(...sources)
    expect(abort.signal.aborted).toBe(false)
    sources[first]?.abort('first')
    sources[1 - first]?.abort('second')
    expect([abort.aborted, abort.signal.aborted, abort.signal.reason]).toEqual([true, true, 'first'])
    release()
  })

  test('is aborted at once if one was, with its reason', () => {
    const [one, other] = [new LazyAbort(), new LazyAbort()]
    other.abort('long ago')
    const { abort } = eitherOf(one, other)
    expect([abort.aborted, abort.reason]).toEqual([true, 'long ago'])
  })

  test.each([0, 1])('hears nothing once released, of number %i', (which) => {
    const sources = [new LazyAbort(), new LazyAbort()] as const
    const { abort, release } = eitherOf(...sources)
    release()
    sources[which]?.abort('now')
    expect(abort.aborted).toBe(false)
  })
})

test('either of signals aborts with the first, and leaves no listener once released', () => {
  const [one, other] = [new AbortController(), new AbortController()]
  const { signal, release } = either(one.signal, other.signal)
  expect(getEventListeners(one.signal, 'abort')).toHaveLength(1)
  other.abort('first')
  one.abort('second')
  expect([signal.aborted, signal.reason]).toEqual([true, 'first'])
  release()
  expect([one, other].map((each) => getEventListeners(each.signal, 'abort'))).toEqual([[], []])
})
