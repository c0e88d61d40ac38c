/** What a question is about: its salient words, lower case, without stop words and plural endings. */

const STOP_WORDS = new Set(
  (
    'a about all also am an and any are as at be been by can could describe did do does explain file files find folder ' +
    'for from get give had has have hello help hey hi how i if in into is it its know list look may me might must my ' +
    'no not of on one or our please say see shall she should show so some tell than thank thanks that the their them ' +
    'then there these they this those to us use used uses using want was we were what when where which who whose why ' +
    'will with would yes you your'
  ).split(' '),
)

/** Words that ask for the whole rather than for a detail. */
const OVERVIEW = /\b(what is (this|it)|about|project|overview|purpose|summar(y|ise|ize)|readme)\b/i

/** Words whose answer usually stands in a manifest. */
const CHORES = /\b(run|test|build|install|start|script|command|depend|version|licen[cs]e)/i

export const asksForOverview = (question: string): boolean => OVERVIEW.test(question)
export const asksForChores = (question: string): boolean => CHORES.test(question)

/** The question's salient words in its order, each once, at most `max`. */
export function salientWords(question: string, max = 5): readonly string[] {
  const words = question.toLowerCase().match(/[\p{L}\p{N}_]+(?:[.-][\p{L}\p{N}_]+)*/gu) ?? []
  const salient = words.filter((word) => word.length > 1 && !STOP_WORDS.has(word)).map(singular)
  return [...new Set(salient)].slice(0, max)
}

/** A plural's stem: `stories` → `story`, `classes` → `class`, `tests` → `test`; other words as they are. */
export function singular(word: string): string {
  if (word.length < 4 || /(ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}

/** The salient words that stand in a line, in any of their forms: `run` in `running` and `runTests`, not in `runtime`. */
export function wordsIn(line: string, words: readonly string[]): readonly string[] {
  const lower = line.toLowerCase()
  return words.filter((word) => stands(word, line, lower))
}

const ENDING = /^(?:\p{Ll}?(?:s|es|ed|er|ers|ing|ings))?(?!\p{Ll})/u

function stands(word: string, line: string, lower: string): boolean {
  // `story` also stands in `stories`.
  const stem = word.endsWith('y') ? word.slice(0, -1) : word
  for (let at = lower.indexOf(stem); at >= 0; at = lower.indexOf(stem, at + 1)) {
    const rest = line.slice(at + stem.length)
    if (begins(line, at) && ENDING.test(stem === word ? rest : rest.replace(/^(?:y|ies)/, ''))) return true
  }
  return false
}

/** After something that is no letter, or at a hump: `Tests` in `runTests`. */
function begins(line: string, at: number): boolean {
  const before = line[at - 1] ?? ' '
  return !/[\p{L}\p{N}]/u.test(before) || (/\p{Ll}/u.test(before) && /\p{Lu}/u.test(line[at] ?? ''))
}
