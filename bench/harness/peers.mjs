/** Who Pawl is compared with has a manifest of its own, installed by the first run that needs it. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const bench = new URL('..', import.meta.url)

/** By name. @type {readonly string[]} */
export const PEERS = Object.keys(JSON.parse(readFileSync(new URL('package.json', bench), 'utf8')).dependencies)

/** Installs them if one is missing, and says so on stderr. @throws when npm cannot */
export function installPeers() {
  const missing = PEERS.filter((name) => !existsSync(new URL(`node_modules/${name}`, bench)))
  if (missing.length === 0) return
  console.error('Installing what is compared with into bench/node_modules, once: some minutes, it may compile SQLite.')
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(bench),
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) throw new Error('npm ci failed in bench/: benchmarks without peers run all the same, name them')
}
