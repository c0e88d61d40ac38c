/** Processes of a benchmark: a server that takes no time from who is measured, and who is measured, alone in its heap. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

/**
 * @typedef {object} Served
 * @property {string} url
 * @property {() => void} stop
 */

/** Starts a module that sends the address it listens on. @param {URL} module @returns {Promise<Served>} */
export async function serve(module) {
  const server = fork(module)
  const [url] = await once(server, 'message')
  return { url: String(url), stop: () => server.kill() }
}

/**
 * @typedef {object} Runner
 * @property {(job: import('node:child_process').Serializable) => Promise<unknown>} run Answers with what the module sends for it.
 * @property {() => void} stop
 * @property {() => Promise<void>} end Tells it to end by itself, and waits.
 */

/** Starts a module that answers each message with one. @param {URL} module @param {readonly string[]} [execArgv] @returns {Runner} */
export function runner(module, execArgv = []) {
  const child = fork(module, { execArgv: [...execArgv] })
  const exited = once(child, 'exit')
  const failed = exited.then(([code, signal]) => {
    throw new Error(`A benchmark's process ended with ${signal ?? `exit code ${code}`}`)
  })
  // It ends when it is stopped, too; then nobody waits for its answer.
  failed.catch(() => {})
  return {
    run(job) {
      const answered = once(child, 'message').then(([answer]) => answer)
      child.send(job)
      return Promise.race([answered, failed])
    },
    stop: () => child.kill(),
    async end() {
      if (child.connected) child.send('end')
      await exited
    },
  }
}
