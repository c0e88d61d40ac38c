/** Reads what the file tools answered, and says which files are worth reading and which lines worth quoting. */
import type { Answered } from './conversation.ts'
import { asksForChores, asksForOverview, wordsIn } from './words.ts'

/** A line of a file. */
export interface Line {
  readonly path: string
  readonly line: number
  readonly text: string
}

const README = /(^|\/)readme(\.\w+)?$/i
const DOCS = /(^|\/)docs?\/|\.(md|txt|rst|adoc)$/i
const MANIFEST = /(^|\/)(package\.json|pyproject\.toml|cargo\.toml|makefile|go\.mod|composer\.json|gemfile|pom\.xml)$/i
const NOISE = /(^|\/)(node_modules|dist|build|coverage|vendor|\.git)\/|lock(\.json|\.yaml|file)?$|\.(min\.js|map|svg)$/i
/** They hold every word there is, mostly as examples. */
const TESTS = /(^|\/)(tests?|specs?|__tests__)\/|\.(test|spec)\.\w+$/i

/** The paths in the answers of list_files, folders (ending in `/`) left out. */
export function listedFiles(answers: readonly Answered[]): readonly string[] {
  const lines = succeeded(answers).flatMap((answer) => answer.text.split('\n'))
  return lines.filter((line) => line !== '' && !line.endsWith('/') && !isRemark(line))
}

/** The hits in the answers of search_text: `path:line: text`, one a line. */
export function searchHits(answers: readonly Answered[]): readonly Line[] {
  return succeeded(answers).flatMap((answer) => answer.text.split('\n').flatMap(hit))
}

function hit(line: string): Line[] {
  const match = /^(.+?):(\d+):\s?(.*)$/.exec(line)
  return match ? [{ path: match[1] ?? '', line: Number(match[2]), text: match[3] ?? '' }] : []
}

/** The lines of a read_file answer, the tool's own last word in brackets left out. */
export function readLines(path: string, text: string): readonly Line[] {
  const lines = text.split('\n').map((line, index) => ({ path, line: index + 1, text: line }))
  return isRemark(lines.at(-1)?.text ?? '') ? lines.slice(0, -1) : lines
}

/** What a tool says about its answer stands in brackets, on a line of its own. */
const isRemark = (line: string): boolean => /^\[.* .*\]$/.test(line)

const succeeded = (answers: readonly Answered[]) => answers.filter((answer) => !answer.isError)

/** At most `max` files worth reading, the best first; README and documents win ties. */
export function bestFiles(
  question: string,
  words: readonly string[],
  known: { readonly files: readonly string[]; readonly hits: readonly Line[] },
  max = 3,
): readonly string[] {
  const paths = [...new Set([...known.hits.map((line) => line.path), ...known.files])]
  const scored = paths.map((path) => ({ path, score: scoreFile(path, question, words, known.hits) }))
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || rank(b.path) - rank(a.path) || depth(a.path) - depth(b.path) || order(a, b))
    .slice(0, max)
    .map(({ path }) => path)
}

const rank = (path: string): number => (README.test(path) ? 2 : DOCS.test(path) ? 1 : 0)
const depth = (path: string): number => path.split('/').length
const order = (a: { path: string }, b: { path: string }): number => (a.path < b.path ? -1 : 1)

/** Hits count by how rare their word is; names, and the files such questions are usually answered by, add to it. */
function scoreFile(path: string, question: string, words: readonly string[], hits: readonly Line[]): number {
  const here = hits.filter((line) => line.path === path)
  const found = words.map((word) => {
    const all = hits.filter((line) => wordsIn(line.text, [word]).length > 0).length
    const mine = here.filter((line) => wordsIn(line.text, [word]).length > 0).length
    return mine === 0 ? 0 : 1 + Math.min(mine, 5) / (1 + Math.log2(1 + all))
  })
  const named = wordsIn(path.replaceAll(/[/_-]/g, ' '), words).length * 1.5
  const atTop = depth(path) === 1
  const overview = asksForOverview(question) && README.test(path) ? (atTop ? 8 : 2) : 0
  const chores = asksForChores(question) && MANIFEST.test(path) ? (atTop ? 6 : 1) : 0
  const score = found.reduce((sum, value) => sum + value, 0) + named + overview + chores
  return NOISE.test(path) ? score / 10 : TESTS.test(path) ? score / 2 : score
}

/** At most `max` lines of a file worth quoting, in the file's order. */
export function quotable(question: string, words: readonly string[], lines: readonly Line[], max = 3): readonly Line[] {
  const opening = asksForOverview(question) && README.test(lines[0]?.path ?? '') ? openingOf(lines) : []
  const scored = lines.map((line) => ({ line, score: scoreLine(line.text, words) })).filter(({ score }) => score > 0)
  const best = scored.sort((a, b) => b.score - a.score || a.line.line - b.line.line).map(({ line }) => line)
  const chosen = [...new Set([...opening, ...best])].slice(0, max)
  return chosen.sort((a, b) => a.line - b.line)
}

/** What a document says of itself first: its title and its first sentence. */
function openingOf(lines: readonly Line[]): readonly Line[] {
  const said = lines.filter((line) => /\p{L}{2}/u.test(line.text) && !/^\s*(<|\[!|!\[|```)/.test(line.text))
  return said.slice(0, 2)
}

function scoreLine(text: string, words: readonly string[]): number {
  const found = wordsIn(text, words)
  if (found.length === 0) return 0
  const isKey = found.some((word) => new RegExp(`^\\s*["']?${escaped(word)}s?["']?\\s*[:=]`, 'i').test(text))
  const isHeading = /^\s*#{1,6} /.test(text)
  const isCommand = /`|^\s*(\$|npm|npx|yarn|pnpm|make|cargo|go|python|pytest|node)\b/.test(text)
  return found.length + (isKey ? 1.5 : 0) + (isHeading ? 0.5 : 0) + (isCommand ? 0.5 : 0)
}

const escaped = (word: string): string => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
