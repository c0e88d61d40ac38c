/**
 * Globs without regular expressions, so that no pattern a model writes can take more than linear time per star:
 * `*` and `?` within a name, `**` over folders, `{a,b}`. Brackets are literal, since paths have them.
 */
import { WorkspaceError } from './errors.ts'

/** Braces may multiply; more alternatives than this are refused. */
const MAX_ALTERNATIVES = 64

/**
 * A predicate over slash-separated paths. A glob without a slash is matched with the file's name, at any depth.
 * @throws WorkspaceError INVALID_GLOB
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const patterns = alternatives(glob).map((one) => {
    const names = one.replace(/^\.?\//, '').split('/')
    return names.length === 1 ? ['**', ...names] : names
  })
  return (path) =>
    patterns.some((names) => matches({ pattern: names, items: path.split('/'), star: '**', one: nameMatches }))
}

const nameMatches = (pattern: string, name: string): boolean =>
  matches({ pattern: [...pattern], items: [...name], star: '*', one: (want, have) => want === '?' || want === have })

function alternatives(glob: string): string[] {
  const done: string[] = []
  const open = [glob]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [whole, inner] = /\{([^{}]*)\}/.exec(next) ?? []
    if (whole === undefined || inner === undefined) done.push(next)
    else for (const option of inner.split(',').reverse()) open.push(next.replace(whole, () => option))
    if (done.length + open.length > MAX_ALTERNATIVES) {
      throw new WorkspaceError(
        'INVALID_GLOB',
        `The glob has more than ${MAX_ALTERNATIVES} alternatives: use fewer braces`,
      )
    }
  }
  return done
}

/** A star takes any run of items. Only the last star is ever moved, which is enough and keeps it quadratic at worst. */
function matches(what: {
  pattern: readonly string[]
  items: readonly string[]
  star: string
  one: (pattern: string, item: string) => boolean
}): boolean {
  const { pattern, items, star, one } = what
  let at = 0
  let item = 0
  let retry: { at: number; item: number } | undefined
  while (item < items.length) {
    const want = pattern[at]
    if (want === star) {
      retry = { at: at + 1, item }
      at += 1
    } else if (want !== undefined && one(want, items[item] ?? '')) {
      at += 1
      item += 1
    } else if (retry !== undefined) {
      retry.item += 1
      at = retry.at
      item = retry.item
    } else {
      return false
    }
  }
  return pattern.slice(at).every((rest) => rest === star)
}
