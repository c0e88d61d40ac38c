/**
 * Before any test: the worker of the SQLite store and the command line run from dist, so it must be there and not be
 * older than src. `npm test` builds it first; this is for whoever runs vitest alone.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [src, dist] = [join(root, 'src'), join(root, 'dist')]

/** vitest calls this once, in its own process, before it starts a worker. */
export default function build(): void {
  if (newest(dist) >= newest(src)) return
  // Beside dist, so that source maps point right; then file by file, so that another run never reads half of one.
  const fresh = `${dist}.${process.pid}`
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', fresh], {
    cwd: root,
    stdio: 'inherit',
  })
  for (const file of filesOf(fresh)) {
    mkdirSync(dirname(join(dist, file)), { recursive: true })
    renameSync(join(fresh, file), join(dist, file))
  }
  rmSync(fresh, { recursive: true, force: true })
  if (status !== 0) console.error('src has type errors; the tests run what was emitted all the same')
}

/** Epoch ms of the newest source or output below a folder; -Infinity if there is none. */
const newest = (folder: string): number =>
  Math.max(Number.NEGATIVE_INFINITY, ...filesOf(folder).map((file) => modified(join(folder, file))))

/** Another run may take a file away while this one looks at it. */
const modified = (file: string): number =>
  statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NEGATIVE_INFINITY

function filesOf(folder: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.([jt]s|map)$/.test(file))
}
