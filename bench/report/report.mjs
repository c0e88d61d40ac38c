/**
 * From the run that is kept: the picture, and the results in docs/benchmarks.md. `npm run bench:picture` writes them;
 * with `--check` it says whether they are current.
 */
import { existsSync, readFileSync } from 'node:fs'
import { generate } from '../../scripts/generated.mjs'
import { pictureOf } from './picture.mjs'
import { KEPT, readResults } from './results.mjs'
import { withSection } from './section.mjs'

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)

export function writeReport() {
  // Until a whole run was kept, the page has no results.
  if (!existsSync(KEPT)) return
  const results = readResults(KEPT)
  const page = withSection(readFileSync(PAGE, 'utf8'), results)
  generate({ 'docs/benchmarks.svg': pictureOf(results), 'docs/benchmarks.md': page }, 'npm run bench:picture')
}
