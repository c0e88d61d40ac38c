/**
 * The conformance corpus, played. `npm run conformance` plays the same with every split of every small body and prints
 * what it came to; here each body is cut in fewer places.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import type { CorpusFile } from '../../kit/corpus/format.ts'
import { SMALL } from '../../kit/corpus/packets.ts'
import { corpusReader, corpusRows, playEntry, readCorpus } from '../../kit/corpus.ts'

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

  test('expects nothing of a name that is never looked at, which would always be absent', () => {
    const read = corpusReader()
    for (const { path, file } of all) {
      if (file.kind === 'answer')
        expect(() => read(path, { ...file, expect: { ...file.expect, usages: null } })).toThrow()
      if (file.kind === 'conversation') {
        expect(() => read(path, { ...file, play: [...file.play, { expect: { count: null } }] })).toThrow()
      }
    }
  })

  test('says nothing that docs/conformance.md does not explain', () => {
    const page = readFileSync(new URL('../../../docs/conformance.md', import.meta.url), 'utf8')
    for (const word of wordsOf(all.map(({ file }) => file))) expect(page).toMatch(new RegExp(`\\b${word}\\b`))
  })

  test('a file lies in the folder of its row’s kind, under its row’s name', () => {
    for (const { path, file } of all) {
      expect(path).toMatch(new RegExp(`^${file.row.slice(0, 3).toLowerCase()}/${file.row}-[a-z0-9-]+\\.json$`))
    }
  })
})

/** Members and acts, what is looked at, and the notes, as far as files have them. */
function wordsOf(files: readonly CorpusFile[]): ReadonlySet<string> {
  const words = new Set<string>()
  const add = (more: object | undefined) => {
    for (const word of Object.keys(more ?? {})) words.add(word)
  }
  for (const file of files) {
    add(file)
    if ('adapter' in file) add(file.adapter)
    if ('expect' in file) add(file.expect)
    if (file.kind === 'answer' && Array.isArray(file.expect.notes))
      for (const kind of file.expect.notes) words.add(kind)
    for (const act of file.kind === 'conversation' ? file.play : []) {
      add(act)
      if ('expect' in act) add(act.expect)
    }
  }
  return words
}

afterAll(() => {
  if (report !== undefined) writeFileSync(report, JSON.stringify(results))
})
