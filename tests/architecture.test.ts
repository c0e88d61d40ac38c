import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { CONTRACTS, type ImportGraph, importsOf, isTypesOnly, readImports, violations } from './kit/imports.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const project = readImports(root)
/** A file for every name, so that only the rule in question can be broken. */
const graph = (edges: Readonly<Record<string, readonly string[]>>): ImportGraph =>
  new Map([
    ...Object.values(edges)
      .flat()
      .flatMap((name) => (name.startsWith('src/') ? [[name, []] as const] : [])),
    ...Object.entries(edges),
  ])

test('log ← services ← machines ← agent ← testing ← entries ← cli, no cycle, no internal barrel', () => {
  expect(project.size).toBeGreaterThan(100)
  expect(violations(project)).toEqual([])
})

test.each(CONTRACTS)('%s, which machines import, is types alone', (file) => {
  expect(isTypesOnly(file, readFileSync(join(root, file), 'utf8'))).toBe(true)
})

describe('the rules can fail', () => {
  test.each([
    ['src/log/a.ts', 'src/services/b.ts', 'a layer above it'],
    ['src/log/a.ts', 'src/index.ts', 'a layer above it'],
    ['src/services/a.ts', 'src/machines/b.ts', 'a layer above it'],
    ['src/machines/a.ts', 'src/agent/b.ts', 'a layer above it'],
    ['src/agent/a.ts', 'src/cli/b.ts', 'a layer above it'],
    ['src/agent/a.ts', 'src/testing/b.ts', 'a layer above it'],
    ['src/index.ts', 'src/cli.ts', 'a layer above it'],
    ['src/machines/a.ts', 'src/services/ask-model.ts', 'no contract'],
  ])('%s may not import %s', (from, to, why) => {
    expect(violations(graph({ [from]: [to] }))).toEqual([expect.stringContaining(`${from} imports ${to}`)])
    expect(violations(graph({ [from]: [to] }))[0]).toContain(why)
  })

  test('what lies below may be imported, and a contract by the machines', () => {
    const down = {
      'src/cli/a.ts': ['src/machines/b.ts'],
      'src/machines/b.ts': [...CONTRACTS, 'src/log/c.ts', 'xstate'],
    }
    expect(violations(graph(down))).toEqual([])
  })

  test('a cycle is told with its path', () => {
    const ring = {
      'src/log/a.ts': ['src/log/b.ts'],
      'src/log/b.ts': ['src/log/c.ts'],
      'src/log/c.ts': ['src/log/a.ts'],
    }
    expect(violations(new Map(Object.entries(ring)))).toEqual([
      'cycle: src/log/a.ts -> src/log/b.ts -> src/log/c.ts -> src/log/a.ts',
    ])
  })

  test('an index inside a folder is a barrel; the one at the top is for the outside', () => {
    expect(violations(graph({ 'src/log/index.ts': [], 'src/index.ts': [] }))).toEqual([
      'src/log/index.ts is an internal barrel',
    ])
  })

  test('a new folder must be given its layer', () => {
    expect(violations(graph({ 'src/misc/a.ts': [] }))).toEqual(['src/misc/a.ts belongs to no layer'])
  })

  test('an import without .ts, or of a file that is not there, is told', () => {
    const missing = new Map([['src/log/a.ts', ['src/log/b']]])
    expect(violations(missing)).toEqual(['src/log/a.ts imports src/log/b, which is no .ts file of ours'])
  })

  test('a value among the types is seen', () => {
    const types = "import type { A } from './a.ts'\nexport type B = A\ntype C = B\nexport interface D { c: C }"
    expect(isTypesOnly('x.ts', types)).toBe(true)
    expect(isTypesOnly('x.ts', `${types}\nexport const e = 1`)).toBe(false)
    expect(isTypesOnly('x.ts', `${types}\nimport { f } from './f.ts'`)).toBe(false)
  })

  test('every form of import is seen', () => {
    const source = `
      import a from './a.ts'
      import type { B } from './b.ts'
      import './c.ts'
      export { d } from './d.ts'
      export * from './e.ts'
      export type { F } from '../f.ts'
      type G = import('./g.ts').G
      const h = await import('./h.ts')
      // import i from './i.ts'
      const j = "import j from './j.ts'"`
    expect(importsOf('src/log/x.ts', source).toSorted()).toEqual(
      [...['a', 'b', 'c', 'd', 'e', 'g', 'h'].map((name) => `src/log/${name}.ts`), 'src/f.ts'].toSorted(),
    )
  })
})
