/** `npm run check`: all that is held to besides the tests. Runs every check, tells each, fails if one did. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = (/** @type {string} */ path) => `node_modules/${path}`

/** In this order: what comes later reads `dist`. @type {readonly [name: string, ...command: string[]][]} */
const checks = [
  ['format and lint', bin('@biomejs/biome/bin/biome'), 'check', '--error-on-warnings'],
  ['build', bin('typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
  ['types', bin('typescript/bin/tsc'), '-p', 'tsconfig.json'],
  ['types of scripts', bin('typescript/bin/tsc'), '-p', 'tsconfig.scripts.json'],
  ...peerTypes(),
  ['architecture', bin('vitest/vitest.mjs'), 'run', '--reporter=dot', 'tests/architecture.test.ts'],
  ['charts are current', 'scripts/visualize.mjs', '--check'],
  ['README is current', 'scripts/readme.mjs', '--check'],
  ['benchmarks are current', 'bench/picture.mjs', '--check'],
  ['package', 'scripts/lint-package.mjs'],
  ['tracked files', 'scripts/lint-tracked.mjs'],
]

/** Those who Pawl is compared with are installed by the first benchmark, and by nothing else. @returns {[string, ...string[]][]} */
function peerTypes() {
  if (!existsSync(`${root}bench/node_modules`)) return []
  return [['types of benchmarks with peers', bin('typescript/bin/tsc'), '-p', 'bench/tsconfig.json']]
}

const failed = checks.filter(([name, ...command]) => {
  const begun = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' })
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'}  ${name} (${seconds} s)`)
  if (status !== 0) console.log(`${stdout}${stderr}`.trimEnd())
  return status !== 0
})
if (failed.length > 0) {
  console.error(`npm run check failed: ${failed.map(([name]) => name).join(', ')}`)
  process.exitCode = 1
}
