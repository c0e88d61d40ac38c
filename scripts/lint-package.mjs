/**
 * Looks at the package as its users get it: packs it, installs it beside nothing, and there type-checks a consumer of
 * every entry (without Node's types), and compiles and runs the examples. Publint reads the rest.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache')
const tsc = join(root, 'node_modules/typescript/bin/tsc')
/** @type {{ name: string, exports: Record<string, string | Record<string, string>>, bin: Record<string, string> }} */
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
/** @type {string[]} */
const faults = []

mkdirSync(cache, { recursive: true })
// Below the project's own node_modules, so that dependencies are found and the package itself is not.
const place = mkdtempSync(join(cache, 'consumer-'))
try {
  const files = unpack()
  for (const target of targets()) if (!files.includes(target)) faults.push(`${target} is not in the package`)
  for (const file of files) if (/^(src|tests)\//.test(file)) faults.push(`${file} does not belong into the package`)
  consume()
  runExamples()
  await publishable()
} finally {
  rmSync(place, { recursive: true, force: true })
}
for (const fault of faults) console.error(fault)
process.exitCode = faults.length > 0 ? 1 : 0

/** @returns {string[]} the paths of the packed files */
function unpack() {
  const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place], {
    cwd: root,
    encoding: 'utf8',
  })
  /** @type {[{ filename: string, files: { path: string }[] }]} */
  const [{ filename, files }] = JSON.parse(packed)
  const home = join(place, 'node_modules', manifest.name)
  mkdirSync(home, { recursive: true })
  execFileSync('tar', ['-xzf', join(place, filename), '-C', home, '--strip-components=1'])
  return files.map(({ path }) => path)
}

function targets() {
  const exported = Object.values(manifest.exports).flatMap((entry) =>
    typeof entry === 'string' ? [entry] : Object.values(entry),
  )
  return [...exported, ...Object.values(manifest.bin)].map((path) => path.replace(/^\.\//, ''))
}

function consume() {
  const entries = Object.keys(manifest.exports).filter((entry) => !entry.endsWith('.json'))
  const lines = entries.map((entry, i) => `export * as entry${i} from '${manifest.name}${entry.slice(1)}'`)
  writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(place, 'consumer.ts'), `${lines.join('\n')}\n`)
  // Declarations are read too; with exact optional properties those of xstate do not hold.
  compile([
    ...['--skipLibCheck', 'false', '--exactOptionalPropertyTypes', 'false', '--noEmit', 'consumer.ts'],
    ...['--types', '', '--lib', 'ES2023,DOM,DOM.AsyncIterable,ESNext.Disposable,ESNext.AsyncIterable'],
  ])
}

function runExamples() {
  // What is a test runs where there is a test runner: with ours.
  const isProgram = (/** @type {string} */ name) => name.endsWith('.ts') && !name.endsWith('.test.ts')
  const names = readdirSync(join(root, 'examples')).filter(isProgram)
  for (const name of names) cpSync(join(root, 'examples', name), join(place, name))
  compile(['--types', 'node', '--lib', 'ES2023,ESNext.Disposable,ESNext.AsyncIterable', ...names])
  for (const name of names) {
    const file = name.replace(/\.ts$/, '.js')
    const { status, stderr } = spawnSync(process.execPath, [file], { cwd: place, encoding: 'utf8', timeout: 60_000 })
    if (status !== 0) faults.push(`examples/${name} does not run from the package: ${stderr}`)
  }
}

/** @param {readonly string[]} options */
function compile(options) {
  const strict = [
    '--ignoreConfig',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--target',
    'ES2023',
    '--module',
    'NodeNext',
    '--skipLibCheck',
  ]
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...strict, ...options], { cwd: place, encoding: 'utf8' })
  if (status !== 0) faults.push(stdout.trim())
}

async function publishable() {
  const { messages } = await publint({ pkgDir: join(place, 'node_modules', manifest.name), strict: true, pack: false })
  for (const message of messages) faults.push(formatMessage(message, manifest, { color: false }) ?? message.code)
}
