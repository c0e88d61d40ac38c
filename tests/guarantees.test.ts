/** docs/guarantees.md is only as good as its commands: each names what is there. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const page = read('docs/guarantees.md')
const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> }

/** The text of a test file, and of all below a folder. */
function textOf(path: string): string {
  const url = new URL(`../${path}`, import.meta.url)
  if (!existsSync(url)) return ''
  if (!statSync(url).isDirectory()) return read(path)
  return readdirSync(url)
    .map((name) => textOf(`${path}/${name}`))
    .join('\n')
}

/** Contracts are in the kit, and run by each store's own file. */
const contracts = textOf('tests/kit/store-contract')

const commands = [...page.matchAll(/^\s+vitest run (\S+)(?: -t "([^"]+)")?$/gm)].map(([, path = '', name = '']) => ({
  path,
  name,
}))

/** That name in a test which is left out, or in none at all, shows nothing. */
const SKIPPED = /\b(?:test|describe)\.(?:skip|todo)\b/

test.each(commands)('$path has a test for "$name"', ({ path, name }) => {
  const text = textOf(path)
  expect(text).toContain('test')
  const whole = path.includes('/stores/') ? text + contracts : text
  expect(whole).toContain(name)
  const line = whole.split('\n').find((each) => each.includes(name)) ?? ''
  expect(line).not.toMatch(SKIPPED)
})

test('every npm script it names is there', () => {
  const named = new Set([...page.matchAll(/npm run ([a-z:]+)/g)].map(([, name = '']) => name))
  expect([...named].filter((name) => !(name in scripts))).toEqual([])
})
