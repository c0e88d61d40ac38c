/** Who Pawl is compared with has a manifest of its own, installed by the first run that needs it. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const bench = new URL('..', import.meta.url)

/** By name. @type {readonly string[]} */
export const PEERS = Object.keys(JSON.parse(readFileSync(new URL('package.json', bench), 'utf8')).dependencies)

/** Which Node and which lockfile they were installed for: one of them is compiled. */
const STAMP = new URL('node_modules/.installed-for', bench)

/** Installs them if they are not there, or there for another Node, and says so on stderr. @throws when npm cannot */
export function installPeers() {
  const lock = createHash('sha256')
    .update(readFileSync(new URL('package-lock.json', bench)))
    .digest('hex')
  const stamp = `Node ABI ${process.versions.modules}, lockfile ${lock}\n`
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp) return
  console.error('Installing what is compared with into bench/node_modules, once: some minutes, it may compile SQLite.')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(bench),
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) throw new Error('npm ci failed in bench/: benchmarks without peers run all the same, name them')
  writeFileSync(STAMP, stamp)
}
