/** What `npm run bench -- --write` makes of a run: nothing in docs/benchmarks.md is typed by hand. */
import { describe, expect, test } from 'vitest'

interface Row {
  readonly [key: string]: number | string
}
interface Table {
  readonly id: string
  readonly title: string
  readonly columns: Readonly<Record<string, string>>
  readonly rows: readonly Row[]
}
interface Result {
  readonly name: string
  readonly about: string
  readonly seconds: number
  readonly tables: readonly Table[]
}
interface Held {
  readonly what: string
  readonly measured: number
  readonly bound: 'at most' | 'at least'
  readonly limit: number
}

const module = (name: string): string => new URL(`../../bench/${name}.mjs`, import.meta.url).href
const { withSection }: { withSection(page: string, results: unknown): string } = await import(module('report/section'))
const { pictureOf }: { pictureOf(results: unknown): string } = await import(module('report/picture'))
const { heldTo, isMet }: { heldTo(results: readonly Result[]): readonly Held[]; isMet(held: Held): boolean } =
  await import(module('report/budget'))
const { linesOf }: { linesOf(table: Omit<Table, 'id'>): string } = await import(module('harness/table'))

const table = (id: string, rows: readonly Row[]): Table => ({
  id,
  title: `The table ${id}`,
  columns: { name: '', median: 'ms' },
  rows,
})
const resultsOf = (...tables: readonly Table[]): readonly Result[] => [
  { name: 'made up', about: 'nothing', seconds: 1, tables },
]
const run = (...tables: readonly Table[]): unknown => ({
  machine: {
    date: '2030-01-02',
    node: 'v20.0.0',
    cpu: 'A & B',
    cores: 2,
    memoryGB: 8,
    os: 'Linux',
    versions: { pawl: '9' },
  },
  load: { before: [0.1, 0.2, 0.3], after: [1, 2, 3] },
  quick: false,
  rounds: 5,
  results: resultsOf(...tables),
})
const steps = table('steps-memory', [
  { name: 'a while loop', median: 0.1 },
  { name: 'Pawl', median: 1 },
  { name: 'AI SDK', median: 10 },
])

describe('the section', () => {
  const page = '# A page\n\n<!-- results -->\nold\n<!-- /results -->\n\nThe end.\n'

  test('stands between its marks, with machine, versions and every table, and replaces the one before', () => {
    const written = withSection(page, run(steps))
    expect(written).toContain('on 2030-01-02: Node v20.0.0, 2 cores of A & B')
    expect(written).toContain('`pawl` 9')
    expect(written).toContain(linesOf(steps))
    expect(written).not.toContain('old')
    expect(written.endsWith('<!-- /results -->\n\nThe end.\n')).toBe(true)
    expect(withSection(written, run(steps))).toBe(written)
  })

  test('is written nowhere else: a page without its marks is refused', () => {
    expect(() => withSection('# A page\n', run(steps))).toThrow('<!-- results -->')
  })
})

test('a table is Markdown whose columns are as wide as what is in them, numbers to the right', () => {
  expect(linesOf({ title: 'T', columns: { name: '', median: 'ms' }, rows: [{ name: 'Pawl', median: 1_234 }] })).toBe(
    ['**T**', '', '|      |    ms |', '| ---- | ----: |', '| Pawl | 1,234 |'].join('\n'),
  )
})

describe('what Pawl is held to', () => {
  const held = (pawl: number, peer: number): Held => {
    const rows = [
      { name: 'Pawl', median: pawl },
      { name: 'AI SDK', median: peer },
    ]
    return heldTo(resultsOf(table('steps-memory', rows)))[0] as Held
  }

  test('is a ratio of the same run, and only what was measured', () => {
    expect(heldTo(resultsOf(steps))).toHaveLength(1)
    expect(held(1, 10)).toMatchObject({ what: 'a step in memory', measured: 0.1, bound: 'at most', limit: 0.4 })
    expect(heldTo(resultsOf())).toEqual([])
  })

  test('is met up to its limit, and not beyond it', () => {
    expect(isMet(held(4, 10))).toBe(true)
    expect(isMet(held(4.1, 10))).toBe(false)
    const rate = heldTo(resultsOf(table('answer', [{ name: 'Pawl', median: 599_999 }])))[0] as Held
    expect(isMet(rate)).toBe(false)
    expect(isMet({ ...rate, measured: 600_000 })).toBe(true)
  })
})

describe('the picture', () => {
  const ends = (svg: string, kind: string): { from: number; to: number } => {
    const [, x = 0, width = 0] =
      new RegExp(`<rect class="${kind}" x="([\\d.]+)" y="[\\d.]+" width="([\\d.]+)"`).exec(svg) ?? []
    return { from: Number(x), to: Number(x) + Number(width) }
  }
  const one = (svg: string): number => Number(/<circle class="own" cx="([\d.]+)"/.exec(svg)?.[1])

  test('shows what is faster to the left of Pawl and what is slower to the right, equally far for the same ratio', () => {
    const svg = pictureOf(run(steps))
    expect(ends(svg, 'floor').to).toBeCloseTo(one(svg))
    expect(ends(svg, 'other').from).toBeCloseTo(one(svg))
    expect(one(svg) - ends(svg, 'floor').from).toBeCloseTo(ends(svg, 'other').to - one(svg))
  })

  test('turns rates round: who does less a second takes longer', () => {
    const rates = [
      { name: 'Pawl', median: 100 },
      { name: 'pi', median: 10 },
    ]
    const svg = pictureOf(run(table('answer', rates)))
    expect(ends(svg, 'other').from).toBeCloseTo(one(svg))
    expect(svg).toContain('>10 ×<')
  })

  test('needs nothing from elsewhere, and has colours for a dark page', () => {
    const svg = pictureOf(run(steps))
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|<image|@import|<script/)
    expect(svg).toContain('prefers-color-scheme:dark')
  })
})
