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

test('a listener hears of it once, after those of the signal, whenever it came', () => {
  const abort = new LazyAbort()
  const heard: string[] = []
  abort.listen(() => heard.push('listener'))
  abort.signal.addEventListener('abort', () => heard.push('signal'))
  abort.abort('first')
  abort.abort('second')
  abort.listen(() => heard.push('late'))
  expect(heard).toEqual(['signal', 'listener', 'late'])
  expect(abort.reason).toBe('first')
})

test('a listener that was taken back hears of nothing, also while others are told', () => {
  const abort = new LazyAbort()
  const heard: string[] = []
  const never = abort.listen(() => heard.push('taken back before'))
  never()
  const others: (() => void)[] = []
  abort.listen(() => others.forEach((takeBack) => void takeBack()))
  others.push(abort.listen(() => heard.push('taken back meanwhile')))
  abort.listen(() => heard.push('stayed'))
  abort.abort('now')
  for (const takeBack of others) takeBack()
  expect(heard).toEqual(['stayed'])
})

test('its signal may be one of several, asked for before or after', () => {
  for (const ask of ['before', 'after']) {
    const abort = new LazyAbort()
    const any = ask === 'before' ? AbortSignal.any([abort.signal]) : undefined
    abort.abort('first')
    const { aborted, reason } = any ?? AbortSignal.any([new AbortController().signal, abort.signal])
    expect([aborted, reason]).toEqual([true, 'first'])
  }
})

test('the reason nobody reads is what an abort without a reason has', () => {
  const { name, message, code } = AbortSignal.abort().reason
  expect(ABORTED).toMatchObject({ name, message, code })
})
