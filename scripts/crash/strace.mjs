/** Runs the traced worker under strace and reads the trace. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readTrace } from './trace.mjs'

const WORKER = fileURLToPath(new URL('./traced-worker.mjs', import.meta.url))
const CALLS = 'trace=fsync,fdatasync,write,writev,pwrite64,pwritev,pwritev2'

/** Why nothing can be traced here; undefined if it can. @returns {string | undefined} */
export function whyNoTrace() {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-o', '/dev/null', 'true'], { encoding: 'utf8' })
  if (error !== undefined) return 'strace is not installed'
  return status === 0 ? undefined : `strace cannot trace here: ${stderr.trim()}`
}

/**
 * @param {{ turns: number, unsynced?: boolean }} options unsynced: with a store that does not sync, to see it found
 * @throws what the worker said, if it failed
 */
export function traceWorker({ turns, unsynced = false }) {
  // As the kernel names them, which is how they stand in the trace.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-trace-')))
  try {
    const at = (/** @type {string} */ name) => join(folder, name)
    const work = { store: at('pawl.db'), witness: at('witness'), markers: at('markers'), turns, unsynced }
    // -y names the files of descriptors, -s keeps markers whole.
    const flags = ['-f', '-y', '-s', '400', '-e', CALLS, '-o', at('trace')]
    const traced = spawnSync('strace', [...flags, process.execPath, WORKER, JSON.stringify(work)], { encoding: 'utf8' })
    if (traced.status !== 0) throw new Error(`the traced worker failed: ${traced.stderr.trim()}`)
    const paths = { log: `${work.store}-wal`, markers: work.markers, witness: work.witness }
    return readTrace(readFileSync(at('trace'), 'utf8'), paths)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
