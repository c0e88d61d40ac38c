/**
 * Writes the logs that a release leaves to all later ones, `npm run release:logs`: into tests/logs/VERSION, which must
 * not be there, for what a release wrote is never written again. `-- --to FOLDER` writes another, to look at; with
 * `--only STORE` one of its stores.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { FILES } from './release-logs/lives.mjs'
import { discard, writeLogs } from './release-logs/write.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
/** @type {{ version: string }} */
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { values } = parseArgs({ options: { to: { type: 'string' }, only: { type: 'string' } } })
const files = Object.keys(FILES).filter((file) => values.only === undefined || file === values.only)
if (files.length === 0)
  throw new Error(`There is no store "${values.only}": give one of ${Object.keys(FILES).join(', ')}`)
if (values.only !== undefined && values.to === undefined) throw new Error('One store is no release: give --to as well')
const folder = resolve(values.to ?? join(root, 'tests/logs', version))
if (existsSync(folder)) throw new Error(`${folder} is there: the logs of a release are written once`)

// Under another name until it is whole.
const partial = `${folder}.${process.pid}.partial`
const scratch = mkdtempSync(join(tmpdir(), 'pawl-release-logs-'))
try {
  mkdirSync(dirname(folder), { recursive: true })
  mkdirSync(partial)
  await writeLogs({ folder: partial, scratch, version, files, say: (line) => console.log(line) })
  renameSync(partial, folder)
  console.log(`Written to ${folder}: \`npx vitest run tests/logs\` holds them to what they promise`)
} finally {
  discard(partial)
  discard(scratch)
}
