/** The conversation as requests show it and as it stands at rest: where a call without its result is noticed, and when. */
import { expect, test } from 'vitest'
import { checkInvariants } from '../../../src/log/invariants.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import * as k from '../../kit/logs.ts'

const start: StreamChunk = { type: 'block-start', index: 0, blockType: 'text' }
const delta: StreamChunk = { type: 'text-delta', index: 0, text: 'a' }
const note = { type: 'todo/write', data: {}, ignorable: true } as const

/** What is said under a rule, by the event that it is said of. */
const saidOf = (rule: string, ...drafts: readonly k.Drafts[]) =>
  checkInvariants(k.logOf(...drafts)).flatMap((found) => (found.rule === rule ? [[found.seq, found.message]] : []))
const lengthOf = (...drafts: readonly k.Drafts[]) => k.logOf(...drafts).length
const replaced = (id: string, first: number, last = first, cites = [first, last]) =>
  k.ev('user/message', k.message(id), {
    surfaceOp: { op: 'replace', start: first, end: last },
    sourceEventSeqs: [...new Set(cites)],
  })

/** Step 2 asks, and the call of step 1 has no result. */
const unanswered = [k.opened(), k.asksFor([{ id: 'c1' }]), k.stepEnd('tool-calls'), k.stepStart(1, 2)]
const NO_RESULT = 'the call c1 has no result'

test('a call whose result is missing is noticed as the model is asked, once for each attempt', () => {
  const at = lengthOf(unanswered)
  const asked = [unanswered, k.chunk(start, { step: 2 }), k.chunk(delta, { step: 2 })]
  expect(saidOf('HISTORY-PAIRING', unanswered)).toEqual([])
  expect(saidOf('HISTORY-PAIRING', asked)).toEqual([[at, NO_RESULT]])
  const again = [asked, k.resumed(), k.chunk(start, { step: 2, attempt: 2 }), k.chunk(delta, { step: 2, attempt: 2 })]
  expect(saidOf('HISTORY-PAIRING', again)).toEqual([
    [at, NO_RESULT],
    [at + 3, NO_RESULT],
  ])
})

test('and in the next turn, though step and attempt are the same', () => {
  const good = [k.toolTurn(), k.textTurn('m2', 2)]
  const wrong = [good, replaced('s1', 14)]
  const asks = [k.opened('m3', 3), k.chunk(start, { turn: 3 })]
  expect(saidOf('HISTORY-PAIRING', good, asks)).toEqual([])
  expect(saidOf('HISTORY-PAIRING', wrong, asks).map(([seq]) => seq)).toEqual([
    lengthOf(wrong),
    lengthOf(wrong, asks) - 1,
  ])
})

test('a log that ends at rest is looked at as it ends', () => {
  const ended = [k.opened(), k.asksFor([{ id: 'c1' }]), k.stepEnd('tool-calls')]
  expect(saidOf('HISTORY-PAIRING', ended)).toEqual([[lengthOf(ended) - 1, NO_RESULT]])
  expect(saidOf('HISTORY-PAIRING', k.toolTurn())).toEqual([])
})

test('a replacement that parts calls and results is noticed at the next event, and not again until a model is asked', () => {
  const wrong = [k.toolTurn(), replaced('s1', 14)]
  const at = lengthOf(wrong)
  const later = [wrong, k.opened('m2', 2), note, k.chunk(start, { turn: 2 }), k.chunk(delta, { turn: 2 })]
  const said = saidOf('HISTORY-PAIRING', later)
  expect(said.map(([seq]) => seq)).toEqual([at, lengthOf(later) - 2])
  for (const [, message] of said) expect(message).toMatch(/^the result of c\d follows no call$/)
  expect(saidOf('SURFACE-REPLACE', later)).toHaveLength(1)
})

test('a replacement of all that belongs together parts nothing', () => {
  const log = k.logOf(k.textTurn())
  const summary = replaced(
    's1',
    4,
    log.findIndex(({ type }) => type === 'assistant/message'),
  )
  expect(checkInvariants(k.logOf(k.textTurn(), summary, k.opened('m2', 2), k.chunk(start, { turn: 2 })))).toEqual([])
})

test('a replacement inside a step is wrong for that, not for the calls that still run', () => {
  const running = [k.opened(), k.asksFor([{ id: 'c1' }]), k.toolCall('c1'), replaced('s1', 4), note]
  const found = checkInvariants(k.logOf(running))
  expect(found.map(({ rule, message }) => [rule, message])).toEqual([['REPLACE-IN-STEP', 'step 1/1 is open']])
})

test('a chunk is no request where nobody is asking', () => {
  const late = k.chunk(start, { attempt: 2 })
  expect(saidOf('HISTORY-PAIRING', k.opened(), k.asksFor([{ id: 'c1' }]), late)).toEqual([])
})
