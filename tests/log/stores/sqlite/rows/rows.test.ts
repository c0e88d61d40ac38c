/** Rows of events in forms: lossless for any event, small for usual ones, and damage is never taken for events. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StoreFailure, type StoreFailureReason } from '../../../../../src/log/errors.ts'
import type { SessionEvent } from '../../../../../src/log/events.ts'
import { encodeEvents, rowBodies } from '../../../../../src/log/stores/sqlite/batch.ts'
import { numbersOf, numeral } from '../../../../../src/log/stores/sqlite/rows/numerals.ts'
import { FORMED, type StoredRow, unpackStored } from '../../../../../src/log/stores/sqlite/rows/row.ts'
import { chunks } from '../../../../kit/store-contract/fixtures.ts'
import { anyEvents, usualEvents } from './any-events.ts'
import {
  EVERYTHING,
  FORGED,
  forged,
  holdFormed,
  holdLossless,
  holdOdd,
  holdParts,
  holdPlace,
  holdSmall,
  rowsOf,
} from './checks.ts'

const code = { encodeEvents, rowBodies, unpackStored }

test('whatever was packed is what is unpacked, to the letter', () => holdLossless(code, { numRuns: 1_000 }))
test('so is a usual event that is odd in any one place', () => holdOdd(code))
test('a part of a row is that part of its events, and the time of the last before its end', () =>
  holdParts(code, { numRuns: 600 }))
test('an event that is called formed has the shape of its type', () => holdFormed(code, { numRuns: 600 }))
test('a usual turn is all forms, and small', () => holdSmall(code))

test('deltas take little more than their text', () => {
  const rows = rowsOf(code, chunks(0, 400, 'word '))
  expect(rows.reduce((bytes, { body }) => bytes + body.byteLength, 0)).toBeLessThan(400 * 5 + 400 * 2 + 100)
})

test('a row is closed by what it holds, so that no reader holds much', () => {
  const rows = rowsOf(code, chunks(0, 3_000, 'x'.repeat(100)))
  expect(rows.length).toBeGreaterThan(8)
  expect(rows.flatMap((row) => unpackStored('db', row, EVERYTHING).events)).toEqual(chunks(0, 3_000, 'x'.repeat(100)))
})

test.each([0, 1, 31, 32, 33, 1_023, 1_024, 2 ** 31, 2 ** 53 - 1])('%d is a numeral, alone and among others', (n) => {
  expect(numbersOf(numeral(n))).toEqual([n])
  expect(numbersOf(numeral(5) + numeral(n) + numeral(0))).toEqual([5, n, 0])
})

const oneRow = (events: readonly SessionEvent[]): StoredRow => rowsOf(code, events)[0] ?? expect.fail('no row')

function damage(row: StoredRow, reason: StoreFailureReason = 'damaged'): StoreFailure {
  try {
    unpackStored('the.db', row, EVERYTHING)
  } catch (error) {
    expect(error).toBeInstanceOf(StoreFailure)
    expect(error).toMatchObject({ reason, message: expect.stringContaining('the.db') })
    return error as StoreFailure
  }
  return expect.fail('the row was read')
}

describe('damage', () => {
  test('any flipped bytes are found', () => {
    const flips = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(anyEvents, flips, (events, places) => {
        const row = oneRow(events)
        const body = Buffer.from(row.body)
        for (const [at, bits] of places) body[at % body.length] = (body[at % body.length] ?? 0) ^ bits
        fc.pre(!body.equals(row.body))
        damage({ ...row, body })
      }),
      { numRuns: 300 },
    )
  })

  test('a row that is cut off anywhere is found, and so is one with more at its end', () => {
    const row = oneRow(usualEvents(0, 1))
    for (let length = 0; length < row.body.length; length++) damage({ ...row, body: row.body.subarray(0, length) })
    damage({ ...row, body: Buffer.concat([row.body, Buffer.from(' ')]) })
  })

  test('a row in the place of another is found: its events have the seqs of where they were written', () =>
    holdPlace(code))

  test('an encoding that is not known is a newer one, and one that never was is damage', () => {
    const row = oneRow(usualEvents(0, 1))
    expect(damage({ ...row, encoding: FORMED + 1 }, 'newer-schema').message).toContain('encoding 4')
    damage({ ...row, encoding: 0 })
    damage({ ...row, encoding: -1 })
  })

  test.each(FORGED)('%s, under a checksum that fits, is damage', (_, text) => {
    expect(damage(forged(text, { first: 0, last: 0 })).reason).toBe('damaged')
  })

  test('whatever is forged is damage or events in their places, and takes no more memory than it has bytes', () => {
    const change = fc.tuple(
      fc.nat(),
      fc.oneof(fc.jsonValue(), fc.integer(), fc.constantFrom(2 ** 53, 1e300, [0], [[]])),
    )
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const row = oneRow(usualEvents(50, 1))
        const items: unknown = JSON.parse(Buffer.from(row.body).subarray(4).toString())
        for (const [place, value] of changes) changeAt(items, place, value)
        const read = tryUnpack(forged(JSON.stringify(items), row))
        if (read !== undefined) expect(read.map(({ seq }) => seq)).toEqual(usualEvents(50, 1).map(({ seq }) => seq))
      }),
      { numRuns: 1_000 },
    )
  })
})

function changeAt(root: unknown, place: number, value: unknown): void {
  const places: [object, string][] = []
  const walk = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const key of Object.keys(node)) {
      places.push([node, key])
      walk(Reflect.get(node, key))
    }
  }
  walk(root)
  const found = places[place % places.length]
  if (found !== undefined) Reflect.set(found[0], found[1], value)
}

function tryUnpack(row: StoredRow): readonly SessionEvent[] | undefined {
  try {
    return unpackStored('db', row, EVERYTHING).events
  } catch (error) {
    expect(error).toMatchObject({ code: 'STORE_FAILURE', reason: 'damaged' })
    return undefined
  }
}
