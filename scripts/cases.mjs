/**
 * Which acceptance cases are covered by a test that names their id in brackets, which are decided otherwise in
 * docs/deviations.md, and which are missing. The same for the known failures of such systems (HIS, RUN, LOG, XST, NET).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const { cases, failures } = JSON.parse(readFileSync('tests/cases/ids.json', 'utf8'))
/** Areas of known failures that every row of must be answered for; the others are covered where they apply. */
const ANSWERED = ['HIS', 'RUN', 'LOG', 'XST', 'NET']

/** @param {string} folder @returns {string[]} */
const files = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))

const tests = files('tests')
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n')
const tested = new Set([...tests.matchAll(/\[([a-z]+-\d{3}|[A-Z]{3}-\d{2})\]/g)].map(([, id]) => id))
const decided = new Set(
  [...readFileSync('docs/deviations.md', 'utf8').matchAll(/\b([a-z]+-\d{3}|[A-Z]{3}-\d{2})\b/g)].map(([, id]) => id),
)

/** @param {Record<string, number[]>} areas @param {number} digits */
const idsOf = (areas, digits) =>
  Object.entries(areas).flatMap(([area, numbers]) => numbers.map((n) => `${area}-${String(n).padStart(digits, '0')}`))

/** @param {string} name @param {string[]} ids */
function report(name, ids) {
  const covered = ids.filter((id) => tested.has(id))
  const replaced = ids.filter((id) => !tested.has(id) && decided.has(id))
  const missing = ids.filter((id) => !tested.has(id) && !decided.has(id))
  console.log(`${name}: ${covered.length} covered, ${replaced.length} replaced, ${missing.length} missing`)
  const areas = groupBy(missing)
  for (const [area, list] of Object.entries(areas))
    console.log(`  ${area}: ${(list ?? []).map((id) => id.split('-')[1]).join(' ')}`)
  return missing.length
}

/** @param {string[]} ids @returns {Record<string, string[]>} */
function groupBy(ids) {
  /** @type {Record<string, string[]>} */
  const groups = {}
  for (const id of ids) {
    const area = id.split('-')[0] ?? ''
    groups[area] = [...(groups[area] ?? []), id]
  }
  return groups
}

const wanted = Object.fromEntries(Object.entries(failures).filter(([area]) => ANSWERED.includes(area)))
const missing = report('cases', idsOf(cases, 3)) + report('known failures', idsOf(wanted, 2))
process.exitCode = missing > 0 ? 1 : 0
