/**
 * Runs the tests on other versions of Node: `npm run test:matrix`, or only on the majors given as arguments. Other
 * arguments choose test files. The npm package `node` brings each binary; it is kept under node_modules/.cache and is no
 * dependency.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { countsOf, summary } from './summary.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache')
const isMajor = (/** @type {string} */ word) => /^\d+$/.test(word)
const given = process.argv.slice(2)
const majors = given.some(isMajor) ? given.filter(isMajor) : ['22', '24', '26']
const files = given.filter((word) => !isMajor(word))

const rows = majors.map((major) => {
  const node = nodeOf(major)
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  console.log(`\n── Node ${version}`)
  const report = join(cache, `test-report-${major}.json`)
  rmSync(report, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const { status } = spawnSync(node, ['node_modules/vitest/vitest.mjs', 'run', ...files, ...reporters], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    // Child processes that a test starts by name are of the same version.
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` },
  })
  return { version, status, counts: countsOf(report) }
})

console.log('')
for (const { version, status, counts } of rows) {
  console.log(`${version.padEnd(10)} ${status === 0 ? 'ok    ' : 'FAILED'}  ${summary(counts)}`)
}
process.exitCode = rows.every(({ status }) => status === 0) ? 0 : 1

/** The path of Node's binary; installs it first if it is not there. @param {string} major */
function nodeOf(major) {
  const home = join(cache, `node-${major}`)
  const binary = join(home, 'node_modules/node/bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(binary)) return binary
  mkdirSync(home, { recursive: true })
  // A manifest of its own, or npm would install into the project above.
  writeFileSync(join(home, 'package.json'), '{ "private": true }\n')
  console.log(`Installing node@${major}`)
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--no-save', `node@${major}`], {
    cwd: home,
    stdio: 'inherit',
  })
  return binary
}
