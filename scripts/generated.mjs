/** Files that are made from the code: written, or with `--check` compared with what is there. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = new URL('..', import.meta.url)

/**
 * @param {Readonly<Record<string, string>>} files text by path from the root
 * @param {string} command the one that writes them, told to whoever finds them stale
 */
export function generate(files, command) {
  const check = process.argv.includes('--check')
  for (const [path, text] of Object.entries(files)) {
    const file = fileURLToPath(new URL(path, root))
    if (check && textOf(file) !== text) {
      console.error(`${path} is not current: run \`${command}\``)
      process.exitCode = 1
    }
    if (check) continue
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    console.log(path)
  }
}

/** @param {string} file */
function textOf(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // It is not there, or cannot be read: either way it is not current.
    return undefined
  }
}
