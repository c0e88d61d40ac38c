/** One life of a process: started, perhaps signalled at a chosen moment, and what is known of it from outside. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'

/** @typedef {{ argv: readonly string[], cwd: string, env: Record<string, string> }} Program */
/** @typedef {{ signal: 'SIGKILL' | 'SIGTERM', moment: (over: AbortSignal) => Promise<void> }} Fate the signal is sent once `moment` resolves */
/**
 * @typedef {object} Life
 * @property {boolean} signalled it was alive when the signal was sent
 * @property {number | null} code
 * @property {NodeJS.Signals | null} signal
 * @property {string} out
 * @property {string} err
 * @property {number} ms
 */

/** No undisturbed life takes so long; one that does is ended, and counts as stuck. */
const PATIENCE_MS = 120_000

/** @param {Program} program @param {Fate} [fate] @returns {Promise<Life>} */
export async function live({ argv, cwd, env }, fate) {
  const begun = performance.now()
  const child = spawn(process.execPath, [...argv], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [out, err, signalled] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text
  })
  const over = new AbortController()
  const strike = async () => {
    await fate?.moment(over.signal)
    if (fate !== undefined && !over.signal.aborted) signalled = child.kill(fate.signal)
  }
  child.once('exit', () => over.abort())
  const struck = strike()
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  const [code, signal] = await once(child, 'close')
  clearTimeout(patience)
  await struck
  return { signalled, code, signal, out, err, ms: performance.now() - begun }
}
