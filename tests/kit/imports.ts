/**
 * The project's imports as a graph, and the rules it keeps. An import of a type counts like any other: it ties two
 * files together just as much for whoever reads them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { parseSync } from 'oxc-parser'

/** From each file (relative to the root, `src/log/json.ts`) to what it imports or re-exports, as resolved. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>

/** What machines may know of services: what is said and handed over, no code that acts. */
export const CONTRACTS = ['src/services/inputs.ts', 'src/services/verdicts.ts']

/** The layers from the bottom up; a file may import its own layer and those below. */
const LAYERS = [
  /^src\/log\//,
  /^src\/services\//,
  /^src\/machines\//,
  /^src\/agent(\.ts|\/)/,
  /^src\/testing\//,
  /^src\/(?!agent\.|cli\.)[^/]+\.ts$/,
  /^src\/cli(\.ts|\/)/,
]
const layerOf = (file: string): number => LAYERS.findIndex((layer) => layer.test(file))

/** Reads the imports of every `.ts` file under `root`/src. A package keeps its name, our own file gets its path. */
export function readImports(root: string): ImportGraph {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => posix.join('src', file.replaceAll('\\', '/')))
  return new Map(files.map((file) => [file, importsOf(file, readFileSync(join(root, file), 'utf8'))]))
}

/** What a source imports: static, re-exported, `import type`, `import('x')` with a literal, and types `import('x').T`. */
export function importsOf(file: string, source: string): string[] {
  const { program, module, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  const named = [
    ...module.staticImports.map((found) => found.moduleRequest.value),
    ...module.staticExports.flatMap((found) => found.entries.flatMap((entry) => entry.moduleRequest?.value ?? [])),
    ...literalsOf(program),
  ]
  return [...new Set(named)].map((name) => (name.startsWith('.') ? posix.join(dirname(file), name) : name))
}

/** The literals of `import('x')`, as an expression and as a type, wherever they stand. */
function literalsOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  const below = Object.values(node).flatMap(literalsOf)
  if (!('type' in node && (node.type === 'ImportExpression' || node.type === 'TSImportType') && 'source' in node)) {
    return below
  }
  const { source } = node
  const literal = typeof source === 'object' && source !== null && 'value' in source ? source.value : undefined
  return typeof literal === 'string' ? [literal, ...below] : below
}

/** Whether nothing of a source is left to run once its types are taken away. */
export function isTypesOnly(file: string, source: string): boolean {
  return parseSync(file, source).program.body.every((statement) => {
    if (statement.type === 'ImportDeclaration') return statement.importKind === 'type'
    if (statement.type === 'ExportNamedDeclaration') return statement.exportKind === 'type'
    return statement.type === 'TSTypeAliasDeclaration' || statement.type === 'TSInterfaceDeclaration'
  })
}

/** What breaks the rules, a sentence each. */
export function violations(graph: ImportGraph): string[] {
  const edges = [...graph].flatMap(([from, to]) =>
    to.filter((name) => name.startsWith('src/')).map((name) => [from, name] as const),
  )
  return [
    ...[...graph.keys()].filter((file) => layerOf(file) < 0).map((file) => `${file} belongs to no layer`),
    ...edges
      .filter(([, to]) => !graph.has(to))
      .map(([from, to]) => `${from} imports ${to}, which is no .ts file of ours`),
    ...edges
      .filter(([from, to]) => layerOf(to) > layerOf(from))
      .map(([from, to]) => `${from} imports ${to}, a layer above it`),
    ...edges
      .filter(
        ([from, to]) => from.startsWith('src/machines/') && to.startsWith('src/services/') && !CONTRACTS.includes(to),
      )
      .map(([from, to]) => `${from} imports ${to}, which is no contract`),
    ...[...graph.keys()]
      .filter((file) => /.\/index\.ts$/.test(file.slice('src'.length)))
      .map((file) => `${file} is an internal barrel`),
    ...cyclesOf(graph).map((cycle) => `cycle: ${cycle.join(' -> ')}`),
  ]
}

/** A cycle for every edge that closes one on a walk in depth; none if the graph has none. */
function cyclesOf(graph: ImportGraph): string[][] {
  const done = new Set<string>()
  const cycles: string[][] = []
  const walk = (file: string, path: readonly string[]): void => {
    const seen = path.indexOf(file)
    if (seen >= 0) cycles.push([...path.slice(seen), file])
    if (seen >= 0 || done.has(file)) return
    for (const next of graph.get(file) ?? []) walk(next, [...path, file])
    done.add(file)
  }
  for (const file of graph.keys()) walk(file, [])
  return cycles
}
