/**
 * The conformance corpus, played. `npm run conformance` plays the same with every split of every small body and prints
 * what it came to; here each body is cut in fewer places.
 */
import { writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { SMALL } from '../../kit/corpus/packets.ts'
import { corpusRows, playEntry, readCorpus } from '../../kit/corpus.ts'

const { PAWL_CONFORMANCE_REPORT: report, PAWL_CONFORMANCE_ONLY: only } = process.env
const all = readCorpus()
const chosen = all.filter(({ file }) => only === undefined || file.row === only)
const most = report === undefined ? 12 : SMALL
const results: object[] = []

describe('the corpus', () => {
  for (const entry of chosen) {
    const { row, title, kind } = entry.file
    test(`[${row}] ${title} (${entry.path})`, { timeout: 120_000 }, async () => {
      const facts = { row, title, kind, path: entry.path }
      try {
        results.push({ ...facts, ok: true, ...(await playEntry(entry, most)) })
      } catch (error) {
        results.push({ ...facts, ok: false, splits: 0, http: false, problem: String(error) })
        throw error
      }
    })
  }

  test('has a file for every row, and a row for every file', () => {
    expect([...new Set(all.map(({ file }) => file.row))].sort()).toEqual(Object.keys(corpusRows()).sort())
  })

  test('a file lies in the folder of its row’s kind, under its row’s name', () => {
    for (const { path, file } of all) {
      expect(path).toMatch(new RegExp(`^${file.row.slice(0, 3).toLowerCase()}/${file.row}-[a-z0-9-]+\\.json$`))
    }
  })
})

afterAll(() => {
  if (report !== undefined) writeFileSync(report, JSON.stringify(results))
})
