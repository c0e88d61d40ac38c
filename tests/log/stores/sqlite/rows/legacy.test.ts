/** Rows of 0.1.0: whatever is written today, they are read to the letter, in part or whole. */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../../src/log/events.ts'
import { type StoredRow, unpackStored } from '../../../../../src/log/stores/sqlite/rows/row.ts'
import { chunk, chunks } from '../../../../kit/store-contract/fixtures.ts'
import { usualEvents } from './any-events.ts'
import { EVERYTHING } from './checks.ts'
import { legacyRow } from './legacy-row.ts'

const delta = (seq: number, change: object, time = 1_000): SessionEvent =>
  ({
    ...chunk(seq),
    time,
    data: { turn: 1, step: 1, attempt: 1, chunk: { type: 'text-delta', index: 0, text: 'a', ...change } },
  }) as SessionEvent

const odd = (seq: number, event: object): SessionEvent => ({ ...chunk(seq), ...event }) as SessionEvent

const CASES: readonly (readonly [string, readonly SessionEvent[]])[] = [
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
  ['a usual turn', usualEvents(3, 1)],
]

test.each(CASES)('%s', (_, events) => {
  const { events: back, formed, time } = unpackStored('db', legacyRow(events), EVERYTHING)
  expect(JSON.stringify(back)).toBe(JSON.stringify(events))
  expect(formed).toEqual(events.map(() => false))
  expect(time).toBe(events.at(-1)?.time)
})

test('as it lies in a file of 0.1.0', () => {
  const body = Buffer.from(
    '[{"type":"turn/start","seq":4,"time":8,"data":{"turn":1}},[9,[1,1,1,"text-delta",0],["a","é","c"],[0,5]],[20,[1,1,1,"reasoning-delta",1],["d"],[]]]',
  )
  const { events } = unpackStored('db', { first: 4, last: 8, encoding: 2, body }, EVERYTHING)
  expect(events.map(({ seq, time }) => [seq, time])).toEqual([
    [4, 8],
    [5, 9],
    [6, 9],
    [7, 14],
    [8, 20],
  ])
  expect(events[2]?.data).toEqual({
    ...{ turn: 1, step: 1, attempt: 1 },
    chunk: { type: 'text-delta', index: 0, text: 'é' },
  })
})

test('a part of a row is that part, without deltas where nobody wants them', () => {
  const events = usualEvents(3, 1)
  const row = legacyRow(events)
  const part = unpackStored('db', row, { from: 5, to: 12, deltasFrom: 11 })
  expect(part.events).toEqual(events.slice(2, 9).filter(({ seq, data }) => seq === 11 || !isDelta(data)))
  expect(part.time).toBe(events[8]?.time)
})

const isDelta = (data: SessionEvent['data']): boolean => JSON.stringify(data).includes('-delta"')

test('deltas whose time goes back are not passed over', () => {
  const events = [9, 3].map((ms, i) => delta(i, {}, ms))
  expect(unpackStored('db', legacyRow(events), { from: 0, to: 2, deltasFrom: 2 }).events).toEqual(events)
})

const row = (text: string | Buffer, last = 0): StoredRow => ({ first: 0, last, encoding: 2, body: Buffer.from(text) })

test.each<[string, StoredRow]>([
  ['{}', row('{}')],
  ['a number', row('1')],
  ['cut off', row('[{"seq":0}')],
  ['bytes that are no text', row(Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]))],
  ['another list', row('[[1]]')],
  ['a text that is none', row('[[1,[1,1,1,"text-delta",0],["a",1],[]]]', 1)],
  ['times of other deltas', row('[[1,[1,1,1,"text-delta",0],["a","b","c"],[1]]]', 2)],
  ['another seq', row('[{"seq":1}]')],
  ['null', row('[null]')],
  ['more events', row('[{"seq":0},{"seq":1}]')],
  ['fewer events', row('[{"seq":0}]', 1)],
])('%s is damage', (_, stored) => {
  expect(() => unpackStored('the.db', stored, EVERYTHING)).toThrow(/the\.db is damaged/)
})
