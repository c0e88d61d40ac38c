/** Headers that say why they are logged, and the model that is asked, which is the one named last. */
import { describe, expect, test } from 'vitest'
import { checkInvariants } from '../../../src/log/invariants.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import * as k from '../../kit/logs.ts'

type Reason = 'initial' | 'resume' | 'change'

const header = (reason: Reason, system = 'be brief', provider = 'p', model = 'm') =>
  k.ev('request/header', { header: { config: { provider, model }, system }, reason })
const context = (provider = 'p', model = 'm', contextWindow?: number) =>
  k.ev('request/context', { provider, model, ...(contextWindow === undefined ? {} : { contextWindow }) })
const start: StreamChunk = { type: 'block-start', index: 0, blockType: 'text' }
const delta: StreamChunk = { type: 'text-delta', index: 0, text: 'a' }

/** What is said under a rule, each with how many events before the last it is said of. */
const saidOf = (rule: string, ...drafts: readonly k.Drafts[]) => {
  const log = k.logOf(...drafts)
  return checkInvariants(log).flatMap((found) =>
    found.rule === rule ? [[log.length - 1 - found.seq, found.message] as const] : [],
  )
}
const found = (...drafts: readonly k.Drafts[]) => checkInvariants(k.logOf(...drafts))

/** A step, before anything is said of its request. */
const unasked = k.opened().slice(0, 5)
/** One that asks p m. */
const asking = k.opened()

describe('the reason of a header', () => {
  test.each<[string, readonly k.Drafts[]]>([
    ['the first is the initial one', [header('initial')]],
    ['a process that opens the session states it again', [header('initial'), header('resume')]],
    ['or states another', [header('initial'), header('resume', 'be long')]],
    ['a change differs', [header('initial'), header('change', 'be long')]],
    ['from the one before only', [header('initial'), header('change', 'be long'), header('change')]],
    ['and from what was resumed', [header('initial'), header('resume', 'be long'), header('change')]],
  ])('holds: %s', (_, drafts) => {
    expect(found(unasked, drafts)).toEqual([])
  })
  test.each<[string, string, readonly k.Drafts[]]>([
    ['the first is of a resume', 'resume, and it is the first', [header('resume')]],
    ['the first is a change', 'change, and it is the first', [header('change')]],
    ['a second initial one', 'initial, and there is one already', [header('initial'), header('initial', 'be long')]],
    ['a change of nothing', 'it changes nothing', [header('initial'), header('change')]],
    [
      'a change to what was resumed',
      'it changes nothing',
      [header('initial'), header('resume', 'be long'), header('change', 'be long')],
    ],
  ])('is broken: %s', (_, message, drafts) => {
    expect(saidOf('HEADER-REASON', unasked, drafts)).toEqual([[0, message]])
  })
})

describe('a request/context', () => {
  test.each<[string, readonly k.Drafts[]]>([
    ['another model', [context('p', 'n')]],
    ['another provider', [context('q', 'm')]],
    ['another window', [context('p', 'm', 1_000)]],
    ['the one before the last', [context('p', 'n'), context()]],
  ])('is logged for %s', (_, drafts) => {
    expect(found(asking, drafts)).toEqual([])
  })
  test.each<[string, readonly k.Drafts[]]>([
    ['the same', [context()]],
    ['the same as the last', [context('p', 'm', 1_000), context('p', 'm', 1_000)]],
  ])('is not logged for %s', (_, drafts) => {
    expect(saidOf('REQUEST-CONTEXT', asking, drafts)).toEqual([[0, 'it says what was said before']])
  })
})

describe('the model that is asked', () => {
  const unsaid = (name: string) => `${name} is asked, and no request/context says so`
  const first = k.chunk(start)

  test('is the one named last', () => {
    expect(found(asking, first)).toEqual([])
    expect(found(asking, context('p', 'n'), context(), first)).toEqual([])
    expect(found(asking, header('change', '', 'q', 'n'), context('q', 'n'), first)).toEqual([])
  })
  test.each<[string, readonly k.Drafts[], string]>([
    ['none was named', [unasked, header('initial')], 'p m'],
    ['another model was named', [unasked, header('initial'), context('p', 'n')], 'p m'],
    ['the model of another provider was named', [unasked, header('initial'), context('q', 'm')], 'p m'],
    ['it was named, and another since', [asking, context('p', 'n')], 'p m'],
    ['the header changed its model', [asking, header('change', '', 'p', 'n')], 'p n'],
    ['the header changed its provider', [asking, header('change', '', 'q', 'm')], 'q m'],
  ])('is missed where %s', (_, drafts, name) => {
    expect(saidOf('REQUEST-CONTEXT', drafts, first)).toEqual([[0, unsaid(name)]])
  })
  test('is looked at once, at the first chunk of each attempt', () => {
    const unnamed = [unasked, header('initial')]
    expect(saidOf('REQUEST-CONTEXT', unnamed, first, k.chunk(delta), k.chunk(delta))).toEqual([[2, unsaid('p m')]])
    // It was looked at before the header changed.
    expect(found(asking, first, header('change', '', 'p', 'n'), k.chunk(delta))).toEqual([])
  })
  const changed = header('change', '', 'p', 'n')
  test.each<[string, readonly k.Drafts[], Parameters<typeof k.chunk>[1]]>([
    ['attempt', [asking, first, k.resumed()], { attempt: 2 }],
    ['step', [asking, k.asksFor([{ id: 'c1' }]), k.ran('c1'), k.handsOver('c1')], { step: 2 }],
    ['turn', [k.textTurn(), k.opened('m2', 2)], { turn: 2 }],
  ])('is looked at again in the next %s', (_, before, at) => {
    expect(found(before, k.chunk(start, at))).toEqual([])
    expect(found(before, changed, context('p', 'n'), k.chunk(start, at))).toEqual([])
    expect(saidOf('REQUEST-CONTEXT', before, changed, k.chunk(start, at))).toEqual([[0, unsaid('p n')]])
  })
  test('is not looked at where nobody is asking, or no header was logged', () => {
    expect(saidOf('REQUEST-CONTEXT', k.textTurn(), k.chunk(start, { attempt: 2 }))).toEqual([])
    expect(saidOf('REQUEST-CONTEXT', unasked, first)).toEqual([])
  })
})
