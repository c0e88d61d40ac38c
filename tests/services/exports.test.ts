/** A value is exported for somebody: what only its own file uses is its own, and what nobody uses goes. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

const sourcesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => posix.join(folder, file.replaceAll('\\', '/')))

const moduleOf = (file: string) => parseSync(file, readFileSync(join(root, file), 'utf8')).module

/** `file#name` for each name of another file that `file` takes, `file#*` for all of them. */
function takenBy(file: string): string[] {
  const { staticImports, staticExports } = moduleOf(file)
  const of = (from: string, name: string | null) => `${posix.join(dirname(file), from)}#${name ?? '*'}`
  return [
    ...staticImports.flatMap(({ moduleRequest, entries }) =>
      entries.map(({ importName }) => of(moduleRequest.value, importName.name)),
    ),
    ...staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ moduleRequest, importName }) =>
        moduleRequest === null ? [] : [of(moduleRequest.value, importName.name)],
      ),
    ),
  ]
}

const valuesOf = (file: string): string[] =>
  moduleOf(file).staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ isType, exportName }) => (isType || exportName.name === null ? [] : [exportName.name])),
  )

test('every value that services export is taken by another file', () => {
  const taken = new Set([...sourcesIn('src'), ...sourcesIn('tests')].flatMap(takenBy))
  const values = sourcesIn('src/services').flatMap((file) => valuesOf(file).map((name) => [file, name] as const))
  expect(values.length).toBeGreaterThan(200)
  const unused = values.filter(([file, name]) => !taken.has(`${file}#${name}`) && !taken.has(`${file}#*`))
  expect(unused.map((parts) => parts.join('#'))).toEqual([])
})
