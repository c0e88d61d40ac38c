/** No tracked file names a package registry's host or a path of the machine that it was written on. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
/** A path counts only as a whole: `/root` is not in `/rootless`. */
const path = (/** @type {string} */ folder) =>
  new RegExp(`${folder.replace(/\/$/, '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w-])`)

const forbidden = [
  { what: 'a registry host', found: /registry\.[\w-]+\.(?:org|com|io)|"resolved":/ },
  { what: 'the home directory', found: path(homedir()) },
  { what: 'the folder of this checkout', found: path(root) },
]

for (const file of files) {
  for (const [i, line] of linesOf(file).entries()) {
    for (const { what, found } of forbidden) {
      if (!found.test(line)) continue
      console.error(`${file}:${i + 1}: names ${what}`)
      process.exitCode = 1
    }
  }
}

/** @param {string} file */
function linesOf(file) {
  if (file === 'scripts/lint-tracked.mjs') return []
  try {
    return readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').split('\n')
  } catch {
    // Tracked and deleted, not yet committed.
    return []
  }
}
