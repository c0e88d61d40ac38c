import { expect, test } from 'vitest'
import { ABORTED } from '../../src/log/aborted.ts'
import { LazyAbort } from '../../src/log/lazy-abort.ts'

test('whoever asked for the signal before the abort hears of it, once and with the first reason', () => {
  const abort = new LazyAbort()
  const { signal } = abort
  let heard = 0
  signal.addEventListener('abort', () => heard++)
  expect([abort.aborted, signal.aborted]).toEqual([false, false])
  abort.abort('first')
  abort.abort('second')
  expect([abort.aborted, signal.aborted, signal.reason, heard]).toEqual([true, true, 'first', 1])
})

test('whoever asks afterwards gets a signal that is aborted already, with the first reason', () => {
  const abort = new LazyAbort()
  abort.abort('first')
  abort.abort('second')
  expect(abort.aborted).toBe(true)
  expect([abort.signal.aborted, abort.signal.reason]).toEqual([true, 'first'])
})

test('all who ask get one signal, and without an abort it is silent', () => {
  const abort = new LazyAbort()
  expect(abort.signal).toBe(abort.signal)
  expect(abort.signal.aborted).toBe(false)
})

test('the reason nobody reads is what an abort without a reason has', () => {
  const { name, message, code } = AbortSignal.abort().reason
  expect(ABORTED).toMatchObject({ name, message, code })
})
