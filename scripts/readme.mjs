/**
 * Puts into README.md what is made elsewhere: the first example's code and the event trees of two real runs. Each
 * stands between `<!-- name -->` and `<!-- /name -->`. With `--check` it says whether they are current.
 */
import { readFileSync } from 'node:fs'
import { plainTree, toolTree } from './event-trees.mjs'
import { generate } from './generated.mjs'

const textOf = (/** @type {string} */ path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const block = (/** @type {string} */ language, /** @type {string} */ text) =>
  `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``

const parts = {
  'first-agent': block('ts', textOf('examples/first-agent.ts')),
  'plain-turn': block('text', await plainTree()),
  'tool-turn': block('text', await toolTree()),
}

let readme = textOf('README.md')
for (const [name, part] of Object.entries(parts)) {
  const place = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`)
  if (!place.test(readme)) throw new Error(`README.md has no place for ${name}`)
  readme = readme.replace(place, (_, start, end) => `${start}${part}\n${end}`)
}
generate({ 'README.md': readme }, 'npm run readme')
