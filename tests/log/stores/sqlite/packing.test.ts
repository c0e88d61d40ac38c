/** Rows: what is unpacked is what was packed, to the letter, and what was not packed is not taken for it. */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/log/events.ts'
import { RowText, unpack } from '../../../../src/log/stores/sqlite/packing.ts'
import { chunk, chunks } from '../../../kit/store-contract/fixtures.ts'

function packed(events: readonly SessionEvent[]): string {
  const row = new RowText(events[0]?.seq ?? 0)
  for (const event of events) row.add(event)
  return row.end()
}

const delta = (seq: number, change: object, time = 1_000): SessionEvent =>
  ({
    ...chunk(seq),
    time,
    data: { turn: 1, step: 1, attempt: 1, chunk: { type: 'text-delta', index: 0, text: 'a', ...change } },
  }) as SessionEvent

const odd = (seq: number, event: object): SessionEvent => ({ ...chunk(seq), ...event }) as SessionEvent

test.each<[string, SessionEvent[]]>([
  ['a run', chunks(7, 5)],
  [
    'runs of several blocks',
    [delta(0, {}), delta(1, { index: 1 }), delta(2, { index: 1 }), delta(3, { type: 'reasoning-delta' })],
  ],
  ['texts that JSON escapes', ['\u0000', '\ud800', '"', '\\', '😀', ''].map((text, i) => delta(i, { text }))],
  ['times that stand still, and go on', [0, 0, 5, 5, 900_000].map((ms, i) => delta(i, {}, 1_000 + ms))],
  ['a time that goes back', [9, 3, 7].map((ms, i) => delta(i, {}, ms))],
  [
    'further keys',
    [
      delta(0, {}),
      delta(1, { more: 1 }),
      odd(2, { ignorable: true }),
      odd(3, { data: { ...chunk(3).data, request: 'sha256:0' } }),
    ],
  ],
  [
    'keys in another order',
    [delta(0, {}), Object.fromEntries(Object.entries(delta(1, {})).reverse()) as unknown as SessionEvent, delta(2, {})],
  ],
  [
    'data that is none',
    [odd(0, { data: null }), odd(1, { data: [1] }), odd(2, { data: { chunk: null } }), delta(3, { text: 7 })],
  ],
  ['other events between', [chunk(0), odd(1, { type: 'step/start', data: { turn: 1, step: 1 } }), chunk(2), chunk(3)]],
])('%s', (_, events) => {
  const first = events[0]?.seq ?? 0
  const back = unpack(JSON.parse(packed(events)), first)
  expect(JSON.stringify(back)).toBe(JSON.stringify(events))
})

test('a run says once what its deltas share', () => {
  expect(packed(Array.from({ length: 20 }, (_, i) => delta(i, { text: ' word' }))).length).toBeLessThan(250)
})

test.each([
  {},
  1,
  [[1]],
  [[1, [1, 1, 1, 'text-delta', 0], ['a', 1], []]],
  [[1, [1, 1, 1, 'text-delta', 0], ['a', 'b', 'c'], [1]]],
])('%j is no row', (parsed) => expect(unpack(parsed, 0)).toBeUndefined())
