/** The results in docs/benchmarks.md: written from data, never by hand. */
import { linesOf } from '../harness/table.mjs'
import { budgetTable, heldTo } from './budget.mjs'

/** Where it stands in the page. */
const PLACE = /(<!-- results -->\n)[\s\S]*?(<!-- \/results -->)/

/** @param {string} page @param {import('./results.mjs').Results} results @returns the page with the section of `results` */
export function withSection(page, results) {
  if (!PLACE.test(page))
    throw new Error('docs/benchmarks.md has no place between <!-- results --> and <!-- /results -->')
  return page.replace(PLACE, (_, start, end) => `${start}${sectionOf(results)}\n${end}`)
}

/** @param {import('./results.mjs').Results} results */
function sectionOf({ machine, load, rounds, results }) {
  const { date, node, cpu, cores, memoryGB, os, versions } = machine
  const compared = Object.entries(versions).map(([name, version]) => `\`${name}\` ${version}`)
  const loads = (/** @type {number[]} */ [one = 0, five = 0]) => `${one} over a minute, ${five} over five`
  const tables = results.flatMap(({ tables: of }) => of)
  return [
    `\`npm run bench -- --write\` on ${date}: Node ${node}, ${cores} cores of ${cpu}, ${memoryGB} GB, ${os}; medians of ${rounds}`,
    `rounds. Load ${loads(load.before)} at the start, and ${loads(load.after)} at the end: the`,
    `benchmarks themselves want a core or two, and with more than ${cores} the figures are those of a busy machine.`,
    '',
    `Versions: ${compared.join(', ')}.`,
    '',
    '![How long others take, as a multiple of what Pawl takes](benchmarks.svg)',
    '',
    linesOf(budgetTable(heldTo(results))),
    ...tables.flatMap((table) => ['', linesOf(table)]),
  ].join('\n')
}
