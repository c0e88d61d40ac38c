/** Where a campaign plays: one database for all sessions, the model, and the two programs that are killed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../../dist/log.js'
import { startModel } from './model.mjs'

/** @typedef {import('./life.mjs').Program} Program */
/** @typedef {import('./worker.mjs').Said} Said */
/**
 * @typedef {object} Stage
 * @property {string} path of the database
 * @property {string} witness of the worker's tools
 * @property {string} commands witness of the command line's shell commands
 * @property {ReturnType<typeof sqliteStore>} store this process's own, that reads and posts
 * @property {(session: string, said: readonly Said[]) => Program} worker
 * @property {(...words: readonly string[]) => Program} pawl the command line; the store is added by the environment
 * @property {readonly string[]} flags of `pawl run` and `pawl resume`
 * @property {() => Promise<void>} close
 */

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))
const WORKER = fileURLToPath(new URL('./worker.mjs', import.meta.url))

/** @param {{ keep?: boolean }} [options] keep: the folder stays @returns {Promise<Stage & { folder: string }>} */
export async function setStage({ keep = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'))
  const root = join(folder, 'project')
  mkdirSync(root)
  writeFileSync(join(root, 'README.md'), '# Ratchet\n\nOne-way doors.\n')
  const path = join(folder, 'pawl.db')
  const [witness, commands] = [join(folder, 'witness.jsonl'), join(folder, 'commands.jsonl')]
  const model = await startModel({ witness: commands })
  const store = sqliteStore(path, { busyTimeoutMs: 20_000 })
  const { PATH = '' } = process.env
  const env = { PATH, HOME: folder, XDG_STATE_HOME: folder, PAWL_STORE: path, NO_COLOR: '1' }
  return {
    folder,
    path,
    witness,
    commands,
    store,
    worker: (session, said) => ({
      argv: [WORKER, JSON.stringify({ store: path, session, witness, url: model.url, said })],
      cwd: root,
      env,
    }),
    pawl: (...words) => ({ argv: [CLI, ...words], cwd: root, env }),
    flags: ['--base-url', model.url, '--json', '--yes'],
    async close() {
      await store[Symbol.asyncDispose]()
      model.close()
      if (!keep) rmSync(folder, { recursive: true, force: true })
    },
  }
}
