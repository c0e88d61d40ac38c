import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { RULES } from '../../../src/log/invariants/rules.ts'

test('docs/invariants.md lists the rules, each with its sentence, and no others', () => {
  const page = readFileSync(new URL('../../../docs/invariants.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z-]+)` \| (.*) \|$/gm)].map(([, rule, sentence]) => [rule, sentence])
  expect(rows).toEqual(Object.entries(RULES))
})
