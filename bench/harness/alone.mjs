/** A measurement of Pawl alone: one process that begins with its job, answers once and is gone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Calls with a folder that is there until it is done. @template T @param {(folder: string) => Promise<T>} act */
export async function inFolder(act) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
  try {
    return await act(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/**
 * @param {string} name of a file in processes/
 * @param {object} job
 * @param {{ node?: readonly string[], under?: readonly string[] }} [options] Node's own options; a command to run it under
 */
export async function alone(name, job, { node = [], under = [] } = {}) {
  const file = fileURLToPath(new URL(`../processes/${name}.mjs`, import.meta.url))
  const [command = '', ...words] = [...under, process.execPath, ...node, file, JSON.stringify(job)]
  const child = spawn(command, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  /** @type {unknown} */
  let answer
  child.on('message', (message) => {
    answer = message
  })
  const [code, signal] = await exited
  if (answer === undefined) throw new Error(`The process of ${name} ended with ${signal ?? `exit code ${code}`}`)
  return answer
}

/** What such a process does. @template T @param {(job: T) => Promise<unknown>} act */
export async function answerJob(act) {
  const answer = await act(/** @type {T} */ (JSON.parse(process.argv[2] ?? '')))
  process.send?.(answer ?? 'done', undefined, undefined, () => process.exit())
}
