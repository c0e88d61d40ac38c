/** Every code that Pawl's own code gives is known as its own, so that no word of a provider can pass for it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isOwnCode } from '../../../src/services/llm/own-codes.ts'

const root = fileURLToPath(new URL('../../../src', import.meta.url))

/** Folders whose codes meet no model: the command line's and the tests' own, and a tool's for its own errors. */
const APART = /^(?:cli|testing|services\/tools\/workspace|services\/terminal|log\/stores|log\/invariants)\//

/** What is said of a provider, which a provider may say of itself. */
const THEIRS = [
  'AUTH',
  'QUOTA',
  'RATE_LIMIT',
  'SERVER',
  'TIMEOUT',
  'INVALID_REQUEST',
  'CONTEXT_WINDOW_EXCEEDED',
  'CONTENT_FILTER',
]

/** Codes as they are given: a member `code`, or beside a message in what is thrown or refused. */
const GIVEN =
  /\bcode: '([A-Z][A-Z_]+)'|\bPawlError\((?:[^()]|\([^()]*\))*?'([A-Z][A-Z_]+)'|super\([^\n]*'([A-Z][A-Z_]+)'/g
const OF_ERRORS = /'([A-Z]+_[A-Z_]+|FENCED|OVERLOADED)'/g

const codesIn = (file: string): string[] => {
  const source = readFileSync(join(root, file), 'utf8')
  const pattern = /(?:^|\/)errors\.ts$/.test(file) ? OF_ERRORS : GIVEN
  return [...source.matchAll(pattern)].flatMap((found) => found.slice(1).filter((code) => code !== undefined))
}

test('a code that Pawl gives is its own, or one that is said of providers', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((file) => file.replaceAll('\\', '/'))
  const given = new Set(files.filter((file) => file.endsWith('.ts') && !APART.test(file)).flatMap(codesIn))
  expect(given.size).toBeGreaterThan(40)
  expect([...given].filter((code) => !isOwnCode(code) && !THEIRS.includes(code))).toEqual(['UNSAVED_SET_ASIDE'])
  expect(THEIRS.filter(isOwnCode)).toEqual([])
})
