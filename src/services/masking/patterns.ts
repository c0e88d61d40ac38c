/**
 * Secrets known by how they look or by what stands before them. A short list on purpose: what is masked is gone, also
 * from the code and the prose that an agent works on. Each pattern is atoms and then a value, so that the same list
 * says what is a secret and what may yet become one.
 */
import { beginningsOf } from './beginnings.ts'
import { MARK, type Span } from './spans.ts'

interface Pattern {
  /** Regular expressions of what comes before the value, one after the other. */
  readonly lead: readonly string[]
  /** The value, as long as it can be. */
  readonly value: string
  /** What a value may be while it is still coming. */
  readonly open: string
  /** The lead is part of the secret. */
  readonly whole?: true
  /** Letters of the lead are taken as they are. */
  readonly exact?: true
  readonly as?: string
  /** A last word on a value that has the form. */
  accepts?(value: string): boolean
}

/** Keys whose values are masked, in JSON and (the credentials among them) in text; `-` and `_` may part the words. */
const SECRET_KEYS = [
  'authorization',
  'proxy authorization',
  'cookie',
  'set cookie',
  'api key',
  'x api key',
  'access token',
  'refresh token',
  'id token',
  'auth token',
  'x auth token',
  'session token',
  'client secret',
  'secret key',
  'secret access key',
  'aws secret access key',
  'private key',
  'password',
  'passwd',
  'secret',
] as const

const PLAIN_KEYS: ReadonlySet<string> = new Set(SECRET_KEYS.map((words) => words.replaceAll(' ', '')))

/** Whether a key of a JSON object says that its value is a secret; case, `-` and `_` do not matter. */
export const isSecretKey = (key: string): boolean =>
  key.length <= 32 && PLAIN_KEYS.has(key.toLowerCase().replaceAll(/[-_]/g, ''))

const letters = (word: string): string[] => [...word].map((char) => (/[a-z0-9]/i.test(char) ? char : `\\${char}`))
const words = (text: string): string[] => [...text].map((char) => (char === ' ' ? '[-_]?' : char))

/** No letter, digit or mark before (what was masked began no word), or a letter of an escape of JSON: a line's end. */
const EDGE = '(?:(?<![A-Za-z0-9]|\\[secret\\])|(?<=\\\\[nrtbf]))'
const afterEdge = (atoms: readonly string[]): string[] => [EDGE + (atoms[0] ?? ''), ...atoms.slice(1)]
/** `: ` or `=`, with the quotes that code and JSON put around names and values, also inside a JSON string. */
const SEPARATOR = ['\\\\*["\']?', '[ \\t]*', '[:=]', '[ \\t]*', '\\\\*["\']?']
const CREDENTIAL = '[A-Za-z0-9._~+/%-]'
const NOT_CALLED = '(?![A-Za-z0-9._~+/%=({[-])'

/** Words are no credentials, and neither are names in code; they are what one reads about credentials. */
const isWord = (value: string): boolean =>
  /^(?:[A-Za-z][a-z]{0,14}|[A-Z]{1,15})(?:[-_/](?:[A-Za-z][a-z]{0,14}|[A-Z]{1,15}))*[.=]*$/.test(value)
const looksSecret = (value: string): boolean =>
  !isWord(value) && (/\d/.test(value) || (value.length >= 20 && !value.includes('.')))

function isBasic(value: string): boolean {
  const text = Buffer.from(value, 'base64').toString('utf8')
  return text.includes(':') && !/[\p{Cc}\ufffd]/u.test(text)
}

const credential = (lead: readonly string[], accepts: (value: string) => boolean, least: number): Pattern => ({
  lead,
  value: `${CREDENTIAL}{${least},}=*${NOT_CALLED}`,
  open: `${CREDENTIAL}*=*`,
  accepts,
})

const prefixed = (prefix: string, accepts: (value: string) => boolean = () => true): Pattern => ({
  lead: afterEdge(letters(prefix)),
  value: '[A-Za-z0-9_-]{8,}',
  open: '[A-Za-z0-9_-]*',
  whole: true,
  exact: true,
  accepts,
})

const amazon = (prefix: string): Pattern => ({
  lead: afterEdge(letters(prefix)),
  value: '[A-Z0-9]{16}(?![A-Za-z0-9]|\\[secret\\])',
  open: '[A-Z0-9]{0,16}',
  whole: true,
  exact: true,
})

const PEM_BODY = '(?:[A-Za-z0-9+/=\\s\\\\:,]|-(?!----))*(?:-----END [A-Z0-9 ]{0,40}-----)?'

const TEXT: readonly Pattern[] = [
  // Authorization: Bearer xxx, also proxy-authorization; the scheme makes anything after it a credential.
  ...['bearer', 'basic', 'token', 'apikey'].map((scheme) =>
    credential([...afterEdge(letters('authorization')), ...SEPARATOR, ...letters(scheme), '[ \\t]+'], () => true, 4),
  ),
  credential([...afterEdge(letters('authorization')), ...SEPARATOR], looksSecret, 6),
  credential([...afterEdge(letters('bearer')), '[ \\t]+'], (value) => !isWord(value), 6),
  credential([...afterEdge(letters('basic')), '[ \\t]+'], isBasic, 6),
  ...['api key', 'access token', 'refresh token', 'auth token', 'client secret', 'secret access key'].map((name) =>
    credential([...afterEdge(words(name)), ...SEPARATOR], looksSecret, 6),
  ),
  {
    lead: [...afterEdge(letters('cookie')), '[ \\t]*', ':', '[ \\t]*'],
    value: '[\\w.-]+=(?!\\[secret\\])[^\\r\\n"\'\\\\]+',
    open: '[\\w.-]*(?:=[^\\r\\n"\'\\\\]*)?',
  },
  prefixed('sk-', (value) => !isWord(value)),
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'xoxa-', 'xoxb-', 'xoxp-', 'xoxr-', 'xoxs-'].map(
    (prefix) => prefixed(prefix),
  ),
  amazon('AKIA'),
  amazon('ASIA'),
  ...['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED '].map(
    (kind): Pattern => ({
      lead: letters(`-----BEGIN ${kind}PRIVATE KEY-----`),
      value: PEM_BODY,
      open: '[A-Za-z0-9+/=\\s\\\\:,-]*',
      whole: true,
      exact: true,
    }),
  ),
  // https://user:password@host
  {
    lead: ['(?<=[a-z0-9])\\:', '\\\\?\\/', '\\\\?\\/'],
    value: '[^\\s/?#@:"\'<>{}$\\\\[\\]]*:[^\\s/?#@"\'<>{}$\\\\[\\]]+(?=@)',
    open: '[^\\s/?#@"\'<>{}$\\\\[\\]]*',
  },
  ...['key', 'token', 'sig', 'signature', 'password'].map((name) =>
    credential(['[?&]', ...letters(name), '='], looksSecret, 6),
  ),
]

/** A key of a JSON object and its value: a string, a number, or a list as a whole. */
const JSON_KEYS: readonly Pattern[] = SECRET_KEYS.flatMap((key) => {
  const lead = ['(?<!\\\\)"', ...words(key), '"', '\\s*', ':', '\\s*']
  return [
    {
      lead: [...lead, '"'],
      value: '(?!\\[secret\\])(?:[^"\\\\]|\\\\[\\s\\S])+',
      open: '(?:[^"\\\\]|\\\\[\\s\\S])*\\\\?',
    },
    { lead: [...lead, '(?=[-\\d])'], value: '-?\\d[\\d.eE+-]*(?![\\w.+[-])', open: '[\\d.eE+-]*', as: `"${MARK}"` },
    {
      lead: [...lead, '(?=\\[)(?!\\[secret\\])'],
      value: '\\[(?:[^\\]"]|"(?:[^"\\\\]|\\\\[\\s\\S])*")+\\]?',
      open: '\\[(?:[^\\]"]|"(?:[^"\\\\]|\\\\[\\s\\S])*")*(?:"(?:[^"\\\\]|\\\\[\\s\\S])*\\\\?)?',
      as: `["${MARK}"]`,
    },
  ]
})

export interface Patterns {
  /** False if nothing in the text is a secret, or the beginning of one. Fast. */
  suspects(text: string, from?: number): boolean
  /** False if `suspects` would be, of `before` and `text` from where `text` begins. Faster: the two are not put together. */
  mayBegin(text: string, before: string): boolean
  /** What begins at `from` (0) or after; what is before is looked at only to tell where words begin. */
  find(text: string, from?: number): readonly Span[]
  /** The first place from which the end of the text may become a secret, or a longer one; its length if there is none. */
  open(text: string, from?: number): number
}

const compile = (patterns: readonly Pattern[]): Patterns => {
  const suspect = new RegExp(
    tree(patterns, () => ''),
    'gi',
  )
  const open = new RegExp(
    tree(patterns, ({ open }) => `${open}$`),
    'gi',
  )
  const lead = new RegExp(patterns.map((pattern) => pattern.lead.join('')).join('|'), 'gi')
  let mayBegin: ReturnType<typeof beginningsOf> | undefined
  const suspects = (text: string, from = 0): boolean => {
    mayBegin ??= beginningsOf(suspect)
    return mayBegin(text, from) && first(suspect, text, from) >= 0
  }
  const rules = patterns.map((pattern) => ({
    pattern,
    regex: new RegExp(`${pattern.lead.join('')}(${pattern.value})`, pattern.exact ? 'g' : 'gi'),
  }))
  return {
    suspects,
    mayBegin(text, before) {
      mayBegin ??= beginningsOf(suspect)
      return mayBegin(text, 0, before)
    },
    find: (text, from = 0) =>
      !suspects(text, from) || first(lead, text, from) < 0
        ? []
        : rules.flatMap((rule) => matches(rule.pattern, rule.regex, text, from)),
    open(text, from = 0) {
      const at = first(open, text, from)
      return at < 0 ? text.length : at
    },
  }
}

function first(regex: RegExp, text: string, from: number): number {
  regex.lastIndex = from
  return regex.exec(text)?.index ?? -1
}

function matches({ whole, as = MARK, accepts }: Pattern, regex: RegExp, text: string, from: number): Span[] {
  const spans: Span[] = []
  regex.lastIndex = from
  for (let found = regex.exec(text); found !== null; found = regex.exec(text)) {
    const value = found[1] ?? ''
    const end = found.index + found[0].length
    const start = whole ? found.index : end - value.length
    if (accepts?.(whole ? found[0] : value) ?? true) spans.push({ from: found.index, start, end, as })
    // What looked like a value may be a lead itself: `Bearer Bearer xxx`.
    else if (start > found.index) regex.lastIndex = start
    if (found[0] === '') regex.lastIndex += 1
  }
  return spans
}

/** The leads as one tree, each way through which may end with the text, or with what `end` gives. */
function tree(patterns: readonly Pattern[], end: (pattern: Pattern) => string): string {
  const grow = (at: readonly Pattern[], depth: number): string => {
    const branches = new Map<string, Pattern[]>()
    const ends = new Set<string>()
    for (const pattern of at) {
      const atom = pattern.lead[depth]
      if (atom === undefined) ends.add(end(pattern))
      else branches.set(atom, [...(branches.get(atom) ?? []), pattern])
    }
    const ways = [...branches].map(([atom, rest]) => `${atom}(?:$|${grow(rest, depth + 1)})`)
    return [...ways, ...ends].join('|')
  }
  return grow(patterns, 0)
}

/** For any text. */
export const textPatterns: Patterns = compile(TEXT)

/** For text that is JSON, or holds some: keys that say what their value is. */
export const jsonPatterns: Patterns = compile([...TEXT, ...JSON_KEYS])
