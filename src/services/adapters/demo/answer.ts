/** What the demo model says in the end. Every answer says first what is speaking. */
import type { ToolSchema } from '../../../log/requests.ts'
import type { Answered } from './conversation.ts'
import type { Directive } from './directive.ts'
import { type Line, listedFiles, quotable, readLines, searchHits } from './evidence.ts'
import { wordsIn } from './words.ts'

/** Stands at the head of every answer. */
export const DEMO_LABEL = 'demo model: a small rule-based reader, not a language model'

const QUOTE_WIDTH = 100
const OUTPUT_LINES = 12

const says = (...parts: readonly string[]): string => [`(${DEMO_LABEL})`, ...parts.filter(Boolean)].join('\n\n')

/** For a greeting, or words that name nothing to look for. */
export function introduce(tools: readonly ToolSchema[]): string {
  return says(
    'Hello. I can look for the words of a question in this folder and quote the lines I find, and I follow\n' +
      '`read PATH`, `write PATH: TEXT` and `run: COMMAND`.',
    tools.length === 0 ? 'There are no tools here, so for now I can only say this.' : `Tools: ${named(tools)}.`,
  )
}

/** For a prompt whose tool is not there. */
export const lacking = (tool: string, tools: readonly ToolSchema[]): string =>
  says(`I would need ${tool} for that, and it is not among my tools (${tools.length === 0 ? 'none' : named(tools)}).`)

const named = (tools: readonly ToolSchema[]): string => tools.map(({ name }) => name).join(', ')

/** What became of each directive, in order, and which were not tried. */
export function answerDirectives(orders: readonly Directive[], done: readonly Answered[]): string {
  const reports = done.map((call, index) => {
    const order = orders[index]
    const what = order === undefined ? call.name : described(order)
    return `${what} ${call.isError ? 'did not succeed' : 'is done'}:\n${excerpt(call.text)}`
  })
  const left = orders.slice(done.length).map((order) => `${described(order)} was not tried.`)
  return says(...reports, ...left)
}

function described(directive: Directive): string {
  return directive.kind === 'run' ? `run: ${directive.command}` : `${directive.kind} ${directive.path}`
}

function excerpt(text: string): string {
  const lines = text.trimEnd().split('\n')
  const shown = lines.slice(0, OUTPUT_LINES).map((line) => `  ${clipped(line)}`)
  return [...shown, ...(lines.length > OUTPUT_LINES ? [`  (${lines.length - OUTPUT_LINES} more lines)`] : [])].join(
    '\n',
  )
}

/** The lines that bear on the question with where they stand, then what was not found and what failed. */
export function answerQuestion(question: string, words: readonly string[], done: readonly Answered[]): string {
  const files = listedFiles(done.filter(({ name }) => name === 'list_files'))
  const quotes = quotesFor(question, words, done)
  const missing = words.filter(
    (word) => !quotes.some(({ path, text }) => wordsIn(`${path} ${text}`, [word]).length > 0),
  )
  return says(
    lookedAt(words, files, done),
    quotes.map(quoted).join('\n'),
    missing.length === 0
      ? ''
      : `I found nothing${quotes.length > 0 ? ' to quote' : ''} about ${list(missing.map(inQuotes))}.`,
    failures(done),
  )
}

function lookedAt(words: readonly string[], files: readonly string[], done: readonly Answered[]): string {
  const listed = done.some(({ name, isError }) => name === 'list_files' && !isError)
  if (listed && files.length === 0) return 'The folder has no files I can see.'
  const where = listed ? ` in ${files.length} ${files.length === 1 ? 'file' : 'files'}` : ''
  const read = readings(done).map(({ path }) => path)
  return `I looked for ${list(words.map(inQuotes))}${where}${read.length > 0 ? ` and read ${list(read)}` : ''}.`
}

/** Quotes from what was read; where nothing could be read, the search's own hits. */
function quotesFor(question: string, words: readonly string[], done: readonly Answered[]): readonly Line[] {
  const fromFiles = readings(done).flatMap(({ path, text }) => quotable(question, words, readLines(path, text)))
  if (fromFiles.length > 0) return fromFiles
  return quotable(question, words, searchHits(done.filter(({ name }) => name === 'search_text')), 8)
}

function readings(done: readonly Answered[]): readonly { path: string; text: string }[] {
  const read = done.filter(({ name, isError }) => name === 'read_file' && !isError)
  return read.map(({ args, text }) => ({ path: String(args.path ?? args.file ?? ''), text }))
}

function failures(done: readonly Answered[]): string {
  const failed = done.filter(({ isError }) => isError)
  const line = ({ name, args, text }: Answered) =>
    `${name} ${Object.values(args).map(String).join(' ')}`.trimEnd() +
    ` did not succeed: ${clipped(text.split('\n')[0] ?? '')}`
  return failed.map(line).join('\n')
}

const quoted = ({ path, line, text }: Line): string => `${path}:${line}  ${clipped(text.trim())}`
const clipped = (text: string): string => (text.length > QUOTE_WIDTH ? `${text.slice(0, QUOTE_WIDTH - 1)}…` : text)
const inQuotes = (word: string): string => `"${word}"`
const list = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
