import { describe, expect, test } from 'vitest'
import { Fenced } from '../../../src/log/errors.ts'
import { LlmError } from '../../../src/services/errors.ts'
import { failureOf, finishOf, renderCauses } from '../../../src/services/llm/failure.ts'

const failure = { message: 'slow down', code: 'RATE_LIMIT', status: 429, providerRetryAfterMs: 2_000, requestId: 'r' }
const hostile = () =>
  Object.defineProperty(new Error('x'), 'message', {
    get() {
      throw new Error('gotcha')
    },
  })

describe('a thrown value becomes a failure', () => {
  test('[llm-003] the facts of an LlmError are kept as they are', () => {
    expect(failureOf(new LlmError(failure))).toEqual(failure)
  })

  test.each([
    ['a plain error', new Error('boom'), { message: 'boom', code: 'UNKNOWN' }],
    ['a string', 'boom', { message: 'boom', code: 'UNKNOWN' }],
    ['a symbol', Symbol('s'), { message: 'Symbol(s)', code: 'UNKNOWN' }],
    ['an error of ours', new Fenced(3, 'gone'), { message: 'gone', code: 'FENCED' }],
    [
      'a foreign code',
      Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
      { message: 'reset', code: 'UNKNOWN' },
    ],
  ])('%s', (_, thrown, expected) => {
    expect(failureOf(thrown)).toEqual(expected)
  })

  test('an empty message still says something', () => {
    expect(failureOf('').message).not.toBe('')
    expect(failureOf(undefined).message).toBe('undefined')
  })

  test.each([
    ['a status out of range', { ...failure, status: 42 }],
    ['a wait that is no wait', { ...failure, providerRetryAfterMs: 0 }],
    ['an empty request id', { ...failure, requestId: '' }],
    ['a key that is no fact', { ...failure, body: 'secret' }],
    ['no message', { code: 'RATE_LIMIT' }],
  ])('[errors-008] %s is not believed', (_, stated) => {
    const thrown = Object.assign(new Error('wrapper'), { failure: stated, code: 'RATE_LIMIT' })
    expect(failureOf(thrown)).toEqual({ message: 'wrapper', code: 'UNKNOWN' })
  })

  test('[errors-008] a failure behind an accessor, or one that contradicts the code, is not believed', () => {
    const getter = Object.defineProperty(new Error('wrapper'), 'failure', { get: () => failure })
    expect(failureOf(Object.assign(getter, { code: 'RATE_LIMIT' }))).toEqual({ message: 'wrapper', code: 'UNKNOWN' })
    expect(failureOf(Object.assign(new Error('wrapper'), { failure, code: 'OTHER' })).code).toBe('UNKNOWN')
  })

  test('[llm-002] what is thrown under an aborted signal is an aborted finish', () => {
    const live = new AbortController()
    expect(finishOf(new Error('x'), live.signal).kind).toBe('error')
    expect(finishOf(new LlmError({ message: 'x', code: 'ABORTED' }), live.signal).kind).toBe('aborted')
    live.abort()
    expect(finishOf(new Error('x'), live.signal).kind).toBe('aborted')
  })
})

describe('causes are rendered', () => {
  test('[errors-001] as a chain', () => {
    const thrown = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
    expect(renderCauses(thrown)).toBe('fetch failed: connect ECONNREFUSED')
  })

  test('[errors-002] members of an aggregate come in brackets, before the cause', () => {
    const thrown = new AggregateError([new Error('a'), 'b'], 'all failed', { cause: 'offline' })
    expect(renderCauses(thrown)).toBe('all failed [a; b]: offline')
  })

  test('[errors-003] a cycle and a hostile getter cost only their own part', () => {
    const own = new Error('mine')
    own.cause = own
    expect(renderCauses(own)).toBe('mine: (a cycle)')
    expect(renderCauses(new Error('outer', { cause: hostile() }))).toBe('outer: (unreadable)')
    expect(renderCauses({ message: 'plain' })).toBe('plain')
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    expect(renderCauses(revoked.proxy)).toBe('(unreadable)')
  })

  test('[errors-004] a cause the wrapper repeats is said once', () => {
    expect(renderCauses(new Error('cannot read: EACCES', { cause: new Error('EACCES') }))).toBe('cannot read: EACCES')
  })

  test('neither depth nor length grows without end', () => {
    let thrown: unknown = 'root'
    for (let i = 0; i < 1_000; i++) thrown = new Error(`${i}`, { cause: thrown })
    expect(renderCauses(thrown)).toMatch(/…$/)
    expect(renderCauses('x'.repeat(100_000)).length).toBeLessThan(5_000)
  })
})
