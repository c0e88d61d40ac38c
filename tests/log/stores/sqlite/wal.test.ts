/** The write-ahead log: it is folded back into the file as it grows, also beside a reader that stays. */
import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { chunk, collect, own, range, take, whileTesting } from '../../../kit/store-contract/fixtures.ts'
import { newFile, storeOn } from '../sqlite-fixtures.ts'

const MB = 1_048_576

test('the write-ahead log stays near 1 MB, however much is written and whoever reads meanwhile', async () => {
  const path = newFile()
  const store = storeOn(path)
  const owner = await own(store)
  const other = storeOn(path)
  const following = take(other.subscribe('s', { from: 0, signal: whileTesting() }), 400)
  let largest = 0
  for (const seq of range(0, 400)) {
    // No two alike, or a row would say them once.
    const text = range(0, 600).map((n) => (seq * 7_919 + n * 104_729).toString(36))
    await owner.append([chunk(seq, text.join(' '))], { expectedSeq: seq })
    largest = Math.max(largest, statSync(`${path}-wal`).size)
    if (seq % 50 === 0) await collect(other.read('s'))
  }
  expect((await following).length).toBe(400)
  expect(statSync(path).size).toBeGreaterThan(MB)
  expect(largest).toBeGreaterThan(MB / 2)
  expect(largest).toBeLessThan(1.5 * MB)
})
