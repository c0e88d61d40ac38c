/** What must hold of rows, over given code, so that mutants of the code can be held to it too. */
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { SessionEvent } from '../../../../../src/log/events.ts'
import { plainDelta } from '../../../../../src/log/stores/deltas.ts'
import type { encodeEvents, rowBodies } from '../../../../../src/log/stores/sqlite/batch.ts'
import { FORMED, type StoredRow, type unpackStored } from '../../../../../src/log/stores/sqlite/rows/row.ts'
import { validateStored } from '../../../../../src/log/validate.ts'
import { anyEvents, EVERY_ODD_EVENT, usualEvents } from './any-events.ts'

/** The code under test. */
export interface RowCode {
  readonly encodeEvents: typeof encodeEvents
  readonly rowBodies: typeof rowBodies
  readonly unpackStored: typeof unpackStored
}

export const rowsOf = (code: RowCode, events: readonly SessionEvent[]): StoredRow[] => {
  const batch = code.encodeEvents(events)
  const bodies = code.rowBodies(batch)
  return batch.rows.map((row, i) => ({ ...row, body: bodies[i] ?? new Uint8Array() }))
}

export const EVERYTHING = { from: 0, to: Number.MAX_SAFE_INTEGER }

const textOf = (events: readonly unknown[]): string => JSON.stringify(events)

/** Whatever goes into rows comes out, to the letter and with its keys in order. */
export function holdLossless(code: RowCode, runs: fc.Parameters<unknown>): void {
  fc.assert(
    fc.property(anyEvents, (events) => {
      const back = rowsOf(code, events).flatMap((row) => code.unpackStored('db', row, EVERYTHING).events)
      expect(textOf(back)).toBe(textOf(events))
    }),
    runs,
  )
}

/** A part of a row is what that part of its events is; only deltas of a form are ever passed over. */
export function holdParts(code: RowCode, runs: fc.Parameters<unknown>): void {
  const part = fc.tuple(fc.nat(60), fc.nat(60), fc.nat(60))
  fc.assert(
    fc.property(anyEvents, part, (events, [skipped, length, deltas]) => {
      const first = events[0]?.seq ?? 0
      const [from, to, deltasFrom] = [first + skipped, first + skipped + length, first + deltas]
      const asked = events.filter(({ seq }) => seq >= from && seq < to)
      for (const row of rowsOf(code, events)) {
        const got = code.unpackStored('db', row, { from, to, deltasFrom })
        const inRow = asked.filter(({ seq }) => seq >= row.first && seq <= row.last)
        const seqs = new Set(got.events.map(({ seq }) => seq))
        const passed = inRow.filter(({ seq }) => !seqs.has(seq))
        expect(textOf(got.events)).toBe(textOf(inRow.filter(({ seq }) => seqs.has(seq))))
        for (const event of passed)
          expect([plainDelta(event) === undefined, event.seq < deltasFrom]).toEqual([false, true])
        const before = events.filter(({ seq }) => seq <= row.last && seq >= row.first && seq < to)
        const last = before.at(-1)?.time ?? -1
        if (Number.isSafeInteger(last) && last >= 0) expect(got.time).toBe(last)
      }
    }),
    runs,
  )
}

/** What is called formed is what opening would accept of its own. */
export function holdFormed(code: RowCode, runs: fc.Parameters<unknown>): void {
  fc.assert(
    fc.property(anyEvents, (events) => holdFormedOf(code, events)),
    runs,
  )
}

function holdFormedOf(code: RowCode, events: readonly SessionEvent[]): void {
  for (const row of rowsOf(code, events)) {
    const { events: back, formed } = code.unpackStored('db', row, EVERYTHING)
    expect(formed).toHaveLength(back.length)
    const own = back.filter((_, i) => formed[i] === true)
    expect(textOf(own.map((event) => validateStored(event, event.seq, 0))) === textOf(own)).toBe(true)
  }
}

const ODD_TEXTS = EVERY_ODD_EVENT.map(textOf)

/** The same two of every event that is odd in one place. */
export function holdOdd(code: RowCode): void {
  for (const [i, events] of EVERY_ODD_EVENT.entries()) {
    const back = rowsOf(code, events).flatMap((row) => code.unpackStored('db', row, EVERYTHING).events)
    expect(textOf(back) === ODD_TEXTS[i]).toBe(true)
    holdFormedOf(code, events)
  }
}

/** Usual turns have forms for all they hold, and take few bytes. */
export function holdSmall(code: RowCode): void {
  const [row] = rowsOf(code, usualEvents(10, 1))
  const formed = row && code.unpackStored('db', row, EVERYTHING).formed
  expect(formed?.every(Boolean)).toBe(true)
  const bytes = (turns: number): number =>
    rowsOf(code, usualEvents(10, turns)).reduce((sum, { body }) => sum + body.byteLength, 0)
  // As JSON it is 8 kB. What was said before in a row is said by its number.
  expect(bytes(1)).toBeLessThanOrEqual(1_331)
  expect((bytes(5) - bytes(1)) / 4).toBeLessThanOrEqual(1_017)
}

/** A body with that text and the checksum that belongs to it: what nobody but a forger writes. */
export function forged(text: string, { first, last }: Pick<StoredRow, 'first' | 'last'>): StoredRow {
  const body = Buffer.from(`0000${text}`)
  body.writeUInt32LE(crc32(body.subarray(4), crc32(`${first} ${last}`)), 0)
  return { first, last, encoding: FORMED, body }
}

/** Rows of one event, seq 0, that no packer writes. */
export const FORGED: readonly (readonly [what: string, text: string])[] = [
  ['no JSON', 'x'],
  ['no list', '{}'],
  ['nothing', '[]'],
  ['no time', '[null,[2,0]]'],
  ['a form that is not known', '[0,[-2,1,1,1],[999,0]]'],
  ['a form by a name', '[0,["constructor",0]]'],
  ['a step of no turn', '[0,[2,0]]'],
  ['a turn below 0', '[0,[-2,-1,1,1],[2,0]]'],
  ['a place with more', '[0,[-2,1,1,1,1],[2,0]]'],
  ['less than the form asks for', '[0,[-2,1,1,1],[3,0]]'],
  ['more than the form has', '[0,[-2,1,1,1],[2,0,1]]'],
  ['a word the form does not take', '[0,[-2,1,1,1],[3,0,"failed"]]'],
  ['a string that was never said', '[0,[-2,1,1,1],[3,0,[7]]]'],
  ['a string by a name', '[0,[-2,1,1,1],[3,0,["__proto__"]]]'],
  ['a time that goes back', '[9,[-2,1,1,1],[2,-5]]'],
  ['a time beyond all numbers', '[9007199254740991,[-2,1,1,1],[2,1]]'],
  ['a run of no turn', '[0,[-2,0,1,1],[-1,0,0,"a","B"]]'],
  ['a run of no step', '[0,[-2,1,0,1],[-1,0,0,"a","B"]]'],
  ['a run of no attempt', '[0,[-2,1,1,0],[-1,0,0,"a","B"]]'],
  ['a run of no type', '[0,[-2,1,1,1],[-1,9,0,"a","B"]]'],
  ['a run of nothing', '[0,[-2,1,1,1],[-1,0,0,"",""],[2,0]]'],
  ['a run with more text than lengths', '[0,[-2,1,1,1],[-1,0,0,"abc","C"]]'],
  ['a run with less text than lengths', '[0,[-2,1,1,1],[-1,0,0,"a","C"]]'],
  ['a run with more times than deltas', '[0,[-2,1,1,1],[-1,0,0,"a","B","BB"]]'],
  ['lengths that are cut off', '[0,[-2,1,1,1],[-1,0,0,"a","Bg"]]'],
  ['lengths of other characters', '[0,[-2,1,1,1],[-1,0,0,"a","é"]]'],
  ['two events', '[0,[-2,1,1,1],[2,0],[2,0]]'],
  ['no event', '[0,[-2,1,1,1]]'],
  ['another event', '[0,{"type":"a/b","seq":1,"time":0,"data":0,"ignorable":true}]'],
  ['null', '[0,null]'],
  ['cited events by the billion', '[0,[-2,1,1,1],[24,0,0,1e12,"id","call",[]]]'],
  ['an event that cites itself', '[0,[-2,1,1,1],[24,0,0,1,"id","call",[]]]'],
  ['an event that cites one before the log', '[0,[-2,1,1,1],[24,0,1,1,"id","call",[]]]'],
  ['a result that cites nothing', '[0,[-2,1,1,1],[24,0,0,0,"id","call",[]]]'],
  ['nesting without end', `[0,{"type":"a/b","seq":0,"data":${'['.repeat(1e5)}${']'.repeat(1e5)}]`],
]

/** None of them is read. */
export function holdStrict(code: RowCode): void {
  for (const [what, text] of FORGED) {
    const row = forged(text, { first: 0, last: 0 })
    expect(() => code.unpackStored('db', row, EVERYTHING), what).toThrow('is damaged')
  }
}

/** A row is read in its own place only. */
export function holdPlace(code: RowCode): void {
  const [row = expect.fail('no row')] = rowsOf(code, usualEvents(100, 1))
  for (const place of [{ first: row.first + 1, last: row.last + 1 }, { last: row.last - 1 }, { first: 0 }]) {
    expect(() => code.unpackStored('db', { ...row, ...place }, EVERYTHING)).toThrow('is damaged')
  }
}
